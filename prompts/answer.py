"""Answer: what the evidence says to a question, each statement with the numbers of its evidence.

The last step of every mode: StructRAG's `infer` (section 2.4), and the final step of GraphRAG's
local, global and drift search (section 2.6). On a model the answer is the model's own words;
without one it is the best excerpts.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import dspy
from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from prompts.engine.messages import first_tokens, rough_tokens
from prompts.engine.models import Models
from prompts.engine.step import Step
from prompts.engine.streaming import Show
from prompts.offline.excerpts import OfferedPassage, Similarity, best_excerpts, shown
from prompts.tailored_step import TailoredStep
from prompts.tailoring import Tailoring

_BARE = 8  # words of an answer without a sentence around it
_MARKER = re.compile(r"\[\d+\]")
# At the beginning of a line, a passage's own number would look like that of a piece of evidence.
_LIKE_A_NUMBER = re.compile(r"^([^\S\n]*+)[\[［【](\d+)[\]］】](?!\()", re.M)


class AnswerWritten(BaseModel):
    """An answer with its markers, and its bare values.

    No model is asked whether the evidence answers the question at all: small ones say no beside a
    right answer. One that says so all the same is believed where it gives neither values nor
    markers.
    """

    answer: str = Field(default="", description="With markers [1].")
    values: list[str] = Field(default_factory=list)
    answerable: SkipJsonSchema[bool] = True

    @property
    def text(self) -> str:
        """The answer, followed by the markers among the values where it has none of its own."""
        text = self.answer.strip()
        if not text or _MARKER.search(text):
            return text
        markers = "".join(value.strip() for value in self.values if _is_marker(value))
        return f"{text} {markers}".strip()

    @property
    def answers(self) -> bool:
        """Whether the evidence answers the question."""
        text = self.text
        return bool(text) and (
            self.answerable or bool(self.bare_values) or bool(_MARKER.search(text))
        )

    @property
    def bare_values(self) -> tuple[str, ...]:
        """Distinct values without markers; of a bare answer those that are part of it.

        Small models add other names to a bare answer.
        """
        said = _MARKER.sub("", self.answer).strip()
        is_bare = len(said.split()) <= _BARE and not said.endswith(
            (".", "!", "?", "。", "！", "？")
        )
        values = dict.fromkeys(
            " ".join(value.split()) for value in self.values if not _is_marker(value)
        )
        return tuple(value for value in values if not is_bare or _folded(value) in _folded(said))


class AnswerQuestion(dspy.Signature):
    """Answer the question from the numbered evidence.

    Begin with what was asked for. A plain question gets one sentence; a wide one as many
    paragraphs, list items or table rows as it needs, in Markdown. Take names and figures over as
    they are written.

    After each statement put the number of the evidence that shows it, as [2], or [2][5] where it
    takes several.

    Use only the evidence; notes were made from the same documents, and the evidence holds where
    they differ. Where one piece names what another tells of, put them together. Where pieces
    contradict each other, say what each says. Where the evidence answers a part, answer that part
    and say what is missing. Where it says nothing of what is asked, leave the answer empty.

    Values are the answer without a sentence around it: names, figures with their units, dates, yes
    or no.
    """

    notes: str = dspy.InputField()
    evidence: str = dspy.InputField()
    response: str = dspy.InputField()
    question: str = dspy.InputField()
    written: AnswerWritten = dspy.OutputField()


class AnswerFromPoints(dspy.Signature):
    """Answer a question about a whole collection of documents from the points that several readers
    noted.

    Each point has its helpfulness (0 to 100) and the numbers of the statements that show it; the
    evidence holds these statements. Open with the whole picture in one or two sentences. Then take
    the themes by their weight, each in a paragraph or under a heading: what is said, by whom or
    where, with telling details and figures, how widely it is shared, and where sources differ.
    Merge what repeats, leave out what is beside the question, add nothing of your own.

    After each statement put the numbers of the statements that show it, as [4][9]. Where no point
    helps, leave the answer empty. Values are bare names, figures, dates or yes and no, where the
    question asks for such.
    """

    points: str = dspy.InputField()
    evidence: str = dspy.InputField()
    response: str = dspy.InputField()
    question: str = dspy.InputField()
    written: AnswerWritten = dspy.OutputField()


def _is_marker(value: str) -> bool:
    """Whether a value is empty or nothing but markers."""
    return not _MARKER.sub("", value).strip(" ,;")


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


@dataclass(frozen=True, slots=True)
class NumberedText:
    """A piece of evidence; `heading` is its path of headings, `language` empty where unknown."""

    number: int
    title: str
    text: str
    heading: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class QuotedSpan:
    """Code points [start, end) of the text of a piece of evidence."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class AnswerDraft:
    """An answer before its markers are bound to documents.

    A marker [n] in `text` refers to piece n of the evidence or, with `quotes`, to quote n. `marks`
    are the ends of the markers in excerpts, where other brackets belong to the documents; it is
    None where a model wrote the text.
    """

    text: str
    values: tuple[str, ...] = ()
    answerable: bool = True
    quotes: Mapping[int, QuotedSpan] = field(default_factory=dict)
    marks: frozenset[int] | None = None


