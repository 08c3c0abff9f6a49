"""The modes by name.

A new mode is one new file in this folder and one line here. Another package adds its own by the
entry point `trellis.modes`, which names a `flows.modes.query_mode.QueryMode`.
"""

import logging
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from flows.modes.agent import AGENT
from flows.modes.basic_search import DIRECT, HYDE, NAIVE, RQ, TS
from flows.modes.drift_search import DRIFT
from flows.modes.dual_level_search import HIGH, HYBRID, LOW, MIX
from flows.modes.global_search import GLOBAL
from flows.modes.lazy_search import LAZY
from flows.modes.local_search import LOCAL
from flows.modes.query_mode import QueryMode
from flows.modes.traversal import TRAVERSE
from flows.modes.typed_facts import FACTS
from flows.question import AUTO
from storage.errors import SettingsError, did_you_mean
from tasks.route import SEARCH

logger = logging.getLogger(__name__)

OURS = (
    *(NAIVE, HYDE, RQ, TS, DIRECT, LOW, HIGH, HYBRID, MIX, LOCAL, GLOBAL, LAZY, DRIFT),
    *(TRAVERSE, FACTS, AGENT),
)


@cache
def modes() -> Mapping[str, QueryMode]:
    """Return all modes but the search and `auto`; an installed package cannot replace ours."""
    found = {mode.name: mode for mode in OURS}
    for entry in entry_points(group="trellis.modes"):
        if entry.name in found:
            continue
        try:
            found[entry.name] = entry.load()
        except Exception as error:  # noqa: BLE001 -- another package's code
            logger.warning("The mode %s cannot be loaded: %s", entry.name, error)
    return found


def mode_names() -> tuple[str, ...]:
    """Return the names of all modes: `auto`, the search and the others."""
    return AUTO, SEARCH, *modes()


def check_mode(name: str) -> None:
    """Raise SettingsError for a mode that does not exist, with the nearest name and all names."""
    if name not in mode_names():
        known = ", ".join(mode_names())
        near = did_you_mean(name, mode_names())
        raise SettingsError("mode", name, f"one that is there: {known}", near)


def find_mode(name: str) -> QueryMode:
    """Return a mode that is neither `auto` nor the search. Raises SettingsError for no mode."""
    check_mode(name)
    return modes()[name]
