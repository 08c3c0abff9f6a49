"""A forgotten document is nowhere: not in the graph, the memory, the caches, an older generation or any file's bytes.

Regressions of others' behaviour: deleting rebuilds from cached extractions, so that an empty cache breaks it; a deleted
file leaves its entities behind.
"""

import asyncio
import json
import os
import sqlite3
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
from flows.orchestration.recorded_flows import index, query
from prefect.logging.handlers import APILogHandler

from flows.__main__ import main
from storage.memory import MemoryEntry
from storage.workspace import Workspace
from tests.flows.conftest import Command
from tests.patience import wait_for
from tests.server.client import Server
from tests.workspaces import write_rows

SECRET = "Zephyrine Quillfeather"
ROWS: tuple[Mapping[str, object], ...] = (
    {"id": "bridge", "title": "Orla Bridge", "text": "Orla Bridge was designed by Tomas Reyd. It opened in 1931."},
    {"id": "reyd", "title": "Tomas Reyd", "text": "Tomas Reyd was born in Velin. He studied under Ana Korb in Holm."},
    {
        "id": "secret", "title": SECRET,
        "text": f"{SECRET} lent Tomas Reyd 48731 crowns. {SECRET} lived in Mottlegrave near Velin. "
        f"Nobody in Mottlegrave knew that {SECRET} had met Ana Korb in Holm before the loan was signed.",
    },
)  # fmt: skip
TRACES = ("Quillfeather", "Mottlegrave", "48731", "quillfeather")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "docs.jsonl", ROWS)


def places(folder: Path) -> list[str]:
    """The files whose bytes hold a trace of the document."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    holding = [path for path in files if any(trace.encode() in path.read_bytes() for trace in TRACES)]
    return [path.relative_to(folder).as_posix() for path in holding]


def ended(name: str, database: Path) -> int:
    """How many runs of this name Prefect's database says have ended; it has the events of all before them."""
    ends = "SELECT count(*) FROM events WHERE event = 'prefect.flow-run.Completed' AND instr(resource, ?)"
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute(ends, [name]).fetchone()[0])


def test_nothing_is_left_of_a_forgotten_document(model_server: Server, fresh: Command, docs: Path) -> None:
    fresh("index", str(docs))
    fresh("ask", f"Where did {SECRET} live?")
    memory = Workspace(fresh.workspace).database.memory
    for name in ("secret", "bridge"):
        memory.put([MemoryEntry(source=name, title=f"About {name}?", content="x", documents=(name,), generation=1)])
    before = places(fresh.workspace)
    assert any("generation.duckdb" in place for place in before)
    assert any("side.sqlite" in place for place in before)
    done = fresh("forget", "secret", "--json")
    assert done.code == 0, done.err
    report = done.json
    assert (report["generation"], report["retired"], report["held"]) == (2, [1], [])
    assert report["model_answers"] >= 1
    assert "secret" not in {entry.source for entry in memory.entries()}
    assert "bridge" in {entry.source for entry in memory.entries()}
    assert places(fresh.workspace) == []
    assert fresh("show", "secret").code == 2
    assert [one["number"] for one in fresh("generations", "--json").json] == [2]
    assert fresh("show", "bridge").out.startswith("Orla Bridge")
    answer = fresh("ask", f"Where did {SECRET} live?", "--json").json
    assert "Mottlegrave" not in json.dumps({**answer, "question": "", "trace": ""})


