"""The project keeps its own rules: layout, imports, targets and dependencies."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("flows", "tasks", "prompts", "storage")
FOLDERS = {*PACKAGES, "tests", "benchmarks", "docs", "examples"}
TARGETS = {"setup", "demo", "check", "test", "bench", "docs", "clean"}
# Packages that may be missing, and the only files that import them.
EXTRAS = {
    "dask": "flows/runners.py",
    "datasets": "tasks/train/lora.py",
    "distributed": "flows/runners.py",
    "haystack": "flows/frameworks/haystack_retriever.py",
    "jwt": "flows/service/tokens.py",
    "langchain_core": "flows/frameworks/langchain_retriever.py",
    "llama_index": "flows/frameworks/llama_index_retriever.py",
    "peft": "tasks/train/lora.py",
    "pgvector": "storage/pgvector_store.py",
    "psycopg": "storage/pgvector_store.py",
    "qdrant_client": "storage/qdrant_store.py",
    "pypandoc": "tasks/load/pandoc.py",
    "rapidocr": "tasks/load/pictures.py",
    "trl": "tasks/train/lora.py",
    "usearch": "storage/usearch_store.py",
    "xllamacpp": "prompts/engine/gguf.py",
}
# These cannot be imported without their extra: they extend a class of it, or are nothing without.
NEED_AN_EXTRA = (
    "haystack_retriever.py",
    "langchain_retriever.py",
    "llama_index_retriever.py",
    "pgvector_store.py",
    "qdrant_store.py",
    "usearch_store.py",
)
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
ENGINES = {"dspy", "chromadb", "duckdb", "prefect", "igraph", "networkx"}


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


def text_of(*names: str) -> str:
    return ROOT.joinpath(*names).read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(path: Path) -> Iterator[str]:
    """The top-level names of all absolute imports, also of those inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


def requirement_name(line: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", line)
    assert found, f"not a requirement: {line!r}"
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def declared() -> set[str]:
    lines = tomllib.loads(text_of("pyproject.toml"))["project"]["dependencies"]
    return {requirement_name(line) for line in lines}


def test_the_top_level_holds_only_documented_folders() -> None:
    inside = [path.relative_to(ROOT) for path in files_of_the_project() if path.parent != ROOT]
    folders = {path.parts[0] for path in inside}
    assert {name for name in folders if not name.startswith(".")} <= FOLDERS
    assert set(PACKAGES) <= folders


def test_every_folder_with_modules_has_an_empty_init_file() -> None:
    inits = {path.parent / "__init__.py" for path in modules()}
    assert [name_of(init) for init in inits if not init.is_file()] == []
    assert [name_of(init) for init in inits if init.read_text().strip()] == []


def test_a_prompt_and_its_task_have_the_same_stem() -> None:
    def steps(package: str, files: str) -> set[str]:
        folders = {path.name for path in (ROOT / package).iterdir() if path.is_dir()}
        found = {path.stem for path in (ROOT / package).glob(files)} | folders
        return found - {"__init__", "__pycache__"}

    shared = "registry engine offline structures schema tailoring tailored_step text doctor"
    # The tasks of these are in `tasks/tables`, `tasks/facts` and `tasks/route.py`.
    elsewhere = {"plan_table", "plan_facts", "choose"}
    prompts = steps("prompts", "*.py") - set(shared.split()) - {"extracted"} - elsewhere
    assert prompts <= steps("tasks", "**/*.py")


def test_no_flow_file_shadows_a_module() -> None:
    """Prefect puts the folder of a flow's file first on sys.path."""
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
    found = {
        name_of(path): hits
        for path in files_of_the_project()
        if path != Path(__file__).resolve()  # the example above
        and (hits := PRIVATE.findall(path.read_text(encoding="utf-8", errors="replace")))
    }
    assert found == {}


def test_every_documented_target_exists() -> None:
    rules = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))
    pages = [text_of(name_of(path)) for path in files_of_the_project() if path.suffix == ".md"]
    command = re.compile(r"(?:`|^\s*\$?\s*)make ([a-z]+)\b", re.MULTILINE)
    documented = {target for page in pages for target in command.findall(page)}
    assert rules >= TARGETS
    assert documented <= rules


def test_every_import_is_a_declared_dependency() -> None:
    homes, known = packages_distributions(), declared()
    missing = {
        (name_of(path), name)
        for path in modules()
        for name in imported(path)
        if name not in sys.stdlib_module_names
        and name not in PACKAGES
        and name_of(path) != EXTRAS.get(name)
        and not {requirement_name(home) for home in homes.get(name, [])} & known
    }
    assert missing == set()


def test_every_dependency_is_explained_and_pinned() -> None:
    explained = (
        text_of("docs", "dependencies.md").split("## What is used for what")[1].split("\n## ")[0]
    )
    rows = re.findall(r"^\| `([^`]+)`", explained, re.MULTILINE)
    lines = text_of("constraints.txt").splitlines()
    pinned = {requirement_name(line) for line in lines if line and not line.startswith("#")}
    assert declared() == {requirement_name(row) for row in rows}
    assert declared() <= pinned


def test_every_pinned_version_but_torch_has_hashes() -> None:
    def versions(pattern: str, *file: str) -> set[str]:
        found = re.findall(pattern, text_of(*file), re.MULTILINE)
        return {re.sub(r"[_.]", "-", version.lower()) for version in found}

    line = r"^([\w.-]+==[^\s;]+)"
    pinned = versions(line, "constraints.txt")
    hashed = versions(line + r"[^\n]*\\\n    --hash=sha256:", ".make", "hashes.txt")
    assert {name for name in pinned - hashed if not name.startswith("torch==")} == set()
    assert hashed <= pinned


IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in modules()
    if path.name != "__main__.py" and not name_of(path).endswith(NEED_AN_EXTRA)
]


@pytest.mark.parametrize(
    ("names", "unwanted"),
    [
        (MODULES, SLOW_TO_IMPORT),
        # What `trellis --help` loads.
        (["flows.cli.command", "storage.records", "storage.errors"], SLOW_TO_IMPORT | ENGINES),
    ],
    ids=["all", "help"],
)
def test_an_import_is_silent_and_loads_nothing_slow(names: list[str], unwanted: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (loaded,) = done.stdout.splitlines()
    assert done.stderr == ""
    assert unwanted & set(loaded.split()) == set()
