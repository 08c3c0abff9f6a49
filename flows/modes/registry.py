"""The modes by name.

A new mode is one new file in this folder and one line here; another package adds its own by the
entry point `trellis.modes`, which names a `flows.modes.query_mode.QueryMode`.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from flows.modes.basic_search import DIRECT, HYDE, NAIVE, RQ, TS
from flows.modes.drift_search import DRIFT
from flows.modes.dual_level_search import HIGH, HYBRID, LOW, MIX
from flows.modes.global_search import GLOBAL
from flows.modes.local_search import LOCAL
from flows.modes.query_mode import QueryMode
from flows.modes.traversal import TRAVERSE
from flows.question import AUTO
from storage.errors import SettingsError, did_you_mean
from tasks.route import SEARCH

OURS = (NAIVE, HYDE, RQ, TS, DIRECT, LOW, HIGH, HYBRID, MIX, LOCAL, GLOBAL, DRIFT, TRAVERSE)


@cache
def modes() -> Mapping[str, QueryMode]:
    """Give the modes beside the search by name; an installed package replaces none of ours."""
    added = {entry.name: entry.load() for entry in entry_points(group="trellis.modes")}
    ours = {mode.name: mode for mode in OURS}
    return ours | {name: mode for name, mode in added.items() if name not in ours}


def mode_names() -> tuple[str, ...]:
    """Name what a question may be asked in: `auto`, the search, and all other modes."""
    return AUTO, SEARCH, *modes()


def check_mode(name: str) -> None:
    """Raise SettingsError for a mode that does not exist, with the nearest and all others."""
    if name not in mode_names():
        known = ", ".join(mode_names())
        near = did_you_mean(name, mode_names())
        raise SettingsError("mode", name, f"one that is there: {known}", near)


def find_mode(name: str) -> QueryMode:
    """Find a mode that is neither `auto` nor the search. Raises SettingsError for no mode."""
    check_mode(name)
    return modes()[name]
