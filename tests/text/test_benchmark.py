"""The measure of extraction: what counts as found, and which names are still to be judged."""

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.extraction import STORY, TERMS, judged, main, story


def test_a_story_is_measured_against_what_was_named_twice(tmp_path: Path) -> None:
    rows = [
        {"text": "Ada Korb met Ned Cobb.", "entities": [{"name": "ADA KORB"}, {"name": "Velin"}]},
        {"text": "Ada Korb met Orla Bell.", "entities": [{"name": "Ada Korb"}, {"name": "Velin"}]},
    ]
    path = tmp_path / STORY
    path.parent.mkdir()
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(map(json.dumps, rows)))
    found = story(path)
    assert (found.reference, found.recall, found.missed) == (2, 0.5, ("velin",))
    assert found.precision == pytest.approx(1 / 3)


def test_names_without_a_verdict_are_listed() -> None:
    kept, unjudged = judged(["一个还没有人判断过的名字"], 5, 7)
    assert "0 of 0" in kept
    assert "一个还没有人判断过的名字" in unjudged


def test_every_term_names_its_text_once() -> None:
    lines = [json.loads(line) for line in TERMS.read_text(encoding="utf-8").splitlines()]
    assert len({(line["term"], line["text"]) for line in lines}) == len(lines) == 60


def test_an_absent_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--texts", str(tmp_path)]) == 2
    assert "--texts DIR" in capsys.readouterr().err
