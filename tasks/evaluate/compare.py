"""Comparison of systems by their scores: means with intervals, paired differences, wins, costs.

Intervals are percentile bootstraps over questions (Efron 1979; paired as in Koehn 2004). The seed
is fixed, so the same scores give the same intervals.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, permutations
from typing import Any

import numpy as np

from storage.evaluation_records import (
    EvaluatedAnswer,
    MeanScore,
    PairedDifference,
    Score,
    SystemCost,
    Verdict,
    Wins,
)
from storage.records import by_key
from storage.run_records import StepUsage

RESAMPLES, SEED = 2000, 0
LEVEL = (2.5, 97.5)  # Per cent
_CHUNK = 200  # Resamples at a time, to save memory

# The scores by measure, system and question.
Values = dict[str, dict[str, dict[str, float]]]


def values_of(scores: Iterable[Score]) -> Values:
    """Group scores by measure, system and question; leave out those without a value."""
    values: Values = defaultdict(lambda: defaultdict(dict))
    for score in scores:
        if score.value is not None:
            values[score.measure][score.system][score.question] = score.value
    return values


def mean_scores(values: Values, measures: Sequence[str], systems: Sequence[str]) -> list[MeanScore]:
    """Return the mean of each measure and system, with its 95% interval."""
    return [
        MeanScore(measure=measure, system=system, **_mean(list(own.values())), questions=len(own))
        for measure in measures
        for system in systems
        if (own := values[measure][system])
    ]


def differences(
    values: Values, measures: Sequence[str], systems: Sequence[str]
) -> list[PairedDifference]:
    """Return the mean of first minus second for each measure and pair of systems.

    Only questions with a value for both systems count.
    """
    rows = []
    for measure in measures:
        for first, second in combinations(systems, 2):
            if pairs := paired(values[measure][first], values[measure][second]):
                rows.append(
                    PairedDifference(
                        measure=measure,
                        first=first,
                        second=second,
                        **_mean(pairs),
                        questions=len(pairs),
                    )
                )
    return rows


def paired(first: Mapping[str, float], second: Mapping[str, float]) -> list[float]:
    """Return first minus second for the questions of both."""
    return [first[question] - second[question] for question in first if question in second]


def _mean(values: Sequence[float]) -> dict[str, float]:
    """Return the mean of values and its 95% interval."""
    own, random = np.asarray(values, dtype=float), np.random.default_rng(SEED)
    means = [
        own[random.integers(0, len(own), (_CHUNK, len(own)))].mean(axis=1)
        for _ in range(RESAMPLES // _CHUNK)
    ]
    low, high = np.percentile(np.concatenate(means), LEVEL)
    return {"value": float(np.mean(own)), "low": float(low), "high": float(high)}


def wins_by_measure(
    values: Values, measure: str, systems: Sequence[str], lower: bool
) -> list[Wins]:
    """Count for each ordered pair on how many questions the first system is better."""
    rows = []
    for first, second in permutations(systems, 2):
        gaps = paired(values[measure][first], values[measure][second])
        won, lost = sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)
        if lower:
            won, lost = lost, won
        if gaps:
            ties = len(gaps) - won - lost
            row = Wins(by=measure, first=first, second=second, won=won, lost=lost, ties=ties)
            rows.append(row)
    return rows


def wins_by_judge(verdicts: Iterable[Verdict]) -> list[Wins]:
    """Count the same by the judge's verdicts, for each criterion."""
    counts: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for verdict in verdicts:
        for first, second in permutations((verdict.first, verdict.second)):
            place = 2 if not verdict.winner else 0 if verdict.winner == first else 1
            counts[verdict.criterion, first, second][place] += 1
    return [
        Wins(by=by, first=first, second=second, won=won, lost=lost, ties=ties)
        for (by, first, second), (won, lost, ties) in counts.items()
    ]


def costs(answers: Iterable[EvaluatedAnswer], systems: Sequence[str]) -> list[SystemCost]:
    """Sum up what the answers of each system cost, overall and by step.

    A sum is unknown (None) where the cost of one answer is.
    """
    by_system: dict[str, list[EvaluatedAnswer]] = {system: [] for system in systems}
    for answer in answers:
        by_system[answer.system].append(answer)
    rows = []
    for system, own in by_system.items():
        used = [row.answer.usage for row in own if row.answer is not None]
        steps = by_key(spent for usage in used for spent in usage.by_step.items())
        row = SystemCost(
            system=system,
            answered=len(used),
            failed=len(own) - len(used),
            by_step={step: _summed(spent) for step, spent in steps.items()},
            **dict(_summed(used)),
        )
        rows.append(row)
    return rows


def _summed(used: Sequence[StepUsage]) -> StepUsage:
    total: dict[str, Any] = {
        name: sum(getattr(usage, name) or 0 for usage in used) for name in StepUsage.model_fields
    }
    if any(usage.cost_usd is None for usage in used):
        total["cost_usd"] = None
    return StepUsage(**total)


def most_different(values: Values, measure: str, most: int) -> list[str]:
    """Return the questions whose scores differ between systems, the most different first."""
    by_question = by_key(scored for own in values[measure].values() for scored in own.items())
    spread = {name: (max(own) - min(own), float(np.std(own))) for name, own in by_question.items()}
    differing = (name for name in spread if spread[name][0] > 0)
    return sorted(differing, key=spread.__getitem__, reverse=True)[:most]
