"""How does a command get at its workspace?"""

from argparse import Namespace
from typing import TYPE_CHECKING

from flows.runtime import Progress, Runtime, open_runtime, silent
from flows.settings import load_settings

if TYPE_CHECKING:  # retrieval loads only for commands that retrieve
    from flows.session import Session


def runtime_of(options: Namespace, progress: Progress = silent, reading: bool = False) -> Runtime:
    """The runtime of the settings in force, in the workspace that the command names."""
    return open_runtime(load_settings({"workspace": options.workspace}), progress, reading)


def session_of(options: Namespace) -> "Session":
    """The generation that the command names with --as-of, else the current one. NoGeneration, UnknownGeneration."""
    from flows.session import open_session

    return open_session(runtime_of(options, reading=True), options.as_of)
