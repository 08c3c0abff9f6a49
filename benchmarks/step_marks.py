"""What is told of one answer of a step: whether it goes round, copies an example, is in another
language, is right.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import Field

from benchmarks.kept_rows import AskedRow
from benchmarks.runner import Cell, share
from benchmarks.step_inputs import Material
from prompts.engine.adapter import texts
from prompts.engine.messages import REPEATED, rough_tokens
from prompts.engine.step import Step
from prompts.structures import has_figures
from prompts.text.languages import language_of, names_of
from prompts.text.segment import sentences
from prompts.text.words import fold, is_han
from storage.records import Record
from tasks.evaluate.measures import holds

Outcome = Literal["first", "repaired", "refused", "failed"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
Json = Any  # a value as JSON has it

SENTENCE_TOKENS = 10  # a shorter text may be said of other things too
NAME_SIGNS = 4  # a Chinese name that is shorter may be a common word
# what stands between two marks of a Chinese text and is shorter may be said of other things too
PART_SIGNS = 6
WORD_SIGNS = 4  # a line with fewer letters is a bracket of JSON
TAIL, TAILS = (
    24,
    5,
)  # so often the last signs of a cut answer stand in it where it loops within a line
NO_PROSE = frozenset({"route", "choose", "keywords", "plan", "plan_table", "rank_solutions"})


class StepReply(Record):
    """One reply of the model, as it came."""

    text: str
    finish: str
    tokens_in: int
    tokens_out: int


class StepRow(AskedRow):
    """What a step made of one input. `asked` is the hash of the model and of all that it read."""

    step: str
    number: int
    outcome: Outcome
    replies: tuple[StepReply, ...] = ()
    outputs: Mapping[str, Json] = Field(default_factory=dict)
    problem: str = ""
    unread_lines: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Case:
    """One input of a step: what it was made from, and the messages that the model reads."""

    name: str
    step: Step
    material: Material
    inputs: Mapping[str, object]
    read: tuple[str, ...]

    @property
    def given(self) -> str:
        """All texts of the inputs, white space folded."""
        return squeezed("\n".join(texts(dict(self.inputs))))

    @property
    def language(self) -> str:
        """That of the question; where there is none, of the longest text that is given."""
        if "language" in self.inputs:
            return self.material.language
        question = self.inputs.get("question")
        own = [text for value in self.inputs.values() for text in texts(value)]
        text = str(question) if question else max(own, key=len, default="")
        return language_of(text, self.material.language)

    def hash(self, model: str) -> str:
        """Changes with the model, the prompt, the inputs and the form of the answer."""
        parts = [model, self.step.module.shape, self.step.models.calls.max_tokens, self.read]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Marks:
    """What is told of one answer; None where it cannot be told."""

    looping: bool = False
    cut: bool = False
    copied: tuple[str, ...] = ()
    foreign: bool | None = None
    quality: float | None = None

    def __str__(self) -> str:
        said = [name for name in ("looping", "cut", "foreign") if getattr(self, name)]
        said += [f"copies {text!r}" for text in self.copied]
        return "; ".join([*said, f"quality {self.quality}"])


def marks_of(case: Case, row: StepRow) -> Marks:
    """The marks of a row: of its replies as they came, and of its outputs where it has some."""
    first = row.replies[0].text if row.replies else ""
    judged = QUALITIES.get(case.step.step)
    return Marks(
        looping=any(goes_in_circles(reply, case.given) for reply in row.replies),
        cut=any(reply.finish == "length" for reply in row.replies),
        copied=copies(first, case),
        foreign=is_foreign(row.outputs, case) if row.outputs else None,
        quality=judged.of(row.outputs, case) if judged and row.outputs else None,
    )


def squeezed(text: str) -> str:
    """A text with white space folded."""
    return " ".join(text.split())


# --- loops ----------------------------------------------------------------------------------------


def goes_in_circles(reply: StepReply, given: str = "") -> bool:
    """Whether a reply says one thing three times: a line, a record of JSON, a sentence that the
    inputs lack; or, where it was cut, its last signs again and again.
    """
    text = reply.text
    lines = [squeezed(line) for line in text.split("\n")]
    statements = [line for line in lines if _is_statement(line)]
    parts = [squeezed(part) for line in lines for part in line.split('"')]
    own = [part for part in parts if rough_tokens(part) >= SENTENCE_TOKENS and part not in given]
    if any(
        max(Counter(said).values(), default=0) >= REPEATED
        for said in (statements, own, _records(text))
    ):
        return True
    return reply.finish == "length" and text.count(text[-TAIL:]) >= TAILS


def _records(text: str) -> list[str]:
    """The records in the lists of a reply that is JSON."""
    begin, end = text.find("{"), text.rfind("}") + 1
    try:
        value = json.loads(text[begin:end])
    except ValueError:
        return []
    return [
        json.dumps(one, sort_keys=True)
        for listed in _lists(value)
        for one in listed
        if isinstance(one, dict)
    ]


def _lists(value: Json) -> Iterator[list[Json]]:
    """The lists in a value, however deep."""
    if isinstance(value, list):
        yield value
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inside:
        yield from _lists(one)


def _is_statement(line: str) -> bool:
    """Whether a line says something by itself; one of indented JSON says only a field's value."""
    letters = sum(sign.isalpha() for sign in line)
    if line.startswith(('"', "{", "}", "[", "]")):
        return rough_tokens(line) >= SENTENCE_TOKENS
    return letters >= WORD_SIGNS


