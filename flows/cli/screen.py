"""The screen of a command: results go to standard output, everything else to standard error."""

import io
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pydantic_core import to_jsonable_python
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import Progress as Bars

from flows.runtime import Progress
from flows.usage import Result, error_of, facts_of
from storage.errors import EvaluationGate
from tasks.watching import watched

EVERY = 10.0  # seconds between two lines about what goes on
# What steers a terminal: controls, and what turns the direction of writing.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Screen:
    """Writes the results of one command. Text of documents is never taken for markup."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        if isinstance(sys.stdout, io.TextIOWrapper):
            # The broken name of a file must not stop the output; in JSON its escape is right.
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")

    def json(self, result: Result) -> None:
        """Write a result as one line of JSON."""
        line = json.dumps(rounded(to_jsonable_python(result)), ensure_ascii=False)
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def result(
        self, result: Result, show: Callable[[], object] | str, *, without: Collection[str] = ()
    ) -> None:
        """Write a result for programs; for people call `show`, or write its fields under it."""
        if self.as_json:
            self.json(result)
        elif callable(show):
            show()
        else:
            self.line(show, style="bold green")
            self.facts(facts_of(result, without), indent=2)

    def exactly(self, text: str) -> None:
        """Write text as it is; on a terminal a line ends behind it."""
        sys.stdout.write(harmless(text))
        if sys.stdout.isatty() and not text.endswith("\n"):
            sys.stdout.write("\n")

    def markdown(self, text: str) -> None:
        """Write a page in Markdown: drawn on a terminal, as it is elsewhere."""
        if sys.stdout.isatty():
            Console(file=sys.stdout).print(Markdown(harmless(text)))
        else:
            self.exactly(text)

    def line(self, text: str = "", style: str = "", indent: int = 0) -> None:
        """Write a line for people; `style` is one of rich's, for terminals."""
        line = " " * indent + harmless(text)
        if sys.stdout.isatty() or os.environ.get("FORCE_COLOR"):
            console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
            console.print(line, style=style or None, soft_wrap=True)
        else:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()  # somebody may wait for it

    def title(self, text: str) -> None:
        """Write what the lines below belong to."""
        self.line(text, style="bold")

    def warn(self, text: str) -> None:
        """Write what somebody should look at, below a title."""
        self.line(text, indent=2, style="yellow")

    def facts(self, rows: Sequence[tuple[str, str]], indent: int = 0) -> None:
        """Write names and values, aligned; a row without a name goes on with the one above."""
        width = max((len(name) for name, _ in rows), default=0)
        for name, value in rows:
            self.line(f"{name:{width}}  {value}", indent=indent)

    def rows(
        self,
        rows: Sequence[str],
        most: int | None = None,
        indent: int = 2,
        style: str = "",
        more: str = "",
    ) -> None:
        """Write the first rows, and how many more there are; `more` says how to see those."""
        for row in rows[:most]:
            self.line(row, style=style, indent=indent)
        if most is not None and len(rows) > most:
            self.line(f"and {len(rows) - most} more{more}", style="dim", indent=indent)

    def note(self, text: str) -> None:
        """Write a message beside the result."""
        sys.stderr.write(harmless(text) + "\n")

    def error(self, error: Exception) -> None:
        """Tell what happened and what to do. What a gate found is in the result already."""
        told = error_of(error)
        self.note("\n".join(filter(None, [f"trellis: {told['message']}", told["remedy"]])))
        if self.as_json and not isinstance(error, EvaluationGate):
            self.json({"error": told})

    @contextmanager
    def progress(self, every: float = EVERY) -> Iterator[Progress]:
        """Show progress while the block runs: bars on a terminal; elsewhere a line as each step
        begins, and one `every` so many seconds.
        """
        if not sys.stderr.isatty():
            with _Lines(self.note).running(every) as report:
                yield report
            return
        with Bars(console=Console(stderr=True), transient=True) as bars:
            shown = {"working": bars.add_task("working", total=None)}

            def report(step: str, done: int, total: int) -> None:
                if step not in shown:
                    shown[step] = bars.add_task(step)
                bars.update(shown[step], completed=done, total=total)

            yield report


def harmless(text: str) -> str:
    """Give the text without what steers a terminal."""
    return STEERING.sub("\ufffd", text)


class _Lines:
    """Progress in lines: which step has begun, and how far the steps are."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._started = time.monotonic()
        self._begun = set[str]()
        self._under_way = dict[str, str]()

    @contextmanager
    def running(self, every: float) -> Iterator[Progress]:
        """Write the lines while the block runs."""
        ended = threading.Event()
        thread = threading.Thread(target=self._write_every, args=(every, ended), daemon=True)
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
        self._under_way[step] = f" {done} of {total}"
        if done >= total:
            del self._under_way[step]

    def _begin(self, step: str) -> None:
        if step not in self._begun:  # each passage, or question, may be a step of its own
            self._begun.add(step)
            self._write(f"{step} …")
        self._under_way.setdefault(step, "")

    def _write_every(self, seconds: float, ended: threading.Event) -> None:
        while not ended.wait(seconds):
            steps = [f"{step}{done}" for step, done in list(self._under_way.items())]
            so_far = time.monotonic() - self._started
            self._write(f"{', '.join(steps) or 'working'} ({so_far:.0f} s so far)")


def rounded(value: object, name: str = "") -> object:
    """Round seconds to 3 decimals, dollars to 6, others to 4; a document's metadata stays."""
    if isinstance(value, float):
        return round(value, {"seconds": 3, "cost_usd": 6}.get(name, 4))
    if isinstance(value, Mapping):
        return {
            key: part if key == "metadata" else rounded(part, str(key))
            for key, part in value.items()
        }
    return [rounded(part) for part in value] if isinstance(value, list | tuple) else value