@dataclass(frozen=True)
class AnswerRequest:
    """The input of an answer.

    `notes` are (label, text) by earlier steps, `response` is the user's wish for the form. Excerpts
    are chosen by `rarity`, a term's inverse document frequency, and `similarity`, the cosines of a
    question with texts.
    """

    question: str
    evidence: Sequence[NumberedText]
    notes: Sequence[tuple[str, str]] = ()
    response: str = ""
    rarity: Callable[[str], float] = lambda _: 1.0
    similarity: Similarity | None = None


class AnswerStep(TailoredStep):
    """A question and numbered evidence → an answer with markers.

    `on_text` gets the draft in pieces while a model writes it, with unchecked citations, and
    Withdrawn where another draft begins. `language` replaces the question's language.
    """

    step = "answer"
    role = "answer"
    task: ClassVar[type[dspy.Signature]] = AnswerQuestion
    streams = "answer"
    writes_in = "question"
    notes_field: ClassVar[str] = "notes"

    def __init__(
        self, models: Models | None = None, on_text: Show | None = None, language: str = ""
    ) -> None:
        super().__init__(models, Tailoring(language=language))
        self.on_text = on_text

    async def run(self, request: AnswerRequest) -> AnswerDraft:
        """The model's answer or the best excerpts; EngineError where the model fails."""
        if self.is_offline:
            return excerpts(request)
        notes = notes_text(request.notes, self.policy.limits.notes)
        written: AnswerWritten = (
            await self.acall(
                question=request.question,
                response=request.response,
                evidence=evidence_text(request.evidence),
                **{self.notes_field: notes},
            )
        ).written
        return AnswerDraft(written.text, written.bare_values, written.answers)


class ReduceStep(AnswerStep):
    """Scored points of many readers → one answer (GraphRAG 2.6, reduce)."""

    step = "reduce"
    task = AnswerFromPoints
    notes_field = "points"


class DirectWritten(BaseModel):
    """An answer from memory."""

    answer: str = ""
    values: list[str] = Field(default_factory=list)


class AnswerDirectly(dspy.Signature):
    """Answer a question from your own knowledge: there are no documents, and the user is told so.

    Begin with what was asked for: a sentence or two for a plain question, paragraphs for a wide
    one. Say what you do not know, what is uncertain, and whether the question rests on something
    that is not so. Write no markers and no sources. Where you would have to guess, leave the
    answer empty.

    Values are the answer without a sentence around it: names, figures with their units, dates, yes
    or no.
    """

    question: str = dspy.InputField()
    written: DirectWritten = dspy.OutputField()


class Direct(Step):
    """A question → an answer that no document supports. Raises TypeError without a model."""

    step = "direct"
    role = "answer"
    writes_in = "question"
    task = AnswerDirectly

    async def run(self, question: str) -> DirectWritten:
        written: DirectWritten = (await self.acall(question=question)).written
        return written


def evidence_text(evidence: Sequence[NumberedText]) -> str:
    """The evidence as a model reads it: `[n] title: text`, a blank line between pieces."""
    return "\n\n".join(map(_piece, evidence))


def _piece(piece: NumberedText) -> str:
    text = _LIKE_A_NUMBER.sub(r"\1(\2)", piece.text.strip())
    return f"[{piece.number}] {' '.join(piece.title.split())}: {text}"


def notes_text(notes: Sequence[tuple[str, str]], most: int) -> str:
    """The notes under their labels, in at most `most` tokens.

    Each note has an equal share; what a short one leaves goes to the longer ones.
    """
    texts = [f"{label}:\n{text}" if label else text for label, text in notes]
    shortest_first = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    for rank, place in enumerate(shortest_first):
        texts[place] = first_tokens(texts[place], most // (len(texts) - rank))
        most -= rough_tokens(texts[place])
    return "\n\n".join(texts)


def excerpts(request: AnswerRequest) -> AnswerDraft:
    """The best excerpts of the evidence under a label, the best first."""
    offered = [
        OfferedPassage(piece.number, piece.title, piece.heading, piece.text, piece.language)
        for piece in request.evidence
    ]
    best = best_excerpts(request.question, offered, request.rarity, request.similarity)
    if not best.excerpts:
        return AnswerDraft("", answerable=False)
    answer = shown(best)
    quotes = {marker: QuotedSpan(*quote) for marker, quote in answer.quotes.items()}
    return AnswerDraft(answer.text, quotes=quotes, marks=answer.marks)
