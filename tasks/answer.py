"""What is the answer, and where does each part of it stand? (StructRAG, section 2.4: extract and infer)

The links of a chain are answered one after another, each with evidence searched for it. Every claim is bound to the
place of its evidence, and every citation is checked against the stored text.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from prompts.answer import POINTED, AnswerStep
from prompts.language.asked import Ask
from prompts.language.question import ask
from prompts.language.words import WORD
from prompts.reading.chains import fill, needs
from prompts.reading.claims import Claim, Desk, Reading, Support, ending, quoted
from prompts.reading.compare import Figure, amount_of, ranked
from prompts.reading.evidence import Evidence
from prompts.reading.excerpt import excerpt
from prompts.reading.formats import shaped
from prompts.reading.lookup import look_up
from prompts.reading.relevance import Relevance
from prompts.reading.support import supports
from storage.records import Citation, Document, SubQuestion
from tasks.evidence import Place, Pool, cite
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
    text, citations = bind(reading, pool, structured.elements, reach.documents, taken)
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
    """What all links say, the last one first: it holds the answer, the others lead to it."""
    return tuple({said: None for link in reversed(solved) for said in link.reading.claims})


def _plain(reading: Reading) -> str:
    return " ".join([reading.lead, *(claim.text for claim in reading.claims)]).strip()


def _chunks(reading: Reading, pool: Pool) -> tuple[str, ...]:
    numbers = (number for said in reading.claims for number in said.evidence)
    return tuple(dict.fromkeys(pool.places[number].chunk for number in numbers))


def bind(
    reading: Reading,
    pool: Pool,
    elements: Sequence[Evidence],
    documents: Documents,
    ask: Ask | None = None,
) -> tuple[str, tuple[Citation, ...]]:
    """The answer's text with markers, in the form that the question wants, and the citations in the order of the
    markers.

    Where the question asks for one thing, what is quoted of a long sentence is the stretch that shows it.
    """
    pieces = {piece.number: piece for piece in (*pool.evidence, *elements)}
    shown: dict[int, Shown] = {}
    lines = []
    for said in reading.claims:
        text = said.text
        for number in said.evidence:
            if number not in shown:
                shown[number] = _shown(len(shown) + 1, pieces[number], said, reading, ask)
        if len(said.evidence) == 1 and text == quoted(pieces[said.evidence[0]]):
            text = " ".join(shown[said.evidence[0]].quote.split())
        lines.append(f"{text} {''.join(f'[{shown[number].marker}]' for number in said.evidence)}".strip())
    stored = documents([pool.places[number].document for number in shown])
    told = _supportive(reading, pieces, ask)
    citations = tuple(
        cite(one.marker, one.of(pool.places[number]), stored, one.quote, supportive=number in told)
        for number, one in shown.items()
    )
    lines = list(dict.fromkeys(lines))  # two points may rest on one sentence
    text = "\n".join([reading.lead, *lines] if reading.lead else lines)
    if ask is None or not ask.format or reading.support == "abstained":
        return text, citations
    return shaped(ask.format, text, reading.values, lines, [one.marker for one in citations]), citations


@dataclass(frozen=True)
class Shown:
    """What is quoted of a piece of evidence: its marker's number and the span of the quote within the piece."""

    marker: int
    quote: str
    start: int

    def of(self, place: Place) -> Place:
        """The place of the quote, of a piece that stands at `place`."""
        start = place.start + self.start
        return place.model_copy(update={"start": start, "end": start + len(self.quote)})


def _shown(marker: int, piece: Evidence, said: Claim, reading: Reading, ask: Ask | None) -> Shown:
    """The whole piece, or of a long sentence the stretch with the value, or with most of what is said."""
    if ask is None or ask.form not in POINTED or piece.cells or piece.attribute == "step":
        return Shown(marker, piece.text, 0)
    words = said.text if said.text != quoted(piece) else ask.text
    held = [value for value in reading.values if value in piece.text]
    start, end = excerpt(piece.text, [*held, *WORD.findall(words)])
    return Shown(marker, piece.text[start:end], start)


def _supportive(reading: Reading, pieces: Mapping[int, Evidence], ask: Ask | None) -> set[int]:
    """The pieces that support a sentence which cites them, by themselves or with the others that it cites."""
    question = ask.text if ask else ""
    found: set[int] = set()
    for said in reading.claims:
        cited = [pieces[number] for number in said.evidence]
        quotes = all(quoted(piece) in said.text for piece in cited)
        if quotes or supports(said.text, cited, question):
            found |= set(said.evidence)
    return found
