"""Records of evaluations: questions, the systems compared, their scores; watched questions."""

import re

from pydantic import Field

from storage.answer_records import Answer, Effort, Mode, StructureType
from storage.graph_records import TextSpan
from storage.records import Record
from storage.run_records import AnswerChange, Usage

_MARKER = re.compile(r"\s{0,9}\[\d+(?:\s*[,，]\s*\d+)*\]")


def plain(text: str) -> str:
    """A text without the markers of its citations."""
    return _MARKER.sub("", text).strip()


class EvaluationQuestion(Record):
    """A question of a set, with what its set knows of a right answer.

    `answers` are wordings of which one is enough, `values` a set of which all are asked for.
    `gold_documents` and `gold_spans` hold the evidence, `kind` is the set's own name for this sort
    of question, and `documents` restricts what it is answered from; `names` are what the set calls
    these, by position. `group` divides the set otherwise than by kind: a length, a domain, a graph.
    """

    id: str
    question: str
    kind: str = ""
    answers: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    gold_documents: tuple[str, ...] = ()
    gold_spans: tuple[TextSpan, ...] = ()
    answerable: bool = True
    documents: tuple[str, ...] | None = None
    history: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    group: str = ""


class Feedback(Record):
    """What somebody thought of an answer; `note` says what it should have been.

    `at` is a UTC time in ISO form, `documents` are those that the answer cites, `history` the turns
    before the question.
    """

    id: str
    question: str
    answer: str
    helpful: bool
    note: str = ""
    documents: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    generation: int
    at: str

    @property
    def as_question(self) -> EvaluationQuestion:
        """A question whose right answer is the helpful one, or the note."""
        right = self.note or (plain(self.answer) if self.helpful else "")
        return EvaluationQuestion(
            id=self.id,
            question=self.question,
            kind="helpful" if self.helpful else "unhelpful",
            history=self.history,
            answers=(right,) if right else (),
            gold_documents=self.documents if self.helpful else (),
        )


class EvaluatedSystem(Record):
    """A way of answering that is compared: a mode on a workspace, or recorded answers.

    `settings` are names and values as in `trellis.toml`; `recorded` is a JSONL file of rows {id,
    answer, …}, of another system or of an earlier run. The name is the system's column in every
    table.
    """

    name: str
    mode: Mode = "auto"
    effort: Effort | None = None
    structure: StructureType | None = None
    k: int | None = None
    workspace: str | None = None
    generation: int | None = None
    settings: dict[str, str] = Field(default_factory=dict)
    recorded: str | None = None


class EvaluatedAnswer(Record):
    """What a system said to a question: its answer, or the error in words.

    A recorded answer has the fields it came with, and the defaults for the others.
    """

    system: str
    question: str
    answer: Answer | None = None
    error: str = ""


class Score(Record):
    """What a measure says of a system's answer to a question; None where it says nothing."""

    system: str
    question: str
    measure: str
    value: float | None


class Verdict(Record):
    """A pairwise judgement on one criterion: `winner` is a system, or "" for a tie.

    `orders` holds the winners with the first system shown first and shown second, each of all
    repeats; where they disagree the verdict is a tie.
    """

    question: str
    criterion: str
    first: str
    second: str
    winner: str
    orders: tuple[tuple[str, ...], tuple[str, ...]]
    reasons: tuple[str, ...] = ()


class Evaluation(Record):
    """A finished evaluation; `number` counts those of the workspace from 1.

    `name` is what its questions were named by, `key` changes with anything that its answers depend
    on. Times are UTC in ISO form. An `accepted` one is what gates compare with.
    """

    number: int = 0
    name: str
    key: str
    started: str
    finished: str = ""
    systems: tuple[EvaluatedSystem, ...]
    questions: tuple[EvaluationQuestion, ...]
    measures: tuple[str, ...]
    accepted: bool = False


class EvaluationResult(Record):
    """An evaluation with all that came of it, but for answers that held what was forgotten."""

    evaluation: Evaluation
    answers: tuple[EvaluatedAnswer, ...]
    scores: tuple[Score, ...]
    verdicts: tuple[Verdict, ...] = ()


class WatchedQuestion(Record):
    """A question that is asked again after every publication.

    `answer` is its last one, `change` how that came to differ.
    """

    id: str
    question: str
    mode: Mode = "auto"
    answer: Answer | None = None
    change: AnswerChange | None = None


class MeanScore(Record):
    """The mean of a measure over the questions that have a value, with its 95% interval."""

    measure: str
    system: str
    value: float
    low: float
    high: float
    questions: int


class PairedDifference(Record):
    """The mean of `first` minus `second` over the questions of both, with its 95% interval."""

    measure: str
    first: str
    second: str
    value: float
    low: float
    high: float
    questions: int


class Wins(Record):
    """How often `first` is better than `second`, `by` a measure or a judge's criterion."""

    by: str
    first: str
    second: str
    won: int
    lost: int
    ties: int


class SystemCost(Usage):
    """What a system's answers took in sum, and by step.

    Calls that the cache answered (`cached_calls`) count too: which system asked first is chance.
    """

    system: str
    answered: int
    failed: int


class GateCheck(Record):
    """A measure of a system beside that of the `accepted` evaluation, over shared questions."""

    measure: str
    system: str
    margin: float
    value: float
    before: float
    accepted: int
    holds: bool


class EvaluationReport(Record):
    """What an evaluation found.

    `measure` is the first of its measures by which the systems differ: wins, plot and `different`
    are by it. `number` is its place in the workspace, `questions` how many there are, `reused` how
    many answers were left by an earlier run that was stopped, `different` the ids of the questions
    whose scores lie farthest apart. `errors` say which answers failed, and why; `judge` how far its
    verdicts can be trusted (`tasks/evaluate/judge.py`).
    """

    number: int
    name: str
    questions: int
    measure: str
    systems: tuple[EvaluatedSystem, ...]
    scores: tuple[MeanScore, ...]
    differences: tuple[PairedDifference, ...]
    wins: tuple[Wins, ...]
    costs: tuple[SystemCost, ...]
    different: tuple[str, ...]
    errors: tuple[EvaluatedAnswer, ...] = ()
    judge: dict[str, float | None] = Field(default_factory=dict)
    reused: int = 0
    seconds: float = 0.0
    gate: tuple[GateCheck, ...] = ()
