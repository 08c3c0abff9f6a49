"""`trellis tune` offline: what it prints, and that indexing follows it."""

from pathlib import Path

import pytest

from flows.settings import TAILORING_FILE
from tests.flows.conftest import Command


def test_it_says_what_it_found_and_what_to_do_next(
    fresh: Command, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = fresh("tune", str(source))
    assert told.code == 0
    for said in ("persona", "kinds", "names)", str(fresh.workspace / TAILORING_FILE), f"trellis index {source}"):
        assert said in told.out
    assert "counts instead" not in told.out
    monkeypatch.setenv("TRELLIS_TAILORING_ENTITY_TYPES", "ship")
    assert "another entity_types" in fresh("tune", str(source), "--force").out


def test_the_kinds_that_it_finds_are_those_of_the_next_graph(fresh: Command, source: Path) -> None:
    kinds = [one["name"] for one in fresh("tune", str(source), "--json").json["tailoring"]["entity_types"]]
    assert kinds
    fresh("index", str(source))
    members = [one for report in fresh("reports", "--json").json for one in [report["community"]]]
    found = {one["kind"] for name in members for one in fresh("reports", name, "--json").json["members"]}
    assert found <= {*kinds, "thing"}
    assert found & set(kinds)
