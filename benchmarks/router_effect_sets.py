"""On which questions is the router's effect measured, which type is right for each, and when is an answer right?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.answers import row_of
from benchmarks.compare_measure import Room, by_sample
from benchmarks.compare_records import Asked
from benchmarks.compare_sets import COMPARED, EXAMPLES, CompareSet, rows
from benchmarks.loong_questions import DOCUMENTS, QUESTIONS, LoongQuestion, is_right, read_questions, write_documents
from benchmarks.questions import SETS, Question
from flows.asking_view import AskOptions
from flows.runtime import Runtime
from flows.session import Session
from storage.records import Answer, StructureType

SEARCH = AskOptions(mode="struct")


@dataclass(frozen=True)
class Case:
    """A question with the way it is asked where the router chooses, how its answer is judged (1.0 right), the types
    that are right for it where the set says so, and the kind of question that figures are grouped by."""

    text: str
    judge: Callable[[Answer], float]
    options: AskOptions = SEARCH
    right: tuple[StructureType, ...] = ()
    kind: str = ""

    def fixed(self, structure: StructureType) -> AskOptions:
        """The options with a type in place of the router."""
        return replace(self.options, mode="auto", structure=structure)


def indexed(known: CompareSet, data: Path, folder: Path) -> Runtime:
    """A set, indexed in a folder unless it is there already; without memory and without kept answers."""
    folder.mkdir(parents=True, exist_ok=True)
    return Room(known, folder / "workspace").index(known.write(data, folder))


def cases_of(known: CompareSet, data: Path, session: Session) -> list[Case]:
    """The questions of a set, in the file's order."""
    return _CASES[known.name](data, session)


def _samples(data: Path, session: Session) -> list[Case]:
    every = [row for name in ("questions", "questions_extra") for row in rows(EXAMPLES / f"{name}.jsonl")]
    asked = [Asked(text=row["question"], answers=tuple(row["expected"]), abstains=row["fallback"] == "abstained")
             for row in every]  # fmt: skip
    return [
        Case(text=one.text, judge=partial(_by_sample, one, session), right=tuple(row["structure"]))
        for one, row in zip(asked, every, strict=True)
    ]


def _by_sample(asked: Asked, session: Session, answer: Answer) -> float:
    return by_sample(asked, answer, session)[0]


def _hotpot(data: Path, session: Session) -> list[Case]:
    known = next(one for one in SETS if one.name == "hotpot_train100")
    return [
        Case(text=one.text, judge=partial(_by_row, one, session), kind=one.kind)
        for one in known.read_questions(data, None)
    ]


def _by_row(question: Question, session: Session, answer: Answer) -> float:
    return float(row_of(question, answer, session).right)


def _loong(data: Path, session: Session) -> list[Case]:
    return [
        Case(
            text=one.text, judge=partial(_by_loong, one), kind=f"level {one.level}",
            options=AskOptions(mode="struct", documents=one.documents),
        )
        for one in read_questions(data)
    ]  # fmt: skip


def _by_loong(question: LoongQuestion, answer: Answer) -> float:
    return float(is_right(question, answer.values, answer.answer))


def _write_loong(data: Path, folder: Path) -> Sequence[Path]:
    write_documents(data, read_questions(data), folder / "corpus.jsonl")
    return [folder / "corpus.jsonl"]


LOONG = CompareSet(
    name="loong", told="Loong's financial questions, each over its own documents", judged="exact", measures=(),
    files=(DOCUMENTS, QUESTIONS), write=_write_loong, ask=lambda data, limit: [],
    embedding="none",
)  # fmt: skip
KNOWN: dict[str, CompareSet] = {
    **{known.name: known for known in COMPARED if known.name in {"samples", "hotpot_train100"}},
    LOONG.name: LOONG,
}
_CASES: dict[str, Callable[[Path, Session], list[Case]]] = {
    "samples": _samples,
    "hotpot_train100": _hotpot,
    "loong": _loong,
}
