"""What the storage tests run in other processes: `python -m tests.storage.worker ACTION ROOT X`."""

import logging
import os
import signal
import sys
from pathlib import Path

import numpy as np

from storage.memory import MemoryEntry
from storage.workspace import Workspace
from storage.workspace_db import WorkspaceDatabase
from tests.storage.samples import MODEL, put, same_ranking, served_by, vector


def die_writing(root: Path, moment: str) -> None:
    """Kills itself in a run that retires the current generation.

    The moment is a transaction, or the renaming of something to a name that ends so.
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
    """Prints log records: a search that falls back to the database has warned."""

    def emit(self, record: logging.LogRecord) -> None:
        say(f"logged {record.getMessage()}")


def read_on(root: Path, _: str) -> None:
    """Reads until a file `stop` exists. Each document must say which generation it belongs to."""
    workspace = served_by("chroma", root)
    logging.getLogger("storage").addHandler(Telling())
    seen: set[int] = set()
    last = False
    while not last:
        last = (root / "stop").exists()
        with workspace.read() as generation:
            number = generation.number
            texts = {d.text for d in generation.documents.documents()}
            found = generation.vectors.search(vector("question"), 3)
            exact = generation.vectors.nearest_chunks(vector("question"), 3)
        if {t.split()[0] for t in texts} != {str(number)} or not same_ranking(found, exact):
            say(f"inconsistent {number} {texts} {found} {exact}")
            return
        if not seen:
            say("reading")
        seen.add(number)
    say(f"done {len(seen)}")


def write_database(root: Path, name: str) -> None:
    db = WorkspaceDatabase(root / "side.sqlite")
    for i in range(50):
        db.model_answers.put(f"{name}-{i}", '{"answer": 1}')
        db.embeddings.put_many(MODEL, {f"{name}-{i}": np.full(4, i, dtype=np.float32)})
        db.memory.put([MemoryEntry(source=name, title=f"t{i % 10}", content=str(i), generation=1)])
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


ACTIONS = (die_writing, hold_lock, read_on, write_database, write_until_killed)

if __name__ == "__main__":
    action, root, argument = sys.argv[1:]
    {work.__name__: work for work in ACTIONS}[action](Path(root), argument)
