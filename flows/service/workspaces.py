"""The workspaces of a service by name. Each keeps a session on its newest generation open."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from flows.runtime import Runtime, open_runtime
from flows.service.access import CALLER
from flows.session import SESSIONS, Session
from flows.settings import Settings, load_settings
from prompts.engine.bridge import apart
from storage.errors import NoGeneration, NotFound
from storage.uploads import remove_parts
from storage.workspace import Workspace

DEFAULT = "default"

T = TypeVar("T")


class UnknownWorkspace(NotFound):
    """No workspace of this service has the name."""

    def __init__(self, name: str, known: list[str]) -> None:
        near = get_close_matches(name, known, n=1)
        remedy = f"Nearest: {near[0]}." if near else f"There are: {', '.join(known)}."
        super().__init__(f"No workspace is called {name[:80]!r}.", remedy)


class Workspaces:
    """The workspaces of the settings; a name from a request is never used as a path.

    A caller with a filter is given sessions on the part of the documents that pass it, and nothing
    else. Nothing blocks the caller's event loop: questions run in the event loop of the models,
    reads in threads.
    """

    def __init__(self, settings: Settings) -> None:
        folders = {DEFAULT: settings.workspace}
        for name, place in settings.service.workspaces.items():
            is_address = isinstance(place, str)
            opened = load_settings({"workspace": place}).workspace if is_address else place
            folders[name] = Path(opened)
        self._folders = {name: folder.absolute() for name, folder in folders.items()}

    @property
    def names(self) -> list[str]:
        """`default` first, then the others in the order of the settings."""
        return list(self._folders)

    def folder(self, name: str) -> Path:
        """Return the absolute folder of a workspace. Raises UnknownWorkspace."""
        if name not in self._folders:
            raise UnknownWorkspace(name, self.names)
        return self._folders[name]

    def runtime(self, name: str, reading: bool = False) -> Runtime:
        """Open a runtime, for writing unless `reading`, with the current settings."""
        return open_runtime(load_settings({"workspace": self.folder(name)}), reading=reading)

    def workspace(self, name: str) -> Workspace:
        """Return the stored workspace: its generations and databases."""
        return self.runtime(name).workspace

    async def ask(
        self,
        name: str,
        asking: Callable[[Session], Coroutine[Any, Any, T]],
        as_of: int | None = None,
    ) -> T:
        """Run a question on a session of the current generation, or of generation `as_of`.

        The question sees the caller's context variables.
        """
        folder, where = self.folder(name), CALLER.get().where

        async def work() -> T:
            async with SESSIONS.use(folder, as_of, where) as session:
                with session.runtime.query_models.without_history():
                    return await asking(session)

        return await apart(work())

    async def read(self, name: str, reading: Callable[[Session], T], as_of: int | None = None) -> T:
        """Call a function with a session. Raises NoGeneration, UnknownGeneration, NothingToRead."""

        def work() -> T:
            with self.hold(name, as_of) as session:
                return reading(session)

        return await asyncio.to_thread(work)

    def hold(self, name: str, as_of: int | None = None) -> AbstractContextManager[Session]:
        """Give a session to the current thread; it may block."""
        return SESSIONS.hold(self.folder(name), as_of, CALLER.get().where)

    async def read_whole(self, name: str, reading: Callable[[Session], T]) -> T:
        """Call a function with a session on all documents, whoever asks: for checks and changes,
        whose answers tell a caller with a filter of none of the others.
        """

        def work() -> T:
            with SESSIONS.hold(self.folder(name)) as session:
                return reading(session)

        return await asyncio.to_thread(work)

    async def change(self, name: str, changing: Callable[[Runtime], Coroutine[Any, Any, T]]) -> T:
        """Change a workspace, in a thread with its own event loop; the next question sees it.

        Raises WorkspaceLocked while an index run writes.
        """
        runtime = self.runtime(name)

        async def work() -> T:
            try:
                return await changing(runtime)
            finally:
                await runtime.models.aclose()

        result = await asyncio.to_thread(asyncio.run, work())
        with suppress(NoGeneration):  # for example an upload that was never indexed is forgotten
            await self.follow(name)
        return result

    async def follow(self, name: str) -> None:
        """Open the newest generation now, so that the next question need not wait for it."""
        await self.read_whole(name, lambda session: session.number)

    async def open_all(self) -> list[str]:
        """Open all workspaces and return the names of those without a generation."""
        empty = []
        for name in self.names:
            await asyncio.to_thread(remove_parts, self.folder(name))
            try:
                await self.follow(name)
            except NoGeneration:
                empty.append(name)
        return empty

    def close(self) -> None:
        """Release each generation as soon as no question uses it."""
        SESSIONS.close()
