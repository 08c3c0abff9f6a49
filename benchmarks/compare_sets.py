"""The sets that the modes are compared on, from which files, and how an answer of each is judged."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from benchmarks.retrieval import quality
from benchmarks.runner import EXAMPLES
from benchmarks.sets import SETS, QuestionSet, read_rows, write_rows
from benchmarks.traversal import GRAPH, QUESTIONS, held_out, spread
from storage.records import Record

# How an answer is judged: by the gold answer, by all gold passages, by the exact set of values, as the sample corpus
# says, or by its claims.
Judgement = Literal["answer", "passages", "exact", "sample", "claims"]


class JudgedQuestion(Record):
    """A question with what is known of its answer: ways to write it, passages, values; `abstains` where the documents
    do not say. One about the whole collection has documents that a good answer cites, and how many of them at least."""

    text: str
    answers: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    abstains: bool = False
    covers: tuple[str, ...] = ()
    least: int = 0


PODCAST, PODCAST_QUESTIONS = "corpora/kevin_scott_podcast.jsonl.gz", "corpora/kevin_scott_questions.jsonl.gz"
GLOBAL_QUESTIONS, GRAPH_QUESTIONS = 20, 200
CLAIMS = 5  # as many distinct claims, from as many documents


@dataclass(frozen=True)
class CompareSet:
    """A set to compare on. `write` puts what is indexed into a folder and returns it; `ask` reads the questions, at
    most so many; `files` are below the data folder; `figures` are the names of what its judge counts."""

    name: str
    judged: Judgement
    figures: tuple[str, ...]
    files: tuple[str, ...]
    write: Callable[[Path, Path], Sequence[Path]]
    ask: Callable[[Path, int | None], list[JudgedQuestion]]
    embedding: str = "bundled"
    # What other systems published: lists of passages by question.
    published: Callable[[Path], Mapping[str, float]] | None = None


def of_question_set(name: str, judged: Judgement, figures: tuple[str, ...]) -> CompareSet:
    """A published question set to compare on."""
    known = SETS[name]
    return CompareSet(
        name=name, judged=judged, figures=figures, files=known.files, write=known.write,
        ask=partial(_ask_set, known), published=partial(_published, known) if known.peers_field else None,
    )  # fmt: skip


def _ask_set(known: QuestionSet, data: Path, limit: int | None) -> list[JudgedQuestion]:
    return [
        JudgedQuestion(text=question.text, answers=question.answers, gold=question.gold)
        for question in known.read_questions(data, limit)
    ]


def _published(known: QuestionSet, data: Path) -> Mapping[str, float]:
    questions = known.read_questions(data, None)
    peers = {name: [question.peers[name] for question in questions] for name in questions[0].peers}
    return {name: quality(questions, lists, [8])["all@8"] for name, lists in peers.items()}


def _write_graph(data: Path, folder: Path) -> Sequence[Path]:
    write_rows(read_rows(data / GRAPH), folder / "kb.jsonl")
    return [folder / "kb.jsonl"]


def _ask_graph(data: Path, limit: int | None) -> list[JudgedQuestion]:
    """Spread over all questions of the paths on which nothing was tuned."""
    rows = spread(held_out(data), limit or GRAPH_QUESTIONS)
    return [JudgedQuestion(text=row["question"], answers=tuple(row["answers"])) for row in rows]


def _write_samples(data: Path, folder: Path) -> Sequence[Path]:
    return [EXAMPLES / "corpus"]


def _ask_samples(data: Path, limit: int | None) -> list[JudgedQuestion]:
    files = ("questions", "questions_extra", "questions_global")
    every = [row for name in files for row in read_rows(EXAMPLES / f"{name}.jsonl")]
    return [
        JudgedQuestion(
            text=row["question"], answers=tuple(row["expected"]), abstains=row["fallback"] == "abstained",
            covers=tuple(row.get("covers", ())), least=row["min_documents"],
        )
        for row in every[:limit]
    ]  # fmt: skip


def _write_podcast(data: Path, folder: Path) -> Sequence[Path]:
    """Each part is a document; its title, the episode, is what counts as one where claims are counted."""
    rows = read_rows(data / PODCAST)
    parts = ({"id": f"{row['doc']} #{row['part']}", "title": row["doc"], "text": row["text"]} for row in rows)
    write_rows(parts, folder / "corpus.jsonl")
    return [folder / "corpus.jsonl"]


def _ask_podcast(data: Path, limit: int | None) -> list[JudgedQuestion]:
    every = [JudgedQuestion(text=row["question"]) for row in read_rows(data / PODCAST_QUESTIONS)]
    return every[: limit or GLOBAL_QUESTIONS]


_ALL = (
    of_question_set("hotpot_train100", "answer", ("answer", "passages")),
    of_question_set("2wiki_780", "passages", ("passages",)),
    CompareSet(
        name="pathquestion_2h", judged="exact", figures=("exact",), files=(GRAPH, QUESTIONS), write=_write_graph,
        ask=_ask_graph, embedding="none",
    ),
    CompareSet(
        name="samples", judged="sample", figures=("expected",), files=(), write=_write_samples, ask=_ask_samples
    ),
    CompareSet(
        name="kevin_scott", judged="claims", figures=("covered", "claims", "documents"),
        files=(PODCAST, PODCAST_QUESTIONS), write=_write_podcast, ask=_ask_podcast,
    ),
)  # fmt: skip
COMPARED = {known.name: known for known in _ALL}
