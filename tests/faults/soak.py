"""A workspace's life in small: `python -m tests.faults.soak FOLDER [--days 24] [--documents 40]`.

Each day documents come, change and go, a run is made of them (every fifth one is first killed at another point), and
questions are asked, all with the scripted model, of whose answers on every second day three of ten go wrong; on some
days one is forgotten, the graph is edited, the index rolled back, or `CURRENT` garbled.
Prints a JSON object a day: what happened, and the workspace's bytes, generations, files, and this process's memory (MB)
and open files. Then a run without faults mends what is left, and the last object says whether, made in full, the
relations are those of one run over the same documents.
"""

import argparse
import asyncio
import gc
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from flows.index import IndexOptions, index_documents
from flows.operations.changes import change, edit, forget
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime
from flows.session import open_session
from prompts.engine.errors import EngineError
from tests.faults.concurrency import measured
from tests.faults.run_killed import PUT_IN_PLACE
from tests.faults.test_model_faults import make_faulty
from tests.flows.conftest import row
from tests.models.running import Place
from tests.server.client import ROOT, Server, serving
from tests.workspaces import opened, write_rows

T = TypeVar("T")

POINTS = ("extract", "dedupe", "report", "publish", *PUT_IN_PLACE[1:])
QUESTIONS = ("Who planned {0} in {1}?", "When was {0} repaired?", "What do {0} and the hills have in common?")


def killed(place: Place, source: Path, point: str) -> None:
    server = place.server.base_url
    command = [sys.executable, "-m", "tests.faults.run_killed", str(place.workspace), str(source), server, point]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT, check=False, capture_output=True)


def worked(place: Place, work: Callable[[Runtime], Coroutine[Any, Any, T]]) -> T:
    """What the work gives in a runtime of its own, which is closed."""

    async def with_runtime() -> T:
        runtime = place.runtime(failure_limit=1.0)
        try:
            return await work(runtime)
        finally:
            await runtime.models.aclose()

    return asyncio.run(with_runtime())


async def asked(questions: list[str], runtime: Runtime) -> Counter[str]:
    """How many of the questions were answered with a source, and how many ended with an error in words."""
    ends = Counter[str](questions=len(questions))
    with open_session(runtime) as session, session.runtime.query_models.without_history():
        for question in questions:
            try:
                answer = await answer_question(question, AskOptions(), session)
                ends["answered"] += bool(answer.citations)
            except EngineError:
                ends["failed"] += 1
    return ends


def rows_of(held: dict[int, int]) -> list[dict[str, Any]]:
    return [{**row(name + version), "id": f"d{name}"} for name, version in sorted(held.items())]


def day(number: int, held: dict[int, int], place: Place, chance: random.Random) -> Counter[str]:
    """One day: `held` tells of each document the version that is there."""
    done, workspace = Counter[str](), place.workspace
    place.server.reset()
    if number % 2 == 0:
        make_faulty(place.server, 3_000, chance)
        done["faulty"] += 1
    for document in chance.sample(sorted(held), 3):
        held[document] += 1
    held.pop(chance.choice(sorted(held)))
    held.update({1000 * number + new: 0 for new in range(2)})
    rows = rows_of(held)
    source = write_rows(workspace.parent / "docs.jsonl", rows)
    if number % 5 == 0:
        killed(place, source, POINTS[number // 5 % len(POINTS)])
        done["killed"] += 1
    if number % 7 == 3:
        (workspace / "CURRENT").write_bytes(b"\xff garbled")
        done["garbled"] += 1
    report = worked(place, partial(index_documents, [source], IndexOptions()))
    done["published"] += report.published
    done["dead letters"] += report.dead_letters
    titles = [f"{line['title']}" for line in rows]
    words = [form.format(chance.choice(titles), chance.randrange(1900, 2000)) for form in QUESTIONS for _ in range(4)]
    done += worked(place, partial(asked, words))
    if number % 3 == 0:
        gone = chance.choice(sorted(held))
        worked(place, partial(forget, [f"d{gone}"]))
        held.pop(gone)
        done["forgotten"] += 1
    if number % 4 == 1:
        told = f"Noted on day {number}."
        worked(place, partial(edit, partial(change, "Ana Korb", None, None, told)))
        done["edited"] += 1
    if number % 6 == 5:
        runtime = opened(workspace)
        runtime.workspace.rollback(min(kept.number for kept in runtime.workspace.generations()))
        done["rolled back"] += 1
    done["calls"] = place.server.stats()["calls"]
    return done


def sizes(workspace: Path) -> dict[str, Any]:
    gc.collect()  # with a model a runtime is part of a circle, and its files are open
    files = [path for path in workspace.rglob("*") if path.is_file()]
    memory, descriptors = measured()
    return {
        "bytes": sum(path.stat().st_size for path in files), "files": len(files), "memory_mb": memory,
        "open_files": descriptors, "generations": len(opened(workspace).workspace.generations()),
    }  # fmt: skip


def live(folder: Path, days: int, documents: int, server: Server) -> list[dict[str, Any]]:
    """What each day left; the last row says whether the end is that of one run."""
    chance, held, told = random.Random(24), dict.fromkeys(range(documents), 0), []  # noqa: S311
    place, anew = Place(folder / "ws", server), Place(folder / "anew", server)
    for number in range(1, days + 1):
        began = time.monotonic()
        done = day(number, held, place, chance)
        told.append({"day": number, "seconds": round(time.monotonic() - began, 1), **done, **sizes(place.workspace)})
        sys.stdout.write(json.dumps(told[-1]) + "\n")
        sys.stdout.flush()
    server.reset()
    source = write_rows(folder / "docs.jsonl", rows_of(held))
    worked(place, partial(index_documents, [source], IndexOptions()))
    mended = place.dead_letters() == []
    for workspace in (place, anew):
        worked(workspace, partial(index_documents, [source], IndexOptions(full=True)))
    ends = [(workspace.graph()["relations"], workspace.graph()["documents"]) for workspace in (place, anew)]
    last = {"relations": len(ends[0][0]), "documents": len(ends[0][1]), "dead letters mended": mended}
    return [*told, {"as one run": ends[0] == ends[1], **last}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--days", type=int, default=24)
    parser.add_argument("--documents", type=int, default=40)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with serving() as server:
        sys.stdout.write(json.dumps(live(given.folder, given.days, given.documents, server)[-1]) + "\n")


if __name__ == "__main__":
    main()
