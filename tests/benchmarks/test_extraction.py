"""The measure of extraction: what counts as found."""

import pytest

from benchmarks.extraction import TERMS, story
from benchmarks.sets import read_rows


def test_a_story_is_measured_against_what_was_named_twice() -> None:
    rows = [
        {"text": "Ada Korb met Ned Cobb.", "entities": [{"name": "ADA KORB"}, {"name": "Velin"}]},
        {"text": "Ada Korb met Orla Bell.", "entities": [{"name": "Ada Korb"}, {"name": "Velin"}]},
    ]
    figures, missed = story(rows)
    assert (figures["reference"], figures["recall"], missed) == (2, 0.5, ["velin"])
    assert figures["precision"] == pytest.approx(1 / 3)


def test_every_term_names_its_text_once() -> None:
    rows = list(read_rows(TERMS))
    assert len({(row["term"], row["text"]) for row in rows}) == len(rows) == 60
