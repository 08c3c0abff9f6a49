"""The typed facts as tables: a row for each thing of a kind, a column for each type of fact.

A plan names columns, also those of what a relation leads to ("designed by > born"). The rows of its
table are the things with the values of these columns: several rows for a thing that has several.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from prompts.plan_facts import ComputedColumn, FactPlan
from prompts.plan_table import TablePlan, TableView
from prompts.schema import LEADS_TO, NAME, AttributeType, Schema
from prompts.text.amounts import Amount, amount_of
from prompts.text.segment import sentences
from prompts.text.words import fold
from storage.facts import DatedFact, Thing
from storage.records import Chunk, Span, by_key
from tasks.facts.typed_values import (
    Unfitting,
    decimal_year,
    first_day,
    last_day,
    typed_value,
    years_between,
)
from tasks.tables.relations import Cell, TableRelation, written_figure
from tasks.tables.run_plan import DoesNotFit, meeting, nearest

MOST_ROWS = 100_000
YEARS = "years"  # the unit of what lies between two dates
FIGURES = 4  # that a quotient shows

ColumnPath = tuple[str, ...]  # relations that lead on, then the column of what they lead to


@dataclass(frozen=True, slots=True)
class FactCell(Cell):
    """A value with its type, what states it, and the facts that lead to it (`via`).

    `means` is what is shown and compared where the text writes it otherwise. A computed figure
    stands in no text; `of` are the two cells that it is made of.
    """

    means: str = ""
    figure: Amount | None = None
    day: str = ""
    chunk: str = ""
    stated: Span = (0, 0)
    via: tuple["FactCell", ...] = ()
    of: tuple["FactCell", ...] = ()

    @property
    def parts(self) -> Sequence[Cell]:
        """The cells in texts that it consists of."""
        return self.of or ((self,) if self.document else ())

    @property
    def stating(self) -> "tuple[FactCell, ...]":
        """The cells that state it, with those that lead to them."""
        return tuple(one for part in self.of for one in part.stating) or (*self.via, self)

    @property
    def shown(self) -> str:
        """What an answer shows of it, and what a plan compares."""
        return self.means or self.raw

    @property
    def amount(self) -> Amount | None:
        """Its typed figure; of a date the decimal year."""
        return self.figure


@dataclass(frozen=True, slots=True)
class FactRelation(TableRelation):
    """Rows of things; `types` are those of typed columns, `aliases` map folded names to things."""

    things: tuple[str, ...]
    types: Mapping[int, AttributeType]
    aliases: Mapping[str, str]

    def scale(self, column: int) -> float:
        """Return 1: typed figures are in full units."""
        return 1.0

    def spelt(self, value: str) -> str:
        """Return the name of the thing that a value names otherwise."""
        return self.aliases.get(_folded(value), value)

    def bounds(self, column: int, value: str) -> tuple[float, float] | None:
        """Return the figures that a number means in the column's unit, or a date as its first and
        last day. Raises DoesNotFit for another value.
        """
        attribute = self.types.get(column)
        if attribute is None or attribute.type not in {"number", "date"}:
            return None
        try:
            typed = typed_value(value, attribute)
        except Unfitting as problem:
            raise DoesNotFit(f"{self.columns[column]}: {problem}") from problem
        if typed.number is not None:
            return typed.number, typed.number
        return decimal_year(first_day(typed.day)), decimal_year(last_day(typed.day))


@dataclass(frozen=True)
class Other:
    """A thing with several values of a type that has one; the first is used."""

    thing: str
    type: str
    values: tuple[str, ...]


class FactViews:
    """The things of each kind with their facts, of those that hold at one time."""

    def __init__(
        self,
        schema: Schema,
        things: Sequence[Thing],
        facts: Sequence[DatedFact],
        aliases: Iterable[tuple[str, str]],
        chunk_of: Callable[[str], Chunk],
    ) -> None:
        """`facts` come the newest first; `aliases` are pairs of a thing and another name of it."""
        self.schema, self._chunk_of = schema, chunk_of
        self.things = {thing.id: thing for thing in things}
        self._facts = by_key(((fact.subject, fact.type), fact) for fact in facts)
        self._facts_to = by_key(((fact.object, fact.type), fact) for fact in facts if fact.object)
        self.kinds = self._members(facts)
        self.labels = self._labels()
        self.aliases = self._spellings(aliases)
        self.others: dict[tuple[str, str], Other] = {}

    def _members(self, facts: Sequence[DatedFact]) -> dict[str, list[str]]:
        """Return the things of each kind by name: the kind is the thing's own, or that of most of
        its facts where the schema does not know its own.
        """
        shown: dict[str, Counter[str]] = defaultdict(Counter)
        ends = ((fact.subject, fact.kind) for fact in facts)
        others = ((fact.object, fact.object_kind) for fact in facts if fact.object)
        for name, of_fact in (*ends, *others):
            if of_fact in self.schema.kinds:
                shown[name][of_fact] += 1
        members: dict[str, list[str]] = {kind: [] for kind in self.schema.kinds}
        for thing in self.things.values():
            counted = shown.get(thing.id)
            kind = thing.kind
            if kind not in members and counted:
                kind = max(counted, key=lambda name: (counted[name], name))
            if kind in members:
                members[kind].append(thing.id)
        return members

    def _labels(self) -> dict[str, str]:
        """Return a name for each thing that no other one has."""
        counts = Counter(thing.name for thing in self.things.values())
        titles = {
            thing.id: self._chunk_of(thing.chunk).title
            for thing in self.things.values()
            if counts[thing.name] > 1
        }
        return {
            name: f"{thing.name} ({titles[name] or thing.document})"
            if name in titles
            else thing.name
            for name, thing in self.things.items()
        }

    def _spellings(self, aliases: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Return the label of the one thing that has a name, by the folded name."""
        named = by_key(
            (_folded(name), thing)
            for thing, name in (*aliases, *self.labels.items())
            if thing in self.labels
        )
        return {name: self.labels[own[0]] for name, own in named.items() if len({*own}) == 1}

    # --- what a planner reads ---

    @property
    def shown_kinds(self) -> list[str]:
        """The kinds of which there is a thing, in the order of their tables."""
        return [kind for kind, members in self.kinds.items() if members]

    def views(self) -> list[TableView]:
        """Return a table of each kind, with all columns and their types."""
        return [self._view(kind) for kind in self.shown_kinds]

    def _view(self, kind: str) -> TableView:
        columns = self._columns([kind])
        rows = tuple(
            (self.labels[thing], *("; ".join(self._shown(thing, name)) for name in columns))
            for thing in self.kinds[kind]
        )
        headers = (NAME, *(f"{name} ({type_of})" for name, type_of in columns.items()))
        return TableView(kind, headers, rows)

    def _shown(self, thing: str, column: str) -> list[str]:
        return [cell.shown for cell, _ in self._values(thing, column)]

    def _columns(self, kinds: Iterable[str]) -> dict[str, str]:
        """Return the columns of things of these kinds, with their types in words."""
        columns: dict[str, str] = {}
        for kind in kinds:
            attributes = self.schema.kinds[kind].attributes
            columns |= {name: attribute.shown for name, attribute in attributes.items()}
            columns |= {name: " or ".join(ends) for name, ends in self.schema.leaving(kind).items()}
        return columns

    # --- the table of a plan ---

    def kind_for(self, plan: TablePlan) -> str:
        """Return the kind of the table that a plan names, or the only one with all columns of the
        plan where that one lacks some. Raises DoesNotFit where there is no such table.
        """
        kinds = self.shown_kinds
        if not 1 <= plan.table <= len(kinds):
            raise DoesNotFit(f"there is no table {plan.table} (there are {len(kinds)})")
        named = kinds[plan.table - 1]
        having = [kind for kind in kinds if self._has_columns(plan, kind)]
        return having[0] if len(having) == 1 else named

    def _has_columns(self, plan: TablePlan, kind: str) -> bool:
        try:
            for name in _columns_asked(plan):
                self._path(kind, name)
        except DoesNotFit:
            return False
        return True

    def table_for(self, plan: TablePlan, kind: str) -> tuple[TablePlan, FactRelation]:
        """Return the plan with the names of its columns, and the table of a kind that it runs on.

        The table has the things that meet the filters, a row for each different value of the
        columns that the plan is about; rows without these are left out. Raises DoesNotFit.
        """
        if plan.group_by and not plan.columns:
            plan = plan.model_copy(update={"columns": (NAME,)})
        used = _computed_of(plan)
        paths = {name: self._path(kind, name) for name in _columns_asked(plan)}
        joined = {name: _joined(path) for name, path in paths.items()}
        named = joined | dict(zip(used, used, strict=True))
        filters = [one.model_copy(update={"column": named[one.column]}) for one in plan.filters]
        plan = plan.model_copy(
            update={
                "table": 1,
                "columns": tuple(named[name] for name in plan.columns),
                "filters": tuple(filters),
                "group_by": named.get(plan.group_by, ""),
            }
        )
        full = self._relation(kind, list(dict.fromkeys(paths.values())))
        for one in used.values():
            full = _with_computed(full, one, joined[one.first], joined[one.second])
        about = [full.columns.index(name) for name in (*plan.columns, plan.group_by) if name]
        return plan, self._distinct(full, meeting(full, plan.filters), plan, about)

    def _relation(self, kind: str, paths: Sequence[ColumnPath]) -> FactRelation:
        columns = [(NAME,), *(path for path in paths if path != (NAME,))]
        rows: list[tuple[FactCell | None, ...]] = []
        things: list[str] = []
        for thing in self.kinds[kind]:
            for cells in self._expanded(thing, columns[1:], ()):
                rows.append((self._name_cell(thing), *(cells.get(path) for path in columns[1:])))
                things.append(thing)
                if len(rows) > MOST_ROWS:
                    raise DoesNotFit(f"its columns have more than {MOST_ROWS:,} rows together")
        types = {
            place: attribute
            for place, path in enumerate(columns)
            if (attribute := self._attribute(kind, path)) is not None
        }
        return FactRelation(
            name=kind,
            columns=tuple(map(_joined, columns)),
            rows=tuple(rows),
            headers={},
            things=tuple(things),
            types=types,
            aliases=self.aliases,
        )

    @staticmethod
    def _distinct(
        full: FactRelation, met: Sequence[int], plan: TablePlan, about: Collection[int]
    ) -> FactRelation:
        """Keep a row for each thing and its different cells in the columns of the plan."""
        by = [full.columns.index(plan.group_by)] if plan.group_by else []
        compared = by if plan.operation == "count" else list(about)
        kept: dict[tuple[object, ...], int] = {}
        for row in met:
            cells = [full.rows[row][column] for column in compared]
            if all(cells):
                kept.setdefault((full.things[row], *(cell.shown for cell in cells if cell)), row)
        rows = list(kept.values())
        return replace(
            full,
            rows=tuple(full.rows[row] for row in rows),
            things=tuple(full.things[row] for row in rows),
        )

    def _path(self, kind: str, written: str) -> ColumnPath:
        """Return the path of a column as a plan writes it. Raises DoesNotFit."""
        path: list[str] = []
        kinds: Sequence[str] = [kind]
        for part in written.split(LEADS_TO):
            columns = [*self._columns(kinds), NAME]
            place = nearest(part, columns)
            if place is None or not kinds:
                of = " or ".join(kinds) or f"thing that {_joined(path)} is not"
                raise DoesNotFit(
                    f"a {of} has no column {part.strip()!r}; it has {', '.join(columns)}"
                )
            path.append(columns[place])
            leading = [self.schema.leaving(one).get(columns[place], ()) for one in kinds]
            kinds = list(dict.fromkeys(end for ends in leading for end in ends))
        # What a relation leads to is shown by its name.
        return tuple(path[:-1] if len(path) > 1 and path[-1] == NAME else path)

    def _attribute(self, kind: str, path: ColumnPath) -> AttributeType | None:
        kinds: Sequence[str] = [kind]
        for step in path[:-1]:
            kinds = [end for one in kinds for end in self.schema.leaving(one).get(step, ())]
        owned = [self.schema.kinds[one].attributes.get(path[-1]) for one in kinds]
        return next(filter(None, owned), None)

    def _expanded(
        self, thing: str, paths: Sequence[ColumnPath], via: tuple[FactCell, ...]
    ) -> list[dict[ColumnPath, FactCell]]:
        """Return the rows of a thing: each combination of the values of its columns.

        Columns that begin with the same relation lead to the same thing in each row.
        """
        rows: list[dict[ColumnPath, FactCell]] = [{}]
        for first in dict.fromkeys(path[0] for path in paths):
            rest = [path[1:] for path in paths if path[0] == first]
            deeper = [path for path in rest if path]
            options: list[dict[ColumnPath, FactCell]] = []
            for cell, target in self._values(thing, first, via):
                here = {(first,): cell} if () in rest else {}
                further = (
                    self._expanded(target, deeper, (*via, cell)) if deeper and target else [{}]
                )
                options += [
                    here | {(first, *path): one for path, one in row.items()} for row in further
                ]
            rows = [row | option for row in rows for option in options or [{}]]
            if len(rows) > MOST_ROWS:
                raise DoesNotFit(f"its columns have more than {MOST_ROWS:,} rows together")
        return rows

    def _values(
        self, thing: str, column: str, via: tuple[FactCell, ...] = ()
    ) -> list[tuple[FactCell, str]]:
        """Return the cells of a column of a thing, and the thing that each leads to (or "")."""
        relations = self.schema.relations
        inverse = {self.schema.inverse(name): name for name in relations}
        if column in inverse:
            facts = self._facts_to.get((thing, inverse[column]), [])
            return [
                (self._cell(fact, self.labels[fact.subject], via), fact.subject)
                for fact in _different(facts, lambda fact: fact.subject)
                if fact.subject in self.labels
            ]
        facts = _different(self._facts.get((thing, column), []), lambda fact: fact.said)
        if column in relations:
            ends = [fact for fact in facts if fact.object in self.labels]
            ends = self._one(thing, column, ends) if relations[column].single else ends
            return [
                (self._cell(fact, self.labels[fact.object or ""], via), fact.object or "")
                for fact in ends
            ]
        facts = self._one(thing, column, facts)
        return [(self._attribute_cell(fact, column, via), "") for fact in facts]

    def _one(self, thing: str, column: str, facts: list[DatedFact]) -> list[DatedFact]:
        """Return the newest of several values where the type has one, and note the others."""
        owners = [self.schema.kinds[kind].attributes[column] for kind in self.schema.owners(column)]
        if len(facts) < 2 or any(attribute.several for attribute in owners):
            return facts
        values = tuple(fact.value for fact in facts)
        self.others[thing, column] = Other(self.labels[thing], column, values)
        return facts[:1]

    # --- cells ---

    def _cell(
        self,
        fact: DatedFact,
        means: str,
        via: tuple[FactCell, ...],
        figure: Amount | None = None,
    ) -> FactCell:
        chunk = self._chunk_of(fact.chunk)
        return FactCell(
            raw=chunk.text[fact.start - chunk.start : fact.end - chunk.start],
            document=fact.document,
            start=fact.start,
            end=fact.end,
            means=means,
            figure=figure,
            day=fact.day,
            chunk=fact.chunk,
            stated=(fact.start - fact.before, fact.end + fact.after),
            via=via,
        )

    def _attribute_cell(self, fact: DatedFact, column: str, via: tuple[FactCell, ...]) -> FactCell:
        if fact.yes is not None:
            return self._cell(fact, "yes" if fact.yes else "no", via)
        if fact.day:
            figure = Amount(0, 0, decimal_year(fact.day), unit=YEARS)
            return self._cell(fact, "", via, figure)
        if fact.number is None:
            return self._cell(fact, "", via)
        written = amount_of(fact.value)
        places = written.places if written and written.number == fact.number else 0
        figure = Amount(0, 0, fact.number, unit=fact.unit, places=places)
        cell = self._cell(fact, "", via, figure)
        bare = amount_of(cell.raw)
        if bare is None or bare.unit or not fact.unit:
            return cell
        return replace(cell, means=f"{cell.raw} {fact.unit}")

    def _name_cell(self, thing: str) -> FactCell:
        own = self.things[thing]
        chunk = self._chunk_of(own.chunk)
        place = own.start - chunk.start, own.end - chunk.start
        around = next(
            (span for span in sentences(chunk.text) if span[0] <= place[0] < span[1]),
            (0, len(chunk.text)),
        )
        return FactCell(
            raw=chunk.text[slice(*place)],
            document=own.document if own.end > own.start else "",
            start=own.start,
            end=own.end,
            means=self.labels[thing],
            chunk=own.chunk,
            stated=(chunk.start + around[0], chunk.start + around[1]),
        )