@pytest.mark.usefixtures("api", "unembedded")
def test_prefect_keeps_nothing_of_it_and_all_of_other_workspaces(
    fresh: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = "Before the quay was over, nobody knew that they had met and lived near it, and lent a loan of crowns."
    quay = {"id": "quay", "title": "The quay", "text": ordinary}
    docs = write_rows(tmp_path / "docs.jsonl", [*ROWS, quay])
    others = write_rows(tmp_path / "others.jsonl", [*ROWS[:2], {**quay, "text": f"It was signed there. {ordinary}"}])
    home = Path(os.environ["PREFECT_HOME"])
    file = home / "prefect.db"
    mine, other = str(fresh.workspace), str(tmp_path / "other")
    before = runs_of(file)
    asyncio.run(index(str(docs), workspace=mine))
    asyncio.run(index(str(others), workspace=other))
    asyncio.run(query(f"Where did {SECRET} live?", workspace=mine))
    asyncio.run(query("Who designed Orla Bridge?", workspace=mine, documents=["bridge"]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRELLIS_WORKSPACE", fresh.workspace.name)
    asyncio.run(query("Who had signed it?"))  # of the words that only the forgotten document has an everyday one
    asyncio.run(query("What was signed?", workspace=other))
    asyncio.run(query("What was signed?", workspace="other"))
    APILogHandler().flush()
    wait_for(lambda: ended("What was signed?", file) >= 2, "the events of the last runs")
    runs = runs_of(file) - before
    wait_for(lambda: not any(unrecorded(file, run) for run in runs), "all that the server has of a run, in each place")
    assert any(name.startswith("storage/") for name in places(home))
    assert any("Who had signed it?" in record for record in records_of({None}, file))
    of_others, results = records_of({other, "other"}, file), {path.name for path in (home / "storage").iterdir()}
    theirs = {name for name in results if any(name in record for record in of_others)}
    assert len(theirs) >= 3
    report = fresh("forget", "secret", "--json").json
    assert report["run_records"] >= 4
    assert places(home) == []
    assert of_others <= records_of({other, "other"}, file)
    assert b"Who had signed it?" not in file.read_bytes()
    left = {path.name for path in (home / "storage").iterdir()}
    assert theirs <= left
    assert any("Orla Bridge" in (home / "storage" / name).read_text() for name in left - theirs), "it tells nothing"


def runs_of(database: Path) -> set[str]:
    """The runs in Prefect's database that have been done; it has those, too, that a schedule will begin."""
    with closing(sqlite3.connect(database)) as connection:
        return {str(run) for (run,) in connection.execute("SELECT id FROM flow_run WHERE state_type = 'COMPLETED'")}


def unrecorded(database: Path, run: str) -> set[str]:
    """What the server has of a run in one place and not yet in the other: the states of it and its steps among the
    events, a sign of its life, the last line of its log. Services write them each in their own time, and what comes
    late is written again after it was forgotten."""
    event, about = "SELECT id FROM events WHERE event", "SELECT substr(resource_id, 18) FROM events WHERE event"
    steps = "SELECT state.id FROM task_run_state AS state JOIN task_run AS step ON step.id = task_run_id"
    log = "SELECT flow_run_id FROM log WHERE message LIKE 'Finished in state%'"
    pairs = {
        "SELECT id FROM flow_run_state WHERE flow_run_id = ?":
            f"{event} GLOB 'prefect.flow-run.[A-Z]*' AND instr(resource_id, ?)",
        f"{steps} WHERE flow_run_id = ?": f"{event} GLOB 'prefect.task-run.*' AND instr(related, ?)",
        "SELECT ?": f"{about} = 'prefect.flow-run.heartbeat' AND instr(resource_id, ?)",
        "SELECT ? AS run": f"{log} AND flow_run_id = ?",
    }  # fmt: skip
    with closing(sqlite3.connect(database)) as connection:
        ids = [{UUID(name) for (name,) in connection.execute(sql, [run])} for pair in pairs.items() for sql in pair]
    differ = {str(name) for one, other in zip(ids[::2], ids[1::2], strict=True) for name in one ^ other}
    return differ if all(ids) else {"nothing of one kind", *differ}


def records_of(workspaces: Collection[str | None], database: Path) -> set[str]:
    """All records that name a run on one of the workspaces, as its parameters have it, or a step of one."""
    with closing(sqlite3.connect(database)) as connection:
        runs = connection.execute("SELECT id, parameters FROM flow_run").fetchall()
        ids = {run for run, parameters in runs if json.loads(parameters).get("workspace", "") in workspaces}
        steps = connection.execute("SELECT id, flow_run_id FROM task_run").fetchall()
        ids |= {step for step, run in steps if run in ids}
        return {record for record in connection.iterdump() if any(name in record for name in ids)}


def test_the_rest_is_what_it_would_be_without_it(
    model_server: Server, fresh: Command, docs: Path, tmp_path: Path
) -> None:
    fresh("index", str(docs))
    fresh("forget", "secret")
    rest = write_rows(tmp_path / "rest.jsonl", ROWS[:2])
    assert main(["index", str(rest), "--workspace", str(tmp_path / "without")]) == 0
    with Workspace(fresh.workspace).read() as left, Workspace(tmp_path / "without").read() as anew:
        assert left.graph.entities() == anew.graph.entities()
        assert left.graph.relations() == anew.graph.relations()
        assert left.communities.reports() == anew.communities.reports()
        assert left.vectors.windows() == anew.vectors.windows()


def test_it_stays_out_until_it_is_named(fresh: Command, tmp_path: Path, unembedded: None) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for row in ROWS:
        (folder / f"{row['id']}.md").write_text(f"# {row['title']}\n\n{row['text']}\n", encoding="utf-8")
    fresh("index", str(folder))
    fresh("forget", "secret.md")
    again = fresh("index", str(folder), "--json").json
    assert (again["published"], again["documents"]["added"]) == (False, 0)
    assert [one["reason"] for one in again["skipped"]] == ["forgotten: secret.md"]
    (folder / "secret.md").rename(folder / "renamed.md")
    assert fresh("index", str(folder), "--json").json["documents"]["added"] == 0, "moving it does not bring it back"
    full = fresh("index", str(folder), "--full", "--json").json
    assert full["documents"]["added"] == 0
    (folder / "renamed.md").rename(folder / "secret.md")
    named = fresh("index", str(folder / "secret.md"), "--json").json
    assert named["documents"]["added"] == 1
    assert SECRET in fresh("show", "secret.md").out
    assert fresh("index", str(folder), "--json").json["skipped"] == []


def test_undo_lets_it_in_with_its_source_and_all_can_be_forgotten(fresh: Command, docs: Path, unembedded: None) -> None:
    write_rows(docs, [*ROWS, {**ROWS[2], "id": "copy"}])
    fresh("index", str(docs))
    unknown = fresh("forget", "secrets", "--json")
    assert (unknown.code, unknown.json["error"]["type"]) == (2, "UnknownDocument")
    assert "secret" in unknown.json["error"]["remedy"]
    assert fresh("forget", "copy", "--json").json["same_text"] == ["secret"]
    fresh("forget", "secret", "reyd")
    done = fresh("forget", "bridge", "--undo")
    assert (done.code, "reyd, secret" in done.err) == (2, True)
    assert fresh("forget", "secret", "--undo").code == 0
    assert fresh("index", str(docs), "--json").json["documents"]["added"] == 1
    assert fresh("show", "reyd").code == 2
    assert fresh("forget", "secret", "bridge").code == 0
    assert fresh("status", "--json").json["counts"]["documents"] == 0
    assert fresh("index", str(docs), "--json").json["published"] is False


def test_a_reader_keeps_a_retired_generation_until_it_ends(fresh: Command, docs: Path, unembedded: None) -> None:
    fresh("index", str(docs))
    with Workspace(fresh.workspace).read() as reading:
        report = fresh("forget", "secret", "--json").json
        assert (report["retired"], report["held"]) == ([1], [1])
        assert reading.documents.document("secret").title == SECRET
        assert fresh("rollback", "1").code == 2
        assert [one["number"] for one in fresh("generations", "--json").json] == [2]
    write_rows(docs, [*ROWS, {"id": "more", "text": "Olle Brandt came to Velin in 1950."}])
    fresh("index", str(docs))
    assert places(fresh.workspace) == []
