"""`trellis graph merge`, `split`, `edit`, `edits` and `undo`: a new generation at once, kept by
later runs, undone.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.copying import copy_of
from tests.flows.conftest import Command, indexed_by_command
from tests.patience import PAUSE, wait_for
from tests.server.client import ROOT, Server
from tests.workspaces import write_rows

ROWS = [
    {"id": "a", "title": "Notes", "text": "Ada Korb keeps Holm Light. The light stands in Velin."},
    {
        "id": "b",
        "title": "Letters",
        "text": "Captain Vell wrote to Ada Korb. Captain Vell lives in Velin.",
    },
    {"id": "c", "title": "Lists", "text": "Velin is a ship of Ida Moss."},
]
MORE = {"id": "d", "title": "More", "text": "Captain Vell met Ida Moss in Holm Light."}
MERGE = ("graph", "merge", "Ada Korb", "Captain Vell")
EDITS = (
    MERGE,
    ("graph", "split", "Holm Light", "--documents", "d"),
    ("graph", "edit", "Ida Moss", "--kind", "captain"),
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    return indexed_by_command(write_rows(folder / "docs.jsonl", ROWS), folder)


@pytest.fixture
def trellis(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command on a copy."""
    return Command(copy_of(base, tmp_path / "ws"), capsys)


def entities(trellis: Command, name: str) -> list[Any]:
    shown: list[Any] = trellis("graph", name, "--json").json["entities"]
    return shown


def is_merged(trellis: Command) -> bool:
    found = entities(trellis, "Captain Vell")
    aliases = {alias["name"] for one in found for alias in one["aliases"]}
    return {one["name"] for one in found} | aliases == {"Ada Korb", "Captain Vell"}


def test_a_merge_is_published_at_once_and_kept_by_later_runs(
    fresh: Command, model_server: Server, tmp_path: Path
) -> None:
    source = write_rows(tmp_path / "docs.jsonl", ROWS)
    assert fresh("index", str(source)).code == 0
    extracted = model_server.stats()["steps"]["extract"]
    done = fresh(*MERGE)
    assert (done.code, "Published generation 2" in done.out) == (0, True), done.err
    assert is_merged(fresh)
    assert model_server.stats()["steps"]["extract"] == extracted, "nothing is read again"
    write_rows(source, [*ROWS, MORE])
    for options in ((), ("--full",)):
        assert fresh("index", str(source), *options).code == 0
        assert is_merged(fresh)


def test_undoing_brings_the_graph_back(trellis: Command) -> None:
    before = entities(trellis, "Ada Korb")
    made = trellis(*MERGE, "--json").json["edit"]
    listed = trellis("graph", "edits", "--json").json
    assert [(edit["id"], edit["action"]) for edit in listed] == [(made["id"], "merge")]
    assert "Captain Vell is Ada Korb" in trellis("graph", "edits").out
    assert trellis("graph", "undo", str(made["id"]), "--json").json["undone"]
    assert entities(trellis, "Ada Korb") == before
    assert trellis("graph", "edits", "--json").json == []


def test_ids_tell_apart_what_a_split_makes(trellis: Command) -> None:
    assert trellis("graph", "split", "Velin", "--documents", "c").code == 0
    ids = {one["documents"]: one["id"] for one in entities(trellis, "Velin")}
    assert ids.keys() == {1, 2}
    unclear = trellis("graph", "edit", "Velin", "--kind", "place")
    assert (unclear.code, all(one in unclear.err for one in ids.values())) == (2, True)
    changed = ("--kind", "ship", "--description", "A ship of two masts.")
    assert trellis("graph", "edit", ids[1], *changed).code == 0
    found = {one["documents"]: one for one in entities(trellis, "Velin")}
    assert (found[1]["kind"], found[1]["description"]) == ("ship", "A ship of two masts.")
    assert found[2]["kind"] != "ship"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("merge", "Ada Korb", "Captain Wel"), "Captain Vell"),
        (("merge", "Ada Korb", "ada korb"), "one thing already"),
        (("split", "Velin"), "--names"),
        (("split", "Velin", "--documents", "z"), "It has: a, b, c"),
        (("split", "Velin", "--documents", "a,b,c"), "Leave something"),
        (("split", "Velin", "--names", "Holm Light"), "It has: Velin"),
        (("edit", "Velin"), "--description"),
        (("edit", "Velin", "--kind", " "), "--kind KIND"),
        (("undo", "7"), "trellis graph edits"),
        (("Ada", "Korb"), "in quotes"),
        (("Velin", "--documents", "a"), "Unknown option: --documents"),
    ],
)
def test_what_cannot_be_meant_is_told_and_changes_nothing(
    base: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trellis = Command(base, capsys)
    done = trellis("graph", *words)
    assert (done.code, said in done.err) == (2, True), done.err
    assert [one["number"] for one in trellis("generations", "--json").json] == [1]


def test_edits_beside_an_index_run_are_refused_in_words_or_kept(
    model_server: Server, fresh: Command, tmp_path: Path
) -> None:
    source = write_rows(tmp_path / "docs.jsonl", ROWS)
    assert fresh("index", str(source)).code == 0
    write_rows(source, [*ROWS, MORE])
    model_server.settle(latency_ms=2_000)
    run = ("index", str(source), "--workspace", str(fresh.workspace))
    command = [sys.executable, "-m", "flows", *run]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as running:
        wait_for(lambda: model_server.stats()["in_flight"], "its first call")
        running.send_signal(signal.SIGSTOP)
        for edit in EDITS:
            refused = fresh(*edit)
            assert (refused.code, "is being written by process" in refused.err) == (4, True)
            assert "Traceback" not in refused.err
        assert fresh("graph", "edits", "--json").json == []
        running.send_signal(signal.SIGCONT)
        model_server.settle(latency_ms=0)
        for edit in EDITS:  # each is kept as soon as it is not refused
            while (done := fresh(*edit)).code == 4:
                time.sleep(PAUSE)
            assert done.code == 0, done.err
    assert running.returncode == 0
    assert fresh("index", str(source), "--full").code == 0
    actions = [edit["action"] for edit in fresh("graph", "edits", "--json").json]
    assert actions == ["merge", "split", "change"]
    assert is_merged(fresh)
    assert len(entities(fresh, "Holm Light")) == 2
    assert {one["kind"] for one in entities(fresh, "Ida Moss")} == {"captain"}
    assert fresh("status", "--json").json["counts"]["documents"] == len(ROWS) + 1
