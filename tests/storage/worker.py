"""What the storage tests run in processes of their own: `python -m tests.storage.worker ACTION ROOT
[ARGUMENT]`.
"""

import logging
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from storage.memory import MemoryEntry
from storage.workspace import Workspace
from storage.workspace_db import WorkspaceDatabase
from tests.storage.samples import MODEL, put, same_ranking, served_by, vector


def die_writing(root: Path, moment: str) -> None:
    """Killed by itself in a run that retires the current generation: in a transaction, or as a file
    or folder whose name ends so is put in its place.
    """

    def die_renaming(event: str, arguments: tuple[object, ...]) -> None:
        if event == "os.rename" and str(arguments[1]).endswith(moment):
            os.kill(os.getpid(), signal.SIGKILL)

    with Workspace(root).write() as staging:
        base = staging.base_number
        put(staging, "doomed", "this text must never be seen " * 5)
        if moment == "transaction":
            with staging.transaction():
                staging.documents.remove_documents(["a"])
                os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(die_renaming)
        staging.publish(retire=[] if base is None else [base])


def hold_lock(root: Path, _: str) -> None:
    with Workspace(root).write():
        say("locked")
        sys.stdin.readline()


class Telling(logging.Handler):
    """Says what is logged where the test reads it: a search that fell back to the database has
    warned.
    """

    def emit(self, record: logging.LogRecord) -> None:
        say(f"logged {record.getMessage()}")


def read_on(root: Path, chroma_url: str) -> None:
    """Reads until told to stop; every generation must be whole: each document says which generation
    it belongs to.
    """
    workspace = served_by("auto" if chroma_url else "chroma", root, url=chroma_url or None)
    logging.getLogger("storage").addHandler(Telling())
    seen: set[int] = set()
    reads = 0
    generation = workspace.read()
    last = False
    while not last:
        last = (root / "stop").exists()
        if workspace.changed(generation):
            generation.close()
            generation = workspace.read()
        texts = {d.text for d in generation.documents.documents()}
        found = generation.vectors.search(vector("question"), 3)
        exact = generation.vectors.nearest_chunks(vector("question"), 3)
        chunks = {c.id for c in generation.documents.chunks()}
        whole = {t.split()[0] for t in texts} == {str(generation.number)}
        if not whole or not same_ranking(found, exact) or not {c for c, _ in found} <= chunks:
            say(f"inconsistent {generation.number} {texts} {found} {exact}")
            return
        seen.add(generation.number)
        reads += 1
        if reads == 1:
            say("reading")
        time.sleep(0.05)
    generation.close()
    say(f"done {reads} {len(seen)}")


def write_database(root: Path, name: str) -> None:
    db = WorkspaceDatabase(root / "side.sqlite")
    for i in range(50):
        db.model_answers.put(f"{name}-{i}", '{"answer": 1}')
        db.embeddings.put_many(MODEL, {f"{name}-{i}": np.full(4, i, dtype=np.float32)})
        db.memory.put(
            [
                MemoryEntry(
                    source=name, title=f"t{i % 10}", content=str(i), evidence=("h",), generation=1
                )
            ]
        )
        db.model_answers.get(f"{name}-{i}")
    db.close()


def write_until_killed(root: Path, _: str) -> None:
    db = WorkspaceDatabase(root / "side.sqlite")
    i = 0
    while True:
        db.model_answers.put(f"k{i}", "v" * 100)
        say(str(i))
        i += 1


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    action, root, argument = sys.argv[1], Path(sys.argv[2]), [*sys.argv, ""][3]
    {
        "die_writing": die_writing,
        "hold_lock": hold_lock,
        "read_on": read_on,
        "write_database": write_database,
        "write_until_killed": write_until_killed,
    }[action](root, argument)
