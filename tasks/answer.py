"""What is the answer, and where does each part of it stand? (StructRAG, section 2.4: extract and infer)

The links of a chain are answered one after another, each with evidence searched for it. Every claim is bound to the
place of its evidence, and every citation is checked against the stored text.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from prompts.answer import AnswerStep
from prompts.language.asked import Ask
from prompts.language.question import ask
from prompts.reading.chains import fill, needs
from prompts.reading.claims import Claim, Desk, Reading, Support, ending
from prompts.reading.compare import Figure, amount_of, ranked
from prompts.reading.evidence import Evidence
from prompts.reading.lookup import look_up
from prompts.reading.relevance import Relevance
from storage.records import Citation, Document, SubQuestion
from tasks.evidence import Pool, cite
from tasks.step import step
from tasks.structurize.step import Structured

# More evidence for a sub-question: (question taken apart, pool so far) → (pool with it, judge of the sub-question).
LookUp = Callable[[Ask, Pool], Awaitable[tuple[Pool, Relevance]]]
Documents = Callable[[Sequence[str]], Mapping[str, Document]]


@dataclass(frozen=True)
class Reach:
    """What the answer may reach for beyond the evidence at hand: further searches, and documents by id."""

    look_up: LookUp
    documents: Documents


@dataclass(frozen=True)
class Solved:
    """A sub-question as it was asked in the end, with what was found."""

    question: str
    reading: Reading


@dataclass(frozen=True)
class Answered:
    """An answer with its citations bound."""

    text: str
    reading: Reading
    citations: tuple[Citation, ...]
    subquestions: tuple[SubQuestion, ...]


@step("answer")
async def answer(
    parts: Sequence[str], structured: Structured, relevance: Relevance, answerer: AnswerStep, reach: Reach
) -> Answered:
    """Answer the parts, then the whole, and bind what was said to the documents."""
    taken, pool = relevance.ask, structured.pool
    solved: list[Solved] = []
    if any(map(needs, parts)):
        pool, solved = await _follow(parts, pool, reach.look_up)
    desk = Desk(taken, pool.evidence, structured.elements, relevance)
    reading = _joined(taken, solved) if solved and answerer.is_offline else None
    if reading is None:
        reading = await answerer.run(desk, [(link.question, _plain(link.reading)) for link in solved])
        if solved and answerer.is_offline and reading.support != "abstained":
            # Near evidence, but not by the way that the question asks for: no value may be taken from it.
            reading = Reading(claims=reading.claims, support="partial")
    text, citations = bind(reading, pool, structured.elements, reach.documents)
    subquestions = tuple(
        SubQuestion(
            question=link.question,
            answer=", ".join(link.reading.values) or _plain(link.reading),
            evidence=_chunks(link.reading, pool),
        )
        for link in solved or [Solved(part, reading) for part in parts]
    )
    return Answered(text, reading, citations, subquestions)


def settled(reading: Reading, structured: Structured, documents: Documents) -> Answered:
    """A reading that needs no writing, bound to the documents."""
    text, citations = bind(reading, structured.pool, structured.elements, documents)
    return Answered(text, reading, citations, ())


async def _follow(parts: Sequence[str], pool: Pool, look_up_more: LookUp) -> tuple[Pool, list[Solved]]:
    """Answer the links of a chain in order; one that waits for an answer not found is not asked."""
    solved: list[Solved] = []
    values: dict[int, str] = {}
    for number, part in enumerate(parts, 1):
        if any(needed not in values for needed in needs(part)):
            continue
        taken = ask(fill(part, values))
        pool, relevance = await look_up_more(taken, pool)
        reading = look_up(Desk(taken, pool.evidence, (), relevance))
        solved.append(Solved(taken.text, reading))
        if reading.values:
            values[number] = reading.values[0]
    return pool, solved


def _joined(taken: Ask, solved: Sequence[Solved]) -> Reading | None:
    """The answer that the links give together, with the claims of all of them; None where the chain broke."""
    if taken.form == "compare":
        return _compared(taken, solved)
    last = solved[-1].reading
    if last.support == "abstained":
        return None
    lead = ending(last.values[0], taken) if last.values else ""
    return Reading(claims=_claims(solved), values=last.values, support=_weakest(solved), lead=lead)


def _compared(taken: Ask, solved: Sequence[Solved]) -> Reading | None:
    """The options by what was found of each at the end of its own chain; None unless each has a figure."""
    ends = [link.reading for link in solved[1::2]]
    if len(solved) != 2 * len(taken.options) or not all(end.values and end.claims for end in ends):
        return None
    figures = []
    for option, end in zip(taken.options, ends, strict=True):
        number = amount_of(end.values[0], "date")
        if number is None:
            return None
        shown = end.claims[0]
        piece = Evidence(number=shown.evidence[0], document="", title="", text=shown.text)
        figures.append(Figure(option, end.values[0], number, piece))
    first = ranked(taken, figures)
    return Reading(claims=_claims(solved), values=first.values, support=_weakest(solved), lead=first.lead)


def _weakest(solved: Sequence[Solved]) -> Support:
    return "partial" if any(link.reading.support != "none" for link in solved) else "none"


def _claims(solved: Sequence[Solved]) -> tuple[Claim, ...]:
    return tuple({said: None for link in solved for said in link.reading.claims})


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
