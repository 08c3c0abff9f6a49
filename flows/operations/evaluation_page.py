"""The page of an evaluation, as HTML that needs nothing else and as Markdown: tables, a plot, and answers side by side.

Templates are rendered by Jinja with everything escaped: questions, answers and names are text, whatever they hold.
"""

import math
import string
from collections.abc import Mapping, Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from flows.usage import cost_of, plain, short
from prompts.engine.key_masking import mask_keys
from storage.evaluation_records import (
    EvaluatedAnswer,
    EvaluatedSystem,
    EvaluationReport,
    EvaluationResult,
    MeanScore,
    SystemCost,
)
from storage.records import Record
from storage.run_records import StepUsage
from tasks.evaluate.measures import MEASURES
from tasks.evaluate.tables import budget_note

LABEL = 14  # the height of a name in the plot
COLUMNS, ROWS = 60, 12  # of the plot in characters
LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460, 300, 46, 130, 12, 46


class SideBySide(Record):
    """A question with the answers of the best and the worst system, then of the others; each with its score."""

    id: str
    question: str
    expected: tuple[str, ...]
    gold: tuple[str, ...]
    pair: tuple[tuple[EvaluatedAnswer, float | None], ...]
    others: tuple[tuple[EvaluatedAnswer, float | None], ...]


def html_page(report: EvaluationReport, result: EvaluationResult, against: Sequence[MeanScore] = ()) -> str:
    """The page as one HTML document: no script, nothing loaded, light and dark."""
    return mask_keys(_templates().get_template("evaluation.html").render(_context(report, result, against)))


def markdown_page(report: EvaluationReport, result: EvaluationResult, against: Sequence[MeanScore] = ()) -> str:
    """The same as Markdown, the plot in characters."""
    return mask_keys(_templates().get_template("evaluation.md").render(_context(report, result, against)))


def evaluation_in_words(report: EvaluationReport) -> str:
    """How the evaluation ended, as one sentence."""
    failed = f", {len(report.errors)} failed answers" if report.errors else ""
    reused = f", {report.reused} answers were there already" if report.reused else ""
    return (
        f"Evaluation {report.number}: {len(report.systems)} systems on {report.questions} questions{failed}{reused} "
        f"({report.seconds:.1f} s)."
    )


def judge_in_words(report: EvaluationReport) -> str:
    """How far the judge can be trusted, as one sentence; nothing where there was none."""
    rates = {name: figure(value) for name, value in report.judge.items() if value is not None}
    if not rates:
        return ""
    repeats = f", repeats in {rates['repeats_agree']}" if "repeats_agree" in rates else ""
    people = ""
    if report.judge.get("people"):
        people = f", people with it in {rates['people_agree']} of {rates['people']}"
        people += f" (kappa {rates.get('people_kappa', '–')})"
    return (
        f"The judge: {rates['judgements']} judgements; the answer shown first won {rates.get('shown_first', '–')} of "
        f"the decided ones (.5 is no bias); both orders agree in {rates['orders_agree']}{repeats}{people}."
    )


@cache
def _templates() -> Environment:
    folder = PackageLoader("flows.operations", package_path=".")
    templates = Environment(
        loader=folder, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        autoescape=select_autoescape(["html"]),
    )  # fmt: skip
    templates.filters |= {"figure": figure, "md": lambda text: plain(str(text)), "short": short}
    return templates


def figure(value: float | None) -> str:
    """A number in a table: as many digits as say something."""
    if value is None or not math.isfinite(value):
        return "–"
    if not value:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) >= 1 else f"{value:.3f}"


