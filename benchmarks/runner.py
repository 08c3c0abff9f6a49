"""The command of all measures: their options, the data that they need, and how their figures are
printed and written.

`python -m benchmarks` lists the measures, `python -m benchmarks NAME --data DIR …` runs one. A
measure is a function that `@measure` marks, in any module of this folder; the first line of its
docstring is what the list says of it.
"""

import argparse
import importlib
import json
import os
import platform
import re
import resource
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from inspect import cleandoc
from multiprocessing import get_context
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeVar

Cell = str | float | None  # a share or a time as float, a count as int
Rows = Mapping[str, Mapping[str, Cell]]
Option = tuple[str, dict[str, Any]]
J = TypeVar("J")
T = TypeVar("T")

DATA = Path(__file__).parent / "data"
MB = 1e6  # bytes
_MEASURE = re.compile(r"^def ([a-z]\w*)\(run: Run\) -> None:$", re.M)
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


class DataMissingError(Exception):
    """What a measure needs is not there; the message names it and the remedy."""


@dataclass
class Run:
    """One run of a measure: its options, the folder of its workspaces, and the tables that it has
    shown.
    """

    options: argparse.Namespace
    folder: Path
    head: Mapping[str, str]
    tables: dict[str, Rows] = field(default_factory=dict)

    @property
    def limit(self) -> int | None:
        """At most so many questions of each set."""
        limit: int | None = self.options.limit
        return limit

    def file(self, name: str) -> Path:
        """A file of the data folder."""
        return Path(self.options.data, name)

    def need(self, *names: str) -> None:
        """DataMissingError where a part of a measure lacks files of the data folder."""
        data: Path | None = self.options.data
        if data is None or not data.is_dir():
            raise DataMissingError(
                f"There is no folder {data}. Name the one that holds the published data: --data "
                "DIR."
            )
        if absent := [name for name in names if not (data / name).is_file()]:
            raise DataMissingError(
                f"{data} lacks {', '.join(absent)}. Name another folder: --data DIR."
            )

    def workspace(self, name: str) -> Path:
        """A folder of its own, below the one that is kept where `--keep` names it."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def table(self, title: str, rows: Rows) -> None:
        """Print figures, and write all that are known so far where `--json` says."""
        self.tables[title] = rows
        print("\n".join(table_lines(title, rows)), flush=True)
        if self.options.json:
            found = json.dumps({**self.head, "tables": self.tables}, ensure_ascii=False, indent=1)
            self.options.json.write_text(found + "\n", encoding="utf-8")

    def show(self, lines: Iterable[str]) -> None:
        """Print, with `--show`, what is to be read rather than compared."""
        if self.options.show:
            print("\n".join(lines), flush=True)


@dataclass(frozen=True)
class Measure:
    """A measure. `files` and those of the chosen `sets` are looked for below `--data`; where
    `optional`, only if it is given. `default` are the sets that are measured unless others are
    named.
    """

    run: Callable[[Run], None]
    options: tuple[Option, ...]
    files: tuple[str, ...]
    sets: Mapping[str, Sequence[str]]
    default: tuple[str, ...]
    optional: bool

    @property
    def description(self) -> str:
        return cleandoc(self.run.__doc__ or "")

    def parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"python -m benchmarks {self.run.__name__}",
            description=self.description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument(
            "--data", type=Path, metavar="DIR", help="the folder that holds the published data"
        )
        parser.add_argument(
            "--limit", type=whole_number, metavar="N", help="at most N questions of each set"
        )
        parser.add_argument(
            "--keep", type=Path, metavar="DIR", help="keep the workspaces there and use them again"
        )
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
        parser.add_argument(
            "--show", action="store_true", help="print what went wrong, where the measure tells it"
        )
        if self.sets:
            parser.add_argument(
                "--sets",
                type=names_of(self.sets),
                default=list(self.default),
                metavar="A,B",
                help=", ".join(self.sets),
            )
        for flag, details in self.options:
            parser.add_argument(flag, **details)
        return parser

    def missing(self, options: argparse.Namespace) -> str:
        """What is not there, and what to do; nothing where all is there."""
        chosen = [file for name in getattr(options, "sets", ()) for file in self.sets[name]]
        needed = [*self.files, *chosen]
        if not needed or (self.optional and options.data is None):
            return ""
        if options.data is None or not options.data.is_dir():
            return (
                f"There is no folder {options.data}. Name the one that holds the published data: "
                "--data DIR."
            )
        absent = sorted({name for name in needed if not (options.data / name).is_file()})
        return (
            f"{options.data} lacks {', '.join(absent)}. Name another folder: --data DIR."
            if absent
            else ""
        )


MEASURES: dict[str, Measure] = {}


def measure(
    *options: Option,
    files: Sequence[str] = (),
    sets: Mapping[str, Sequence[str]] | None = None,
    default: Sequence[str] = (),
    optional: bool = False,
) -> Callable[[Callable[[Run], None]], Callable[[Run], None]]:
    """Register a measure under its function's name. `sets`: the files that each needs, by name."""

    def register(run: Callable[[Run], None]) -> Callable[[Run], None]:
        known = dict(sets or {})
        MEASURES[run.__name__] = Measure(
            run, options, tuple(files), known, tuple(default) or tuple(known), optional
        )
        return run

    return register


