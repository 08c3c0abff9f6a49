"""The screen of a command: results go to standard output, all else to standard error; and how it opens a workspace."""

import io
import json
import os
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic_core import to_jsonable_python

from flows.runtime import Progress, Runtime, open_runtime, silent, unheard
from flows.settings import load_settings
from flows.usage import Result, error_of, facts_of
from prompts.engine.streaming import Show, Withdrawn
from prompts.text.regex import regex
from storage.errors import EvaluationGate
from tasks.watching import watched

if TYPE_CHECKING:
    from rich.console import Console

_STEERING = regex("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


EVERY = 10.0  # seconds between two lines on what goes on


class Screen:
    """Writes the results of one command. Text of documents is never taken for markup, nor wrapped in a pipe."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self._console: Console | None = None
        self._bars: Console | None = None  # where bars are shown
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A lone surrogate of a broken file name must not stop the output; in JSON its escape is right as it is.
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")

    def json(self, result: Result) -> None:
        """One result as one line of JSON, its figures as long as they mean something."""
        sys.stdout.write(json.dumps(rounded(to_jsonable_python(result)), ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def result(self, result: Result, show: Callable[[], object] | str, *, without: Collection[str] = ()) -> None:
        """The result for programs; for people as `show` writes it, or under that title by its fields (see `facts`)."""
        if self.as_json:
            self.json(result)
        elif callable(show):
            show()
        else:
            self.line(show, style="bold green")
            self.facts(facts_of(result, without), indent=2)

    def exactly(self, text: str) -> None:
        """Text as it is; where a terminal would put its prompt behind it, a line ends it."""
        sys.stdout.write(_steady(text))
        if sys.stdout.isatty() and not text.endswith("\n"):
            sys.stdout.write("\n")

    def line(self, text: str = "", style: str = "", indent: int = 0) -> None:
        """A line for people; `style` is rich's, which is loaded for terminals only (or `FORCE_COLOR`)."""
        line = " " * indent + _steady(text)
        if sys.stdout.isatty() or os.environ.get("FORCE_COLOR"):
            self._rich().print(line, style=style or None, markup=False, highlight=False, emoji=False, soft_wrap=True)
        else:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()  # somebody may wait for it

    def facts(self, rows: Sequence[tuple[str, str]], indent: int = 0) -> None:
        """Names and values, aligned; a pair with an empty name goes on with the one above."""
        width = max((len(name) for name, _ in rows), default=0)
        for name, value in rows:
            self.line(f"{name:{width}}  {value}", indent=indent)

    def rows(self, rows: Sequence[str], most: int | None, indent: int = 2, style: str = "", more: str = "") -> None:
        """The first of the rows, and how many more there are; `more` says how to see those."""
        for row in rows[:most]:
            self.line(row, style=style, indent=indent)
        if most is not None and len(rows) > most:
            self.line(f"and {len(rows) - most} more{more}", style="dim", indent=indent)

    def note(self, text: str) -> None:
        """A message beside the result, on standard error; above the bars while there are any."""
        if self._bars is not None:
            self._bars.print(_steady(text), markup=False, highlight=False, emoji=False, soft_wrap=True)
        else:
            sys.stderr.write(_steady(text) + "\n")

    def error(self, error: Exception) -> None:
        """What happened and what to do; a gate's falls stand in the result, which is machine output already."""
        details = error_of(error)
        self.note(f"trellis: {details['message']}" + (f"\n{details['remedy']}" if details["remedy"] else ""))
        if self.as_json and not isinstance(error, EvaluationGate):
            self.json({"error": details})

    @contextmanager
    def progress(self, every: float = EVERY) -> Iterator[Progress]:
        """Progress on standard error while the block runs: bars where that is a terminal, elsewhere
        a line as each step begins, and one `every` so many seconds.
        """
        if not sys.stderr.isatty():
            with _Lines(self.note).told(every) as report:
                yield report
            return
        from rich.console import Console
        from rich.progress import Progress as Bars

        with Bars(console=Console(stderr=True), transient=True) as bars:
            steps = {"working": bars.add_task("working", total=None)}

            def report(step: str, done: int, total: int) -> None:
                if step not in steps:
                    steps[step] = bars.add_task(step)
                bars.update(steps[step], completed=done, total=total)

            self._bars = bars.console
            try:
                yield report
            finally:
                self._bars = None

    @contextmanager
    def draft(self) -> Iterator[Show | None]:
        """Takes pieces of a text and shows them until the block ends, where people watch; None elsewhere.

        What is shown goes away again: the result follows by itself.
        """
        if self.as_json or not sys.stdout.isatty():
            yield None
            return
        from rich.live import Live
        from rich.text import Text

        live = Live(console=self._rich(), transient=True, vertical_overflow="ellipsis")
        draft = ""

        def show(piece: str | Withdrawn) -> None:
            nonlocal draft
            live.start()  # only now: without a model nothing is drafted; to start it again does nothing
            if isinstance(piece, Withdrawn):
                draft = ""
            else:
                # A model may write anything: signs that steer a terminal stay out.
                draft += "".join(sign if sign.isprintable() or sign == "\n" else " " for sign in piece)
            live.update(Text(draft, style="dim"))

        try:
            yield show
        finally:
            live.stop()

    def _rich(self) -> "Console":
        if self._console is None:
            from rich.console import Console

            self._console = Console(file=sys.stdout)
        return self._console


class _Lines:
    """Progress in lines: which step has begun, and what the steps under way have done so far."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._started = time.monotonic()
        self._told = set[str]()
        self._under_way = dict[str, str]()

    @contextmanager
    def told(self, every: float) -> Iterator[Progress]:
        """Write the lines while the block runs."""
        ended = threading.Event()
        thread = threading.Thread(target=self._tell_every, args=(every, ended), daemon=True)
        thread.start()
        try:
            with watched(self._step):
                yield self._report
        finally:
            ended.set()
            thread.join()

    def _step(self, name: str, begins: bool) -> None:
        if begins:
            self._begin(name)
        else:
            self._under_way.pop(name, None)

    def _report(self, step: str, done: int, total: int) -> None:
        self._begin(step)
        if done >= total:
            self._under_way.pop(step, None)
        else:
            self._under_way[step] = f" {done} of {total}"

    def _begin(self, step: str) -> None:
        if step not in self._told:  # each passage, or question, may be a step of its own
            self._told.add(step)
            self._write(f"{step} …")
        self._under_way.setdefault(step, "")

    def _tell_every(self, seconds: float, ended: threading.Event) -> None:
        while not ended.wait(seconds):
            steps = ", ".join(f"{step}{done}" for step, done in list(self._under_way.items())) or "working"
            self._write(f"{steps} ({time.monotonic() - self._started:.0f} s so far)")


def _steady(text: str) -> str:
    """The text without what steers a terminal: controls, escape sequences, and what turns the direction of writing."""
    return _STEERING.sub("\ufffd", text)


def rounded(value: object, name: str = "") -> object:
    """Seconds to 3 decimals, dollars to 6, scores and other figures to 4; a document's own metadata stays as it is."""
    if isinstance(value, float):
        return round(value, {"seconds": 3, "cost_usd": 6}.get(name, 4))
    if isinstance(value, Mapping):
        return {key: part if key == "metadata" else rounded(part, str(key)) for key, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list | tuple) else value


def runtime_of(
    options: Namespace,
    progress: Progress = silent,
    reading: bool = False,
    tell: Callable[[str], None] = unheard,
) -> Runtime:
    """The runtime of the settings in force, in the workspace that the command names."""
    return open_runtime(load_settings({"workspace": options.workspace}), progress, reading, tell)
