"""A workspace's life in small: `python -m tests.faults.soak FOLDER [--days 24] [--documents 40]`.

Each day documents come, change and go, a run is made of them (every fifth one is first killed at another point), and
questions are asked; on some days one is forgotten, the graph is edited, the index rolled back, or `CURRENT` garbled.
Prints a JSON object a day: what happened, and the workspace's bytes, generations, files, and this process's memory (MB)
and open files; the last says whether the graph is that of one run over the same documents.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from flows.index import IndexOptions
from flows.operations.changes import change, edit, forget
from flows.operations.index_run import index_run
from flows.query import answer_question
from flows.question import AskOptions
from flows.session import open_session
from storage.export import export
from tests.faults.concurrency import measured
from tests.faults.run_killed import PUT_IN_PLACE
from tests.flows.conftest import row
from tests.server.client import ROOT
from tests.workspaces import opened, write_rows

POINTS = ("extract", "dedupe", "report", "publish", *PUT_IN_PLACE[1:])
QUESTIONS = ("Who planned {0} in {1}?", "When was {0} repaired?", "What do {0} and the hills have in common?")


def killed(workspace: Path, source: Path, point: str) -> None:
    command = [sys.executable, "-m", "tests.faults.run_killed", str(workspace), str(source), "", point]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT, check=False, capture_output=True)


def asked(workspace: Path, questions: list[str]) -> int:
    """How many of the questions were answered with a source."""
    with open_session(opened(workspace)) as session:
        answers = [asyncio.run(answer_question(question, AskOptions(), session)) for question in questions]
    return sum(bool(answer.citations) for answer in answers)


def rows_of(held: dict[int, int]) -> list[dict[str, Any]]:
    return [{**row(name + version), "id": f"d{name}"} for name, version in sorted(held.items())]


def day(number: int, held: dict[int, int], folder: Path, chance: random.Random) -> Counter[str]:
    """One day: `held` tells of each document the version that is there."""
    done, workspace = Counter[str](), folder / "ws"
    for document in chance.sample(sorted(held), 3):
        held[document] += 1
    held.pop(chance.choice(sorted(held)))
    held.update({1000 * number + new: 0 for new in range(2)})
    rows = rows_of(held)
    source = write_rows(folder / "docs.jsonl", rows)
    if number % 5 == 0:
        killed(workspace, source, POINTS[number // 5 % len(POINTS)])
        done["killed"] += 1
    if number % 7 == 3:
        (workspace / "CURRENT").write_bytes(b"\xff garbled")
        done["garbled"] += 1
    report = asyncio.run(index_run([source], IndexOptions(), opened(workspace)))
    done["published"] += report.published
    titles = [f"{line['title']}" for line in rows]
    words = [form.format(chance.choice(titles), chance.randrange(1900, 2000)) for form in QUESTIONS for _ in range(4)]
    done["questions"], done["answered"] = len(words), asked(workspace, words)
    if number % 3 == 0:
        gone = chance.choice(sorted(held))
        asyncio.run(forget([f"d{gone}"], opened(workspace)))
        held.pop(gone)
        done["forgotten"] += 1
    if number % 4 == 1:
        told = f"Noted on day {number}."
        asyncio.run(edit(partial(change, "Ana Korb", None, None, told), opened(workspace)))
        done["edited"] += 1
    if number % 6 == 5:
        runtime = opened(workspace)
        runtime.workspace.rollback(min(kept.number for kept in runtime.workspace.generations()))
        done["rolled back"] += 1
    return done


def sizes(workspace: Path) -> dict[str, Any]:
    files = [path for path in workspace.rglob("*") if path.is_file()]
    memory, descriptors = measured()
    return {
        "bytes": sum(path.stat().st_size for path in files), "files": len(files), "memory_mb": memory,
        "open_files": descriptors, "generations": len(opened(workspace).workspace.generations()),
    }  # fmt: skip


def live(folder: Path, days: int, documents: int) -> list[dict[str, Any]]:
    """What each day left; the last row says whether the end is that of one run."""
    chance, held, told = random.Random(24), dict.fromkeys(range(documents), 0), []  # noqa: S311
    for number in range(1, days + 1):
        began = time.monotonic()
        done = day(number, held, folder, chance)
        told.append({"day": number, "seconds": round(time.monotonic() - began, 1), **done, **sizes(folder / "ws")})
        sys.stdout.write(json.dumps(told[-1]) + "\n")
        sys.stdout.flush()
    source = write_rows(folder / "docs.jsonl", rows_of(held))
    for workspace in (folder / "ws", folder / "anew"):
        asyncio.run(index_run([source], IndexOptions(full=True), opened(workspace)))
    ends = []
    for workspace in (folder / "ws", folder / "anew"):
        with opened(workspace).workspace.read() as generation:
            ends.append((export(generation)["relations"], generation.documents.ids()))
    return [*told, {"as one run": ends[0] == ends[1], "relations": len(ends[0][0]), "documents": len(ends[0][1])}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--days", type=int, default=24)
    parser.add_argument("--documents", type=int, default=40)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(json.dumps(live(given.folder, given.days, given.documents)[-1]) + "\n")


if __name__ == "__main__":
    main()
