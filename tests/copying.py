"""Copies of the sample corpus, and of workspaces that this process may have open."""

import shutil
import subprocess
from pathlib import Path

CORPUS = Path(__file__).parents[1] / "examples" / "corpus"


def corpus_in(folder: Path, *without: str) -> Path:
    """Copy the sample corpus without the files that take seconds to convert."""
    ignored = shutil.ignore_patterns(*without, "*.pdf", "*.docx", "*.xlsx", "*.pptx")
    return Path(shutil.copytree(CORPUS, folder / "corpus", ignore=ignored))


def copy_of(workspace: Path, target: Path) -> Path:
    """Copy a workspace by another process.

    A process that closes a file gives up all its locks on it, which SQLite relies on: after a copy
    made here, the next process would take the open store for one that nobody uses.
    """
    subprocess.run(["cp", "-a", str(workspace), str(target)], check=True)  # noqa: S607 - our own
    return target
