"""The measure of growth: passages beyond the supply name things as the real ones do, and exponents are found."""

import gzip
import json
import random
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.enlarged import SUPPLY, enlarged, exponent, names_of
from benchmarks.scale import grown, plotted

FIRST, LAST = ("Ada", "Bert", "Cleo", "Dora", "Emil"), ("Korb", "Reyd", "Marl", "Velin", "Ostra", "Tarn")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = random.Random(3)  # noqa: S311 -- to be repeatable, not secret
    people = [f"{first} {last}" for first in FIRST for last in LAST]
    rows = [
        {"title": f"{person} (painter)", "text": f"{person} was taught by {rng.choice(people)} in {rng.choice(LAST)}."}
        for person in people
    ]
    (tmp_path / SUPPLY[0]).parent.mkdir()
    for place, name in enumerate(SUPPLY):
        with gzip.open(tmp_path / name, "wt", encoding="utf-8") as file:
            file.write("\n".join(json.dumps(row) for row in rows if place == 0))
    return tmp_path


def test_real_passages_come_first_and_more_of_them_is_the_same_with_more(data: Path) -> None:
    small, _ = enlarged(data, 20)
    large, spread = enlarged(data, 300)
    assert large[:20] == small
    assert enlarged(data, 300)[0] == large
    assert {row["title"] for row in large[:30]} == {f"{f} {last} (painter)" for f in FIRST for last in LAST}
    assert len({row["title"] for row in large}) == 300
    assert all(row["title"].endswith(" (painter)") for row in large)
    assert [place.partition(" ")[0] for place in spread] == ["7", "15", "30", "60,", "120,", "300,"]


def test_a_made_passage_names_its_subject_throughout_and_keeps_its_other_words(data: Path) -> None:
    for row in enlarged(data, 300)[0][30:]:
        subject = row["title"].removesuffix(" (painter)")
        assert row["text"].startswith(f"{subject} was taught by ")
        assert " in " in row["text"]
        assert subject in names_of(row["title"], row["text"])


def test_the_exponent_of_a_power_is_found() -> None:
    assert exponent([(size, 3 * size**1.5) for size in (100, 1_000, 7_000)]) == pytest.approx(1.5)
    table = grown({size: {"slow": size**2 / 1e4, "flat": 2.0, "none": 0.0} for size in (100, 1_000, 10_000)})
    assert table["slow"]["exponent"] == pytest.approx(2)
    assert table["flat"]["of the last two"] == pytest.approx(0)
    assert "exponent" not in table["none"]


def test_the_picture_has_a_line_for_each_step(tmp_path: Path) -> None:
    drawn = ElementTree.fromstring(plotted({size: {"load": size / 1e3, "report": size / 10} for size in (100, 1_000)}))  # noqa: S314 -- our own
    texts = {element.text for element in drawn.iter() if element.text}
    assert {"load", "report", "100", "1,000"} <= texts
    assert sum(element.tag.endswith("polyline") for element in drawn.iter()) == 2
