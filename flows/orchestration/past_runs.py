"""What Prefect keeps of past runs on this machine: its database and the results of flows."""

import os
from collections.abc import Callable
from pathlib import Path

from storage.sqlite import erase_rows

_TABLES = (
    "flow_run", "flow_run_state", "task_run", "task_run_state", "log", "artifact", "artifact_collection", "events",
    "event_resources",
)  # fmt: skip
_SQLITE = "sqlite+aiosqlite:///"


def forget_past_runs(holds: Callable[[str], bool]) -> int:
    """Removes the runs, logs, artifacts and results with a text of which this is true; how many.

    The database of a server on another machine, or in PostgreSQL, is not reached.
    """
    if not Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser().is_dir():
        return 0
    import flows.orchestration.recording  # noqa: F401 -- before Prefect reads its settings

    # isort: split
    from prefect.settings import get_current_settings

    prefect, removed = get_current_settings(), 0
    results = prefect.results.local_storage_path
    for path in results.rglob("*"):
        if path.is_file() and holds(path.read_text(encoding="utf-8", errors="replace").replace('\\"', '"')):
            path.unlink()
            removed += 1
    url = prefect.server.database.connection_url
    place = (url.get_secret_value() if url else f"{_SQLITE}{prefect.home / 'prefect.db'}").partition("?")[0]
    if place.startswith(_SQLITE) and (database := Path(place.removeprefix(_SQLITE))).is_file():
        removed += erase_rows(database, _TABLES, holds)
    return removed
