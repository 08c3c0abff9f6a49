"""The output of a command: results on standard output, everything else on standard error."""

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

EVERY = 10.0  # seconds between two lines of progress
# Signs that steer a terminal: control characters and changes of the writing direction.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Screen:
    """Writes the output of one command; text is never read as markup."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        if isinstance(sys.stdout, io.TextIOWrapper):
            # File names may be invalid Unicode; the escape is also correct in JSON.
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")

    def json(self, result: Result) -> None:
        """Write a result as one line of JSON."""
        line = json.dumps(rounded(to_jsonable_python(result)), ensure_ascii=False)
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def result(
        self, result: Result, show: Callable[[], object] | str, *, without: Collection[str] = ()
    ) -> None:
        """Write a result for programs as JSON; for people call `show`, or write it as a title with
        the fields of the result below.
        """
        if self.as_json:
            self.json(result)
        elif callable(show):
            show()
        else:
            self.line(show, style="bold green")
            self.facts(facts_of(result, without), indent=2)

    def exactly(self, text: str) -> None:
        """Write text unchanged; on a terminal end its last line."""
        sys.stdout.write(harmless(text))
        if sys.stdout.isatty() and not text.endswith("\n"):
            sys.stdout.write("\n")

    def markdown(self, text: str) -> None:
        """Write Markdown: formatted on a terminal, unchanged elsewhere."""
        if sys.stdout.isatty():
            Console(file=sys.stdout).print(Markdown(harmless(text)))
        else:
            self.exactly(text)

    def line(self, text: str = "", style: str = "", indent: int = 0) -> None:
        """Write a line for people; `style` is a style of rich, used on terminals."""
        line = " " * indent + harmless(text)
        if sys.stdout.isatty() or os.environ.get("FORCE_COLOR"):
            console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
            console.print(line, style=style or None, soft_wrap=True)
        else:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()  # A reader may wait for it.

    def title(self, text: str) -> None:
        self.line(text, style="bold")

    def warn(self, text: str) -> None:
        self.line(text, indent=2, style="yellow")

    def facts(self, rows: Sequence[tuple[str, str]], indent: int = 0) -> None:
        """Write aligned names and values; a row without a name continues the one above."""
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
        """Write the first rows and the number of the others; `more` says how to see them."""
        for row in rows[:most]:
            self.line(row, style=style, indent=indent)
        if most is not None and len(rows) > most:
            self.line(f"and {len(rows) - most} more{more}", style="dim", indent=indent)

    def note(self, text: str) -> None:
        """Write a message to standard error."""
        sys.stderr.write(harmless(text) + "\n")

    def error(self, error: Exception) -> None:
        """Write an error, with --json also as JSON; a gate has already written its result."""
        shown = error_of(error)
        self.note("\n".join(filter(None, [f"trellis: {shown['message']}", shown["remedy"]])))
        if self.as_json and not isinstance(error, EvaluationGate):
            self.json({"error": shown})

    @contextmanager
    def progress(self, every: float = EVERY) -> Iterator[Progress]:
        """Show progress during the block: bars on a terminal; elsewhere a line at the start of each
        step and one `every` few seconds.
        """
        if not sys.stderr.isatty():
            with _progress_lines(self.note, every) as report:
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
    """Replace the signs that steer a terminal."""
    return STEERING.sub("\ufffd", text)


@contextmanager
def _progress_lines(write: Callable[[str], object], every: float) -> Iterator[Progress]:
    """Write a line at the start of each step, and from time to time one about all open steps."""
    started, begun, under_way = time.monotonic(), set[str](), dict[str, str]()
    ended = threading.Event()

    def begin(step: str) -> None:
        if step not in begun:  # A step may run once for each passage or question.
            begun.add(step)
            write(f"{step} …")
        under_way.setdefault(step, "")

    def watch(step: str, begins: bool) -> None:
        if begins:
            begin(step)
        else:
            under_way.pop(step, None)

    def report(step: str, done: int, total: int) -> None:
        begin(step)
        under_way[step] = f" {done} of {total}"
        if done >= total:
            under_way.pop(step, None)

    def write_regularly() -> None:
        while not ended.wait(every):
            steps = [f"{step}{done}" for step, done in list(under_way.items())]
            so_far = time.monotonic() - started
            write(f"{', '.join(steps) or 'working'} ({so_far:.0f} s so far)")

    thread = threading.Thread(target=write_regularly, daemon=True)
    thread.start()
    try:
        with watched(watch):
            yield report
    finally:
        ended.set()
        thread.join()


def rounded(value: object, name: str = "") -> object:
    """Round seconds to 3 decimals, dollars to 6, others to 4, but not a document's metadata."""
    if isinstance(value, float):
        return round(value, {"seconds": 3, "cost_usd": 6}.get(name, 4))
    if isinstance(value, Mapping):
        return {
            key: part if key == "metadata" else rounded(part, str(key))
            for key, part in value.items()
        }
    return [rounded(part) for part in value] if isinstance(value, list | tuple) else value
