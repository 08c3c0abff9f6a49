"""`trellis graph merge`, `split`, `edit`, `edits` and `undo`: a new generation at once, kept by
later runs, undone.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.copying import copy_of
from tests.flows.conftest import Command, Ended, indexed_by_command
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

BESIDE = {
    "merge": ("merge", "Ada Korb", "Captain Vell"),
    "split": ("split", "Holm Light", "--documents", "d"),
    "edit": ("edit", "Ida Moss", "--kind", "captain"),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    return indexed_by_command(write_rows(folder / "docs.jsonl", ROWS), folder)


@pytest.fixture
def trellis(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command on a copy."""
    return Command(copy_of(base, tmp_path / "ws"), capsys)


def names(shown: Ended) -> set[str]:
    assert shown.code == 0, shown.err
    return {
        name
        for one in shown.json["entities"]
        for name in (one["name"], *(a["name"] for a in one["aliases"]))
    }


def test_a_merge_is_published_at_once_and_stays_without_a_model_reading_anew(
    fresh: Command, model_server: Server, tmp_path: Path
) -> None:
    trellis, source = fresh, write_rows(tmp_path / "docs.jsonl", ROWS)
    assert trellis("index", str(source)).code == 0
    asked = model_server.stats()["steps"]["extract"]
    done = trellis("graph", "merge", "Ada Korb", "Captain Vell")
    assert (done.code, "Published generation 2" in done.out) == (0, True), done.err
    assert names(trellis("graph", "Captain Vell", "--json")) == {"Ada Korb", "Captain Vell"}
    assert asked["calls"] == len(ROWS)
    assert model_server.stats()["steps"]["extract"] == asked
    more = [*ROWS, {"id": "d", "title": "More", "text": "Captain Vell met Ida Moss."}]
    assert trellis("index", str(write_rows(source, more))).code == 0
    assert names(trellis("graph", "Captain Vell", "--json")) == {"Ada Korb", "Captain Vell"}
    assert trellis("index", str(source), "--full").code == 0
    assert names(trellis("graph", "Captain Vell", "--json")) == {"Ada Korb", "Captain Vell"}


def test_undoing_brings_the_graph_back(trellis: Command) -> None:
    before = trellis("graph", "Ada Korb", "--json").json["entities"]
    made = trellis("graph", "merge", "Ada Korb", "Captain Vell", "--json").json
    listed = trellis("graph", "edits", "--json").json
    assert [(edit["id"], edit["action"]) for edit in listed] == [(made["edit"]["id"], "merge")]
    assert "Captain Vell is Ada Korb" in trellis("graph", "edits").out
    assert trellis("graph", "undo", str(made["edit"]["id"]), "--json").json["undone"]
    assert trellis("graph", "Ada Korb", "--json").json["entities"] == before
    assert trellis("graph", "edits", "--json").json == []


def test_a_split_by_documents_makes_two_things_that_ids_tell_apart(trellis: Command) -> None:
    assert trellis("graph", "split", "Velin", "--documents", "c").code == 0
    shown = trellis("graph", "Velin", "--json").json["entities"]
    assert sorted(one["documents"] for one in shown) == [1, 2]
    unclear = trellis("graph", "edit", "Velin", "--kind", "place")
    assert unclear.code == 2
    ids = {one["documents"]: one["id"] for one in shown}
    assert all(one in unclear.err for one in ids.values())
    assert (
        trellis(
            "graph", "edit", ids[1], "--kind", "ship", "--description", "A ship of two masts."
        ).code
        == 0
    )
    found = {one["documents"]: one for one in trellis("graph", "Velin", "--json").json["entities"]}
    assert (found[1]["kind"], found[1]["description"]) == ("ship", "A ship of two masts.")
    assert found[2]["kind"] != "ship"


@pytest.mark.parametrize(
    ("words", "told"),
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
    trellis: Command, words: tuple[str, ...], told: str
) -> None:
    done = trellis("graph", *words)
    assert done.code == 2
    assert told in done.err
    assert [one["number"] for one in trellis("generations", "--json").json] == [1]


NFD, NFC = "Mu\u0308ller.md", "M\u00fcller.md"  # as macOS names a file, and as a keyboard writes it


def test_edits_beside_an_index_run_are_refused_in_words_or_kept(
    model_server: Server, fresh: Command, tmp_path: Path
) -> None:
    source = write_rows(tmp_path / "docs.jsonl", ROWS)
    assert fresh("index", str(source)).code == 0
    write_rows(
        source,
        [*ROWS, {"id": "d", "title": "More", "text": "Captain Vell met Ida Moss in Holm Light."}],
    )
    model_server.settle(latency_ms=2_000)
    command = [
        sys.executable,
        "-m",
        "flows",
        "index",
        str(source),
        "--workspace",
        str(fresh.workspace),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as running:
        wait_for(lambda: model_server.stats()["in_flight"], "its first call")
        running.send_signal(signal.SIGSTOP)
        for edit in BESIDE.values():
            refused = fresh("graph", *edit)
            assert refused.code == 4
            assert "is being written by process" in refused.err
            assert "Traceback" not in refused.err
        assert fresh("graph", "edits", "--json").json == []
        running.send_signal(signal.SIGCONT)
        model_server.settle(latency_ms=0)
        tried = dict.fromkeys(BESIDE, 0)
        for (
            name,
            edit,
        ) in (
            BESIDE.items()
        ):  # while it goes on, and after: each is kept as soon as it is not refused
            while (done := fresh("graph", *edit)).code == 4:
                tried[name] += 1
                time.sleep(PAUSE)
            assert done.code == 0, done.err
    assert running.returncode == 0
    assert fresh("index", str(source), "--full").code == 0
    assert [edit["action"] for edit in fresh("graph", "edits", "--json").json] == [
        "merge",
        "split",
        "change",
    ]
    assert names(fresh("graph", "Captain Vell", "--json")) == {"Ada Korb", "Captain Vell"}
    assert len(fresh("graph", "Holm Light", "--json").json["entities"]) == 2
    assert {one["kind"] for one in fresh("graph", "Ida Moss", "--json").json["entities"]} == {
        "captain"
    }
    assert fresh("status", "--json").json["counts"]["documents"] == len(ROWS) + 1
