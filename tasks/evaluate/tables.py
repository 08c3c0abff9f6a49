"""Scores and verdicts in the form of published tables: systems as rows, measures as columns."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import mean
from typing import Literal

from prompts.engine.effort import Effort, Policy
from storage.errors import UsageError, did_you_mean
from storage.evaluation_records import EvaluationResult
from tasks.evaluate.judge import win_rates

Cells = dict[str, float | None]
ALL = "all"


@dataclass(frozen=True)
class PublishedTable:
    """A table of a paper: its measures (none: shares of won verdicts), and how it is split."""

    source: str
    measures: tuple[str, ...] = ()
    by: Literal["kind", "group", ""] = ""


# The final scores of a table of routers; the first that was measured counts.
_FINAL = ("loong_score", "f1", "exact_match", "answer_in_text")
_ROWS = tomllib.loads(files("tasks.evaluate").joinpath("tables.toml").read_text(encoding="utf-8"))
TABLES: Mapping[str, PublishedTable] = {
    name: PublishedTable(row["source"], tuple(row.get("measures", ())), row.get("by", ""))
    for name, row in _ROWS.items()
}


def published_table(name: str, result: EvaluationResult) -> dict[str, Cells]:
    """Return the rows of a table of TABLES.

    A cell is a system's mean over the questions of a column (None: nothing was scored), or the
    share of verdicts that a system won, or that were ties.
    """
    if name not in TABLES:
        near = did_you_mean(name, TABLES)
        raise UsageError(
            f"There is no table {name!r}.", f"{near}The tables are {', '.join(TABLES)}."
        )
    table, scores = TABLES[name], result.scores
    if name == "structrag_router":
        return router_effect(result)
    if not table.measures:
        return {criterion: dict(rates) for criterion, rates in win_rates(result.verdicts).items()}
    part = {
        question.id: getattr(question, table.by) if table.by else ""
        for question in result.evaluation.questions
    }
    parts = [*dict.fromkeys(filter(None, part.values())), ALL]
    measured = {score.measure for score in scores}
    return {
        system: {
            f"{measure}, {own}" if table.by else measure: _mean(
                [
                    score.value
                    for score in scores
                    if (score.system, score.measure) == (system, measure)
                    and score.question in part
                    and own in {ALL, part[score.question]}
                    and score.value is not None
                ]
            )
            for own in parts
            for measure in table.measures
            if measure in measured
        }
        for system in dict.fromkeys(score.system for score in scores)
    }


def router_effect(result: EvaluationResult) -> dict[str, Cells]:
    """Return what a router's accuracy does for the final score (StructRAG, section 5).

    The rows are each system that routes, and routers that draw by lot, are never right or always
    right. The right structures of a question are those whose answers score best among the systems
    with a fixed `structure`. Questions count that all of these answered, for accuracy only where
    their scores differ. UsageError without such systems.
    """
    measured = {row.measure for row in result.scores}
    measure = next((name for name in _FINAL if name in measured), "")
    fixed = {
        row.name: row.structure for row in result.evaluation.systems if row.structure is not None
    }
    if not measure or len(fixed) < 2:
        raise UsageError(
            "The effect of a router is seen beside systems that use one structure for all "
            "questions.",
            "Evaluate mode=struct beside mode=struct,structure=table,name=table and the other "
            "structures.",
        )
    values: dict[str, dict[str, float]] = {}
    for row in result.scores:
        if row.measure == measure and row.value is not None:
            values.setdefault(row.question, {})[row.system] = row.value
    asked = {name: own for name, own in values.items() if fixed.keys() <= own.keys()}
    scored = {name: [own[system] for system in fixed] for name, own in asked.items()}
    right = {
        name: {fixed[system] for system in fixed if own[system] == max(scored[name])}
        for name, own in asked.items()
    }
    differing = {name for name, own in scored.items() if min(own) < max(own)}
    rows: dict[str, Cells] = {}
    for system in result.evaluation.systems:
        routed = {
            row.question: row.answer.trace.route.type
            for row in result.answers
            if row.system == system.name and row.question in asked and row.answer
        }
        if system.mode == "struct" and routed:
            hits = [float(routed[name] in right[name]) for name in routed if name in differing]
            final = [asked[name][system.name] for name in routed if system.name in asked[name]]
            rows[system.name] = {"accuracy": _mean(hits), measure: _mean(final)}
    wrong = [[value for value in own if value < max(own)] or own for own in scored.values()]
    rows["by lot"] = {
        "accuracy": _mean([len(right[name]) / len(set(fixed.values())) for name in differing]),
        measure: _mean([mean(own) for own in scored.values()]),
    }
    rows["never right"] = {"accuracy": 0.0, measure: _mean([mean(own) for own in wrong])}
    rows["always right"] = {"accuracy": 1.0, measure: _mean([max(own) for own in scored.values()])}
    return rows


def _mean(values: Sequence[float]) -> float | None:
    return mean(values) if values else None


def budget_note(effort: Effort = "medium", k: int | None = None) -> str:
    """Describe what every system of a comparison may read."""
    limits = Policy.of(effort).limits
    passages = "as many passages as fit" if k is None else f"at most {k} passages"
    return (
        f"Equal budgets: effort {effort}, at most {limits.answer:,} tokens of evidence for an "
        f"answer, {limits.map:,} for each call that reads reports or texts, {passages}."
    )
