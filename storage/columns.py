"""Records kept as columns: a question reads a few of many, and making all takes seconds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import eq
from typing import Any, Generic, TypeVar, overload

R = TypeVar("R")


class Columns(Sequence[R]):
    """Records of one kind, each made when it is read; equal to a list of the same records."""

    def __init__(self, make: Callable[..., R], by_field: Mapping[str, Sequence[Any]]) -> None:
        """`by_field` holds the arguments of `make` by field, in their order."""
        self.by_field = by_field
        self.make = make
        self._values = tuple(by_field.values())

    def __len__(self) -> int:
        return len(self._values[0])

    @overload
    def __getitem__(self, place: int) -> R: ...

    @overload
    def __getitem__(self, place: slice) -> list[R]: ...

    def __getitem__(self, place: int | slice) -> R | list[R]:
        if isinstance(place, slice):
            return list(map(self.make, *(values[place] for values in self._values)))
        return self.make(*[values[place] for values in self._values])

    def __iter__(self) -> Iterator[R]:
        return map(self.make, *self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]


def column_of(records: Sequence[Any], field: str) -> Sequence[Any]:
    """Return one field of all records."""
    if isinstance(records, Columns):
        return records.by_field[field]
    return [getattr(record, field) for record in records]


def with_column(records: Sequence[R], field: str, value: object) -> Sequence[R]:
    """Return the records with this value in a field of all."""
    if not isinstance(records, Columns):
        return [replace(record, **{field: value}) for record in records]  # type: ignore[type-var]
    return Columns(records.make, {**records.by_field, field: [value] * len(records)})


class ById(Mapping[str, R], Generic[R]):
    """Records by their field `id`; `place` maps each id to its position."""

    def __init__(self, records: Sequence[R], place: Mapping[str, int] | None = None) -> None:
        self.records = records
        if place is None:
            place = {name: at for at, name in enumerate(column_of(records, "id"))}
        self.place = place

    def __getitem__(self, key: str) -> R:
        return self.records[self.place[key]]

    def __contains__(self, key: object) -> bool:
        return key in self.place

    def __iter__(self) -> Iterator[str]:
        return iter(self.place)

    def __len__(self) -> int:
        return len(self.place)
