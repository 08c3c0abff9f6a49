"""Does the project keep its own rules: layout, names, imports, targets, dependencies?"""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("flows", "tasks", "prompts", "storage")
FOLDERS = {*PACKAGES, "tests", "benchmarks", "docs", "examples"}
TARGETS = {"setup", "demo", "check", "test", "bench", "docs", "clean"}
# Packages that may be missing, and the only places where each is imported.
EXTRAS = {
    "dask": "flows/runners.py",
    "datasets": "tasks/train/lora.py",
    "distributed": "flows/runners.py",
    "fast_graphrag": "benchmarks/peers/fast_graphrag_run.py",
    "peft": "tasks/train/lora.py",
    "trl": "tasks/train/lora.py",
    "xllamacpp": "prompts/engine/gguf.py",
}
# Seconds and hundreds of megabytes each: commands that do not need them must not pay for them.
SLOW_TO_IMPORT = {
    "torch",
    "sentence_transformers",
    "transformers",
    "cdlib",
    "litellm",
    "sklearn",
    "markitdown",
}


def files_of_the_project() -> list[Path]:
    """What git tracks or would track; outside a checkout there is nothing to judge."""
    listed = subprocess.run(
        # The git on PATH.
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(path: Path) -> Iterator[str]:
    """The top-level names of all absolute imports, also of those inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


def project_table() -> dict[str, object]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert isinstance(table, dict)
    return table


def requirement_name(line: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", line)
    assert found, f"not a requirement: {line!r}"
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def declared() -> set[str]:
    lines = project_table()["dependencies"]
    assert isinstance(lines, list)
    return {requirement_name(line) for line in lines}


def test_the_top_level_holds_the_documented_folders_only() -> None:
    folders = {
        path.relative_to(ROOT).parts[0] for path in files_of_the_project() if path.parent != ROOT
    }
    assert {name for name in folders if not name.startswith(".")} <= FOLDERS
    assert set(PACKAGES) <= folders


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_with_modules_is_a_package_with_an_empty_init_file(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        init = path.parent / "__init__.py"
        assert init.is_file(), f"{name_of(path.parent)} lacks an empty __init__.py"
        assert not init.read_text().strip(), name_of(init)


def test_no_two_classes_have_one_name() -> None:
    classes = Counter(
        node.name
        for path in modules()
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in classes.items() if count > 1] == []


@pytest.mark.parametrize("story", ["index", "query"])
def test_a_story_is_read_at_one_sitting(story: str) -> None:
    """What becomes longer is told in the rooms behind it: `flows/indexing/`, `flows/question.py`,
    `flows/modes/`.
    """
    assert len((ROOT / "flows" / f"{story}.py").read_text(encoding="utf-8").splitlines()) <= 220


def test_a_prompt_and_its_task_have_the_same_stem() -> None:
    def steps(package: str, files: str = "*.py") -> set[str]:
        found = {path.stem for path in (ROOT / package).glob(files)}
        return (found | {path.name for path in (ROOT / package).iterdir() if path.is_dir()}) - {
            "__init__",
            "__pycache__",
        }

    # Shared by all prompts, a step of none.
    rooms = set(
        "registry engine offline structures tailoring tailored_step text doctor extracted".split()
    )
    # The plan is the model's part of what `tasks/tables` does; the choice of a mode stands in
    # `tasks/route.py`.
    assert steps("prompts") - rooms - {"plan_table", "choose"} <= steps("tasks", "**/*.py")


def test_no_flow_file_shadows_a_module() -> None:
    """Prefect loads a flow's file with its folder first on sys.path: an equal name would be found
    there.
    """
    homes = (ROOT / "flows", ROOT / "flows" / "orchestration")
    stems = {path.stem for home in homes for path in home.glob("*.py")} - {"__init__", "__main__"}
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    assert stems & (folders | set(packages_distributions()) | sys.stdlib_module_names) == set()


PRIVATE = re.compile(
    r"""(?<![\w.~/])/(?:home|root|Users|work|tmp|opt|mnt)/[\w.-]+  # a path of one machine
    |https?://\S*(?:pypi|pythonhosted|download\.pytorch)          # a host of a package registry""",
    re.VERBOSE,
)


