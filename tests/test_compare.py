"""The comparison of modes: what counts as an answer, what follows from figures, and a page that needs nothing else."""

import asyncio
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from benchmarks import compare, compare_sets
from benchmarks.compare_findings import findings
from benchmarks.compare_measure import Room, ask, cost_of, distinct_claims, quality_of
from benchmarks.compare_records import Asked, Comparison, Cost, Figures, SetFigures, Way
from benchmarks.compare_sets import CITED, COUNTED, COVERED, EXPECTED, CompareSet
from benchmarks.page.plots import Bar, Point, bars, number, scatter
from benchmarks.page.whole import page
from flows.session import open_session
from storage.answer_records import Citation, Mode

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
    name="small", told="three documents", judged="sample", measures=(EXPECTED,), files=(), write=written,
    ask=lambda data, limit: [
        Asked(text="Who designed Orla Bridge?", answers=("Ada Korb",)),
        Asked(text="How long is Orla Bridge?", abstains=True),
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


def cost(tokens: float, calls: float = 1) -> Cost:
    return Cost(
        questions=1, calls=calls, input_tokens=tokens, output_tokens=0, seconds_median=0.1, seconds_90=0.2, cpu_ms=5
    )


def figures(mode: Mode, value: float | None, level: int | None = None, **more: object) -> Figures:
    quality = {} if value is None else {EXPECTED.name: value}
    return Figures.model_validate({"way": Way(mode=mode, level=level), "quality": quality, "asked": cost(0), **more})


def small(*ways: Figures) -> SetFigures:
    return SetFigures(name="small", told="s", multihop=True, questions=1, command="c", measures=(EXPECTED,), ways=ways)


def cited(marker: str, quote: str, title: str, verified: bool = True) -> Citation:
    return Citation(
        marker=marker, document=title, title=title, chunk="c", start=0, end=len(quote), page=None, quote=quote,
        verified=verified,
    )  # fmt: skip


@pytest.fixture
def made(tmp_path: Path) -> tuple[Comparison, str]:
    """Three modes over a corpus of three documents, through the command."""
    out, figured = tmp_path / "page.html", tmp_path / "results.json"
    arguments = ["--sets", "small", "--modes", "auto,hyde,naive", "--keep", str(tmp_path / "kept")]
    assert compare.main([*arguments, "--out", str(out), "--json", str(figured)], [SMALL]) == 0
    return Comparison.model_validate_json(figured.read_text()), out.read_text()


def test_a_tiny_corpus_is_compared(made: tuple[Comparison, str]) -> None:
    found, text = made
    (one,) = found.sets
    assert one.value("auto") == 1.0
    assert one.questions == 2
    asked = {each.way.name: each.asked.questions if each.asked else None for each in one.ways}
    assert asked == {"auto": 2, "hyde": None, "naive": 2}
    hyde = one.of("hyde")
    assert hyde is not None
    assert "TRELLIS_LM" in hyde.problem
    shown = parsed(text)
    assert sorted(shown.ways) == ["auto", "hyde", "naive"]
    assert shown.loaded == []
    assert not re.search(r"https?:|//\w|@import|url\(", text)
    assert text.count("<svg") == 2
    assert "needs a model" in text


async def test_a_question_that_breaks_is_told_and_counts_as_wrong(tmp_path: Path) -> None:
    room = Room(SMALL, tmp_path / "workspace")
    runtime = await asyncio.to_thread(room.index, SMALL.write(tmp_path, tmp_path))
    with open_session(runtime) as session:
        unreadable = replace(session, _documents=None)  # type: ignore[arg-type]
        broken = await ask(Way(mode="naive"), SMALL.ask(tmp_path, None)[0], unreadable)
        good = await ask(Way(mode="naive"), SMALL.ask(tmp_path, None)[0], session)
        assert (broken.answer, broken.problem[:10]) == (None, "TypeError:")
        assert quality_of([good, broken], SMALL, session) == {"expected": 0.5}
    assert cost_of([good, broken]).questions == 1


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
    stated = findings(Comparison(sets=(small(figures("auto", 0.7), figures("naive", naive)),)))
    near = [one for one in stated if "best single mode" in one.statement]
    assert [one.verdict for one in near] == ([verdict] if verdict else [])
    above = next(one for one in stated if "above naive" in one.statement)
    assert above.verdict == ("does not hold" if naive else "not measured")


@pytest.mark.parametrize(("tokens", "verdict"), [(1_100, "holds"), (1_101, "does not hold")])
def test_what_auto_costs_is_held_against_the_cheapest_good_way(tokens: float, verdict: str) -> None:
    def told(mode: Mode, value: float, tokens: float) -> Figures:
        return figures(mode, value).model_copy(update={"served": cost(tokens)})

    ways = (told("auto", 0.7, tokens), told("mix", 0.71, 1_000), told("naive", 0.5, 10), told("ts", 0.72, 9_000))
    (found,) = [one for one in findings(Comparison(sets=(small(*ways),))) if "more tokens" in one.statement]
    assert (found.verdict, "mix" in found.figures) == (verdict, True)


def test_selection_is_held_against_each_level() -> None:
    def told(level: int | None, tokens: float, covered: float) -> Figures:
        quality = {"covered": covered, "claims": 6.0, "documents": 5.0}
        return Figures(way=Way(mode="global", level=level), quality=quality, asked=cost(0), served=cost(tokens))

    ways = (told(None, 1_000, 0.9), told(0, 1_500, 0.5), told(1, 4_000, 0.9))
    whole = SetFigures(
        name="w", told="w", multihop=False, questions=1, command="c", measures=(COVERED, COUNTED, CITED), ways=ways
    )  # fmt: skip
    stated = {one.statement: one for one in findings(Comparison(sets=(whole,)))}
    saved = [one.verdict for name, one in stated.items() if name.startswith("Dynamic")]
    assert saved == ["does not hold", "holds"]
    (against,) = [one for name, one in stated.items() if "GraphRAG's way" in name]
    assert against.verdict == "holds"
    assert "level 1" in against.figures  # level 0 is cheaper, but covers less
    assert 'data-way="global, level 1"' in page(Comparison(sets=(whole,)))


def test_pictures_are_bounded_and_escaped() -> None:
    drawn = bars([Bar("<auto>", 1.0, "auto"), Bar("b", 0.0, "mode")], 1.0, 'a "b"')
    assert "<auto>" not in drawn
    wide = [float(value) for value in re.findall(r'width="([\d.]+)"', drawn)]
    assert wide[0] > 100 * wide[1] > 0
    points = [Point(f"m{place}", place and 10.0 ** (place % 4 + 1), place / 9, "mode") for place in range(10)]
    spots = [float(value) for value in re.findall(r'c[xy]="([\d.-]+)"', scatter(points, "tokens", "told"))]
    assert len(spots) == 20
    assert all(0 <= spot <= 340 for spot in spots)
    assert [number(value) for value in (0.5, 1.0, 3.0, 3.25)] == [".500", "1", "3", "3.2"]


def test_what_is_absent_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main(["--sets", "kevin_scott", "--data", str(tmp_path), "--out", str(tmp_path / "p.html")]) == 2
    assert compare_sets.PODCAST in capsys.readouterr().err
    with pytest.raises(SystemExit):
        compare.main(["--modes", "naiv", "--out", str(tmp_path / "p.html")])
    assert "'naiv' is none of auto" in capsys.readouterr().err
