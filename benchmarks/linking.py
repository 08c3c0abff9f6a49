"""Do questions find the entities that they name, also in lower case and misspelt? And Chinese ones their passage?

`python -m benchmarks.linking --data DIR` links the questions of 2wiki; `--chinese DIR` asks `chinese_questions.jsonl`
of the documents in that folder. Everything is offline.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel

from benchmarks.questions import SETS
from benchmarks.stress import lowered, misspelt
from flows.index import IndexOptions, build_index
from flows.query import retrieve_passages
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import Settings
from storage.records import Record

SET = "2wiki_6119"
ROWS = Path(__file__).with_name("chinese_questions.jsonl")
VARIANTS: dict[str, Callable[[str], str]] = {
    "as written": str,
    "lower case": lowered,
    "one slip a name": misspelt,
    "both": lambda question: lowered(misspelt(question)),
}
KS = (1, 3, 5)


class Linked(Record):
    """What one way of writing the questions gave, beside the questions as written.

    `kept` is the share of the links of these, `more` counts links that only this way gave, `unlinked` the names told as
    unknown.
    """

    variant: str
    links: int
    kept: float
    more: int
    unlinked: int
    ms: float

    def line(self) -> str:
        counts = f"{self.links:>6}{self.kept:>8.3f}{self.more:>6}{self.unlinked:>10}{self.ms:>8.2f}"
        return f"  {self.variant:<18}{counts}"


class Asked(BaseModel):
    """A Chinese question with the document and a stretch of the passage that answers it."""

    id: str
    question: str
    document: str
    evidence: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 2 where a folder or file is absent."""
    options = _parser().parse_args(arguments)
    known = next(one for one in SETS if one.name == SET)
    absent = [path for path in (options.data, options.chinese) if path is not None and not path.is_dir()]
    absent += known.missing(options.data) if options.data and not absent else []
    if absent or not (options.data or options.chinese):
        print(f"Name folders that hold the data; absent: {', '.join(map(str, absent)) or 'all'}.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as temporary:
        keep = options.keep or Path(temporary)
        if options.data:
            folder = keep / SET
            folder.mkdir(parents=True, exist_ok=True)
            known.write_corpus(options.data, folder / "corpus.jsonl")
            questions = [question.text for question in known.read_questions(options.data, None)]
            with _indexed(folder / "corpus.jsonl", folder / "workspace") as session:
                print("\n".join(_links(questions, session)))
        if options.chinese:
            with _indexed(options.chinese, keep / "chinese") as session:
                print("\n".join(asyncio.run(_passages(session))))
    return 0


def _indexed(source: Path, workspace: Path) -> Session:
    """Offline and with the default settings, whatever the environment and `trellis.toml` say."""
    runtime = open_runtime(Settings(workspace=workspace))
    asyncio.run(build_index([source], IndexOptions(), runtime))
    return open_session(runtime)


def _links(questions: Sequence[str], session: Session) -> list[str]:
    index = session.index
    index.link(misspelt(questions[0]))  # what is made at the first use
    rows, first = [], list[set[int]]()
    for variant, written in VARIANTS.items():
        asked = [written(question) for question in questions]
        started = time.process_time()
        links = [index.link(question) for question in asked]
        ms = 1000 * (time.process_time() - started) / len(asked)
        found = [{link.entity for link in one} for one in links]
        first = first or found
        kept = sum(len(one & other) for one, other in zip(found, first, strict=True))
        more = sum(len(one - other) for one, other in zip(found, first, strict=True))
        unlinked = sum(len(index.names.unlinked(question, one)) for question, one in zip(asked, links, strict=True))
        total = sum(map(len, first))
        rows.append(
            Linked(variant=variant, links=sum(map(len, found)), kept=kept / total, more=more, unlinked=unlinked, ms=ms)
        )
    head = f"  {'':<18}{'links':>6}{'kept':>8}{'more':>6}{'unlinked':>10}{'ms':>8}"
    return [f"{SET}: {len(questions)} questions, {len(index.entities)} entities", head, *(row.line() for row in rows)]


async def _passages(session: Session) -> list[str]:
    rows = [Asked.model_validate_json(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    ranks = []
    for row in rows:
        found = (await retrieve_passages(row.question, AskOptions(k=max(KS)), session)).passages
        right = [row.evidence in one.text and one.document == row.document for one in found]
        ranks.append(right.index(True) + 1 if any(right) else 0)
    hits = "  ".join(f"hit@{k} {sum(0 < rank <= k for rank in ranks) / len(ranks):.3f}" for k in KS)
    missed = [row.id for row, rank in zip(rows, ranks, strict=True) if not rank]
    return [f"Chinese: {len(rows)} questions, {len(session.index.chunks)} passages", f"  {hits}", f"  missed: {missed}"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linking", description="Measure linking, offline.")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder that holds the question sets")
    parser.add_argument("--chinese", type=Path, metavar="DIR", help="the folder of the documents asked in Chinese")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the workspaces there and use them again")
    return parser


if __name__ == "__main__":
    sys.exit(main())
