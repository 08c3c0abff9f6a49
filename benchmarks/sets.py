"""The question sets of the measures: in which files of the data folder they are, and how they are
indexed.
"""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.rows import read_passages, read_questions, read_rows, write_rows
from benchmarks.runner import Run
from flows.index import IndexOptions, build_index
from flows.runtime import Runtime, open_runtime
from flows.session import Session, open_session
from flows.settings import Settings
from storage.evaluation_records import EvaluationQuestion
from storage.run_records import IndexReport
from tasks.question_sets.public_sets import Row

__all__ = [
    "SETS",
    "BenchmarkSet",
    "Row",
    "files_of",
    "index",
    "open_set",
    "read_rows",
    "settings_in",
    "triple_rows",
    "write_rows",
]


def triple_rows(openie: Path) -> Iterator[Row]:
    """A row for each triple that a model wrote of a passage, whose id is its document. A list that
    is no triple is passed on as it is: the import has to put it aside.
    """
    for passage in read_rows(openie):
        document = str(passage["corpus_id"])
        for triple in passage["triples"]:
            if isinstance(triple, list) and len(triple) == 3:
                yield {**dict(zip("spo", triple, strict=True)), "document": document}
            else:
                yield {"malformed": triple, "document": document}


@dataclass(frozen=True)
class BenchmarkSet:
    """Where a set's passages and questions are (paths relative to the data folder).

    `first` cuts the corpus to its first so many passages. `peers_field` names the lists of titles
    that other systems found. Without `titles` the corpus is indexed as bare texts; `triples` are
    imported beside it.
    """

    name: str
    corpus: str
    questions: str
    first: int | None = None
    peers_field: str | None = None
    titles: bool = True
    triples: str | None = None
    chinese: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The files of this set, below the data folder."""
        return tuple(
            name for name in (self.corpus, self.questions, self.triples) if name is not None
        )

    def write(self, data: Path, folder: Path) -> list[Path]:
        """Write the passages as rows {id, title, text}, and the triples, if there are any, for
        indexing.
        """
        passages, triples = folder / "corpus.jsonl", folder / "triples.jsonl"
        shown = ("id", "title", "text") if self.titles else ("id", "text")
        corpus = read_passages(data / self.corpus)[: self.first]
        write_rows(({name: row[name] for name in shown if name in row} for row in corpus), passages)
        if self.triples is None:
            return [passages]
        write_rows(triple_rows(data / self.triples), triples)
        return [passages, triples]

    def read_questions(self, data: Path, limit: int | None) -> list[EvaluationQuestion]:
        """The questions, in the file's order, at most `limit`; English ones without a kind are told
        apart by how many passages they need.
        """
        return [
            question
            if question.kind or self.chinese
            else question.model_copy(update={"kind": f"{len(question.gold_documents)} passages"})
            for question in read_questions(data / self.questions, limit)
        ]

    def read_peers(self, data: Path, limit: int | None = None) -> dict[str, list[tuple[str, ...]]]:
        """What each other system found for each question, as ids of ours. A title that is none of
        ours was cut by who published it; it is a passage found all the same.
        """
        if self.peers_field is None:
            return {}
        ids = {row["title"]: row["id"] for row in read_passages(data / self.corpus)}
        rows = [
            row[self.peers_field]
            for row in itertools.islice(read_rows(data / self.questions), limit)
        ]
        return {
            name: [tuple(ids.get(title, title) for title in row[name]) for row in rows]
            for name in rows[0]
        }


_2WIKI = BenchmarkSet(
    name="2wiki_6119",
    corpus="multihop/2wiki_corpus_6119.jsonl.gz",
    questions="multihop/2wiki_101_peers.jsonl.gz",
    peers_field="retrieved_6119",
)
_2WIKI_780 = replace(_2WIKI, name="2wiki_780", first=780, peers_field="retrieved_780")
_MUSIQUE = BenchmarkSet(
    name="musique_train100",
    corpus="multihop/musique_train100_corpus.jsonl.gz",
    questions="multihop/musique_train100_questions.jsonl.gz",
)
_ALL = (
    _2WIKI_780,
    replace(_2WIKI_780, name="2wiki_780_untitled", titles=False, peers_field=None),
    _2WIKI,
    BenchmarkSet(
        name="2wiki_train100",
        corpus="multihop/2wiki_train100_corpus.jsonl.gz",
        questions="multihop/2wiki_train100_questions.jsonl.gz",
    ),
    BenchmarkSet(
        name="hotpot_train100",
        corpus="multihop/hotpot_train100_corpus.jsonl.gz",
        questions="multihop/hotpot_train100_questions.jsonl.gz",
    ),
    _MUSIQUE,
    replace(
        _MUSIQUE,
        name="musique_train100_triples",
        triples="llm_outputs/musique_train100_openie_gpt35.jsonl.gz",
    ),
    BenchmarkSet(
        name="cmrc2018_zh",
        corpus="corpora/cmrc2018_zh_dev_passages.jsonl.gz",
        questions="corpora/cmrc2018_zh_dev_questions.jsonl.gz",
        chinese=True,
    ),
)


SETS = {known.name: known for known in _ALL}


def files_of(*names: str) -> dict[str, tuple[str, ...]]:
    """The files of some sets, by name, as `@measure` wants them."""
    return {name: SETS[name].files for name in names}


def settings_in(folder: Path, **settings: object) -> Settings:
    """The default settings, whatever the environment and `trellis.toml` say; without memory unless
    it is asked for, so that every question is answered as if it were the first.
    """
    return Settings.model_validate({"workspace": folder / "workspace", "memory": "off", **settings})


def index(sources: Sequence[Path], settings: Settings) -> tuple[Runtime, IndexReport]:
    """Index sources offline, as `trellis index` does, unless the workspace holds them already."""
    runtime = open_runtime(settings)
    return runtime, asyncio.run(build_index(list(sources), IndexOptions(), runtime))


def open_set(run: Run, name: str, **settings: object) -> Session:
    """A set, indexed below the run's folder, opened for questions."""
    folder = run.workspace(name)
    return open_session(
        index(SETS[name].write(run.options.data, folder), settings_in(folder, **settings))[0]
    )
