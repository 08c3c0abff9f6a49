"""The page of an evaluation, as HTML that needs nothing else and as Markdown: tables, and answers
side by side.

Templates are rendered by Jinja with everything escaped: questions, answers and names are text,
whatever they hold.
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
from storage.run_records import StepUsage
from tasks.evaluate.measures import MEASURES
from tasks.evaluate.tables import budget_note


class SideBySide(Record):
    """A question with the answers of the best and the worst system, then of the others; each with
    its score.
    """

    id: str
    question: str
    expected: tuple[str, ...]
    gold: tuple[str, ...]
    pair: tuple[tuple[EvaluatedAnswer, float | None], ...]
    others: tuple[tuple[EvaluatedAnswer, float | None], ...]


def html_page(
    report: EvaluationReport, result: EvaluationResult, against: Sequence[MeanScore] = ()
) -> str:
    """The page as one HTML document: no script, nothing loaded, light and dark."""
    return mask_keys(
        _templates().get_template("evaluation.html").render(_context(report, result, against))
    )


def markdown_page(
    report: EvaluationReport, result: EvaluationResult, against: Sequence[MeanScore] = ()
) -> str:
    """The same as Markdown."""
    return mask_keys(
        _templates().get_template("evaluation.md").render(_context(report, result, against))
    )


def evaluation_in_words(report: EvaluationReport) -> str:
    """How the evaluation ended, as one sentence."""
    failed = f", {len(report.errors)} failed answers" if report.errors else ""
    reused = f", {report.reused} answers were there already" if report.reused else ""
    return (
        f"Evaluation {report.number}: {len(report.systems)} systems on {report.questions} "
        f"questions{failed}{reused} ({report.seconds:.1f} s)."
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
        f"The judge: {rates['judgements']} judgements; the answer shown first won "
        f"{rates.get('shown_first', '–')} of the decided ones (.5 is no bias); both orders agree "
        f"in {rates['orders_agree']}{repeats}{people}."
    )


@cache
def _templates() -> Environment:
    folder = PackageLoader("flows.operations", package_path=".")
    templates = Environment(
        loader=folder,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=select_autoescape(["html"]),
    )
    templates.filters |= {"figure": figure, "md": lambda text: plain(str(text)), "short": short}
    return templates


def figure(value: float | None) -> str:
    """A number in a table: as many digits as say something."""
    if value is None or not math.isfinite(value):
        return "–"
    if not value:
        return "0"
    return (
        f"{value:,.0f}"
        if abs(value) >= 100
        else f"{value:.3g}"
        if abs(value) >= 1
        else f"{value:.3f}"
    )


def _context(
    report: EvaluationReport, result: EvaluationResult, against: Sequence[MeanScore]
) -> Mapping[str, object]:
    evaluation = result.evaluation
    systems = [system.name for system in evaluation.systems]
    measures = list(dict.fromkeys(row.measure for row in report.scores))
    first = report.measure
    earlier = {(row.measure, row.system): row for row in against}
    clear = [row for row in report.differences if row.low > 0 or row.high < 0]
    return {
        "report": report,
        "evaluation": evaluation,
        "systems": systems,
        "measures": measures,
        "first": first,
        "means": {(row.measure, row.system): row for row in report.scores},
        "earlier": earlier,
        "budgets": _budgets(report.systems),
        "best": {
            name: _best([row.value for row in report.scores if row.measure == name], name)
            for name in measures
        },
        "finished": evaluation.finished.removesuffix("+00:00").replace("T", " "),
        "described": [
            (system.name, _described(system.model_dump(exclude_defaults=True)))
            for system in report.systems
        ],
        "differences": [row for row in clear if row.measure == first],
        "further": [row for row in clear if row.measure != first],
        "compared": len(report.differences),
        "clear": len(clear),
        "wins": {
            by: {(row.first, row.second): row for row in report.wins if row.by == by}
            for by in dict.fromkeys(row.by for row in report.wins)
        },
        "costs": [(row, _money(row)) for row in report.costs],
        "judge": judge_in_words(report),
        "steps": [
            (row.system, step, spent, _money(spent))
            for row in report.costs
            for step, spent in row.by_step.items()
        ],
        "sides": sides(report, result, first),
    }


def _best(values: Sequence[float], measure: str) -> float | None:
    """The best of several values; None where all are alike, so that none is marked."""
    if len(values) > 1 and min(values) == max(values):
        return None
    return (
        min(values) if measure in MEASURES and not MEASURES[measure].more_is_better else max(values)
    )


def _budgets(systems: Sequence[EvaluatedSystem]) -> str:
    """What the systems that were asked may read, where that is the same for all."""
    asked = [system for system in systems if system.recorded is None]
    kinds = {(system.effort or "medium", system.k) for system in asked}
    if (
        any(
            name.endswith(("_tokens", "context_window"))
            for system in asked
            for name in system.settings
        )
        or not asked
    ):
        return ""
    return (
        budget_note(*kinds.pop())
        if len(kinds) == 1
        else "Effort or k differ: the systems read unequal amounts."
    )


def _described(fields: Mapping[str, object]) -> str:
    parts = {name: value for name, value in fields.items() if name not in {"name", "settings"}}
    settings = fields.get("settings")
    every = parts | (settings if isinstance(settings, dict) else {})
    return ", ".join(f"{name}={value}" for name, value in every.items())


def _money(row: StepUsage) -> str:
    return cost_of(StepUsage(cost_usd=row.cost_usd))


# --- answers side by side ---


def sides(report: EvaluationReport, result: EvaluationResult, measure: str) -> list[SideBySide]:
    """The questions on which systems differ most, with their answers."""
    values = {
        (row.question, row.system): row.value for row in result.scores if row.measure == measure
    }
    questions = {question.id: question for question in result.evaluation.questions}
    rows = []
    for name in report.different:
        own = [
            (row, values.get((name, row.system))) for row in result.answers if row.question == name
        ]
        scored = sorted(
            (pair for pair in own if pair[1] is not None), key=lambda pair: -(pair[1] or 0.0)
        )
        best_and_worst = (scored[0], scored[-1]) if len(scored) > 1 else tuple(scored)
        question = questions[name]
        rows.append(
            SideBySide(
                id=name,
                question=question.question,
                expected=question.answers or question.values,
                gold=question.gold_documents,
                pair=best_and_worst,
                others=tuple(
                    pair for pair in own if all(pair is not shown for shown in best_and_worst)
                ),
            )
        )
    return rows
