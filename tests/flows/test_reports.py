"""`trellis reports`: from the levels down to the statement, and up again."""

import json
from pathlib import Path
from typing import Any

import pytest

from flows.__main__ import main
from storage.workspace import Workspace
from tests.flows.conftest import Command

CORPUS = Path(__file__).resolve().parents[2] / "examples" / "corpus"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus, whose communities have levels."""
    workspace = tmp_path_factory.mktemp("corpus") / "ws"
    patch = pytest.MonkeyPatch()
    patch.setenv("TRELLIS_EMBEDDING", "none")
    assert main(["index", str(CORPUS), "--workspace", str(workspace), "--json"]) == 0
    patch.undo()
    return workspace


@pytest.fixture
def browse(corpus: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(corpus, capsys)


def below(listed: list[Any]) -> Any:
    """A report with groups below it."""
    return next(one for one in listed if one["children"])


def test_the_list_shows_levels_with_counts_and_the_most_important_first(browse: Command) -> None:
    listed = browse("reports", "--json").json
    levels = sorted({one["level"] for one in listed})
    assert len(levels) > 1
    with Workspace(browse.workspace).read() as generation:
        groups = {level: len(generation.communities.communities(level)) for level in levels}
    told = browse("reports").out
    for level in levels:
        rated = [one["rating"] for one in listed if one["level"] == level]
        assert f"Level {level}: {groups[level]} groups, {len(rated)} reports" in told
        assert rated == sorted(rated, reverse=True)


def test_a_level_is_shown_whole_and_alone(browse: Command) -> None:
    listed = browse("reports", "--json").json
    only = browse("reports", "--level", "1", "--json").json
    assert only == [one for one in listed if one["level"] == 1]
    told = browse("reports", "--level", "1").out
    assert [one["community"] for one in listed if one["community"] in told] == [one["community"] for one in only]
    done = browse("reports", "--level", "77", "--json")
    assert (done.code, "0, 1" in done.json["error"]["remedy"]) == (2, True)


def test_down_to_the_parts_of_a_group_and_up_again(browse: Command) -> None:
    above = below(browse("reports", "--json").json)
    view = browse("reports", above["community"], "--json").json
    assert [one["community"] for one in view["children"]] == above["children"]
    assert (view["title"], view["rating"]) == (above["title"], above["rating"])
    members = {one["id"] for one in view["members"]}
    parts = [browse("reports", one, "--json").json for one in above["children"]]
    for part, group in zip(parts, view["children"], strict=True):
        assert part["parent"]["community"] == above["community"]
        assert part["parent"]["title"] == above["title"]
        assert len(part["members"]) == group["members"]
        assert part["title"] == group["title"]
    assert sorted(one["id"] for part in parts for one in part["members"]) == sorted(members), "none is lost, none twice"


def test_a_report_cites_what_stands_at_its_places(browse: Command) -> None:
    for listed in browse("reports", "--json").json:
        view = browse("reports", listed["community"], "--json").json
        assert view["findings"]
        for finding in view["findings"]:
            text = browse("show", finding["document"]).out
            assert finding["quote"] == text[finding["start"] : finding["end"]]
            assert finding["quote"].strip()


def test_people_see_the_way_up_and_down_the_members_and_the_quotes(browse: Command) -> None:
    above = below(browse("reports", "--json").json)
    view = browse("reports", above["community"], "--json").json
    told = browse("reports", above["community"]).out
    quote = " ".join(view["findings"][0]["quote"].split())
    for said in (view["title"], view["summary"], quote, view["findings"][0]["document"], view["members"][0]["name"]):
        assert said in told
    assert all(f"↓ {name}" in told for name in above["children"])
    assert f"↑ {above['community']}" in browse("reports", above["children"][0]).out


def test_a_group_without_a_report_can_be_looked_at_too(browse: Command) -> None:
    with Workspace(browse.workspace).read() as generation:
        told = {one.community for one in generation.communities.reports()}
        silent = next(one for one in generation.communities.communities(0) if one.id not in told)
    view = browse("reports", silent.id, "--json").json
    assert (view["title"], view["rating"], view["findings"]) == ("", None, [])
    assert [one["id"] for one in view["members"]] == list(silent.members)
    assert "no report" in browse("reports", silent.id).out


def test_a_level_that_leaves_a_group_as_it_was_is_passed_over(browse: Command) -> None:
    with Workspace(browse.workspace).read() as generation:
        by_id = {one.id: one for one in generation.communities.communities()}
    same = next(one for one in by_id.values() if one.parent and by_id[one.parent].members == one.members)
    view, above = browse("reports", same.id, "--json").json, browse("reports", str(same.parent), "--json").json
    assert view["parent"] is None
    assert (view["title"], view["members"]) == (above["title"], above["members"])
    assert all(one["community"] != same.id for one in above["children"])


def test_an_unknown_id_names_the_nearest(browse: Command) -> None:
    known = browse("reports", "--json").json[0]["community"]
    done = browse("reports", known[:-1], "--json")
    assert (done.code, known in done.json["error"]["remedy"]) == (2, True)
    assert json.loads(done.out)["error"]["type"] == "UsageError"