def test_no_file_names_a_machine_or_a_registry() -> None:
    assert PRIVATE.search("see /home/me/x")
    assert not PRIVATE.search("docs/home/page.md, https://example.com/work/of/art")
    found = {}
    for path in files_of_the_project():
        if path == Path(__file__).resolve():
            continue  # the examples above
        if hits := PRIVATE.findall(path.read_text(encoding="utf-8", errors="replace")):
            found[name_of(path)] = hits
    assert found == {}


def test_every_documented_target_exists() -> None:
    rules = set(
        re.findall(
            r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE
        )
    )
    pages = [path for path in files_of_the_project() if path.suffix == ".md"]
    spoken = {
        target
        for page in pages
        for target in re.findall(
            r"(?:`|^\s*\$?\s*)make ([a-z]+)\b", page.read_text(encoding="utf-8"), flags=re.MULTILINE
        )
    }
    assert rules >= TARGETS
    assert spoken <= rules, f"documented, but no target: {sorted(spoken - rules)}"


def test_every_import_is_a_declared_dependency() -> None:
    homes = packages_distributions()
    missing = {
        (name_of(path), name)
        for path in modules()
        for name in imported(path)
        if name not in sys.stdlib_module_names
        and name not in PACKAGES
        and name_of(path) not in EXTRAS.get(name, "").split()
        and not {requirement_name(home) for home in homes.get(name, [])} & declared()
    }
    assert missing == set()


def test_every_declared_dependency_is_explained_and_pinned() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    asked_for = page.split("## What we ask for")[1].split("\n## ")[0]
    rows = {
        requirement_name(found)
        for found in re.findall(r"^\| `([^`]+)`", asked_for, flags=re.MULTILINE)
    }
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {requirement_name(line) for line in lines if line and not line.startswith("#")}
    assert declared() - rows == set(), "docs/dependencies.md lacks a row"
    assert rows - declared() == set(), "docs/dependencies.md explains what is not a dependency"
    assert declared() - pinned == set(), "constraints.txt lacks a line"


def test_every_pinned_version_but_torch_has_hashes() -> None:
    line = r"^([\w.-]+==[^\s;]+)"
    pinned, hashed = (
        {
            found.lower().replace("_", "-").replace(".", "-")
            for found in re.findall(pattern, path.read_text(), re.MULTILINE)
        }
        for pattern, path in (
            (line, ROOT / "constraints.txt"),
            (line + r"[^\n]*\\\n    --hash=sha256:", ROOT / ".make" / "hashes.txt"),
        )
    )
    assert {name for name in pinned - hashed if not name.startswith("torch==")} == set()
    assert hashed <= pinned


IMPORT_ALL = """
import contextlib, importlib, io, json, sys
said = io.StringIO()
with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
    for name in sys.argv[1:]:
        importlib.import_module(name)
loaded = sorted({name.split(".")[0] for name in sys.modules})
print(json.dumps({"said": said.getvalue(), "loaded": loaded}))
"""


def loaded_by(*names: str) -> dict[str, object]:
    """What a fresh interpreter prints and has loaded after importing these modules."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def test_importing_everything_is_silent_and_quick() -> None:
    """Nothing happens at import: no output, and nothing slow is loaded before it is needed."""
    answer = loaded_by(*(dotted(path) for path in modules() if path.name != "__main__.py"))
    assert answer["said"] == ""
    assert isinstance(answer["loaded"], list)
    assert SLOW_TO_IMPORT & set(answer["loaded"]) == set()


def test_plain_modules_load_no_engine() -> None:
    """Records, errors and the table of commands are what `trellis --help` loads."""
    plain = {"flows.cli.command", "storage.records", "storage.errors"} & {
        dotted(path) for path in modules()
    }
    loaded = loaded_by(*sorted(plain))["loaded"]
    assert isinstance(loaded, list)
    assert (SLOW_TO_IMPORT | {"dspy", "chromadb", "duckdb", "prefect", "igraph", "networkx"}) & set(
        loaded
    ) == set()
