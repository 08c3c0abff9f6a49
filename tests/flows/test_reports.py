"""`trellis reports`: from the levels down to the statement, and up again."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.flows.conftest import Command


@pytest.fixture
def browse(sample_corpus: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(sample_corpus, capsys)


def below(listed: list[Any]) -> Any:
    """A report with groups below it."""
    return next(one for one in listed if one["children"])


def test_the_list_shows_levels_with_counts_and_the_most_important_first(browse: Command) -> None:
    listed = browse("reports", "--json").json
    levels = sorted({one["level"] for one in listed})
    assert len(levels) > 1
    told = browse("reports").out
    for level in levels:
        alone = browse("reports", "--level", str(level), "--json").json
        assert alone == [one for one in listed if one["level"] == level]
        rated = [one["rating"] for one in alone]
        assert f"Level {level}: {len(rated)} reports" in told
        assert rated == sorted(rated, reverse=True)
    done = browse("reports", "--level", "77", "--json")
    assert (done.code, "0, 1" in done.json["error"]["remedy"]) == (2, True)


def test_down_to_the_parts_of_a_group_and_up_again(browse: Command) -> None:
    above = below(browse("reports", "--json").json)
    view = browse("reports", above["community"], "--json").json
    assert [one["community"] for one in view["children"]] == above["children"]
    assert (view["title"], view["rating"], len(view["members"])) == (
        above["title"],
        above["rating"],
        above["members"],
    )
    parts = [browse("reports", one, "--json").json for one in above["children"]]
    for part, listed in zip(parts, view["children"], strict=True):
        assert (part["parent"]["community"], part["parent"]["title"]) == (
            above["community"],
            above["title"],
        )
        assert (part["title"], len(part["members"])) == (listed["title"], listed["members"])
    members = [one["id"] for part in parts for one in part["members"]]
    assert len(set(members)) == len(members), "none is in two parts"
    assert set(members) <= {one["id"] for one in view["members"]}


def test_a_report_cites_what_stands_at_its_places_and_shows_the_ways_up_and_down(
    browse: Command,
) -> None:
    text_of = cache(lambda name: browse("show", name).out)
    listed = browse("reports", "--json").json
    for one in listed:
        view = browse("reports", one["community"], "--json").json
        assert view["findings"]
        for finding in view["findings"]:
            text = text_of(finding["document"])
            assert finding["quote"] == text[finding["start"] : finding["end"]]
            assert finding["quote"].strip()
    above = below(listed)
    view = browse("reports", above["community"], "--json").json
    told = browse("reports", above["community"]).out
    quote = " ".join(view["findings"][0]["quote"].split())
    for part in (
        view["title"],
        view["summary"],
        quote,
        view["findings"][0]["document"],
        view["members"][0]["name"],
    ):
        assert part in told
    assert all(f"↓ {name}" in told for name in above["children"])
    assert f"↑ {above['community']}" in browse("reports", above["children"][0]).out
