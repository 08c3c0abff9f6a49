"""Keeps one server's limits over all processes of a machine.

One SQLite file holds what was started in the last 65 seconds, in slots of a quarter second. Nothing
is held ahead: a call is entered when it starts, so a process that is killed takes no budget with
it, and what it did start is forgotten after them like everything else.
"""

import sqlite3
import time
from collections.abc import Callable

from storage.sqlite import Schema, SqliteFile

SCHEMA = Schema(
    "limits",
    1,
    since=1,
    remedy="Move the file away: only what was counted in the last minute goes with it.",
    without="This process keeps the limits by itself.",
)

# A minute, and 5 s for which a call that was counted may still be on its way to the server (.6 s at
# a load of 15).
WINDOW = 65.0
_SLOTS = 260  # in a window
# Seconds that a more urgent call of another process has to come and take what became free.
_GRACE = 0.2


class CallBudget:
    """The budget of one server.

    In no `window` seconds start more calls than `rpm`, nor more tokens than `tpm`; a call larger
    than `tpm` goes alone. Every process judges by its own limits over what all have started.
    """

    def __init__(
        self,
        database: SqliteFile,
        server: str,
        rpm: int | None,
        tpm: int | None,
        *,
        window: float = WINDOW,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._db = database
        self._server = server
        self._rpm = rpm
        self._tpm = tpm
        self._window = window
        self._width = window / _SLOTS
        self._clock = clock

    def take(self, tokens: int, priority: int) -> tuple[float, float]:
        """(when the call was entered, 0.0), or (0.0, the seconds after which to ask again).

        While a call with a lower priority number waits for room, in whatever process, those with a
        higher one do.
        """
        entered, wait = (
            self._clock(),
            0.0,
        )  # what holds where the disk is full, and nothing can be entered
        with self._db.transaction() as connection:
            entered, wait = self._taken(connection, tokens, priority)
        return entered, wait

    def _taken(
        self, connection: sqlite3.Connection, tokens: int, priority: int
    ) -> tuple[float, float]:
        now = self._clock()
        wait = self._wait(connection, now, tokens)
        if wait > 0:
            self._wait_in_line(connection, priority, now + wait + _GRACE)
            return 0.0, wait
        urgent = connection.execute(
            "SELECT max(until) FROM waiting WHERE server = ? AND priority < ?",
            (self._server, priority),
        ).fetchone()[0]
        # Further away than anybody waits, it was written before the clock was set back.
        if urgent is not None and now < urgent <= now + self._window + _GRACE:
            return 0.0, min(urgent - now, _GRACE)
        connection.execute(
            "DELETE FROM waiting WHERE server = ? AND priority = ?", (self._server, priority)
        )
        self._enter(connection, now, 1, tokens)
        return now, 0.0

    def correct(self, entered: float, calls: int, tokens: int) -> None:
        """Adds to what was entered at that time; negative numbers give back."""
        if tokens and self._tpm is None and not calls:
            return
        with self._db.transaction() as connection:
            self._enter(connection, entered, calls, tokens)

    def _wait(self, connection: sqlite3.Connection, now: float, tokens: int) -> float:
        oldest, newest = (
            int((now - self._window) / self._width),
            int((now + self._window) / self._width),
        )
        # What lies in the future was entered before the clock was set back.
        connection.execute(
            "DELETE FROM started WHERE server = ? AND (slot < ? OR slot > ?)",
            (self._server, oldest, newest),
        )
        rows: list[tuple[int, int, int]] = connection.execute(
            "SELECT slot, calls, tokens FROM started WHERE server = ? ORDER BY slot",
            (self._server,),
        ).fetchall()
        calls, total = 1 + sum(row[1] for row in rows), tokens + sum(row[2] for row in rows)
        wait = 0.0
        for slot, earlier, spent in rows:
            if (self._rpm is None or calls <= self._rpm) and (
                self._tpm is None or total <= self._tpm
            ):
                break
            # Until the last moment of the slot has left the window.
            calls, total, wait = (
                calls - earlier,
                total - spent,
                (slot + 1) * self._width + self._window - now,
            )
        return wait

    def _wait_in_line(self, connection: sqlite3.Connection, priority: int, until: float) -> None:
        connection.execute(
            "INSERT INTO waiting VALUES (?, ?, ?) ON CONFLICT (server, priority) DO UPDATE SET "
            "until = excluded.until",
            (self._server, priority, until),
        )

    def _enter(self, connection: sqlite3.Connection, at: float, calls: int, tokens: int) -> None:
        connection.execute(
            "INSERT INTO started VALUES (?, ?, ?, ?) ON CONFLICT (server, slot) DO UPDATE "
            "SET calls = calls + excluded.calls, tokens = tokens + excluded.tokens",
            (self._server, int(at / self._width), calls, tokens),
        )
