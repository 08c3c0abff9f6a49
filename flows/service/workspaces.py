"""The workspaces of a service by name, each with its session: opened once, kept between requests,
on the newest generation.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from flows.query import answer_question, retrieve_passages
from flows.question import AskOptions
from flows.runtime import Runtime, open_runtime
from flows.session import SESSIONS, Session, Sessions
from flows.settings import Settings, load_settings
from prompts.engine.bridge import apart
from storage.answer_records import Answer, Retrieval
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
    """The workspaces that are set; a name is looked up among them and is never a path.

    Questions go to the event loop that serves models, looking things up to threads: the caller's
    loop never waits.
    """

    def __init__(self, settings: Settings, sessions: Sessions = SESSIONS) -> None:
        self._folders = {DEFAULT: settings.workspace.absolute()}
        self._folders |= {
            name: folder.absolute() for name, folder in settings.service.workspaces.items()
        }
        self._sessions = sessions

    @property
    def names(self) -> list[str]:
        """`default`, then the others as they are set."""
        return list(self._folders)

    def folder(self, name: str) -> Path:
        """The folder of state, absolute. Raises UnknownWorkspace."""
        if name not in self._folders:
            raise UnknownWorkspace(name, self.names)
        return self._folders[name]

    def runtime(self, name: str, reading: bool = False) -> Runtime:
        """Open a runtime for what writes or, `reading`, looks; with the settings in force now."""
        return open_runtime(load_settings({"workspace": self.folder(name)}), reading=reading)

    def workspace(self, name: str) -> Workspace:
        """The workspace itself: its generations and databases."""
        return self.runtime(name).workspace

    async def ask(
        self, name: str, question: str, options: AskOptions, as_of: int | None = None
    ) -> Answer:
        """Answer from the current generation, or from number `as_of`; errors as of
        `flows.query.aask`.

        `options.on_text` is called in another thread. Context variables hold.
        """
        return await self._in_models_loop(
            name, as_of, lambda session: answer_question(question, options, session)
        )

    async def retrieve(
        self, name: str, question: str, options: AskOptions, as_of: int | None = None
    ) -> Retrieval:
        """Find the best passages, without an answer."""
        return await self._in_models_loop(
            name, as_of, lambda session: retrieve_passages(question, options, session)
        )

    async def _in_models_loop(
        self, name: str, as_of: int | None, asking: Callable[[Session], Coroutine[Any, Any, T]]
    ) -> T:
        folder = self.folder(name)

        async def work() -> T:
            async with self._sessions.use(folder, as_of) as session:
                with session.runtime.query_models.without_history():
                    return await asking(session)

        return await apart(work())

    async def read(self, name: str, reading: Callable[[Session], T], as_of: int | None = None) -> T:
        """Give what a function of `flows.service.reading` says of a session.

        Raises NoGeneration, UnknownGeneration.
        """
        folder = self.folder(name)

        def work() -> T:
            with self._sessions.hold(folder, as_of) as session:
                return reading(session)

        return await asyncio.to_thread(work)

    async def change(self, name: str, changing: Callable[[Runtime], Coroutine[Any, Any, T]]) -> T:
        """Make a change of the workspace in a thread with an event loop of its own.

        The next question sees it. Raises WorkspaceLocked while an index run writes.
        """
        runtime = self.runtime(name)

        async def work() -> T:
            try:
                return await changing(runtime)
            finally:
                await runtime.models.aclose()

        result = await asyncio.to_thread(asyncio.run, work())
        with suppress(NoGeneration):  # an upload that was never indexed may be all there was
            await self.follow(name)
        return result

    async def follow(self, name: str) -> None:
        """Open the newest generation now, so that the next question does not wait for it."""
        await self.read(name, lambda session: session.number)

    async def open_all(self) -> list[str]:
        """Open what is published; the names of the workspaces in which nothing is."""
        empty = []
        for name in self.names:
            await asyncio.to_thread(remove_parts, self.folder(name))
            try:
                await self.follow(name)
            except NoGeneration:
                empty.append(name)
        return empty

    def close(self) -> None:
        """Give the generations back as soon as nobody asks them any more."""
        self._sessions.close()
