"""What Prefect keeps of past runs on this machine: its database and the results of flows."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from prompts.text.regex import regex
from storage.sqlite import Value, erase_rows

# The label of a run whose parameter `workspace` does not say where its workspace lies.
WORKSPACE = "trellis.workspace"
# A record names what it belongs to, which stands before it here.
_TABLES = (
    "flow_run", "task_run", "flow_run_state", "task_run_state", "log", "artifact", "artifact_collection", "events",
    "event_resources", "automation_bucket", "automation_event_follower",
)  # fmt: skip
_ID = regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}")
_SQLITE = "sqlite+aiosqlite:///"


def forget_past_runs(workspace: Path, holds: Callable[[str], bool]) -> int:
    """Removes the records and results of runs on the workspace with a text of which this is true; how many.

    With a run or a step goes all that belongs to it. Nothing is touched of other runs, nor of a run that does not say
    its workspace. The database of a server on another machine, or in PostgreSQL, is not reached.
    """
    if not Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser().is_dir():
        return 0
    import flows.orchestration.recording  # noqa: F401 -- before Prefect reads its settings

    # isort: split
    from prefect.settings import get_current_settings

    prefect = get_current_settings()
    url = prefect.server.database.connection_url
    place = (url.get_secret_value() if url else f"{_SQLITE}{prefect.home / 'prefect.db'}").partition("?")[0]
    if not place.startswith(_SQLITE) or not (database := Path(place.removeprefix(_SQLITE))).is_file():
        return 0
    records = _Records(workspace.resolve(), holds)
    removed = erase_rows(database, _TABLES, records.goes)
    for path in prefect.results.local_storage_path.rglob("*"):
        if path.name in records.gone or (path.name in records.named and holds(path.read_text("utf-8", "replace"))):
            path.unlink()
            removed += 1
    return removed


class _Records:
    """The records that belong to runs on a workspace: the ids that they have or name (`named`), and what goes.

    A result's id is the name of its file.
    """

    def __init__(self, workspace: Path, holds: Callable[[str], bool]) -> None:
        self._workspace = workspace
        self._holds = holds
        self._own: set[str] = set()
        self.named: set[str] = set()
        self.gone: set[str] = set()

    def goes(self, table: str, row: Mapping[str, Value]) -> bool:
        """Whether a record goes; those of a table are asked about after those of the tables before it."""
        text = "\n".join(value for value in row.values() if isinstance(value, str))
        own, ids = str(row["id"]), set(_ID.findall(text))
        if not (self._is_on_workspace(row) if table == "flow_run" else ids & self._own):
            return False
        self._own.add(own)
        self.named |= ids
        if not ids & self.gone and not self._holds(text):
            return False
        self.gone |= {own, *_ID.findall(str(row.get("data")))} if table == "artifact" else {own}
        return True

    def _is_on_workspace(self, run: Mapping[str, Value]) -> bool:
        labels, parameters = (json.loads(str(run.get(name) or "{}")) or {} for name in ("labels", "parameters"))
        place = labels.get(WORKSPACE, parameters.get("workspace"))
        return isinstance(place, str) and Path(place).is_absolute() and Path(place).resolve() == self._workspace