# --- copies ---------------------------------------------------------------------------------------


def copies(reply: str, case: Case) -> tuple[str, ...]:
    """Names and sentences of the prompt that the reply holds and the inputs do not: they are from
    its examples.
    """
    said, given = squeezed(reply), case.given
    marks = dict.fromkeys(mark for message in case.read for mark in _marks_in(message))
    return tuple(mark for mark in marks if mark in said and mark not in given)


def _marks_in(message: str) -> Iterator[str]:
    """The names of several words and the longer sentences of a message; of Chinese also what stands
    between marks.
    """
    for line in message.split("\n"):
        parts = "".join(sign if is_han(sign) or sign.isalnum() else " " for sign in line).split()
        yield from (part for part in parts if len(part) >= PART_SIGNS and is_han(part))
        for span in names_of(line):
            name = squeezed(span.text)
            if len(name) >= NAME_SIGNS if is_han(name) else " " in name:
                yield name
        for start, end in sentences(line):
            sentence = squeezed(line[start:end])
            if rough_tokens(sentence) >= SENTENCE_TOKENS:
                yield sentence


# --- language -------------------------------------------------------------------------------------


def is_foreign(outputs: Mapping[str, Json], case: Case) -> bool | None:
    """Whether what was written is in another language than the inputs; None where there is no prose
    of its own.
    """
    if case.step.step in NO_PROSE:
        return None
    given = case.given
    own = [
        text
        for text in texts(dict(outputs))
        if len(text) >= WORD_SIGNS and squeezed(text) not in given
    ]
    prose = " ".join(own)
    if rough_tokens(prose) < SENTENCE_TOKENS:
        return None
    expected = case.language
    return language_of(prose, expected) != expected


# --- quality: where the right answer is known -----------------------------------------------------


@dataclass(frozen=True)
class Quality:
    """A figure of a step's answers: what it counts, and how; None of an answer that tells
    nothing.
    """

    name: str
    of: Callable[[Mapping[str, Json], Case], float | None]


def values_named(value: Json, *names: str) -> list[Json]:
    """The values under these names, wherever in an output they stand."""
    if isinstance(value, dict):
        own = [found for name, found in value.items() if name in names]
        return own + [one for found in value.values() for one in values_named(found, *names)]
    if isinstance(value, list):
        return [one for found in value for one in values_named(found, *names)]
    return []


def _chosen(outputs: Mapping[str, Json], case: Case) -> float:
    """Whether the right label is the value of a field."""
    return float(case.material.label in values_named(dict(outputs), "structure", "about", *outputs))


def _parts(outputs: Mapping[str, Json], case: Case) -> float:
    lists = values_named(dict(outputs), "questions", "parts")
    return float(max((len(one) for one in lists if isinstance(one, list)), default=1))


def _names_given(outputs: Mapping[str, Json], case: Case) -> float | None:
    """The share of the entities whose names stand in the passage or its title."""
    found = [one for one in values_named(dict(outputs), "entities") if isinstance(one, list)]
    given = fold(case.given)
    named = [
        str(one["name"])
        for listed in found
        for one in listed
        if isinstance(one, dict) and "name" in one
    ]
    return share([fold(name) in given for name in named])


