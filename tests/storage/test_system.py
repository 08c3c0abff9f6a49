"""What differs between systems: here as on Windows, as far as Linux can show it.

Nothing of this has run on Windows or macOS.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.server.client import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux stands in for Windows")
OURS = ("flows", "tasks", "prompts", "storage")
# What Windows lacks, or does otherwise.
ELSEWHERE = {
    *("add_signal_handler", "fchmod", "fork", "geteuid", "getuid", "killpg", "os.kill", "pread"),
    *("pwrite", "register_at_fork", "setsid", "start_new_session", "umask", "SIGHUP", "SIGKILL"),
    *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "creationflags", "preexec_fn"),
}
MODULES = {"fcntl", "grp", "msvcrt", "pwd", "resource", "termios"}


def as_on_windows(script: str, *arguments: object) -> str:
    """What a script prints in a process like one of Windows."""
    begin = "import sys\nfrom tests.windows_like import become_windows\nbecome_windows()\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + script, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_one_module_alone_knows_the_system() -> None:
    found = set()
    for path in (path for package in OURS for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = {alias.name for alias in getattr(node, "names", ()) if hasattr(alias, "name")}
            named = {getattr(node, "attr", None), getattr(node, "arg", None)}
            if isinstance(node, ast.Attribute):
                named.add(ast.unparse(node))
            if names & MODULES or named & ELSEWHERE:
                found.add(path.relative_to(ROOT).as_posix())
    assert found == {"storage/system.py"}


EVERY_MODULE = """
import importlib, pkgutil
from tests.windows_like import OURS, POSIX_ONLY
for package in OURS:
    for module in pkgutil.walk_packages([package], f"{package}."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert error.name.partition(".")[0] not in (*OURS, *POSIX_ONLY), error
            print("without its extra:", module.name)
"""


@pytest.mark.slow
def test_every_module_is_imported_as_on_windows() -> None:
    as_on_windows(EVERY_MODULE)


LOCKS = """
from pathlib import Path
from storage.errors import WorkspaceLocked
from storage.layout import Lease, WriterLock
root = Path(sys.argv[1])
folder = root / "generations" / "000001"
folder.mkdir(parents=True)
held = WriterLock(root / "LOCK")
try:
    WriterLock(root / "LOCK")
except WorkspaceLocked as error:
    print(error.message)
held.release()
WriterLock(root / "LOCK").release()
readers = [Lease.take(folder) for _ in range(100)]
assert all(readers)
assert Lease.take(folder, exclusive=True) is None
for reader in readers:
    reader.release()
alone = Lease.take(folder, exclusive=True)
assert alone and Lease.take(folder) is None
folder.rmdir()
alone.release()
assert Lease.take(folder) is None
"""


def test_locks_hold_as_on_windows(tmp_path: Path) -> None:
    assert "process" in as_on_windows(LOCKS, tmp_path)


UPLOADS = """
import asyncio
from pathlib import Path
from storage.errors import UsageError
from storage.uploads import remove_parts, store_upload, upload_path
async def pieces(text):
    yield text.encode()
root = Path(sys.argv[1])
for text in ("before", "after"):
    path = asyncio.run(store_upload(root, "notes/桥.txt", pieces(text)))
assert path.read_text() == "after"
(path.parent / ".part-killed").write_text("half")
assert remove_parts(root) == 1
assert [file.name for file in path.parent.iterdir()] == ["桥.txt"]
for name in ("a:b.txt", "CON", "nul.txt", "a.", "a ", "a/com1/b", "a?"):
    try:
        upload_path(root, name)
    except UsageError:
        continue
    raise AssertionError(name)
upload_path(root, "console/com.txt")
"""


def test_uploads_are_stored_as_on_windows(tmp_path: Path) -> None:
    as_on_windows(UPLOADS, tmp_path)


LIFE = """
import json
from flows.cli.command import main
for command in json.loads(sys.argv[1]):
    code = main([*command, "--workspace", sys.argv[2]])
    assert code == 0, command
"""


@pytest.mark.slow
def test_a_workspace_lives_as_on_windows(tmp_path: Path) -> None:
    source, archive, copy = tmp_path / "docs", tmp_path / "kb.tar.gz", tmp_path / "copy"
    source.mkdir()
    copy.mkdir()
    (source / "桥.md").write_text("# 奥拉桥\n\n奥拉桥于1931年通车。", encoding="utf-8")
    (source / "bridge.md").write_text("# Orla Bridge\n\nOrla Bridge opened in 1931.")
    commands = [
        ["index", str(source)],
        ["ask", "When did Orla Bridge open?"],
        ["forget", "bridge.md"],
        ["ask", "奥拉桥何时通车？"],
        ["archive", str(archive)],
    ]
    out = as_on_windows(LIFE, json.dumps(commands), tmp_path / "ws")
    assert "1931" in out
    assert not (tmp_path / "ws" / "generations" / "000001").exists()
    assert "1931" in as_on_windows(
        LIFE, json.dumps([["restore", str(archive)], ["ask", "奥拉桥何时通车？"]]), copy
    )