def _context(report: EvaluationReport, result: EvaluationResult, against: Sequence[MeanScore]) -> Mapping[str, object]:
    evaluation = result.evaluation
    systems = [system.name for system in evaluation.systems]
    measures = list(dict.fromkeys(row.measure for row in report.scores))
    first = report.measure
    earlier = {(row.measure, row.system): row for row in against}
    clear = [row for row in report.differences if row.low > 0 or row.high < 0]
    return {
        "report": report, "evaluation": evaluation, "systems": systems, "measures": measures, "first": first,
        "means": {(row.measure, row.system): row for row in report.scores}, "earlier": earlier,
        "budgets": _budgets(report.systems),
        "best": {name: _best([row.value for row in report.scores if row.measure == name], name) for name in measures},
        "finished": evaluation.finished.removesuffix("+00:00").replace("T", " "),
        "described": [(system.name, _described(system.model_dump(exclude_defaults=True))) for system in report.systems],
        "differences": [row for row in clear if row.measure == first],
        "further": [row for row in clear if row.measure != first], "compared": len(report.differences),
        "clear": len(clear),
        "wins": {by: {(row.first, row.second): row for row in report.wins if row.by == by}
                 for by in dict.fromkeys(row.by for row in report.wins)},
        "costs": [(row, _money(row)) for row in report.costs], "judge": judge_in_words(report),
        "steps": [(row.system, step, spent, _money(spent))
                  for row in report.costs for step, spent in row.by_step.items()],
        "plot": (drawn := plot(report.scores, report.costs, first)), "plot_lines": plot_lines(drawn) if drawn else [],
        "sides": sides(report, result, first),
    }  # fmt: skip


def _best(values: Sequence[float], measure: str) -> float | None:
    """The best of several values; None where all are alike, so that none is marked."""
    if len(values) > 1 and min(values) == max(values):
        return None
    return min(values) if measure in MEASURES and not MEASURES[measure].more_is_better else max(values)


def _budgets(systems: Sequence[EvaluatedSystem]) -> str:
    """What the systems that were asked may read, where that is the same for all."""
    asked = [system for system in systems if system.recorded is None]
    kinds = {(system.effort or "medium", system.k) for system in asked}
    if any(name.endswith(("_tokens", "context_window")) for system in asked for name in system.settings) or not asked:
        return ""
    return budget_note(*kinds.pop()) if len(kinds) == 1 else "Effort or k differ: the systems read unequal amounts."


def _described(fields: Mapping[str, object]) -> str:
    parts = {name: value for name, value in fields.items() if name not in {"name", "settings"}}
    settings = fields.get("settings")
    every = parts | (settings if isinstance(settings, dict) else {})
    return ", ".join(f"{name}={value}" for name, value in every.items())


def _money(row: StepUsage) -> str:
    return cost_of(StepUsage(cost_usd=row.cost_usd))


# --- answers side by side --------------------------------------------------------------------------------------------


def sides(report: EvaluationReport, result: EvaluationResult, measure: str) -> list[SideBySide]:
    """The questions on which systems differ most, with their answers."""
    values = {(row.question, row.system): row.value for row in result.scores if row.measure == measure}
    questions = {question.id: question for question in result.evaluation.questions}
    rows = []
    for name in report.different:
        own = [(row, values.get((name, row.system))) for row in result.answers if row.question == name]
        scored = sorted((pair for pair in own if pair[1] is not None), key=lambda pair: -(pair[1] or 0.0))
        best_and_worst = (scored[0], scored[-1]) if len(scored) > 1 else tuple(scored)
        question = questions[name]
        rows.append(
            SideBySide(
                id=name, question=question.question, expected=question.answers or question.values,
                gold=question.gold_documents, pair=best_and_worst,
                others=tuple(pair for pair in own if all(pair is not shown for shown in best_and_worst)),
            )
        )  # fmt: skip
    return rows


# --- the plot --------------------------------------------------------------------------------------------------------


class PlotPoint(Record):
    """A system in the plot: the place of its mean, of the ends of its interval, and of its name."""

    system: str
    x: float
    y: float
    low: float
    high: float
    label_y: float
    said: str