def option(flag: str, **details: Any) -> Option:
    """An option of one measure, as argparse has it."""
    return flag, details


def measure_names() -> dict[str, str]:
    """The module of each measure by its name, read without loading anything."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return {
        name: file.stem
        for file in files
        for name in _MEASURE.findall(file.read_text(encoding="utf-8"))
    }


def find_measure(name: str) -> Measure:
    """The measure of this name."""
    importlib.import_module(f"benchmarks.{measure_names()[name]}")
    return MEASURES[name]


def main(arguments: Sequence[str] | None = None) -> int:
    """List the measures, or run one; 2 where it, or what it needs, is not there."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    known = sorted(measure_names())
    if not given or given[0] in {"-h", "--help"}:
        print("python -m benchmarks NAME [--data DIR] [--limit N] [--keep DIR] [--json FILE] …\n")
        print(
            "\n".join(
                f"  {name:20} {find_measure(name).description.splitlines()[0]}" for name in known
            )
        )
        return 0
    if given[0] not in known:
        print(f"There is no measure {given[0]!r}. There are {', '.join(known)}.", file=sys.stderr)
        return 2
    chosen = find_measure(given[0])
    options = chosen.parser().parse_args(given[1:])
    head = {
        "command": " ".join(["python -m benchmarks", *given]),
        "version": f"trellis {version('trellis-rag')}, Python {platform.python_version()}",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "date": datetime.now(UTC).date().isoformat(),
    }
    problem = chosen.missing(options)
    if problem:
        print(problem, file=sys.stderr)
        return 2
    print(", ".join([head["version"], head["machine"], head["date"]]), flush=True)
    with tempfile.TemporaryDirectory(
        prefix="trellis-bench-", ignore_cleanup_errors=True
    ) as temporary:
        try:
            chosen.run(Run(options, options.keep or Path(temporary), head))
        except DataMissingError as error:
            print(error, file=sys.stderr)
            return 2
    return 0


def table_lines(title: str, rows: Rows) -> list[str]:
    """A table as text: a row for each name, a column for each figure that a row has."""
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    cells = [
        [name, *(cell_text(row.get(column)) for column in columns)] for name, row in rows.items()
    ]
    widths = [max(map(len, column)) for column in zip(["", *columns], *cells, strict=True)]
    lines = [
        "  ".join(
            text.ljust(width) if place == 0 else text.rjust(width)
            for place, (text, width) in enumerate(row)
        )
        for row in (list(zip(line, widths, strict=True)) for line in (["", *columns], *cells))
    ]
    return [title, *(f"  {line}".rstrip() for line in lines)]


def cell_text(value: Cell) -> str:
    """A figure as it is shown: three places below ten, one above; a dash where there is none."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return shorten(value, 60, placeholder=" …")
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"


def share(hits: Sequence[bool | float]) -> float | None:
    """The mean of marks; None where there are none."""
    return sum(hits) / len(hits) if hits else None


def apart(function: Callable[[J], T], job: J) -> T:
    """The result of a function in a process of its own: its processor time and peak memory are its
    own.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, job).result()


def cpu_seconds() -> float:
    """The processor time of this process alone, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_memory() -> float:
    """The most memory that this process has held since this was last asked, in MB (Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return peak * 1024 / MB


def whole_number(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: use a whole number from 1")
    return int(text)


def names_of(known: Mapping[str, object] | Sequence[str]) -> Callable[[str], list[str]]:
    """A type of argparse: names that are known, "A,B"."""

    def chosen(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return names

    return chosen
