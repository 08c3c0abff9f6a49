"""Who shares the limits a minute of a model server? All processes with one folder of caches, or each counts alone."""

from collections.abc import Callable
from pathlib import Path

from flows.settings import Settings
from prompts.engine.budget import Budget
from storage.budget import SCHEMA, CallBudget
from storage.sqlite import SideDatabase


def budgets(settings: Settings, folder: Path, reading: bool = False) -> Callable[[str], Budget] | None:
    """The budget of a server by its address, kept in `folder`; None where there is no limit, or nobody shares it."""
    rpm, tpm = settings.rpm, settings.tpm
    if settings.limits == "process" or (rpm is None and tpm is None):
        return None
    database = SideDatabase(folder / "limits.sqlite", SCHEMA, reading)
    return lambda server: CallBudget(database, server, rpm, tpm)
