"""Keeps the limits of a server across all processes of a machine.

One SQLite file holds what was started in the last 65 seconds, in slots of a quarter second. Nothing
is reserved: a call is entered when it starts, so a killed process leaves only entries that expire.
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

# Seconds: a minute, and 5 in which a counted call may still be on its way to the server (0.6
# measured at a load of 15).
WINDOW = 65.0
_SLOTS = 260  # in a window
_GRACE = 0.2  # seconds that a more urgent call of another process has to take what became free


class CallBudget:
    """The budget of one server.

    In any `window` seconds at most `rpm` calls with `tpm` tokens start; a call larger than `tpm`
    runs alone. Every process applies its own limits to what all have started.
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
        """Return (when the call was entered, 0.0), or (0.0, the seconds after which to ask again).

        While a call with a lower priority number waits in any process, calls with higher numbers
        wait.
        """
        entered, wait = self._clock(), 0.0  # Returned where the disk is full: the call may start
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
        # A later time than anybody waits for was written before the clock was set back.
        if urgent is not None and now < urgent <= now + self._window + _GRACE:
            return 0.0, min(urgent - now, _GRACE)
        connection.execute(
            "DELETE FROM waiting WHERE server = ? AND priority = ?", (self._server, priority)
        )
        self._enter(connection, now, 1, tokens)
        return now, 0.0

    def correct(self, entered: float, calls: int, tokens: int) -> None:
        """Add calls and tokens to what was entered at that time; numbers may be negative."""
        if tokens and self._tpm is None and not calls:
            return
        with self._db.transaction() as connection:
            self._enter(connection, entered, calls, tokens)

    def _wait(self, connection: sqlite3.Connection, now: float, tokens: int) -> float:
        oldest = int((now - self._window) / self._width)
        newest = int((now + self._window) / self._width)
        # Entries in the future were made before the clock was set back.
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
            has_calls = self._rpm is None or calls <= self._rpm
            if has_calls and (self._tpm is None or total <= self._tpm):
                break
            # The last moment of the slot must have left the window.
            wait = (slot + 1) * self._width + self._window - now
            calls, total = calls - earlier, total - spent
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