class Plot(Record):
    """Cost against quality as SVG draws it; `ticks` are (place, figure)."""

    by: str
    measure: str
    points: tuple[PlotPoint, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def plot(scores: Sequence[MeanScore], spent: Sequence[SystemCost], measure: str) -> Plot | None:
    """The mean of a measure, from the lowest interval's end to the highest, against the cost of a question from 0 on:
    dollars where they are known, else tokens, else seconds."""
    means = {row.system: row for row in scores if row.measure == measure}
    rows = [row for row in spent if row.system in means and row.answered and (row.seconds or row.calls)]
    if not rows:
        return None
    by, costs = _cost_axis(rows)
    most, ends = max(costs.values()) or 1.0, [end for row in means.values() for end in (row.low, row.high)]
    low, high = min(ends), max(ends)

    def across(cost: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * cost / most

    def up(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low or 1.0)

    points = []
    for row in rows:
        mean = means[row.system]
        line = f"{row.system}: {measure} {figure(mean.value)}, {figure(costs[row.system])} {by}"
        y = up(mean.value)
        points.append(
            PlotPoint(
                system=row.system, x=across(costs[row.system]), y=y, low=up(mean.low), high=up(mean.high), label_y=y,
                said=line,
            )
        )  # fmt: skip
    return Plot(
        by=by, measure=measure, points=tuple(_labelled(points)),
        x_ticks=tuple((across(cost), figure(cost)) for cost in (0.0, most / 2, most)),
        y_ticks=tuple((up(value), figure(value)) for value in sorted({low, (low + high) / 2, high})),
    )  # fmt: skip


def plot_lines(drawn: Plot) -> list[str]:
    """The plot in characters, a letter for each system; those at one place stand side by side."""
    grid = [[" "] * (COLUMNS + len(drawn.points)) for _ in range(ROWS + 1)]
    names = []
    for number, point in enumerate(drawn.points):
        row, column = _row(drawn, point.y), round(COLUMNS * (point.x - drawn.left) / (drawn.right - drawn.left))
        letter = LETTERS[number % len(LETTERS)]
        grid[row][grid[row].index(" ", column)] = letter
        names.append(" ".join(f"{letter} {point.said}".split()))
    ticks = {_row(drawn, place): said for place, said in drawn.y_ticks}
    rows = [f"{ticks.get(number, ''):>8} |{''.join(row)}".rstrip() for number, row in enumerate(grid)]
    first, middle, last = (said for _, said in drawn.x_ticks)
    below = f"{first:<{COLUMNS // 3}}{middle:^{COLUMNS // 3}}{last:>{COLUMNS // 3}} {drawn.by}"
    return [f"{drawn.measure:>8}", *rows, f"{'':>8} +{'-' * COLUMNS}", f"{'':>10}{below}", "", *names]


def _row(drawn: Plot, y: float) -> int:
    return round(ROWS * (y - drawn.top) / (drawn.bottom - drawn.top))


def _cost_axis(rows: Sequence[SystemCost]) -> tuple[str, dict[str, float]]:
    money = {row.system: row.cost_usd / row.answered for row in rows if row.cost_usd is not None}
    if len(money) == len(rows) and any(money.values()):
        return "US dollars a question", money
    tokens = {row.system: (row.input_tokens + row.output_tokens) / row.answered for row in rows}
    if any(tokens.values()):
        return "tokens a question", tokens
    return "seconds a question", {row.system: row.seconds / row.answered for row in rows}


def _labelled(points: Sequence[PlotPoint]) -> list[PlotPoint]:
    """The points with their names far enough apart to be read: pushed down from the top, and up from the end."""
    rows = sorted(points, key=lambda point: point.y)
    places, last = [], -math.inf
    for point in rows:
        last = max(point.y, last + LABEL)
        places.append(last)
    least = float(HEIGHT - BOTTOM)
    for number in reversed(range(len(places))):  # those that were pushed out below push back
        places[number] = least = min(places[number], least)
        least -= LABEL
    return [point.model_copy(update={"label_y": place}) for point, place in zip(rows, places, strict=True)]
