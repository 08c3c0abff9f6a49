"""How do many questions in one process share one open generation, and move to a newer one when it is published?"""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import Settings, load_settings


@dataclass
class _Held:
    """An open session, who uses it now, and whether a newer one has taken its place."""

    settings: Settings
    session: Session
    users: int = 0
    replaced: bool = False


class Sessions:
    """One session for each workspace, opened at its first question; safe to use from many threads and event loops.

    Beside it there may be one on the older generation that was asked for last (a held generation is never removed).

    A question that started on a generation ends on it: a replaced session is closed when its last question is done.
    """

    def __init__(self) -> None:
        self._held: dict[tuple[Path, bool], _Held] = {}
        self._lock = threading.Lock()

    @asynccontextmanager
    async def use(self, workspace: str | Path | None = None, as_of: int | None = None) -> AsyncIterator[Session]:
        """The session of a workspace (None: the one that the settings name) for the length of the block.

        It is on the current generation, or on number `as_of`, and has the settings in force. Raises NoGeneration,
        UnknownGeneration, or SettingsError.
        """
        settings = load_settings({"workspace": workspace})
        # Opening reads files: in a thread, so that other questions of this loop go on.
        held = await asyncio.to_thread(self._take, settings, as_of)
        try:
            yield held.session
        finally:
            self._give_back(held)

    def close(self) -> None:
        """Close what nobody uses, and the rest as soon as nobody does."""
        with self._lock:
            for held in self._held.values():
                self._replace(held)
            self._held.clear()

    def _take(self, settings: Settings, as_of: int | None) -> _Held:
        place, pinned = settings.workspace.absolute(), as_of is not None
        with self._lock:
            held = self._held.get((place, pinned))
            if held is None or held.settings != settings or self._outdated(held.session, as_of):
                opened = _Held(settings, _opened(settings, as_of))
                if held is not None:
                    self._replace(held)
                    # With a new generation the older ones' turn to be removed comes nearer.
                    if (place, True) in self._held and not pinned:
                        self._replace(self._held.pop((place, True)))
                self._held[place, pinned] = held = opened
            held.users += 1
            return held

    @staticmethod
    def _outdated(session: Session, as_of: int | None) -> bool:
        if as_of is not None:
            return session.number != as_of or as_of in session.runtime.workspace.retired()
        return session.runtime.workspace.changed(session.generation)

    def _give_back(self, held: _Held) -> None:
        with self._lock:
            held.users -= 1
            if held.replaced and held.users == 0:
                held.session.close()

    def _replace(self, held: _Held) -> None:
        held.replaced = True
        if held.users == 0:
            held.session.close()


def _opened(settings: Settings, as_of: int | None) -> Session:
    """A session with everything loaded; given back at once where that fails."""
    session = open_session(open_runtime(settings, reading=True), as_of)
    try:
        session.warm()
    except BaseException:
        session.close()
        raise
    return session


# One for the process: opened at the first question, never at import.
SESSIONS = Sessions()
