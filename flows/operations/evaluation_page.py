"""The page of an evaluation: tables, and answers side by side, as HTML or Markdown.

Questions, answers and names are untrusted text: Jinja escapes them in HTML, the filter `md` in
Markdown.
"""

import math
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
)
from storage.records import Record
from tasks.evaluate.measures import MEASURES
from tasks.evaluate.tables import budget_note

ScoredAnswer = tuple[EvaluatedAnswer, float | None]


class SideBySide(Record):
    """A question with the best and the worst answer (`pair`), then the others, with their
    scores.
    """

    question: str
    expected: tuple[str, ...]
    gold: tuple[str, ...]
    pair: tuple[ScoredAnswer, ...]
    others: tuple[ScoredAnswer, ...]


def html_page(
    report: EvaluationReport, result: EvaluationResult, against: Sequence[MeanScore] = ()
) -> str:
    """Return the page as one HTML document, without scripts or anything to load."""
    return _rendered("evaluation.html", report, result, against)


def markdown_page(
    report: EvaluationReport, result: EvaluationResult, against: Sequence[MeanScore] = ()
) -> str:
    """Return the page as Markdown."""
    return _rendered("evaluation.md", report, result, against)


def _rendered(
    template: str,
    report: EvaluationReport,
    result: EvaluationResult,
    against: Sequence[MeanScore],
) -> str:
    context = _context(report, result, against)
    return mask_keys(_templates().get_template(template).render(context))


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("flows.operations", package_path="."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=select_autoescape(["html"]),
    )
    templates.filters |= {
        "thousands": lambda number: f"{number:,}",
        "figure": figure,
        "md": lambda text: plain(str(text)),
        "short": short,
    }
    return templates


def evaluation_in_words(report: EvaluationReport) -> str:
    """Return how an evaluation ended, as a sentence."""
    failed = f", {len(report.errors)} failed answers" if report.errors else ""
    reused = f", {report.reused} answers were there already" if report.reused else ""
    return (
        f"Evaluation {report.number}: {len(report.systems)} systems on {report.questions} "
        f"questions{failed}{reused} ({report.seconds:.1f} s)."
    )


def judge_in_words(report: EvaluationReport) -> str:
    """Return how reliable the judge is, as a sentence; empty where there was none."""
    rates = {name: figure(value) for name, value in report.judge.items() if value is not None}
    if not rates:
        return ""
    repeats = f", repeats in {rates['repeats_agree']}" if "repeats_agree" in rates else ""
    people = ""
    if report.judge.get("people"):
        people = f", people with it in {rates['people_agree']} of {rates['people']}"
        people += f" (kappa {rates.get('people_kappa', '–')})"
    return (
        f"The judge: {rates['judgements']} judgements; the answer shown first won "
        f"{rates.get('shown_first', '–')} of the decided ones (.5 is no bias); both orders agree "
        f"in {rates['orders_agree']}{repeats}{people}."
    )


def figure(value: float | None) -> str:
    """Return a number for a table, with three significant digits or so."""
    if value is None or not math.isfinite(value):
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 1:
        return f"{value:.3g}"
    return f"{value:.3f}" if value else "0"


def _context(
    report: EvaluationReport, result: EvaluationResult, against: Sequence[MeanScore]
) -> Mapping[str, object]:
    evaluation = result.evaluation
    measures = list(dict.fromkeys(row.measure for row in report.scores))
    first = report.measure
    clear = [row for row in report.differences if row.low > 0 or row.high < 0]
    return {
        "report": report,
        "systems": [system.name for system in evaluation.systems],
        "measures": measures,
        "first": first,
        "means": {(row.measure, row.system): row for row in report.scores},
        "earlier": {(row.measure, row.system): row for row in against},
        "budgets": _budgets(report.systems),
        "best": {
            name: _best([row.value for row in report.scores if row.measure == name], name)
            for name in measures
        },
        "finished": evaluation.finished.removesuffix("+00:00").replace("T", " "),
        "described": [(system.name, _described(system)) for system in report.systems],
        "differences": [row for row in clear if row.measure == first],
        "further": [row for row in clear if row.measure != first],
        "compared": len(report.differences),
        "clear": len(clear),
        "wins": {
            by: {(row.first, row.second): row for row in report.wins if row.by == by}
            for by in dict.fromkeys(row.by for row in report.wins)
        },
        "costs": [(row, cost_of(row)) for row in report.costs],
        "judge": judge_in_words(report),
        "steps": [
            (row.system, step, spent, cost_of(spent))
            for row in report.costs
            for step, spent in row.by_step.items()
        ],
        "sides": _sides(report, result, first),
    }


def _best(values: Sequence[float], measure: str) -> float | None:
    """Return the best value; None where all are equal, so that none is marked."""
    if len(values) > 1 and min(values) == max(values):
        return None
    less_is_better = measure in MEASURES and not MEASURES[measure].more_is_better
    return min(values) if less_is_better else max(values)


def _budgets(systems: Sequence[EvaluatedSystem]) -> str:
    """Return how much evidence the systems may read; empty where that cannot be said."""
    asked = [system for system in systems if system.recorded is None]
    names = [name for system in asked for name in system.settings]
    if not asked or any(name.endswith(("_tokens", "context_window")) for name in names):
        return ""
    budgets = {(system.effort or "medium", system.k) for system in asked}
    if len(budgets) > 1:
        return "Effort or k differ: the systems read unequal amounts."
    return budget_note(*budgets.pop())


def _described(system: EvaluatedSystem) -> str:
    fields = system.model_dump(exclude_defaults=True, exclude={"name", "settings"})
    return ", ".join(f"{name}={value}" for name, value in (fields | system.settings).items())


def _sides(report: EvaluationReport, result: EvaluationResult, measure: str) -> list[SideBySide]:
    """Return the questions on which the systems differ most, with their answers."""
    values = {
        (row.question, row.system): row.value for row in result.scores if row.measure == measure
    }
    questions = {question.id: question for question in result.evaluation.questions}
    rows = []
    for name in report.different:
        question = questions[name]
        answers: list[ScoredAnswer] = [
            (row, values.get((name, row.system))) for row in result.answers if row.question == name
        ]
        scored = [(row, value) for row, value in answers if value is not None]
        scored.sort(key=lambda answer: -answer[1])
        pair = [scored[0], scored[-1]] if len(scored) > 1 else scored
        shown = {row.system for row, _ in pair}
        rows.append(
            SideBySide(
                question=question.question,
                expected=question.answers or question.values,
                gold=question.gold_documents,
                pair=tuple(pair),
                others=tuple(answer for answer in answers if answer[0].system not in shown),
            )
        )
    return rows
