"""What is the answer, and where does each part of it stand? (StructRAG, section 2.4: extract and infer)

The links of a chain are answered one after another, each with evidence searched for it. Every claim is bound to the place
of its evidence, and every citation is checked against the stored text.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from prompts.answer import AnswerStep
from prompts.language.question import Ask, ask
from prompts.reading.chains import fill
from prompts.reading.claims import Desk, Reading, abstain
from prompts.reading.evidence import Evidence
from prompts.reading.lookup import look_up
from storage.records import Citation, Document, SubQuestion
from tasks.evidence import Pool, cite
from tasks.step import step
from tasks.structurize import Structured

# More evidence for a sub-question: (question, pool so far) → (pool with it, names in the question with their aliases).
LookUp = Callable[[str, Pool], Awaitable[tuple[Pool, Mapping[str, Sequence[str]]]]]
Documents = Callable[[Sequence[str]], Mapping[str, Document]]


@dataclass(frozen=True)
class Answered:
    """An answer with its citations bound."""

    text: str
    reading: Reading
    citations: tuple[Citation, ...]
    subquestions: tuple[SubQuestion, ...]


@step("answer")
async def answer(
    taken: Ask, parts: Sequence[str], structured: Structured, weights: Mapping[str, float],
    aliases: Mapping[str, Sequence[str]], answerer: AnswerStep, look: LookUp, documents: Documents,
) -> Answered:
    """Answer the parts, then the whole, and bind what was said to the documents."""
    pool = structured.pool
    solved: list[tuple[str, Reading]] = []
    if len(parts) > 1 and any("{" in part for part in parts):
        pool, solved = await _follow(parts, pool, weights, look)
    desk = Desk(taken, pool.evidence, structured.elements, weights, aliases)
    if solved and answerer.is_offline:
        reading = _joined(taken, solved)
    else:
        reading = await answerer.run(desk, [(part, _plain(found)) for part, found in solved])
    text, citations = bind(reading, pool, structured.elements, documents)
    subquestions = tuple(
        SubQuestion(question=part, answer=", ".join(found.values) or _plain(found), evidence=_chunks(found, pool))
        for part, found in (solved or [(part, reading) for part in parts])
    )
    return Answered(text, reading, citations, subquestions)


async def _follow(
    parts: Sequence[str], pool: Pool, weights: Mapping[str, float], look: LookUp
) -> tuple[Pool, list[tuple[str, Reading]]]:
    """Answer the links of a chain in order; it ends at the first link that has no answer."""
    solved: list[tuple[str, Reading]] = []
    values: list[str] = []
    for part in parts:
        question = fill(part, values)
        pool, aliases = await look(question, pool)
        reading = look_up(Desk(ask(question), pool.evidence, (), weights, aliases))
        solved.append((question, reading))
        if not reading.values:
            break
        values.append(reading.values[0])
    return pool, solved


def _joined(taken: Ask, solved: Sequence[tuple[str, Reading]]) -> Reading:
    """The last link's answer, with the claims of all links before it; abstains where the chain broke."""
    last = solved[-1][1]
    if last.support == "abstained":
        return abstain(taken)
    claims = tuple({c: None for _, reading in solved for c in reading.claims})
    lead = "" if not last.values else (f"{last.values[0]}。" if taken.chinese else f"{last.values[0]}.")
    return Reading(claims=claims, values=last.values, support=last.support, lead=lead)


def _plain(reading: Reading) -> str:
    return " ".join([reading.lead, *(claim.text for claim in reading.claims)]).strip()


def _chunks(reading: Reading, pool: Pool) -> tuple[str, ...]:
    numbers = (number for said in reading.claims for number in said.evidence)
    return tuple(dict.fromkeys(pool.places[number].chunk for number in numbers))


def bind(
    reading: Reading, pool: Pool, elements: Sequence[Evidence], documents: Documents
) -> tuple[str, tuple[Citation, ...]]:
    """The answer's text with markers, and the citations in the order of the markers."""
    used: dict[int, int] = {}
    lines = [reading.lead] if reading.lead else []
    for said in reading.claims:
        markers = [used.setdefault(number, len(used) + 1) for number in said.evidence]
        lines.append(f"{said.text} {''.join(f'[{marker}]' for marker in markers)}".strip())
    stored = documents([pool.places[number].document for number in used])
    quotes = {piece.number: piece.text for piece in (*pool.evidence, *elements)}
    citations = tuple(cite(marker, pool.places[number], stored, quotes[number]) for number, marker in used.items())
    return "\n".join(lines), citations

