"""The published question sets: in which files of the data folder they are, and how they are indexed and read."""

import asyncio
import gzip
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from benchmarks.runner import Run
from flows.index import IndexOptions, build_index
from flows.runtime import Runtime, open_runtime
from flows.session import Session, open_session
from flows.settings import Settings
from storage.records import Record
from storage.run_records import IndexReport

Row = dict[str, Any]


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a JSON Lines file, zipped or not."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def write_rows(rows: Iterable[Mapping[str, object]], path: Path) -> int:
    """Write rows as JSON Lines for indexing; returns how many."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)


def triple_rows(openie: Path) -> Iterator[Row]:
    """A row for each triple that a model wrote of a passage, whose id is its document. A list that is no triple is
    passed on as it is: the import has to put it aside."""
    for passage in read_rows(openie):
        document = str(passage["corpus_id"])
        for triple in passage["triples"]:
            if isinstance(triple, list) and len(triple) == 3:
                yield {**dict(zip("spo", triple, strict=True)), "document": document}
            else:
                yield {"malformed": triple, "document": document}


class Question(Record):
    """A question and the ids of the passages that answer it.

    `kind` groups questions in the table of errors; `peers` holds what other systems published, as ids of ours;
    `answers` are the ways to write the answer, where it is known.
    """

    text: str
    gold: tuple[str, ...]
    kind: str = ""
    peers: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class QuestionSet:
    """Where a set's passages and questions are (paths relative to the data folder) and which fields name them.

    `first` cuts the corpus to its first so many passages; `gold_field` holds one id or a list of them. `kind_field`
    names what groups the questions (None: the number of gold passages), `peers_field` the lists of titles that other
    systems found. Without `titles` the corpus is indexed as bare texts; `triples` are imported beside it.
    """

    name: str
    corpus: str
    questions: str
    id_field: str
    gold_field: str
    first: int | None = None
    kind_field: str | None = None
    peers_field: str | None = None
    titles: bool = True
    triples: str | None = None
    chinese: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The files of this set, below the data folder."""
        return tuple(name for name in (self.corpus, self.questions, self.triples) if name is not None)

    def write(self, data: Path, folder: Path) -> list[Path]:
        """Write the passages as rows {id, title, text}, and the triples, if there are any, for indexing."""
        passages, triples = folder / "corpus.jsonl", folder / "triples.jsonl"
        write_rows(map(self._document, itertools.islice(read_rows(data / self.corpus), self.first)), passages)
        if self.triples is None:
            return [passages]
        write_rows(triple_rows(data / self.triples), triples)
        return [passages, triples]

    def _document(self, row: Row) -> Row:
        titled = {"title": row["title"]} if self.titles else {}
        return {"id": str(row[self.id_field]), **titled, "text": row["text"]}

    def read_questions(self, data: Path, limit: int | None) -> list[Question]:
        """The questions, in the file's order, at most `limit`."""
        titles = (
            {row["title"]: str(row[self.id_field]) for row in read_rows(data / self.corpus)} if self.peers_field else {}
        )
        return [
            Question(
                text=row["question"],
                gold=_ids(row[self.gold_field]),
                kind=self._kind(row),
                answers=(row["answer"], *row.get("aliases", ())) if "answer" in row else _written(row),
                peers={
                    # A title that is none of ours was cut by who published it; it is a passage found all the same.
                    peer: tuple(titles.get(title, title) for title in found)
                    for peer, found in (row[self.peers_field] if self.peers_field else {}).items()
                },
            )
            for row in itertools.islice(read_rows(data / self.questions), limit)
        ]

    def _kind(self, row: Row) -> str:
        if self.chinese:
            return ""
        return str(row[self.kind_field]) if self.kind_field else f"{len(_ids(row[self.gold_field]))} passages"


_2WIKI = QuestionSet(
    name="2wiki_6119", corpus="multihop/2wiki_corpus_6119.jsonl.gz", questions="multihop/2wiki_101_peers.jsonl.gz",
    id_field="pos", gold_field="gold_pos", peers_field="retrieved_6119",
)  # fmt: skip
_2WIKI_780 = replace(_2WIKI, name="2wiki_780", first=780, peers_field="retrieved_780")
_MUSIQUE = QuestionSet(
    name="musique_train100", corpus="multihop/musique_train100_corpus.jsonl.gz",
    questions="multihop/musique_train100_questions.jsonl.gz", id_field="id", gold_field="gold_ids", kind_field="hops",
)  # fmt: skip
_ALL = (
    _2WIKI_780,
    replace(_2WIKI_780, name="2wiki_780_untitled", titles=False, peers_field=None),
    _2WIKI,
    QuestionSet(
        name="hotpot_train100", corpus="multihop/hotpot_train100_corpus.jsonl.gz",
        questions="multihop/hotpot_train100_questions.jsonl.gz", id_field="id", gold_field="gold_ids",
        kind_field="type",
    ),
    _MUSIQUE,
    replace(_MUSIQUE, name="musique_train100_triples", triples="llm_outputs/musique_train100_openie_gpt35.jsonl.gz"),
    QuestionSet(
        name="cmrc2018_zh", corpus="corpora/cmrc2018_zh_dev_passages.jsonl.gz",
        questions="corpora/cmrc2018_zh_dev_questions.jsonl.gz", id_field="id", gold_field="context_id", chinese=True,
    ),
)  # fmt: skip


SETS = {known.name: known for known in _ALL}


def files_of(*names: str) -> dict[str, tuple[str, ...]]:
    """The files of some sets, by name, as `@measure` wants them."""
    return {name: SETS[name].files for name in names}


def settings_in(folder: Path, **settings: object) -> Settings:
    """The default settings, whatever the environment and `trellis.toml` say; without memory unless it is asked for, so
    that every question is answered as if it were the first."""
    return Settings.model_validate({"workspace": folder / "workspace", "memory": "off", **settings})


def index(sources: Sequence[Path], settings: Settings) -> tuple[Runtime, IndexReport]:
    """Index sources offline, as `trellis index` does, unless the workspace holds them already."""
    runtime = open_runtime(settings)
    return runtime, asyncio.run(build_index(list(sources), IndexOptions(), runtime))


def open_set(run: Run, name: str, **settings: object) -> Session:
    """A set, indexed below the run's folder, opened for questions."""
    folder = run.workspace(name)
    return open_session(index(SETS[name].write(run.options.data, folder), settings_in(folder, **settings))[0])


def _written(row: Row) -> tuple[str, ...]:
    """The ways to write an answer where a row lists them; figures in such lists are dates that a table turned over."""
    return tuple(answer for answer in row.get("answers", ()) if isinstance(answer, str))


def _ids(value: str | int | list[str | int]) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else (str(value),)