# --- computed columns ---


def _with_computed(
    relation: FactRelation, wanted: ComputedColumn, first: str, second: str
) -> FactRelation:
    """Return the relation with a further column of figures made of two of its columns.

    Raises DoesNotFit for columns without figures, and for what cannot be computed of them.
    """
    if _folded(wanted.name) in map(_folded, relation.columns):
        raise DoesNotFit(f"{wanted.name!r} is a column already; a computed one needs another name")
    ends = [relation.columns.index(name) for name in (first, second)]
    types = [relation.types.get(place) for place in ends]
    for name, of_column in zip((first, second), types, strict=True):
        if of_column is None or of_column.type not in {"number", "date"}:
            raise DoesNotFit(
                f"{name} holds neither numbers nor dates, and {wanted.name} needs them"
            )
    rows = tuple(
        (*row, _computed_cell(row[ends[0]], row[ends[1]], wanted)) for row in relation.rows
    )
    place = len(relation.columns)
    return replace(
        relation,
        columns=(*relation.columns, wanted.name),
        rows=rows,
        types={**relation.types, place: AttributeType(type="number")},
    )


def _computed_cell(
    first: Cell | None, second: Cell | None, wanted: ComputedColumn
) -> FactCell | None:
    """Return what is computed of two cells; None where one is missing, or the divisor is 0.

    Raises DoesNotFit for units that do not go together.
    """
    if not isinstance(first, FactCell) or not isinstance(second, FactCell):
        return None
    one, other = first.amount, second.amount
    if one is None or other is None:
        return None
    if first.day or second.day:
        if not (first.day and second.day and wanted.operation == "minus"):
            raise DoesNotFit(f"of dates only a difference is computed, not {wanted.name}")
        years = float(years_between(first.day, second.day))
        number, unit, places = (years if one.number >= other.number else -years), YEARS, 0
    elif wanted.operation in {"plus", "minus"}:
        if one.unit != other.unit:
            units = f"{one.unit or 'no unit'} and {other.unit or 'no unit'}"
            raise DoesNotFit(f"{wanted.name} is made of figures in {units}")
        sign = 1 if wanted.operation == "plus" else -1
        number, unit = one.number + sign * other.number, one.unit
        places = max(one.places, other.places)
    elif wanted.operation == "times":
        number, places = one.number * other.number, one.places + other.places
        unit = "·".join(filter(None, [one.unit, other.unit]))
    elif not other.number:
        return None
    else:
        number = one.number / other.number
        places = max(0, FIGURES - 1 - math.floor(math.log10(abs(number)))) if number else 0
        unit = "" if one.unit == other.unit else f"{one.unit}/{other.unit}".rstrip("/")
    figure = Amount(0, 0, number, unit=unit, places=places)
    means = written_figure(number, unit, places)
    return FactCell(raw="", means=means, figure=figure, of=(first, second))


def _different(facts: Sequence[DatedFact], said: Callable[[DatedFact], str]) -> list[DatedFact]:
    """Return the first fact of each that say the same."""
    kept: dict[str, DatedFact] = {}
    for fact in facts:
        kept.setdefault(said(fact), fact)
    return list(kept.values())


def _joined(path: Sequence[str]) -> str:
    return f" {LEADS_TO} ".join(path)


def _named_in(plan: TablePlan) -> list[str]:
    """Return the columns that a plan names, also those that it computes."""
    filtered = [one.column for one in plan.filters]
    return [*plan.columns, *filtered, *([plan.group_by] if plan.group_by else [])]


def _computed_of(plan: TablePlan) -> dict[str, ComputedColumn]:
    """Return the computed columns that a plan uses, by name."""
    named, computed = _named_in(plan), plan.computed if isinstance(plan, FactPlan) else ()
    return {one.name: one for one in computed if one.name in named}


def _columns_asked(plan: TablePlan) -> list[str]:
    """Return the columns of facts that a plan needs."""
    used = _computed_of(plan)
    own = [name for name in _named_in(plan) if name not in used]
    return [*own, *(end for one in used.values() for end in (one.first, one.second))]


def _folded(name: str) -> str:
    return " ".join(fold(name).split())