def _labelled_right(outputs: Mapping[str, Json], case: Case) -> float | None:
    """The share of the passages of which it is told rightly whether they help: the gold ones do."""
    labels = {
        int(one["passage"]): one.get("label")
        for listed in values_named(dict(outputs), "judgements", *outputs)
        if isinstance(listed, list)
        for one in listed
        if isinstance(one, dict) and isinstance(one.get("passage"), int)
    }
    gold = set(case.material.question.gold_documents)
    return share(
        [
            (labels.get(number) == "entailment") == (passage.document in gold)
            for number, passage in enumerate(case.material.passages, 1)
        ]
    )


def _judged_right(outputs: Mapping[str, Json], case: Case) -> float:
    """Whether the answer that is right won; it is shown first and second in turn."""
    winner = next(iter(values_named(dict(outputs), "winner", *outputs)[-1:]), None)
    winners = values_named(dict(outputs), "winner") or [winner]
    return float(winners[0] == ("first" if case.material.turn % 2 == 0 else "second"))


def _graded_right(outputs: Mapping[str, Json], case: Case) -> float | None:
    """Whether a right answer gets half of the points or more, a wrong one less."""
    scores = [one for one in values_named(dict(outputs), "score", *outputs) if isinstance(one, int)]
    return float((scores[0] >= 50) == (case.material.turn % 2 == 0)) if scores else None


def _holds_answer(outputs: Mapping[str, Json], case: Case) -> float:
    written = "\n".join(texts(dict(outputs)))
    return float(holds(written, case.material.question.answers))


def _verdict_right(outputs: Mapping[str, Json], case: Case) -> float:
    return float("answerable" in values_named(dict(outputs), "verdict", *outputs))


def _names_restored(outputs: Mapping[str, Json], case: Case) -> float | None:
    """Whether a question that points back names again what it is about."""
    label = case.material.label
    return float(fold(label) in fold("\n".join(texts(dict(outputs))))) if label else None


def _figures_given(outputs: Mapping[str, Json], case: Case) -> float | None:
    """The share of the texts whose figures all stand in the inputs."""
    return share([has_figures(text, case.given) for text in texts(dict(outputs)) if text])


def _column_named(outputs: Mapping[str, Json], case: Case) -> float:
    return float(case.material.label in set(texts(dict(outputs))))


def _relations_given(outputs: Mapping[str, Json], case: Case) -> float | None:
    named = values_named(dict(outputs), "relation")
    return share([one in case.material.predicates for one in named])


_ANSWERED = Quality("gold contained", _holds_answer)
_FIGURES = Quality("figures given", _figures_given)
QUALITIES: Mapping[str, Quality] = {
    "route": Quality("right structure", _chosen),
    "choose": Quality("right scope", _chosen),
    "decompose": Quality("parts", _parts),
    "extract": Quality("names in passage", _names_given),
    "glean": Quality("names in passage", _names_given),
    "filter": Quality("passages judged right", _labelled_right),
    "judge": Quality("right one won", _judged_right),
    "grade": Quality("points right", _graded_right),
    "answer": _ANSWERED,
    "reduce": _ANSWERED,
    "check_question": Quality("verdict right", _verdict_right),
    "rewrite": Quality("name restored", _names_restored),
    "plan_table": Quality("column named", _column_named),
    "plan": Quality("relations given", _relations_given),
    "structurize": _FIGURES,
    "report": _FIGURES,
    "summarize": _FIGURES,
    "relate": _FIGURES,
    "partial": _FIGURES,
}


# --- figures --------------------------------------------------------------------------------------


def figures(name: str, rows: Sequence[StepRow], marks: Sequence[Marks]) -> dict[str, Cell]:
    """The figures of one step."""
    calls = [reply for row in rows for reply in row.replies]
    quality = [one.quality for one in marks if one.quality is not None]
    foreign = [one.foreign for one in marks if one.foreign is not None]
    judged = QUALITIES.get(name)
    asked = [row.seconds for row in rows if row.replies]
    return {
        "n": len(rows),
        **{outcome: share([row.outcome == outcome for row in rows]) for outcome in OUTCOMES},
        "looping": share([one.looping for one in marks]),
        "cut": share([one.cut for one in marks]),
        "copied": share([bool(one.copied) for one in marks]),
        "foreign": share(foreign),
        "unread": sum(row.unread_lines for row in rows),
        "in": share([reply.tokens_in for reply in calls]),
        "out": share([reply.tokens_out for reply in calls]),
        "calls": len(calls),
        "s": share(asked),
        "quality": share(quality),
        "of": judged.name if judged else "",
    }
