"""Readers beside a writer: `python -m tests.faults.concurrency FOLDER [--passages FILE.jsonl.gz]
[--seconds 300] [--pause 0]`.

Readers are processes that ask for minutes, with a pause after every third question, while one
process publishes a generation every so many seconds. Every passage has a document `stamp` beside it
in its generation; what a session reads of both must agree. Prints one JSON object: questions,
errors, mixed answers, publications, and of each reader the memory (MB) and open files at a quarter
of the time and at its end.
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
from flows.query import answer_question
from flows.question import AskOptions
from flows.session import open_session
from tests.workspaces import opened, quays, write_rows

STAMP = "The seal of Velin in turn {0} is {1}."
ASKED = "What is the seal of Velin?"


def rows(passages: Path | None, turn: int) -> list[dict[str, Any]]:
    """The corpus of a turn: two documents tell its number."""
    if passages is None:
        corpus = quays(60)
    else:
        with gzip.open(passages, "rt", encoding="utf-8") as lines:
            corpus = [{"id": f"p{n}", **row} for n, row in enumerate(map(json.loads, lines))]
    stamps = [
        {"id": f"stamp{n}", "title": "Velin", "text": STAMP.format(turn, f"S{turn}")}
        for n in (1, 2)
    ]
    return [*({key: row[key] for key in ("id", "title", "text")} for row in corpus), *stamps]


def index(folder: Path, passages: Path | None, turn: int) -> None:
    source = write_rows(folder / "rows.jsonl", rows(passages, turn))
    asyncio.run(build_index([source], IndexOptions(), opened(folder / "ws")))


def measured() -> tuple[float, int]:
    """This process's memory in MB and its open files."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1), sum(
        1 for _ in Path("/proc/self/fd").iterdir()
    )


def read(folder: Path, seconds: float, pause: float, questions: list[str], told: Any) -> None:
    """Asks until the time is up; each turn opens what is current, asks two questions, and
    compares.
    """
    runtime, start = opened(folder / "ws", memory="off", answer_cache=False), time.monotonic()
    asked = mixed = 0
    errors: list[str] = []
    marks: list[tuple[float, int]] = []
    while (passed := time.monotonic() - start) < seconds:
        if not marks and passed > seconds / 4:
            marks.append(measured())
        try:
            with open_session(runtime) as session:
                for question in (ASKED, questions[asked % len(questions)], ASKED):
                    answer = asyncio.run(answer_question(question, AskOptions(), session))
                    asked += 1
                    texts = {
                        part.text
                        for part in session.generation.documents.documents(["stamp1", "stamp2"])
                    }
                    stated = {
                        passage.text
                        for passage in answer.passages
                        if passage.document.startswith("stamp")
                    }
                    whole = answer.generation == session.generation.number and len(texts) == 1
                    mixed += not (whole and all(text in next(iter(texts)) for text in stated))
        except Exception as error:  # noqa: BLE001 -- counted and told
            errors.append(repr(error)[:300])
        time.sleep(pause)
    told.put({"asked": asked, "mixed": mixed, "errors": errors, "marks": [*marks, measured()]})


def measure(given: argparse.Namespace) -> dict[str, Any]:
    folder, passages, seconds, every = given.folder, given.passages, given.seconds, given.every
    index(folder, passages, 1)
    questions = [f"Where is {row['title']}?" for row in rows(passages, 1)[:200]]
    context = multiprocessing.get_context("spawn")
    told: Any = context.Queue()
    processes = [
        context.Process(target=read, args=(folder, seconds, given.pause, questions, told))
        for _ in range(given.readers)
    ]
    for process in processes:
        process.start()
    start, turn = time.monotonic(), 1
    while time.monotonic() - start < seconds:
        began, turn = time.monotonic(), turn + 1
        index(folder, passages, turn)
        time.sleep(
            max(0.0, min(every - (time.monotonic() - began), seconds - (time.monotonic() - start)))
        )
    results = [told.get() for _ in processes]
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
    found = measure(given)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
