"""The comparison of modes: what counts as an answer, what follows from figures, and a page that needs nothing else."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from benchmarks.compare import MODES, compared, read_tables
from benchmarks.compare_judge import Way, ask, distinct_claims, quality_of
from benchmarks.compare_page import findings, page
from benchmarks.compare_sets import CITED, COUNTED, COVERED, EXPECTED, CompareSet, JudgedQuestion
from benchmarks.runner import Cell, Rows
from benchmarks.sets import index, settings_in
from flows.session import open_session
from storage.answer_records import Citation
from tests.benchmarks.test_runner import run_in

DOCUMENTS = (
    {"id": "a", "title": "Orla Bridge", "text": "Orla Bridge was designed by Ada Korb. It was opened in 1931."},
    {"id": "b", "title": "Ada Korb", "text": "Ada Korb was born in Marl. She designed Orla Bridge."},
    {"id": "c", "title": "Marl", "text": "Marl is a town on the river Ems. It has a market."},
)


def written(data: Path, folder: Path) -> list[Path]:
    path = folder / "corpus.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in DOCUMENTS), encoding="utf-8")
    return [path]


SMALL = CompareSet(
    name="small", about="three documents", judged="sample", figures=(EXPECTED,), files=(), write=written,
    ask=lambda data, limit: [
        JudgedQuestion(text="Who designed Orla Bridge?", answers=("Ada Korb",)),
        JudgedQuestion(text="How long is Orla Bridge?", abstains=True),
    ][:limit],
    embedding="none",
)  # fmt: skip


class Page(HTMLParser):
    """Which elements are open, which ways have a row, and every address in it."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ways: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.loaded += [f"{tag} {key}" for key in named if key in {"src", "href", "srcset", "data", "action"}]
        self.ways += [named["data-way"] or ""] if "data-way" in named else []
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(text: str) -> Page:
    found = Page()
    found.feed(text)
    found.close()
    assert found.open == []
    return found


def row(value: float | None, tokens: float | None = None, **more: Cell) -> dict[str, Cell]:
    quality: dict[str, Cell] = {} if value is None else {EXPECTED.name: value, "asked": 1}
    served: dict[str, Cell] = {} if tokens is None else {"calls*": 1.0, "tokens in*": tokens, "tokens out*": 0.0}
    return {**quality, **served, **more}


def stated(rows: Rows, known: CompareSet) -> dict[str, tuple[str, str]]:
    """The findings of one table: verdict and figures by statement."""
    return {one.statement: (one.verdict, one.figures) for one in findings({known.name: rows}, {known.name: known})}


def cited(marker: str, quote: str, title: str, verified: bool = True) -> Citation:
    return Citation(
        marker=marker, document=title, title=title, chunk="c", start=0, end=len(quote), page=None, quote=quote,
        verified=verified,
    )  # fmt: skip


@pytest.fixture
def made(tmp_path: Path) -> tuple[Mapping[str, Rows], str]:
    """Three modes over a corpus of three documents, written and read again."""
    options = {"modes": ["auto", "hyde", "naive"], "server": False, "no_vectors": False}
    compared(run_in(tmp_path / "kept", json=tmp_path / "figures.json", **options), [SMALL])
    tables = read_tables(tmp_path / "figures.json")
    return tables, page(tables, {"small": SMALL})


def test_a_tiny_corpus_is_compared(made: tuple[Mapping[str, Rows], str]) -> None:
    tables, text = made
    rows = tables["small"]
    assert set(rows) == {"auto", "hyde", "naive"} <= set(MODES)
    assert (rows["auto"][EXPECTED.name], rows["auto"]["asked"]) == (1.0, 2)
    assert "asked" not in rows["hyde"]
    assert "TRELLIS_LM" in str(rows["hyde"]["note"])
    shown = parsed(text)
    assert sorted(shown.ways) == ["auto", "hyde", "naive"]
    assert shown.loaded == []
    assert not re.search(r"https?:|//\w|@import|url\(", text)
    assert "needs a model" in text


