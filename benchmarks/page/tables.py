"""How are the figures of a set shown as a table? A row for each way of asking; the best of each column is marked."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from benchmarks.compare_records import Cost, Figures, SetFigures
from benchmarks.page.plots import number

BASELINES = frozenset({"direct", "naive", "hyde", "rq", "ts"})


@dataclass(frozen=True)
class Column:
    """A heading, a figure of a way (None where it has none), and whether the lowest is the best."""

    heading: str
    value: Callable[[Figures], float | None]
    lowest: bool
    shown: Callable[[float], str]


def kind_of(one: Figures) -> str:
    """The class that colours a way: `auto`, a baseline of the literature, or another mode."""
    return "auto" if one.way.name == "auto" else "base" if one.way.mode in BASELINES else "mode"


def ways_table(found: SetFigures) -> str:
    """The figures of every way; those that answered nothing (a model is missing) are no match for the best."""
    columns = [column for column in columns_of(found) if any(column.value(one) is not None for one in found.ways)]
    best = {column.heading: _best(column, found) for column in columns}
    head = "".join(f'<th scope="col">{escape(column.heading)}</th>' for column in columns)
    body = []
    for one in found.ways:
        cells = "".join(_cell(column, one, best[column.heading]) for column in columns)
        told = f'<td class="told">{escape(_told(one, found.questions))}</td>'
        shown = f'<tr class="{kind_of(one)}" data-way="{escape(one.way.name)}">'
        body.append(f'{shown}<th scope="row">{escape(one.way.name)}</th>{cells}{told}</tr>')
    rows = "\n".join(body)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="Figures of {escape(found.name)}"><table>\n'
        f'<thead><tr><th scope="col">mode</th>{head}<th scope="col"></th></tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def columns_of(found: SetFigures) -> list[Column]:
    """The set's measures, then costs: offline, and on the scripted server."""
    measures = [Column(one.name, _quality(one.name), False, number) for one in found.measures]
    return [
        *measures,
        Column("calls*", _served(lambda cost: cost.calls), True, lambda value: f"{value:.1f}"),
        Column("tokens in*", _served(lambda cost: cost.input_tokens), True, lambda value: f"{value:,.0f}"),
        Column("tokens out*", _served(lambda cost: cost.output_tokens), True, lambda value: f"{value:,.0f}"),
        Column("ms, median", _offline(lambda cost: 1000 * cost.seconds_median), True, lambda value: f"{value:,.0f}"),
        Column("ms, 90%", _offline(lambda cost: 1000 * cost.seconds_90), True, lambda value: f"{value:,.0f}"),
        Column("CPU ms", _offline(lambda cost: cost.cpu_ms), True, lambda value: f"{value:,.0f}"),
    ]


def _quality(name: str) -> Callable[[Figures], float | None]:
    return lambda one: one.quality.get(name)


def _served(figure: Callable[[Cost], float]) -> Callable[[Figures], float | None]:
    return lambda one: None if one.served is None else figure(one.served)


def _offline(figure: Callable[[Cost], float]) -> Callable[[Figures], float | None]:
    return lambda one: None if one.asked is None else figure(one.asked)


def _best(column: Column, found: SetFigures) -> float | None:
    values = [value for one in found.ways if found.is_whole(one) and (value := column.value(one)) is not None]
    return (min if column.lowest else max)(values, default=None)


def _cell(column: Column, one: Figures, best: float | None) -> str:
    value = column.value(one)
    if value is None:
        return "<td>–</td>"
    marked = ' class="best"' if value == best and one.asked is not None else ""
    return f"<td{marked}>{escape(column.shown(value))}</td>"


def _told(one: Figures, questions: int) -> str:
    if one.asked is None:
        return "needs a model"
    reached = one.asked.questions + one.failed
    parts = [f"only the first {reached} asked: too slow"] if reached < questions else []
    parts += [f"{one.failed} failed: {one.problem}"] if one.failed else []
    parts += [f"{one.reports:.0f} reports read"] if one.reports else []
    return "; ".join(parts)
