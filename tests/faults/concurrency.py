"""Readers beside a writer: `python -m tests.faults.concurrency FOLDER [--passages FILE.jsonl.gz]
[--seconds 300] [--pause 0]`.

Reader processes ask for minutes while one process publishes a generation every so many seconds. The
documents `stamp1` and `stamp2` state the number of their generation; a session must find one number
everywhere. Prints one JSON object: questions, errors, mixed answers, publications, and for each
reader the memory (MB) and open files after a quarter of the time and at the end.
"""

import argparse
import asyncio
import gzip
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

from flows.index import IndexOptions, build_index
from flows.session import open_session
from tests.workspaces import asked, opened, quays, write_rows

ASKED = "What is the seal of Velin?"


def rows(passages: Path | None, turn: int) -> list[dict[str, Any]]:
    """The corpus of a turn."""
    if passages is None:
        corpus: list[dict[str, Any]] = [*quays(60)]
    else:
        with gzip.open(passages, "rt", encoding="utf-8") as lines:
            corpus = [{"id": f"p{n}", **row} for n, row in enumerate(map(json.loads, lines))]
    text = f"The seal of Velin in turn {turn} is S{turn}."
    stamps = [{"id": f"stamp{n}", "title": "Velin", "text": text} for n in (1, 2)]
    return [*({key: row[key] for key in ("id", "title", "text")} for row in corpus), *stamps]


def index(folder: Path, passages: Path | None, turn: int) -> None:
    source = write_rows(folder / "rows.jsonl", rows(passages, turn))
    asyncio.run(build_index([source], IndexOptions(), opened(folder / "ws")))


def measured() -> tuple[float, int]:
    """This process's memory in MB and its open files."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    megabytes = round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
    return megabytes, len(list(Path("/proc/self/fd").iterdir()))


def read(folder: Path, seconds: float, pause: float, questions: list[str], results: Any) -> None:
    """Ask until the time is up; each turn opens the current generation for three questions."""
    runtime, start = opened(folder / "ws", memory="off", answer_cache=False), time.monotonic()
    count = mixed = 0
    errors: list[str] = []
    marks: list[tuple[float, int]] = []
    while (passed := time.monotonic() - start) < seconds:
        if not marks and passed > seconds / 4:
            marks.append(measured())
        try:
            with open_session(runtime) as session:
                for question in (ASKED, questions[count % len(questions)], ASKED):
                    answer = asyncio.run(asked(question, session))
                    count += 1
                    stamps = session.generation.documents.documents(["stamp1", "stamp2"])
                    text, *others = {part.text for part in stamps}
                    found = [row for row in answer.passages if row.document.startswith("stamp")]
                    other = answer.generation != session.number
                    mixed += bool(others) or other or any(row.text not in text for row in found)
        except Exception as error:  # noqa: BLE001 -- counted and reported
            errors.append(repr(error)[:300])
        time.sleep(pause)
    marks.append(measured())
    results.put({"asked": count, "mixed": mixed, "errors": errors, "marks": marks})


def measure(given: argparse.Namespace) -> dict[str, Any]:
    folder, passages, seconds = given.folder, given.passages, given.seconds
    index(folder, passages, 1)
    questions = [f"Where is {row['title']}?" for row in rows(passages, 1)[:200]]
    context = multiprocessing.get_context("spawn")
    queue: Any = context.Queue()
    processes = [
        context.Process(target=read, args=(folder, seconds, given.pause, questions, queue))
        for _ in range(given.readers)
    ]
    for process in processes:
        process.start()
    end, turn = time.monotonic() + seconds, 1
    while (began := time.monotonic()) < end:
        turn += 1
        index(folder, passages, turn)
        time.sleep(max(0.0, min(began + given.every, end) - time.monotonic()))
    results = [queue.get() for _ in processes]
    for process in processes:
        process.join()
    return {
        "publications": turn - 1,
        "kept": len(opened(folder / "ws").workspace.generations()),
        "asked": sum(result["asked"] for result in results),
        "mixed": sum(result["mixed"] for result in results),
        "errors": [error for result in results for error in result["errors"]],
        "readers": [result["marks"] for result in results],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--passages", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--every", type=float, default=20.0)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--pause", type=float, default=0.0)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(json.dumps(measure(given), indent=1) + "\n")


if __name__ == "__main__":
    main()
