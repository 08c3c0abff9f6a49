"""Does the built wheel work where no checkout is, also in a folder that has packages with the names
of ours?

One wheel and one environment serve all tests here. The environment sees the dependencies of the
running one through a path file, so that nothing is downloaded or installed twice; the editable
install of the checkout is not seen that way.
"""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

import pytest

from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("flows", "tasks", "prompts", "storage")
IMPORTED_FROM = "import {0}; print({0}.__file__)\n"

pytestmark = pytest.mark.packaging


@dataclass(frozen=True)
class Installed:
    """An environment that holds the wheel; commands run in `folder`."""

    prefix: Path
    folder: Path

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "TRELLIS_"))
        }
        return subprocess.run(
            [self.prefix / "bin" / command, *arguments],
            cwd=self.folder,
            env=kept,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(folder),
        str(ROOT),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(prefix, symlinks=True)
    python = str(prefix / "bin" / "python")
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-deps",
        "--no-index",
        "-q",
        str(wheel),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (site,) = prefix.glob("lib/python*/site-packages")
    # Only now: pip would take the running environment's editable install for this wheel, and
    # install nothing.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return prefix


@pytest.fixture
def elsewhere(environment: Path, tmp_path: Path) -> Installed:
    """A folder with nothing in it."""
    return Installed(environment, tmp_path)


def contents(wheel: Path) -> set[str]:
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def on_disk(folder: str, inside: str) -> set[str]:
    files = (
        path
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    return {f"{inside}/{path.relative_to(ROOT / folder).as_posix()}" for path in files}


def test_the_wheel_holds_the_packages_and_the_sample_corpus_and_nothing_else(wheel: Path) -> None:
    samples = {
        name for name in on_disk("examples", "flows/_examples") if Path(name).suffix != ".py"
    }
    expected = samples.union(*(on_disk(package, package) for package in PACKAGES))
    assert contents(wheel) == expected
    assert any(name.startswith("flows/_examples/corpus/") for name in samples), (
        "the sample corpus is missing"
    )
    assert {f"{package}/py.typed" for package in PACKAGES} <= expected
    assert "storage/schema.sql" in expected


def test_a_plain_install_needs_no_constraints(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = HeaderParser().parsestr(archive.read(name).decode())
    needs = set(metadata.get_all("Requires-Dist") or [])
    assert {"prefect==3.8.8", "fastapi<0.151,>=0.139", "sqlalchemy<2.1", "torch==2.13.0"} <= needs
    assert (metadata["Name"], metadata["License-Expression"]) == ("trellis-rag", "Apache-2.0")


def test_the_command_works_beside_packages_of_the_same_names(elsewhere: Installed) -> None:
    for name in ("flows", "tasks"):
        (elsewhere.folder / name).mkdir()
        (elsewhere.folder / name / "__init__.py").write_text(
            f"OWNER = 'the person, {name}'\n", encoding="utf-8"
        )
    done = elsewhere.run("trellis", "--help")
    assert done.returncode == 0, done.stderr
    assert "usage: trellis" in done.stdout.lower()
    assert {path.name for path in elsewhere.folder.iterdir()} == {"flows", "tasks"}


def test_what_is_imported_elsewhere_is_the_wheel(elsewhere: Installed) -> None:
    done = elsewhere.run(
        "python", "-c", "".join(IMPORTED_FROM.format(package) for package in PACKAGES)
    )
    assert [line.startswith(str(elsewhere.prefix)) for line in done.stdout.splitlines()] == [
        True
    ] * 4, done.stderr


@pytest.mark.slow
def test_the_demo_from_the_wheel_shows_answers_with_their_sources(elsewhere: Installed) -> None:
    done = elsewhere.run("trellis", "demo")
    assert done.returncode == 0, done.stderr
    families = "one fact", "steps to follow", "the whole collection", "the graph alone"
    assert all(f"\n{family}" in done.stdout for family in families)
    assert done.stdout.count("\n[1] ") == 10
    for told in ("23 added", "mode traverse", "Try next"):
        assert told in done.stdout
    assert [path.name for path in elsewhere.folder.iterdir()] == [".trellis-demo"]
