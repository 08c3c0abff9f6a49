"""What every command takes: its workspace, and whether a program reads its output."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from cyclopts import Parameter

from flows.cli.screen import Screen
from flows.runtime import Progress, Runtime, open_runtime, silent, unheard
from flows.settings import Settings, load_settings


@Parameter(name="*")
@dataclass(frozen=True)
class Common:
    """What every command takes."""

    workspace: Annotated[str | None, Parameter(metavar="DIR")] = None
    """The folder of state (default ./.trellis)."""
    json: bool = False
    """Machine output on standard output; messages go to standard error."""

    @cached_property
    def screen(self) -> Screen:
        """Where the command writes."""
        return Screen(self.json)

    def settings(self) -> Settings:
        """The settings in force, with the workspace that was named."""
        return load_settings({"workspace": self.workspace})

    def runtime(
        self,
        progress: Progress = silent,
        *,
        reading: bool = False,
        tell: Callable[[str], None] = unheard,
    ) -> Runtime:
        """Open the workspace with the settings in force."""
        return open_runtime(self.settings(), progress, reading, tell)


COMMON = Common()
