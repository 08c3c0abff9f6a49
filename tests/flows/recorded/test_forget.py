"""A forgotten document is nowhere: not in the graph, memory, caches, or the bytes of any file."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound

from flows.index import index
from flows.orchestration.run_folder import RECORDED
from flows.query import query
from storage.memory import MemoryEntry
from storage.workspace import Workspace
from tests.flows.conftest import Command
from tests.flows.recorder import end_of, id_of, logs
from tests.server.client import Server
from tests.workspaces import write_rows

SECRET = "Zephyrine Quillfeather"
ROWS: tuple[Mapping[str, object], ...] = (
    {
        "id": "bridge",
        "title": "Orla Bridge",
        "text": "Orla Bridge was designed by Tomas Reyd. It opened in 1931.",
    },
    {
        "id": "reyd",
        "title": "Tomas Reyd",
        "text": "Tomas Reyd was born in Velin. He studied under Ana Korb in Holm.",
    },
    {
        "id": "secret",
        "title": SECRET,
        "text": (
            f"{SECRET} lent Tomas Reyd 90417 crowns. {SECRET} lived in Mottlegrave near Velin. "
            f"Nobody in Mottlegrave knew that {SECRET} had met Ana Korb in Holm before the loan "
            "was signed."
        ),
    },
)
TRACES = ("Quillfeather", "Mottlegrave", "90417", "quillfeather")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "docs.jsonl", ROWS)


def places(folder: Path) -> list[str]:
    """The files whose bytes hold a trace of the document."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    holding = [
        path for path in files if any(trace.encode() in path.read_bytes() for trace in TRACES)
    ]
    return [path.relative_to(folder).as_posix() for path in holding]


def test_nothing_is_left_of_a_forgotten_document(
    model_server: Server, fresh: Command, docs: Path
) -> None:
    fresh("index", str(docs))
    fresh("ask", f"Where did {SECRET} live?")
    memory = Workspace(fresh.workspace).database.memory
    about = {"content": "x", "generation": 1}
    for name in ("secret", "bridge"):
        entry = {"source": name, "title": f"About {name}?", "documents": (name,), **about}
        memory.put([MemoryEntry.model_validate(entry)])
    before = "\n".join(places(fresh.workspace))
    assert "generation.duckdb" in before
    assert "side.sqlite" in before
    done = fresh("forget", "secret", "--json")
    assert done.code == 0, done.err
    report = done.json
    assert (report["generation"], report["retired"], report["held"]) == (2, [1], [])
    assert report["model_answers"] >= 1
    sources = {entry.source for entry in memory.entries()}
    assert "bridge" in sources
    assert "secret" not in sources
    assert places(fresh.workspace) == []
    assert fresh("show", "secret").code == 2
    assert [one["number"] for one in fresh("generations", "--json").json] == [2]
    assert fresh("show", "bridge").out.startswith("Orla Bridge")
    answer = fresh("ask", f"Where did {SECRET} live?", "--json").json
    assert "Mottlegrave" not in json.dumps({**answer, "question": "", "trace": ""})


def asked(question: str, workspace: str, **options: Any) -> UUID:
    """The flow run of a question."""
    return id_of(end_of(query(question, workspace=workspace, return_state=True, **options)))


@pytest.mark.usefixtures("api", "unembedded")
def test_runs_that_name_it_are_deleted_on_the_server(
    fresh: Command, docs: Path, tmp_path: Path
) -> None:
    # The ordinary words of the document occur elsewhere too, and are no traces of it.
    ordinary = (
        "Before the quay was over, nobody knew that they had met and lived near it, and signed a "
        "loan of crowns."
    )
    write_rows(docs, [*ROWS, {"id": "quay", "title": "The quay", "text": ordinary}])
    others = write_rows(tmp_path / "others.jsonl", ROWS[:2])
    mine, other = str(fresh.workspace), str(tmp_path / "other")
    asyncio.run(index(str(docs), workspace=mine))
    asyncio.run(index(str(others), workspace=other))
    answered = asked("Who lent Tomas Reyd crowns?", mine)
    asyncio.run(logs(answered))
    home = Path(os.environ["PREFECT_HOME"])
    files = [path for path in home.rglob("*") if path.is_file()]
    assert [path for path in files if b"Mottlegrave" in path.read_bytes()] == [], "a text is there"
    naming = asked(f"Where did {SECRET} live?", mine)
    kept = asked("Who designed Orla Bridge?", mine, documents=["bridge"])
    elsewhere = asked(f"Where did {SECRET} live?", other)
    assert fresh("forget", "secret", "--json").json["run_records"] >= 2
    there = [asyncio.run(is_there(run)) for run in (naming, answered, kept, elsewhere)]
    assert there == [False, False, True, True]
    assert places(fresh.workspace / RECORDED) == []


async def is_there(flow_run: UUID) -> bool:
    """Whether Prefect's server knows a flow run."""
    async with get_client() as client:
        try:
            await client.read_flow_run(flow_run)
        except ObjectNotFound:
            return False
    return True


def test_it_stays_out_until_it_is_named(fresh: Command, tmp_path: Path, unembedded: None) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for row in ROWS:
        (folder / f"{row['id']}.md").write_text(f"# {row['title']}\n\n{row['text']}\n")
    fresh("index", str(folder))
    fresh("forget", "secret.md")
    again = fresh("index", str(folder), "--json").json
    assert (again["published"], again["documents"]["added"]) == (False, 0)
    assert [one["reason"] for one in again["skipped"]] == ["forgotten: secret.md"]
    (folder / "secret.md").rename(folder / "renamed.md")
    for full in ((), ("--full",)):
        again = fresh("index", str(folder), "--json", *full).json
        assert again["documents"]["added"] == 0, "moving it does not bring it back"
    (folder / "renamed.md").rename(folder / "secret.md")
    named = fresh("index", str(folder / "secret.md"), "--json").json
    assert named["documents"]["added"] == 1
    assert SECRET in fresh("show", "secret.md").out
    assert fresh("index", str(folder), "--json").json["skipped"] == []


def test_a_reader_keeps_a_retired_generation_until_it_ends(
    fresh: Command, docs: Path, unembedded: None
) -> None:
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
