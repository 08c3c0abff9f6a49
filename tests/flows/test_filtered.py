"""Does the filter judge the question as it was rewritten, and does an answer show where its sources disagree?"""

from pathlib import Path

import pytest

from flows.__main__ import main
from flows.query import ask
from tests.flows.conftest import write_rows

ROWS = (
    {"id": "guide", "title": "Harbour guide", "text": "Sluice Bridge was designed by Mara Quill of Velin in 1907."},
    {"id": "leaflet", "title": "Town leaflet", "text": "Sluice Bridge was designed by Ivo Brandt of Velin in 1907."},
    {"id": "plans", "title": "Plans", "text": "The plans of Sluice Bridge were drawn by its designer, Mara Quill."},
    {"id": "bakery", "title": "Bakery", "text": "Bread is baked from flour."},
)
QUESTION = "Who designed Sluice Bridge?"


@pytest.fixture(scope="module")
def disputed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which one source says otherwise than two."""
    folder = tmp_path_factory.mktemp("disputed")
    assert main(["index", str(write_rows(folder / "docs.jsonl", ROWS)), "--workspace", str(folder / "ws")]) == 0
    return folder / "ws"


def test_the_filter_judges_the_rewritten_question(indexed: Path) -> None:
    # Other systems filter by the words of the question as it was typed: in these there is no name.
    answer = ask("Who designed it?", workspace=indexed, history=["Tell me of Orla Bridge."])
    assert answer.trace.rewritten == "Who designed Orla Bridge?"
    first = answer.trace.filter.judged[0]
    assert first.label == "entailment"
    assert "names Orla Bridge" in first.explanation


def test_an_answer_says_that_its_sources_disagree(disputed: Path) -> None:
    answer = ask(QUESTION, workspace=disputed, documents=["guide", "leaflet"])
    (conflict,) = answer.trace.filter.conflicts
    assert {(conflict.document, conflict.says), (conflict.against_document, conflict.against_says)} == {
        ("guide", "Mara Quill"),
        ("leaflet", "Ivo Brandt"),
    }
    assert not conflict.settled
    assert "The sources disagree: " in answer.answer
    assert answer.answer.endswith("nothing in them tells which is right.")


def test_a_third_source_settles_it(disputed: Path) -> None:
    answer = ask(QUESTION, workspace=disputed)
    assert answer.values == ("Mara Quill",)
    assert answer.trace.filter.contradiction == 1
    (conflict,) = answer.trace.filter.conflicts
    assert (conflict.settled, conflict.document, conflict.says) == (True, "leaflet", "Ivo Brandt")
    assert "leaflet" not in {citation.document for citation in answer.citations}


def test_a_dispute_that_does_not_touch_the_answer_is_not_told(disputed: Path) -> None:
    assert "disagree" not in ask("What is bread baked from?", workspace=disputed).answer
