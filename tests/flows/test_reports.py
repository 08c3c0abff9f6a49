"""`trellis reports`: from the levels down to the statement, and up again."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.flows.conftest import Command


@pytest.fixture
def browse(sample_corpus: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(sample_corpus, capsys)


@pytest.fixture
def listed(browse: Command) -> list[Any]:
    reports: list[Any] = browse("reports", "--json").json
    return reports


@pytest.fixture
def above(listed: list[Any]) -> Any:
    """A report with groups below it."""
    return next(one for one in listed if one["children"])


def test_the_list_shows_levels_and_the_most_important_first(
    browse: Command, listed: list[Any]
) -> None:
    levels = sorted({one["level"] for one in listed})
    assert len(levels) > 1
    shown = browse("reports").out
    for level in levels:
        alone = browse("reports", "--level", str(level), "--json").json
        assert alone == [one for one in listed if one["level"] == level]
        rated = [one["rating"] for one in alone]
        assert f"Level {level}: {len(rated)} reports" in shown
        assert rated == sorted(rated, reverse=True)
    done = browse("reports", "--level", "77", "--json")
    assert (done.code, "0, 1" in done.json["error"]["remedy"]) == (2, True)


def test_down_to_the_parts_of_a_group_and_up_again(browse: Command, above: Any) -> None:
    view = browse("reports", above["community"], "--json").json
    assert [one["community"] for one in view["children"]] == above["children"]
    same = {name: above[name] for name in ("title", "rating")}
    assert {name: view[name] for name in same} == same
    assert len(view["members"]) == above["members"]
    parts = [browse("reports", one, "--json").json for one in above["children"]]
    for part, child in zip(parts, view["children"], strict=True):
        parent = part["parent"]
        assert (parent["community"], parent["title"]) == (above["community"], above["title"])
        assert (part["title"], len(part["members"])) == (child["title"], child["members"])
    members = [one["id"] for part in parts for one in part["members"]]
    assert len(set(members)) == len(members), "none is in two parts"
    assert set(members) <= {one["id"] for one in view["members"]}


def test_a_report_cites_what_stands_at_its_places(browse: Command, listed: list[Any]) -> None:
    text_of = cache(lambda name: browse("show", name).out)
    for one in listed:
        findings = browse("reports", one["community"], "--json").json["findings"]
        assert findings
        for finding in findings:
            text = text_of(finding["document"])
            assert finding["quote"] == text[finding["start"] : finding["end"]]
            assert finding["quote"].strip()
