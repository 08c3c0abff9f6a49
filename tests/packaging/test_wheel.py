"""The built wheel works without a checkout, also beside packages with the names of ours.

One wheel and one environment serve all tests here. The environment sees the dependencies of the
running one through a path file: nothing is downloaded, and the editable install is not seen.
"""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.server.client import ROOT

PACKAGES = ("flows", "tasks", "prompts", "storage")

pytestmark = pytest.mark.packaging


def run(command: object, *arguments: str, folder: Path = ROOT) -> str:
    """The output of a command that must succeed, without our variables and Python's."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "TRELLIS_"))
    }
    done = subprocess.run(
        [str(command), *arguments],
        cwd=folder,
        env=kept,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    options = ("--wheel", "--no-isolation", "--outdir", str(folder))
    run(sys.executable, "-m", "build", *options, str(ROOT))
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands of an environment that holds the wheel."""
    prefix = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(prefix, symlinks=True)
    target = ("--python", str(prefix / "bin" / "python"))
    options = ("--no-deps", "--no-index", "-q")
    run(sys.executable, "-m", "pip", *target, "install", *options, str(wheel))
    (site,) = prefix.glob("lib/python*/site-packages")
    # Only now: pip would take the editable install that this path leads to for the wheel.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return prefix / "bin"


def on_disk(folder: str, inside: str) -> set[str]:
    files = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    return {
        f"{inside}/{path.relative_to(ROOT / folder).as_posix()}"
        for path in files
        if "__pycache__" not in path.parts
    }


def test_the_wheel_holds_packages_and_sample_corpus_alone(wheel: Path) -> None:
    samples = {
        name for name in on_disk("examples", "flows/_examples") if Path(name).suffix != ".py"
    }
    expected = samples.union(*(on_disk(package, package) for package in PACKAGES))
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert any(name.startswith("flows/_examples/corpus/") for name in samples)
    assert {"storage/schema.sql", *(f"{package}/py.typed" for package in PACKAGES)} <= expected


def test_a_plain_install_needs_no_constraints(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = HeaderParser().parsestr(archive.read(name).decode())
    needs = set(metadata.get_all("Requires-Dist") or [])
    assert {"prefect==3.8.8", "fastapi<0.151,>=0.139", "sqlalchemy<2.1", "torch==2.13.0"} <= needs
    assert (metadata["Name"], metadata["License-Expression"]) == ("trellis-rag", "Apache-2.0")


def test_the_command_works_beside_packages_of_the_same_names(
    programs: Path, tmp_path: Path
) -> None:
    for name in ("flows", "tasks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWNER = 'the person'\n", encoding="utf-8")
    assert "usage: trellis" in run(programs / "trellis", "--help", folder=tmp_path).lower()
    assert {path.name for path in tmp_path.iterdir()} == {"flows", "tasks"}


def test_what_is_imported_elsewhere_is_the_wheel(programs: Path, tmp_path: Path) -> None:
    code = "".join(f"import {package}; print({package}.__file__)\n" for package in PACKAGES)
    places = run(programs / "python", "-c", code, folder=tmp_path).splitlines()
    assert [place.startswith(str(programs.parent)) for place in places] == [True] * 4


@pytest.mark.slow
def test_the_demo_of_the_wheel_shows_answers_with_sources(programs: Path, tmp_path: Path) -> None:
    output = run(programs / "trellis", "demo", folder=tmp_path)
    assert output.count("\n? ") == 6
    assert output.count("\n  [1] ") == 5
    for words in ("supported by the sources", "Nothing was found", "\nNext\n"):
        assert words in output
    assert output.count("\n") <= 45
    assert [path.name for path in tmp_path.iterdir()] == [".trellis-demo"]
