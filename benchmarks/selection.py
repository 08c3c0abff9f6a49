"""What does dynamic selection spare of reading a whole level of reports, where they are short and where they are long?

    python -m benchmarks.selection --data DIR --keep DIR [--questions 20]

Over the podcast index of `benchmarks.compare` (which `--keep` holds, or gets). Once with its own reports, which quote
few sentences, and once with the lengths of reports that gpt-4o wrote: each report has one of these texts instead, the
larger communities the longer ones, while its findings stay at their places. Tokens are counted on the scripted server:
of rating and reading together, and of all steps.
"""

import argparse
import asyncio
import copy
import gzip
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from benchmarks.compare_measure import Room
from benchmarks.compare_records import Asked
from benchmarks.compare_sets import COMPARED
from flows.query import answer_question
from flows.question import AskOptions
from flows.session import Session, open_session
from storage.graph_records import Report
from tests.server.client import serving

REPORTS = "llm_outputs/christmas_carol_gpt4o_reports.jsonl.gz"
SELECTING = ("rate", "partial")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tokens of each way of choosing reports; 2 where the folder or a file is absent."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selection", description=str(__doc__).splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder that holds the sets")
    parser.add_argument("--keep", type=Path, required=True, metavar="DIR", help="where the index is kept")
    parser.add_argument("--questions", type=int, default=20, metavar="N", help="ask the first N (20)")
    options = parser.parse_args(arguments)
    known = next(one for one in COMPARED if one.judged == "claims")
    missing = sorted(str(path) for path in [*known.missing(options.data), options.data / REPORTS] if not path.is_file())
    if missing:
        print(f"These files are absent: {', '.join(missing)}. Name the folder that holds them: --data DIR.")
        return 2
    folder = options.keep / known.name
    folder.mkdir(parents=True, exist_ok=True)
    room = Room(known, folder / "workspace")
    questions = known.ask(options.data, options.questions)
    with serving() as server, open_session(room.index(known.write(options.data, folder))) as session:
        for name, seen in (("quoted", session), ("gpt-4o", with_texts(session, texts(options.data / REPORTS)))):
            print(f"{name}: {mean(_size(one) for one in seen.reports.reports.values()):.0f} characters a report")
            found = {level: spent(questions, level, seen, room, server.base_url) for level in (None, *levels(seen))}
            for level, (chosen, whole, calls) in found.items():
                spared = "" if level is None else f", of which selection spares {1 - found[None][0] / chosen:.0%}"
                way = "dynamic" if level is None else f"level {level}"
                print(
                    f"  {way:8} {chosen:7.0f} tokens to select and read{spared}; {whole:.0f} in all, {calls:.1f} calls"
                )
    return 0


def levels(session: Session) -> list[int]:
    """The levels that have reports."""
    return sorted({report.level for report in session.reports.reports.values()})


class Text(NamedTuple):
    """What a model wrote of a community."""

    summary: str
    findings: tuple[str, ...]


def texts(path: Path) -> list[Text]:
    """The written reports, the longest first."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    written = [json.loads(row["response"]) for row in rows if row["kind"] == "community_report"]
    written.sort(key=lambda one: -len(json.dumps(one)))
    return [Text(one["summary"], tuple(finding["summary"] for finding in one["findings"])) for one in written]


def with_texts(session: Session, written: Sequence[Text]) -> Session:
    """The same session, whose reports have these texts: the larger the community, the longer the text."""
    tree = session.reports
    ordered = sorted(tree.reports.values(), key=lambda one: (-len(tree.members[one.community]), one.community))
    share = max(1, len(ordered) // len(written))
    lengths = [text for text in written for _ in range(share)]
    changed = {report.community: _told(report, text) for report, text in zip(ordered, cycle(lengths), strict=False)}
    seen = copy.copy(session)
    seen.reports = replace(tree, reports=changed)
    return seen


def _told(report: Report, text: Text) -> Report:
    """The report with another's words."""
    places = report.findings
    findings = tuple(
        places[number % len(places)].model_copy(update={"summary": one, "explanation": one})
        for number, one in enumerate(text.findings)
    )
    return report.model_copy(update={"summary": text.summary, "findings": findings})


def _size(report: Report) -> int:
    return len(report.title) + len(report.summary) + sum(len(finding.summary) for finding in report.findings)


def spent(
    questions: Sequence[Asked], level: int | None, session: Session, room: Room, server: str
) -> tuple[float, float, float]:
    """(tokens to select and read, tokens of all steps, calls) of a question, on average."""
    with tempfile.TemporaryDirectory(prefix="trellis-bench-", ignore_cleanup_errors=True) as cache:
        seen = copy.copy(session)
        seen.runtime = room.runtime(Path(cache), server)
        used = [
            asyncio.run(answer_question(one.text, AskOptions(mode="global", level=level), seen)).usage
            for one in questions
        ]
    chosen = [
        sum(step.input_tokens + step.output_tokens for name, step in one.by_step.items() if name in SELECTING)
        for one in used
    ]
    return mean(chosen), mean(one.input_tokens + one.output_tokens for one in used), mean(one.calls for one in used)


if __name__ == "__main__":
    sys.exit(main())
