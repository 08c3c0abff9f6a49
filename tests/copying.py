"""How is a workspace copied that this process may have open?"""

import subprocess
from pathlib import Path


def copy_of(workspace: Path, target: Path) -> Path:
    """A copy, made by another process.

    Whoever closes a file gives up all locks that the process has on it, and SQLite counts on them: a copy made here
    would let the next process that opens the store take it for one that nobody uses.
    """
    subprocess.run(["cp", "-a", str(workspace), str(target)], check=True)  # noqa: S607 -- our own folders
    return target
