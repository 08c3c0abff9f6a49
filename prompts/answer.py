"""What is the answer, and which evidence shows each part of it?

On a model: written from numbered evidence, each sentence with its markers. Offline: read from the evidence by the
question's form, in the words of the source; nothing is added.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

import dspy
from pydantic import BaseModel, Field

from prompts.engine.drafts import Show, Withdrawn
from prompts.engine.models import Models
from prompts.engine.step import Step
from prompts.language.asked import Ask, Form
from prompts.reading.affirm import affirm
from prompts.reading.claims import Claim, Desk, Reading, abstain
from prompts.reading.compare import compare
from prompts.reading.evidence import Evidence
from prompts.reading.lookup import is_grounded, look_up, look_up_all, nearest_to
from prompts.reading.overview import about, connect, steps, summarise, themes
from prompts.reading.support import MOSTLY, adds, as_written, supports, unshown_figures, value_shown
from prompts.reading.sure import nearest
from prompts.tailoring.step import instructed

MAX_ELEMENTS = 6  # of one piece of evidence
EVIDENCE_TOKENS = 1400  # what a model reads of the evidence

_MARKER = re.compile(r"\s*\[(\d+(?:\s*,\s*\d+)*)\]")
_NUMBER = re.compile(r"\d+")
_SENTENCE_END = re.compile(r"^[\s.。;；]+|[\s.。]+$")


class AnswerWritten(BaseModel):
    """An answer with markers, its bare values, and whether the evidence supports it."""

    answer: str = Field(
        description="Each sentence ends with the numbers of its evidence, as [1] or [1, 2]. Empty if not answerable."
    )
    values: list[str] = Field(
        default_factory=list, description="The bare answers when entities, figures, dates or yes/no are asked."
    )
    answerable: bool = Field(description="False when the evidence does not say.")


class AnswerQuestion(dspy.Signature):
    """Answer from the numbered evidence alone, in the question's language, figures exactly as written. If it does not
    say, do not answer."""

    question: str = dspy.InputField()
    found: list[str] = dspy.InputField(desc="Answers to the sub-questions.")
    evidence: list[str] = dspy.InputField(desc="Some end with what was read out of them, in braces.")
    written: AnswerWritten = dspy.OutputField()


class AnswerStep(Step):
    """A question and its evidence → an answer whose claims name their evidence.

    `on_text` gets the draft in pieces while a model writes it, and Withdrawn where another one begins. A draft is for
    the screen: what it cites is unchecked. `language` is another one than the question's.
    """

    step = "answer"
    role = "answer"
    task = AnswerQuestion
    streams = "answer"

    def __init__(self, models: Models, on_text: Show | None = None, language: str = "") -> None:
        super().__init__(models)
        self.signature = instructed(self.task, "the question's language", "", language)
        self.on_text = on_text

    async def run(self, desk: Desk, found: Sequence[tuple[str, str]]) -> Reading:
        """`found` are (sub-question, answer) pairs."""
        if self.is_offline:
            return answer_offline(desk)
        offered, structure = _offered(desk), _structure(desk.elements)
        written = await self._written(
            question=desk.ask.text,
            found=[f"{question} {answer}" for question, answer in found],
            evidence=[
                f"[{number}] {piece.title}: {piece.text}{structure.get(number, '')}"
                for number, piece in sorted(offered.items())
            ],
        )
        return checked(read_written(written, set(offered), desk.ask), offered, desk.ask)

    async def _written(self, **inputs: object) -> AnswerWritten:
        """The whole answer; its draft goes to `on_text` where somebody watches."""
        if self.on_text is not None:
            async with aclosing(self.stream(**inputs)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, str | Withdrawn):
                        self.on_text(piece)
                    else:
                        drafted: AnswerWritten = piece.written
                        return drafted
        written: AnswerWritten = (await self.acall(**inputs)).written
        return written


def _offered(desk: Desk) -> dict[int, Evidence]:
    """What a model answers from, by number: the evidence nearest to the question and what the structure rests on."""
    pieces = {piece.number: piece for piece in [*desk.elements, *desk.evidence]}
    return {piece.number: piece for piece in nearest(list(pieces.values()), desk.relevance, EVIDENCE_TOKENS)}


def _structure(elements: Sequence[Evidence]) -> dict[int, str]:
    """What the structure makes of each piece of evidence: " {head -[relation]-> tail; row: cell}", by its number.

    Rows and steps say themselves what they are; only what was read out of prose is added.
    """
    found: dict[int, list[str]] = {}
    for element in elements:
        if element.cells or not element.label or not element.value or element.value == element.text:
            continue
        relation = f" -[{element.attribute}]-> " if element.attribute and element.attribute != element.text else ": "
        found.setdefault(element.number, []).append(f"{element.label}{relation}{element.value}")
    return {number: f" {{{'; '.join(made[:MAX_ELEMENTS])}}}" for number, made in found.items()}


def read_written(written: AnswerWritten, offered: set[int], ask: Ask) -> Reading:
    """Claims from a written answer; a number that names no offered evidence is dropped.

    Where a sentence is left without evidence the answer is supported only in part; where all are, nothing supports it.
    """
    if not written.answerable or not written.answer.strip():
        return abstain(ask)
    claims, at = [], 0
    for match in _MARKER.finditer(written.answer):
        numbers = tuple(dict.fromkeys(n for n in map(int, _NUMBER.findall(match.group(1))) if n in offered))
        text = _SENTENCE_END.sub("", written.answer[at : match.start()]).strip()
        at = match.end()
        if text:
            claims.append(Claim(text, numbers))
        elif claims:  # "[1][2]": further evidence of the same sentence
            claims[-1] = Claim(claims[-1].text, tuple(dict.fromkeys((*claims[-1].evidence, *numbers))))
    rest = _SENTENCE_END.sub("", written.answer[at:]).strip()
    if rest:
        claims.append(Claim(rest, ()))
    cited = [bool(said.evidence) for said in claims]
    if not any(cited):
        return abstain(ask)
    values = tuple(dict.fromkeys(value.strip() for value in written.values if value.strip()))
    return Reading(claims=tuple(claims), values=values, support="none" if all(cited) else "partial")


def checked(reading: Reading, offered: Mapping[int, Evidence], ask: Ask) -> Reading:
    """A written answer of which each sentence keeps only evidence that supports it.

    A sentence that cites the wrong piece gets the one that supports it, if any; one with a figure that no evidence has
    is taken out, and any other that nothing supports stays without a marker. Either way the answer is partly supported.
    """
    if reading.support == "abstained":
        return reading
    shown = "\n".join(f"{piece.title} {piece.text}" for piece in offered.values())
    written = [replace(said, text=as_written(said.text, shown)) for said in reading.claims]
    claims = [_supported(said, offered, ask.text) for said in written]
    kept = [said for said in claims if said.evidence or not unshown_figures(said.text, f"{shown}\n{ask.text}")]
    if not any(said.evidence for said in kept):
        return abstain(ask)
    values = tuple(as_written(value, shown) for value in reading.values)
    values = tuple(value for value in values if value_shown(value, shown, ask.text))
    whole = len(kept) == len(claims) and all(said.evidence for said in kept) and len(values) == len(reading.values)
    return replace(reading, claims=tuple(kept), values=values, support=reading.support if whole else "partial")


def _supported(said: Claim, offered: Mapping[int, Evidence], question: str) -> Claim:
    """The sentence with those of its pieces of evidence that support it, alone or together; else with another piece."""
    cited = [offered[number] for number in said.evidence if number in offered]
    if not cited:
        return replace(said, evidence=())
    if supports(said.text, cited, question):
        kept = [piece for piece in cited if len(cited) == 1 or adds(said.text, piece, question)]
        return replace(said, evidence=tuple(piece.number for piece in kept or cited))
    others = (piece for piece in offered.values() if supports(said.text, [piece], question, MOSTLY))
    return replace(said, evidence=tuple(piece.number for piece in others)[:1])


def answer_offline(desk: Desk) -> Reading:
    """The reading that the question's form calls for; what asks for one thing is answered only from evidence about
    it."""
    if desk.ask.form not in POINTED:
        return _READERS[desk.ask.form](desk)
    if not is_grounded(desk):
        return abstain(desk.ask)
    reading = _READERS[desk.ask.form](desk)
    fails = reading.support == "abstained" and desk.ask.form != "fact"
    return nearest_to(desk) if fails else reading


# Questions for one thing, or for things of one kind.
POINTED: frozenset[Form] = frozenset({"fact", "list", "yesno", "compare"})


_READERS: dict[Form, Callable[[Desk], Reading]] = {
    "fact": look_up,
    "list": look_up_all,
    "yesno": affirm,
    "compare": compare,
    "connect": connect,
    "howto": steps,
    "summary": summarise,
    "global": themes,
    "about": about,
}
