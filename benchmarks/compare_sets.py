"""Which sets are the modes compared on, from which files, and how is an answer of each judged?"""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.compare_records import Asked, Judged, Measure
from benchmarks.questions import SETS, Question, QuestionSet
from benchmarks.traversal import GRAPH, QUESTIONS, part_of

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PODCAST, PODCAST_QUESTIONS = "corpora/kevin_scott_podcast.jsonl.gz", "corpora/kevin_scott_questions.jsonl.gz"
GLOBAL_QUESTIONS, GRAPH_QUESTIONS = 20, 200
CLAIMS = 5  # as many distinct claims, from as many documents
ANSWER = Measure(name="answer", meaning="the gold answer stands in the values or in the first quote")
PASSAGES = Measure(name="passages", meaning="all gold passages are among the eight of the answer")
EXACT = Measure(name="exact", meaning="the values are the gold values, none more, none less")
EXPECTED = Measure(
    name="expected",
    meaning="an expected string stands in the answer or its first quote; abstains where it should; about the whole: "
    "cites enough of the documents that speak of it",
)
COVERED = Measure(name="covered", meaning=f"{CLAIMS} or more distinct supported claims from {CLAIMS} or more documents")
COUNTED = Measure(name="claims", meaning="distinct claims, each supported by its citation", share=False)
CITED = Measure(name="documents", meaning="documents that these claims cite", share=False)
Row = Mapping[str, Any]


@dataclass(frozen=True)
class CompareSet:
    """A set to compare on. `write` puts what is indexed into a folder and returns it; `ask` reads the questions, at
    most so many; `files` are below the data folder."""

    name: str
    told: str
    judged: Judged
    measures: tuple[Measure, ...]
    files: tuple[str, ...]
    write: Callable[[Path, Path], Sequence[Path]]
    ask: Callable[[Path, int | None], list[Asked]]
    multihop: bool = False
    embedding: str = "bundled"
    # What other systems published: lists of passages by question.
    published: Callable[[Path], Mapping[str, float]] | None = None

    def missing(self, data: Path) -> list[Path]:
        """The files of this set that are not there."""
        return [data / name for name in self.files if not (data / name).is_file()]


def rows(path: Path) -> Iterator[Row]:
    """The rows of a JSON Lines file, zipped or not."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def of_question_set(name: str, judged: Judged, measures: tuple[Measure, ...], told: str) -> CompareSet:
    """A set of `benchmarks.questions` to compare on."""
    known = next(one for one in SETS if one.name == name)
    return CompareSet(
        name=name, told=told, judged=judged, measures=measures, files=(known.corpus, known.questions),
        write=partial(_write_passages, known), ask=partial(_ask_set, known), multihop=True,
        published=partial(_published, known) if known.peers_field else None,
    )  # fmt: skip


def _write_passages(known: QuestionSet, data: Path, folder: Path) -> Sequence[Path]:
    known.write_corpus(data, folder / "corpus.jsonl")
    return [folder / "corpus.jsonl"]


def _ask_set(known: QuestionSet, data: Path, limit: int | None) -> list[Asked]:
    return [
        Asked(text=question.text, answers=question.answers, gold=question.gold)
        for question in known.read_questions(data, limit)
    ]


def _published(known: QuestionSet, data: Path) -> Mapping[str, float]:
    questions = known.read_questions(data, None)
    return {name: _all_gold(questions, name) for name in questions[0].peers}


def _all_gold(questions: Sequence[Question], peer: str) -> float:
    found = [set(question.gold) <= set(question.peers.get(peer, ())[:8]) for question in questions]
    return round(sum(found) / len(found), 4)


def _write_graph(data: Path, folder: Path) -> Sequence[Path]:
    (folder / "kb.jsonl").write_bytes(gzip.decompress((data / GRAPH).read_bytes()))
    return [folder / "kb.jsonl"]


def _ask_graph(data: Path, limit: int | None) -> list[Asked]:
    """Spread over all questions of the paths on which nothing was tuned."""
    kept = [row for row in rows(data / QUESTIONS) if part_of(row["path"])]
    many = min(limit or GRAPH_QUESTIONS, len(kept))
    spread = [kept[place * len(kept) // many] for place in range(many)]
    return [Asked(text=row["question"], answers=tuple(row["answers"])) for row in spread]


def _write_samples(data: Path, folder: Path) -> Sequence[Path]:
    return [EXAMPLES / "corpus"]


def _ask_samples(data: Path, limit: int | None) -> list[Asked]:
    files = ("questions", "questions_extra", "questions_global")
    every = [row for name in files for row in rows(EXAMPLES / f"{name}.jsonl")]
    return [
        Asked(
            text=row["question"], answers=tuple(row["expected"]), abstains=row["fallback"] == "abstained",
            covers=tuple(row.get("covers", ())), least=row["min_documents"],
        )
        for row in every[:limit]
    ]  # fmt: skip


def _write_podcast(data: Path, folder: Path) -> Sequence[Path]:
    """Each part is a document; its title, the episode, is what counts as one where claims are counted."""
    written = [
        json.dumps({"id": f"{row['doc']} #{row['part']}", "title": row["doc"], "text": row["text"]}, ensure_ascii=False)
        for row in rows(data / PODCAST)
    ]
    (folder / "corpus.jsonl").write_text("\n".join(written) + "\n", encoding="utf-8")
    return [folder / "corpus.jsonl"]


def _ask_podcast(data: Path, limit: int | None) -> list[Asked]:
    every = [Asked(text=row["question"]) for row in rows(data / PODCAST_QUESTIONS)]
    return every[: limit or GLOBAL_QUESTIONS]


COMPARED = (
    of_question_set(
        "hotpot_train100", "answer", (ANSWER, PASSAGES), "HotpotQA, 100 questions of train over their 994 passages"
    ),
    of_question_set(
        "2wiki_780", "passages", (PASSAGES,), "2WikiMultihopQA, 101 questions over 780 passages; no answers published"
    ),
    CompareSet(
        name="pathquestion_2h", told="PathQuestion, two hops over 1,211 triples; paths on which nothing was tuned",
        judged="exact", measures=(EXACT,), files=(GRAPH, QUESTIONS), write=_write_graph, ask=_ask_graph,
        multihop=True, embedding="none",
    ),
    CompareSet(
        name="samples", told="the sample corpus: 12 questions to develop with, 12 held out, 8 about the whole of it",
        judged="sample", measures=(EXPECTED,), files=(), write=_write_samples, ask=_ask_samples,
    ),
    CompareSet(
        name="kevin_scott", told="1,669 parts of 60 podcast episodes, questions about the whole; no answers exist",
        judged="claims", measures=(COVERED, COUNTED, CITED), files=(PODCAST, PODCAST_QUESTIONS),
        write=_write_podcast, ask=_ask_podcast,
    ),
)  # fmt: skip
