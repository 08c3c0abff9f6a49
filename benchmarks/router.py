"""How often does the offline router choose the structure that a question's kind of task needs?

`python -m benchmarks.router` scores the lists beside this file: 60 balanced questions (6 × 5 types × 2 languages) and
10 whose two parts need different types over different documents; `--dev` scores the questions that the weights were
fitted to instead. `--data DIR` adds StructRAG's 181 published rows: they are English → graph and Chinese → chunk or
table, so a router that only tells the language does well there; that is why they are shown by language. Only sums are
printed, never a question.
"""

import argparse
import gzip
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from prompts.offline.parts import parts_in
from prompts.offline.route import STRUCTURES, RuleRoute, ranked
from prompts.text.question import is_plain, parse_question
from storage.answer_records import StructureType
from storage.records import Record
from tasks.route import hop_count

HERE = Path(__file__).resolve().parent
PUBLISHED = Path("router", "structrag_router_test.jsonl.gz")


class Asked(Record):
    """A question over documents with these titles (the paper's core content), and the type that it needs."""

    id: str = ""
    question: str
    documents: tuple[str, ...] = ()
    language: str
    type: StructureType


class Mixed(Record):
    """A question of two parts; each has its own documents and type."""

    question: str
    language: str
    parts: tuple[Asked, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the scores; 2 where the data folder was named and has no published rows."""
    options = _parser().parse_args(arguments)
    balanced, mixed = ("router_dev", "router_dev_mixed") if options.dev else ("router_questions", "router_mixed")
    rows = [Asked.model_validate(row) for row in _lines(HERE / f"{balanced}.jsonl")]
    print("\n".join(report(balanced, rows)))
    print("\n".join(report_mixed(mixed, [_mixed(row) for row in _lines(HERE / f"{mixed}.jsonl")])))
    if options.dev and options.wrong:
        print("\n".join(_wrong(rows)))
    if options.data is None:
        return 0
    path = options.data / PUBLISHED
    if not path.is_file():
        print(f"There is no file {path}. Name the folder that holds it: --data DIR.", file=sys.stderr)
        return 2
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        print("\n".join(report("published rows", [_published(json.loads(line)) for line in lines])))
    return 0


def report(name: str, rows: Sequence[Asked]) -> list[str]:
    """Accuracy overall, by language and type, how sure the router was, and what it took for what."""
    started = time.process_time()
    found = [routed(row.question) for row in rows]
    spent = 1000 * (time.process_time() - started) / max(len(rows), 1)
    hits = [one[0].structure == row.type for row, one in zip(rows, found, strict=True)]
    lines = [f"{name}: {sum(hits)}/{len(rows)} = {_share(hits)}, {spent:.2f} CPU ms each"]
    for language in sorted({row.language for row in rows}):
        own = [hit for row, hit in zip(rows, hits, strict=True) if row.language == language]
        by_type = {
            kind: [h for row, h in zip(rows, hits, strict=True) if (row.language, row.type) == (language, kind)]
            for kind in STRUCTURES
        }
        told = ", ".join(f"{kind} {sum(got)}/{len(got)}" for kind, got in by_type.items() if got)
        lines.append(f"  {language} {_share(own)}: {told}")
    # What the sparing of calls rests on (`prompts.route.Route`).
    plain = [
        row.type == "chunk"
        for row, one in zip(rows, found, strict=True)
        if one[0].structure == "chunk"
        and is_plain(parse_question(row.question))
        and hop_count(parse_question(row.question)) == 1
    ]
    lines.append(f"  plain single facts, of which no model is asked: {len(plain)} rows, {_share(plain)} right")
    counted = Counter((row.type, one[0].structure) for row, one in zip(rows, found, strict=True))
    lines.append("  needed → chosen  " + "".join(f"{kind:>10}" for kind in STRUCTURES))
    lines += [f"  {kind:17}" + "".join(f"{counted[kind, to]:10}" for to in STRUCTURES) for kind in STRUCTURES]
    return lines


def report_mixed(name: str, rows: Sequence[Mixed]) -> list[str]:
    """How many questions fall into their two parts, and how many of those have both types right."""
    split = [parts_in(row.question) for row in rows]
    halves = [len(parts) == len(row.parts) for row, parts in zip(rows, split, strict=True)]
    hits = [
        len(parts) == len(row.parts)
        and all(routed(text)[0].structure == part.type for text, part in zip(parts, row.parts, strict=True))
        for row, parts in zip(rows, split, strict=True)
    ]
    return [f"{name}: {sum(hits)}/{len(rows)} = {_share(hits)} with both types right, {sum(halves)} split in two"]


def routed(question: str) -> list[RuleRoute]:
    """The structures for a question, the best first."""
    return ranked(parse_question(question), tabular=False)


def _wrong(rows: Sequence[Asked]) -> list[str]:
    found = [(row, routed(row.question)[0]) for row in rows]
    return [
        f"{row.type} taken for {one.structure} ({one.margin}, {one.reason}): {row.question}"
        for row, one in found
        if one.structure != row.type
    ]


def _share(hits: Sequence[bool]) -> str:
    return f"{sum(hits) / len(hits):.3f}" if hits else "–"


def _lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _mixed(row: dict[str, object]) -> Mixed:
    parts = row["parts"]
    if not isinstance(parts, list):
        raise TypeError(f"a list of parts was expected, not {parts!r}")
    own = tuple(Asked(language=str(row["language"]), **part) for part in parts)
    return Mixed(question=str(row["question"]), language=str(row["language"]), parts=own)


def _published(row: dict[str, str]) -> Asked:
    return Asked.model_validate({"question": row["query"], "language": row["language"], "type": row["chosen"]})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.router", description="Measure the offline router.")
    parser.add_argument("--dev", action="store_true", help="the development questions instead of the lists kept aside")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder that holds the published rows")
    parser.add_argument("--wrong", action="store_true", help="with --dev: also print what was taken for what")
    return parser


if __name__ == "__main__":
    sys.exit(main())
