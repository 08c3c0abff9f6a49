"""Rows that stay between runs: each is in the file as soon as it is there, so that a killed run
loses none.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from benchmarks.sets import write_rows
from storage.records import Record


class AskedRow(Record):
    """What was got for one thing that was asked; `asked` is the hash of all that it depends on."""

    asked: str


R = TypeVar("R", bound=AskedRow)


class KeptRows(Generic[R]):
    """Rows by what was asked, in a file that they are appended to."""

    def __init__(self, path: Path, kind: type[R]) -> None:
        self._path = path
        self.rows: dict[str, R] = {}
        for line in path.read_text(encoding="utf-8").split("\n") if path.is_file() else ():
            try:
                row = kind.model_validate_json(line)
            except ValidationError:
                continue  # the last line of a run that was killed, or a row of an earlier version
            self.rows[row.asked] = row

    def add(self, row: R) -> None:
        """Keep a row. It begins a line, for the one before may have been cut."""
        self.rows[row.asked] = row
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"\n{row.model_dump_json()}")


def replace_rows(rows: Iterable[Mapping[str, object]], path: Path) -> None:
    """Write a file of rows anew; a run that is killed meanwhile leaves the old one."""
    new = path.with_suffix(".new")
    write_rows(rows, new)
    new.replace(path)
