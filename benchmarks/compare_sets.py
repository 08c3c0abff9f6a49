"""The sets that the modes are compared on, from which files, and which measures tell of each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.retrieval import quality
from benchmarks.rows import read_passages, read_questions, write_rows
from benchmarks.runner import EXAMPLES
from benchmarks.sets import SETS, BenchmarkSet, read_rows
from benchmarks.traversal import GRAPH, QUESTIONS, spread
from storage.evaluation_records import EvaluationQuestion

PODCAST, PODCAST_QUESTIONS = (
    "corpora/kevin_scott_podcast.jsonl.gz",
    "corpora/kevin_scott_questions.jsonl.gz",
)
GLOBAL_QUESTIONS, GRAPH_QUESTIONS = 20, 200
CITED = ("citation_recall", "citation_precision")


@dataclass(frozen=True)
class CompareSet:
    """A set to compare on. `write` puts what is indexed into a folder and returns it; `ask` reads
    the questions, at most so many; `files` are below the data folder; `measures` are names of the
    product's.
    """

    name: str
    measures: tuple[str, ...]
    files: tuple[str, ...]
    write: Callable[[Path, Path], Sequence[Path]]
    ask: Callable[[Path, int | None], list[EvaluationQuestion]]
    embedding: str = "bundled"
    # About the whole collection: `global` is asked level by level too.
    whole: bool = False
    # What other systems published: the share of questions with all gold passages.
    published: Callable[[Path], Mapping[str, float]] | None = None


def of_benchmark_set(name: str, *measures: str) -> CompareSet:
    """A published question set to compare on."""
    known = SETS[name]
    return CompareSet(
        name=name,
        measures=measures,
        files=known.files,
        write=known.write,
        ask=known.read_questions,
        published=partial(_published, known) if known.peers_field else None,
    )


def _published(known: BenchmarkSet, data: Path) -> Mapping[str, float]:
    questions = known.read_questions(data, None)
    return {
        name: quality(questions, lists, [8])["all@8"]
        for name, lists in known.read_peers(data).items()
    }


def _written(file: Path, folder: Path) -> Sequence[Path]:
    path = folder / "corpus.jsonl"
    write_rows(read_passages(file), path)
    return [path]


def _write_graph(data: Path, folder: Path) -> Sequence[Path]:
    return _written(data / GRAPH, folder)


def _ask_graph(data: Path, limit: int | None) -> list[EvaluationQuestion]:
    """Spread over all questions."""
    return spread(read_questions(data / QUESTIONS), limit or GRAPH_QUESTIONS)


def _write_samples(data: Path, folder: Path) -> Sequence[Path]:
    return [EXAMPLES / "corpus"]


def _ask_samples(data: Path, limit: int | None) -> list[EvaluationQuestion]:
    """Those about the whole want the documents that speak of it, others an expected string."""
    rows = [
        row
        for name in ("", "_extra", "_global")
        for row in read_rows(EXAMPLES / f"questions{name}.jsonl")
    ]
    return [
        EvaluationQuestion(
            id=row["id"],
            question=row["question"],
            kind=row["class"],
            answers=tuple(row["expected"]),
            answerable=row["fallback"] != "abstained",
            gold_documents=tuple(row.get("covers") or row["documents"]),
        )
        for row in rows[:limit]
    ]


def _write_podcast(data: Path, folder: Path) -> Sequence[Path]:
    return _written(data / PODCAST, folder)


def _ask_podcast(data: Path, limit: int | None) -> list[EvaluationQuestion]:
    rows = read_questions(data / PODCAST_QUESTIONS, limit or GLOBAL_QUESTIONS)
    return [row.model_copy(update={"kind": "global"}) for row in rows]


_ALL = (
    of_benchmark_set("hotpot_train100", "f1", "answer_in_text", "all_gold@8", *CITED),
    of_benchmark_set("2wiki_780", "all_gold@8", "ndcg@8"),
    CompareSet(
        name="pathquestion_2h",
        measures=("values_exact", "values_f1"),
        files=(GRAPH, QUESTIONS),
        write=_write_graph,
        ask=_ask_graph,
        embedding="none",
    ),
    CompareSet(
        name="samples",
        measures=("answer_in_text", "abstention", "recall@8", *CITED),
        files=(),
        write=_write_samples,
        ask=_ask_samples,
    ),
    CompareSet(
        name="kevin_scott",
        measures=("claims", "claim_clusters", *CITED),
        files=(PODCAST, PODCAST_QUESTIONS),
        write=_write_podcast,
        ask=_ask_podcast,
        whole=True,
    ),
)
COMPARED = {known.name: known for known in _ALL}
