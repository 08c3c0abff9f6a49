"""How well are follow-up questions made to stand on their own without a model, and how often is one called ambiguous?

`python -m benchmarks.rewriting` reads two lists of conversations: a history, a follow-up, the question meant. Odd rows
are those to develop on, even rows those to report. A rewriting is complete when it holds every name and every word of
meaning of the expected question, and clean when it holds no other. `--data DIR` adds published questions without a
history: none of them may be changed, and few that ask one thing should be called ambiguous.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.questions import SETS
from benchmarks.triples import lines
from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import Settings
from prompts.offline.rewrite import rewrite_offline
from prompts.text.words import content_terms
from storage.records import Record
from tasks.rewrite import shared_names

WITH_CORPUS = ("2wiki_780", "hotpot_train100", "musique_train100", "cmrc2018_zh")
CONVERSATIONS = Path(__file__).with_name("conversations.jsonl")
# Written when the rules stood, and run once before they were touched again.
LATER = Path(__file__).with_name("conversations_later.jsonl")


class Conversation(Record):
    """A follow-up and what it asks on its own."""

    id: int
    language: str
    history: tuple[str, ...]
    question: str
    expected: str


def read_conversations(path: Path = CONVERSATIONS) -> list[Conversation]:
    """All rows."""
    return [Conversation(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def is_complete(rewritten: str, expected: str) -> bool:
    """Whether every word of meaning of the expected question is there."""
    return set(content_terms(expected)) <= set(content_terms(rewritten))


def is_clean(rewritten: str, expected: str) -> bool:
    """Whether nothing is there that the expected question lacks."""
    return set(content_terms(rewritten)) <= set(content_terms(expected))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and with `--show` the rows of the odd half that are not right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rewriting", description=__doc__)
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of published question sets")
    parser.add_argument("--show", action="store_true", help="show what is wrong in the odd rows")
    options = parser.parse_args(arguments)
    rewrite_offline("预备", ["预备一下。"])  # the segmenter is loaded once, by whoever asks first
    for path in (CONVERSATIONS, LATER):
        print(path.name)
        measured(read_conversations(path), show=options.show)
    return published(options.data) if options.data else 0


def measured(rows: Sequence[Conversation], *, show: bool) -> None:
    """Print how many rows of each language and half are right, and the time a question takes."""
    started = time.process_time()
    found = {row.id: rewrite_offline(row.question, row.history).question for row in rows}
    spent = 1000 * (time.process_time() - started) / len(rows)
    right = {row.id: is_complete(found[row.id], row.expected) for row in rows}
    clean = {row.id: right[row.id] and is_clean(found[row.id], row.expected) for row in rows}
    for language in ("en", "zh"):
        for half, odd in (("odd", 1), ("even", 0)):
            here = [row.id for row in rows if row.language == language and row.id % 2 == odd]
            counts = sum(right[one] for one in here), sum(clean[one] for one in here)
            print(f"  {language} {half:4} rows: {counts[0]} of {len(here)} complete, {counts[1]} of them clean")
    print(f"  {spent:.1f} ms a question")
    for row in rows if show else ():
        if row.id % 2 and not clean[row.id]:
            print(f"  {row.id}: {row.question!r} -> {found[row.id]!r}, expected {row.expected!r}")


def published(data: Path) -> int:
    """How many questions of each published set are changed, and how many called ambiguous: by their words, and where
    the set has a corpus by the names that several of its things bear. 2 where the data are absent."""
    rows = data / "qa/condambigqa_500.jsonl.gz"
    absent = [path for one in SETS for path in one.missing(data)] + ([] if rows.is_file() else [rows])
    if absent:
        print(f"There is no file {absent[0]}. Name the folder of the question sets: --data DIR.", file=sys.stderr)
        return 2
    _line("condambigqa", [str(row["question"]) for row in lines(rows)], None)
    for one in (one for one in SETS if one.name in WITH_CORPUS):
        with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
            corpus = Path(folder) / "corpus.jsonl"
            one.write_corpus(data, corpus)
            runtime = open_runtime(Settings(workspace=Path(folder) / "workspace", embedding="none"))
            asyncio.run(build_index([corpus], IndexOptions(), runtime))
            with open_session(runtime) as session:
                _line(one.name, [question.text for question in one.read_questions(data, None)], session)
    return 0


def _line(name: str, questions: Sequence[str], session: Session | None) -> None:
    found = [rewrite_offline(question) for question in questions]
    # Asked one after another, they have nothing to do with each other.
    after = [rewrite_offline(asked, [before]) for before, asked in pairwise(questions)]
    changed = sum(one.question != " ".join(asked.split()) for one, asked in zip(found, questions, strict=True))
    misled = sum(one.question != " ".join(asked.split()) for one, asked in zip(after, questions[1:], strict=True))
    worded = sum(bool(one.ambiguities) for one in found)
    told = (
        f"{name:18} {len(questions):>5} questions: {changed} changed, {misled} after another one, {worded} ambiguous "
        "by their words"
    )
    if session is not None:
        index = session.index
        told += f", {sum(bool(shared_names(index.link(one), index.entities)) for one in questions)} by their names"
    print(told, flush=True)


if __name__ == "__main__":
    sys.exit(main())
