"""The pages in docs name files and functions that exist, link to places, and quote real output."""

import ast
import asyncio
import re
import runpy
from functools import cache
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from benchmarks import tour
from benchmarks.runner import measure_names
from flows.cli.command import COMMANDS, trellis_app
from flows.modes.registry import mode_names
from flows.session import open_session
from flows.settings import Settings
from prompts.engine.models import ROLES
from prompts.engine.providers import ModelChoice, check
from prompts.engine.spending import price_of

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [
    *DOCS,
    *(
        ROOT / f"{name}.md"
        for name in ("README", "README.zh", "CONTRIBUTING", "CHANGELOG", "SECURITY")
    ),
]
REFERENCE = runpy.run_path(str(ROOT / "docs" / "reference.py"))
MECHANISMS = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
MOST = {"S": 30, "G": 18, "L": 19, "P": 19, "E": 24}
# The blocks of the tour that are compared; the others depend on the embedder or count everything.
QUOTED = frozenset(
    ("chunk", "extract: mentions", "extract: relations", "dedupe", "rewrite", "trigger", "answer")
)
_ROW = re.compile(r"^\| ([A-Z]\d+) \|(.*)\|$", re.M)
_NAMED = re.compile(r"`((?:[\w.]+/)+[\w.]+\.py)(?:: ([\w.]+))?`")
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
_BLOCK = re.compile(r"^```text\n## (.+)\n((?:.+\n)+)```$", re.M)
_MEASURE = re.compile(r"python -m benchmarks ([a-z_]+)")


def rows() -> dict[str, list[str]]:
    """Return the cells of each mechanism's row by its id."""
    return {
        name: [cell.strip() for cell in rest.split("|")] for name, rest in _ROW.findall(MECHANISMS)
    }


@cache
def names_in(path: Path) -> frozenset[str]:
    """Return the functions and classes of a module, methods as `Class.method`."""
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, defined):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, defined)}
    return frozenset(found)


def absent(text: str) -> list[str]:
    """Return the files and functions that a text names and that do not exist."""
    return [
        f"{file}: {name}"
        for file, name in _NAMED.findall(text)
        if not (ROOT / file).is_file() or (name and name not in names_in(ROOT / file))
    ]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_each_mechanism_has_one_row() -> None:
    found = [name for name, _ in _ROW.findall(MECHANISMS)]
    assert found == [
        f"{system}{number}" for system, most in MOST.items() for number in range(1, most + 1)
    ]


def test_a_mechanism_names_its_code_and_a_test() -> None:
    for name, (_, code, shown) in rows().items():
        files = [file for file, _ in _NAMED.findall(shown)]
        assert files, name
        assert all(file.startswith(("tests/", "benchmarks/")) for file in files), name
        assert _NAMED.search(code), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert absent(text) == []
    assert set(_MEASURE.findall(text)) <= measure_names().keys()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_figure_is_missing(page: Path) -> None:
    assert not re.search(r"@[A-Z_]+@", page.read_text(encoding="utf-8"))


def test_the_page_on_benchmarks_names_every_measure() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert [name for name in measure_names() if not re.search(rf"`{name}[` ]", page)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {path}"
        if anchor and target.suffix == ".md":
            assert anchor[1:] in anchors(target), f"{page.name}: {path}{anchor}"


def test_every_page_has_its_place_in_the_site() -> None:
    chapters = YAML(typ="safe").load(ROOT / "mkdocs.yml")["nav"]
    entries = [entry for chapter in chapters for pages in chapter.values() for entry in pages]
    placed = [entry if isinstance(entry, str) else next(iter(entry.values())) for entry in entries]
    assert sorted(placed) == [page.name for page in DOCS]


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_a_page_of_the_site_links_only_inside_it(page: Path) -> None:
    paths = {path for path, _ in _LINK.findall(page.read_text(encoding="utf-8"))}
    assert [path for path in paths if "/" in path] == []


def test_the_reference_is_what_the_code_says() -> None:
    for name, text in REFERENCE["pages"]().items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, (
            f"{name}: run `python docs/reference.py`"
        )


def test_every_setting_and_command_is_in_the_reference() -> None:
    pages = REFERENCE["pages"]()
    tables = {"roles": "TRELLIS_LM_<ROLE>", "graph_schema": "TRELLIS_SCHEMA"}
    tables |= {name: f"[{name}]" for name in ("instructions", "tailoring", "service")}
    for name, field in Settings.model_fields.items():
        assert field.description, f"{name}: say in flows/setting_areas.py what it is for"
        assert f"`{tables.get(name, f'TRELLIS_{name.upper()}')}`" in pages["settings.md"], name
    assert [role for role in ROLES if f"`{role}`" not in pages["settings.md"]] == []
    assert re.findall(r"^## ([a-z-]+)$", pages["commands.md"], re.M) == [*COMMANDS]
    app = trellis_app()
    for name in COMMANDS:
        for option in app[name].assemble_argument_collection(parse_docstring=True):
            described = option.parameter.help or not option.show
            assert described, f"{name} {option.name}: say what it is for"


def test_every_mode_has_its_row() -> None:
    table = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8").partition("## Modes")[2]
    assert [mode for mode in mode_names() if f"`{mode}`" not in table] == []


def test_the_tour_quotes_what_the_steps_give(tmp_path: Path) -> None:
    quoted = _BLOCK.findall((ROOT / "docs" / "tour.md").read_text(encoding="utf-8"))
    given = asyncio.run(toured(tmp_path))
    assert {step for step, _ in quoted} >= QUOTED
    assert {step for step, _ in quoted} <= {*given, "publish"}
    lines = [
        (step, line.rstrip())
        for step, block in quoted
        if step in QUOTED
        for line in block.splitlines()
    ]
    assert [(step, line) for step, line in lines if line not in given[step]] == []


async def toured(folder: Path) -> dict[str, list[str]]:
    """Return the lines of each step of the tour, without vectors."""
    runtime = tour.runtime_in(folder, embedding="none")
    await tour.indexed(runtime)
    given: dict[str, list[str]] = {}
    with open_session(runtime) as session:
        stops = list(tour.document_stops(tour.DOCUMENT, session))
        for question in (tour.QUESTION, tour.PLAIN, tour.AGAIN):
            stops += tour.question_stops(*await tour.asked(question, session))
    for stop in stops:
        given.setdefault(stop.step, []).extend(line.rstrip() for line in stop.lines)
    return given


PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
PRICES = re.findall(r"^\| `([\w./-]+)` \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.M)


def test_the_cost_table_is_the_one_that_counts() -> None:
    assert len(PRICES) > 5
    for model, given, written in PRICES:
        price = price_of(model)
        assert price is not None, model
        assert (price.input, price.output) == pytest.approx((float(given), float(written))), model


def test_every_role_has_its_row() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("| `") and "TRELLIS" not in line]
    assert [role for role in ROLES if f"`{role}`" not in "".join(lines)] == []


def test_every_example_of_a_model_is_valid() -> None:
    named = set(re.findall(r"TRELLIS_LM=((?:openai|ollama)/[\w.-]+)", PAGE))
    for model in named | {model for model, _, _ in PRICES}:
        check(ModelChoice(model))
