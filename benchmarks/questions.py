"""Which published question sets can be measured, in which files of the data folder, and what counts as found?"""

import gzip
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from benchmarks.triples import rows_of
from storage.records import Record

Row = dict[str, Any]


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

    def missing(self, data: Path) -> list[Path]:
        """The files of this set that are not there."""
        return [
            path
            for name in (self.corpus, self.questions, self.triples)
            if name is not None and not (path := data / name).is_file()
        ]

    def write_corpus(self, data: Path, target: Path) -> int:
        """Write the passages as rows {id, title, text} for indexing; returns how many."""
        rows = list(itertools.islice(_rows(data / self.corpus), self.first))
        lines = [json.dumps(self._document(row), ensure_ascii=False) for row in rows]
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return len(rows)

    def _document(self, row: Row) -> Row:
        titled = {"title": row["title"]} if self.titles else {}
        return {"id": str(row[self.id_field]), **titled, "text": row["text"]}

    def write_triples(self, data: Path, target: Path) -> bool:
        """Write the triples as rows for indexing, if there are any; returns whether."""
        if self.triples is None:
            return False
        rows = rows_of(data / self.triples)
        target.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return True

    def read_questions(self, data: Path, limit: int | None) -> list[Question]:
        """The questions, in the file's order, at most `limit`."""
        titles = (
            {row["title"]: str(row[self.id_field]) for row in _rows(data / self.corpus)} if self.peers_field else {}
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
            for row in itertools.islice(_rows(data / self.questions), limit)
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
SETS = (
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


def _rows(path: Path) -> Iterator[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _written(row: Row) -> tuple[str, ...]:
    """The ways to write an answer where a row lists them; figures in such lists are dates that a table turned over."""
    return tuple(answer for answer in row.get("answers", ()) if isinstance(answer, str))


def _ids(value: str | int | list[str | int]) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else (str(value),)
