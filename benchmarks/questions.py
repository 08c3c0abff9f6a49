"""Which published question sets can be measured, in which files of the data folder, and what counts as found?"""

import gzip
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.records import Record


class Question(Record):
    """A question and the ids of the passages that answer it."""

    text: str
    gold: tuple[str, ...]


@dataclass(frozen=True)
class QuestionSet:
    """Where a set's passages and questions are (paths relative to the data folder) and which fields name them.

    `first` cuts the corpus to its first so many passages; `gold_field` holds one id or a list of them.
    """

    name: str
    corpus: str
    questions: str
    id_field: str
    gold_field: str
    first: int | None = None

    def missing(self, data: Path) -> list[Path]:
        """The files of this set that are not there."""
        return [path for name in (self.corpus, self.questions) if not (path := data / name).is_file()]

    def write_corpus(self, data: Path, target: Path) -> int:
        """Write the passages as rows {id, title, text} for indexing; returns how many."""
        rows = list(itertools.islice(_rows(data / self.corpus), self.first))
        lines = [
            json.dumps({"id": str(row[self.id_field]), "title": row["title"], "text": row["text"]}, ensure_ascii=False)
            for row in rows
        ]
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return len(rows)

    def read_questions(self, data: Path, limit: int | None) -> list[Question]:
        """The questions, in the file's order, at most `limit`."""
        return [
            Question(text=row["question"], gold=_ids(row[self.gold_field]))
            for row in itertools.islice(_rows(data / self.questions), limit)
        ]


SETS = (
    QuestionSet(
        name="2wiki_780", corpus="multihop/2wiki_corpus_6119.jsonl.gz", questions="multihop/2wiki_101_peers.jsonl.gz",
        id_field="pos", gold_field="gold_pos", first=780,
    ),
    QuestionSet(
        name="2wiki_6119", corpus="multihop/2wiki_corpus_6119.jsonl.gz", questions="multihop/2wiki_101_peers.jsonl.gz",
        id_field="pos", gold_field="gold_pos",
    ),
    QuestionSet(
        name="hotpot_train100", corpus="multihop/hotpot_train100_corpus.jsonl.gz",
        questions="multihop/hotpot_train100_questions.jsonl.gz", id_field="id", gold_field="gold_ids",
    ),
    QuestionSet(
        name="musique_train100", corpus="multihop/musique_train100_corpus.jsonl.gz",
        questions="multihop/musique_train100_questions.jsonl.gz", id_field="id", gold_field="gold_ids",
    ),
    QuestionSet(
        name="cmrc2018_zh", corpus="corpora/cmrc2018_zh_dev_passages.jsonl.gz",
        questions="corpora/cmrc2018_zh_dev_questions.jsonl.gz", id_field="id", gold_field="context_id",
    ),
)  # fmt: skip


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _ids(value: str | int | list[str | int]) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else (str(value),)
