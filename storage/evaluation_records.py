"""Records of evaluations: questions, compared systems, scores; feedback and watched questions."""

import re

from pydantic import Field

from storage.answer_records import Answer, Effort, Mode, StructureType
from storage.graph_records import TextSpan
from storage.records import Record
from storage.run_records import AnswerChange, Usage

_MARKER = re.compile(r"\s{0,9}\[\d+(?:\s*[,，]\s*\d+)*\]")


def plain(text: str) -> str:
    """Return a text without citation markers."""
    return _MARKER.sub("", text).strip()


class EvaluationQuestion(Record):
    """A question of a set, with what the set knows of a right answer.

    `answers` are wordings of which one is enough, `values` a set of which all are needed.
    `gold_documents` and `gold_spans` are the evidence, `kind` is the set's name for this sort of
    question, and `documents` restricts what it is answered from; `names` are the set's names for
    these, by position. `group` divides the set in another way: by length, domain or graph.
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
    """A person's rating of an answer; `note` says what it should have been.

    `at` is a UTC time in ISO form, `documents` are those that the answer cites, `history` holds the
    turns before the question.
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
        """A question whose right answer is the note, or else the helpful answer."""
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
    """A compared way of answering: a mode on a workspace, or recorded answers.

    `settings` are names and values as in `trellis.toml`; `recorded` is a JSONL file of rows {id,
    answer, …} from another system or an earlier run. `name` heads its column in every table.
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
    """A system's answer to a question, or the error in words.

    A recorded answer has the fields of its row, and defaults for the others.
    """

    system: str
    question: str
    answer: Answer | None = None
    error: str = ""


class Score(Record):
    """The value of a measure for a system's answer; None where it does not apply."""

    system: str
    question: str
    measure: str
    value: float | None


class Verdict(Record):
    """A pairwise judgement on one criterion: `winner` is a system, or "" for a tie.

    `orders` holds the winners of all repeats, with the first system shown first and shown second;
    where the two orders disagree, the verdict is a tie.
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

    `name` names its question set, `key` changes with anything that its answers depend on. Times are
    UTC in ISO form. Gates compare with the `accepted` one.
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
    """An evaluation with its answers, scores and verdicts, without answers that were forgotten."""

    evaluation: Evaluation
    answers: tuple[EvaluatedAnswer, ...]
    scores: tuple[Score, ...]
    verdicts: tuple[Verdict, ...] = ()


class WatchedQuestion(Record):
    """A question that is asked again after every publication, its last answer and last change."""

    id: str
    question: str
    mode: Mode = "auto"
    answer: Answer | None = None
    change: AnswerChange | None = None


class MeanScore(Record):
    """The mean of a measure over the questions with a value, and its 95% interval."""

    measure: str
    system: str
    value: float
    low: float
    high: float
    questions: int


class PairedDifference(Record):
    """The mean of `first` minus `second` over common questions, and its 95% interval."""

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
    """What a system's answers cost in sum, and by step.

    Calls that the cache answered (`cached_calls`) count too: which system asked first is chance.
    """

    system: str
    answered: int
    failed: int


class GateCheck(Record):
    """A system's measure compared with the `accepted` evaluation over common questions."""

    measure: str
    system: str
    margin: float
    value: float
    before: float
    accepted: int
    holds: bool


class EvaluationReport(Record):
    """What an evaluation found.

    `measure` is the first of its measures by which the systems differ; wins, plot and `different`
    use it. `reused` counts answers that an earlier, stopped run left, `different` lists the
    questions whose scores differ most, `errors` the answers that failed. `judge` says how far the
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
