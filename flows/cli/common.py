"""The options of every command: `--workspace` and `--json`."""

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
    """The options of every command, and what they open."""

    workspace: Annotated[str | None, Parameter(metavar="DIR")] = None
    """The folder of state (default ./.trellis), or the address of a published index."""
    json: bool = False
    """Machine output on standard output; messages go to standard error."""

    @cached_property
    def screen(self) -> Screen:
        """The output of the command."""
        return Screen(self.json)

    def settings(self) -> Settings:
        """Load the settings, with the workspace of the command line."""
        return load_settings({"workspace": self.workspace})

    def runtime(
        self,
        progress: Progress = silent,
        *,
        reading: bool = False,
        tell: Callable[[str], None] = unheard,
    ) -> Runtime:
        """Open the workspace; `tell` gets messages for people before the end of a run."""
        return open_runtime(self.settings(), progress, reading, tell)


COMMON = Common()
