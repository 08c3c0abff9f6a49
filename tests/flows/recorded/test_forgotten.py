"""Of a forgotten document nothing is left where Prefect keeps runs, and what tells nothing of it stays."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from prefect.logging.handlers import APILogHandler

from flows.orchestration.recorded_flows import index, query
from tests.flows.conftest import Command
from tests.flows.test_forget import ROWS, SECRET, places
from tests.patience import wait_for
from tests.workspaces import write_rows


def ended(database: Path) -> int:
    """How many runs Prefect's database says have ended."""
    with closing(sqlite3.connect(database)) as connection:
        found = connection.execute("SELECT count(*) FROM events WHERE event = 'prefect.flow-run.Completed'")
        return int(found.fetchone()[0])


@pytest.mark.usefixtures("api", "unembedded")
def test_nothing_is_left_of_it_where_prefect_keeps_runs(fresh: Command, tmp_path: Path) -> None:
    ordinary = (
        "Before the quay was signed over, nobody knew that they had met and lived near it, and lent a loan of crowns."
    )
    docs = write_rows(tmp_path / "docs.jsonl", [*ROWS, {"id": "quay", "title": "The quay", "text": ordinary}])
    home, workspace = Path(os.environ["PREFECT_HOME"]), str(fresh.workspace)
    before = ended(home / "prefect.db")
    asyncio.run(index(str(docs), workspace=workspace))
    asyncio.run(query(f"Where did {SECRET} live?", workspace=workspace))
    asyncio.run(query("Who designed Orla Bridge?", workspace=workspace, documents=["bridge"]))
    APILogHandler().flush()
    wait_for(lambda: ended(home / "prefect.db") >= before + 3, "the events of three runs")
    assert any(name.startswith("storage/") for name in places(home))
    report = fresh("forget", "secret", "--json").json
    assert report["run_records"] >= 4
    assert places(home) == []
    kept = [path.read_text() for path in (home / "storage").iterdir()]
    assert any("Tomas Reyd" in text for text in kept), "what tells nothing of it stays"
