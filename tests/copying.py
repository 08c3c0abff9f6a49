"""How are the sample corpus copied and a workspace that this process may have open?"""

import shutil
import subprocess
from pathlib import Path

CORPUS = Path(__file__).parents[1] / "examples" / "corpus"


def corpus_in(folder: Path, *without: str) -> Path:
    """The sample corpus, without what takes seconds to convert."""
    ignored = shutil.ignore_patterns(*without, "*.pdf", "*.docx", "*.xlsx", "*.pptx")
    return Path(shutil.copytree(CORPUS, folder / "corpus", ignore=ignored))


def copy_of(workspace: Path, target: Path) -> Path:
    """A copy, made by another process.

    Whoever closes a file gives up all locks that the process has on it, and SQLite counts on them:
    a copy made here would let the next process that opens the store take it for one that nobody
    uses.
    """
    # Our own folders.
    subprocess.run(["cp", "-a", str(workspace), str(target)], check=True)  # noqa: S607
    return target