def test_a_question_that_breaks_is_noted_and_counts_as_wrong(tmp_path: Path) -> None:
    runtime, _ = index(SMALL.write(tmp_path, tmp_path), settings_in(tmp_path, embedding="none"))
    question = SMALL.ask(tmp_path, None)[0]
    with open_session(runtime) as session:
        unreadable = replace(session, _documents=None)  # type: ignore[arg-type]
        broken = asyncio.run(ask(Way(mode="naive"), question, unreadable))
        good = asyncio.run(ask(Way(mode="naive"), question, session))
        assert (broken.answer, broken.problem[:10]) == (None, "TypeError:")
        assert quality_of([good, broken], SMALL, session) == {"expected": 0.5}


def test_claims_count_once_and_only_where_their_citation_holds_them() -> None:
    lines = (
        "Salt eats bearings. [1]", "Salt eats the bearings. [2]", "The wells turned salty in 2019. [3]",
        "Nobody pays for it. [4]", "Ferries wait for the tide. [5][6]",
    )  # fmt: skip
    citations = (
        cited("[1]", "Salt eats bearings.", "A"), cited("[2]", "Salt eats the bearings.", "B"),
        cited("[3]", "The wells turned salty in 2019.", "C", verified=False), cited("[4]", "A gull sat there.", "D"),
        cited("[5]", "Ferries wait for the tide.", "E"), cited("[6]", "The tide is late.", "F"),
    )  # fmt: skip
    claims = distinct_claims("\n".join(lines), citations)
    assert [[one.title for one in claim] for claim in claims] == [["A"], ["E"]]


@pytest.mark.parametrize(("naive", "verdict"), [(0.8, "does not hold"), (0.71, "holds"), (None, None)])
def test_auto_is_held_against_the_best_other_mode(naive: float | None, verdict: str | None) -> None:
    found = stated({"auto": row(0.7), "naive": row(naive)}, replace(SMALL, multihop=True))
    near = [verdict for statement, (verdict, _) in found.items() if "best single mode" in statement]
    assert near == ([verdict] if verdict else [])
    above = [verdict for statement, (verdict, _) in found.items() if "above naive" in statement]
    assert above == (["does not hold"] if naive else [])


@pytest.mark.parametrize(("tokens", "verdict"), [(1_100, "holds"), (1_101, "does not hold")])
def test_what_auto_costs_is_held_against_the_cheapest_good_way(tokens: float, verdict: str) -> None:
    rows = {"auto": row(0.7, tokens), "mix": row(0.71, 1_000), "naive": row(0.5, 10), "ts": row(0.72, 9_000)}
    (found,) = [one for statement, one in stated(rows, SMALL).items() if "more tokens" in statement]
    assert (found[0], "mix" in found[1]) == (verdict, True)


def test_selection_is_held_against_each_level() -> None:
    whole = replace(SMALL, judged="claims", figures=(COVERED, COUNTED, CITED))
    levels = (("global", 1_000, 0.9), ("global, level 0", 1_500, 0.5), ("global, level 1", 4_000, 0.9))
    rows = {name: row(None, tokens, covered=covered, claims=6.0, asked=1) for name, tokens, covered in levels}
    found = {name: verdict for name, (verdict, _) in stated(rows, whole).items() if name.startswith("Dynamic")}
    assert [found[name] for name in sorted(found)] == ["does not hold", "holds"]
    assert 'data-way="global, level 1"' in page({"small": rows}, {"small": whole})


def test_names_are_escaped_and_only_ways_that_answer_are_best() -> None:
    rows = {"<m>": row(0.5), "mix": row(0.9), "hyde": row(None, 10.0)}
    text = page({"small": rows}, {"small": SMALL})
    assert "&lt;m&gt;" in text
    assert "<m>" not in text
    assert re.findall(r'<td class="best">([^<]+)</td>', text) == ["0.900"]
    assert "<td>10.0</td>" in text
