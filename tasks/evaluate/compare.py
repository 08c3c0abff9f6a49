"""Comparison of systems by their scores: means with confidence intervals, paired differences and a
win matrix.

Intervals are percentile bootstraps over questions (Efron 1979; paired as in Koehn 2004): the same
questions are drawn for all systems, with a seed, so that the same scores give the same intervals.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

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

RESAMPLES = 2000
LEVEL = (2.5, 97.5)  # per cent
_CHUNK = 200  # resamples at a time: memory stays small where questions are many

# By measure and system: the value of each question that has one.
Values = dict[str, dict[str, dict[str, float]]]


def values_of(scores: Iterable[Score]) -> Values:
    """The scores by measure, system and question; what has no value is not in it."""
    values: Values = defaultdict(lambda: defaultdict(dict))
    for score in scores:
        if score.value is not None:
            values[score.measure][score.system][score.question] = score.value
    return values


def mean_scores(
    values: Values, measures: Sequence[str], systems: Sequence[str], seed: int = 0
) -> list[MeanScore]:
    """For each measure and system the mean over the questions that have a value, with its 95%
    interval.
    """
    return [
        MeanScore(
            measure=measure, system=system, **_mean(list(own.values()), seed), questions=len(own)
        )
        for measure in measures
        for system in systems
        if (own := values[measure][system])
    ]


def differences(
    values: Values, measures: Sequence[str], systems: Sequence[str], seed: int = 0
) -> list[PairedDifference]:
    """For each measure and pair the mean of first minus second over the questions that both have a
    value for.
    """
    rows = []
    for measure in measures:
        for first, second in combinations(systems, 2):
            if pairs := paired(values[measure][first], values[measure][second]):
                mean = _mean(pairs, seed)
                row = PairedDifference(
                    measure=measure, first=first, second=second, **mean, questions=len(pairs)
                )
                rows.append(row)
    return rows


def paired(first: Mapping[str, float], second: Mapping[str, float]) -> list[float]:
    """First minus second, for the questions of both."""
    return [first[question] - second[question] for question in first if question in second]


def _mean(values: Sequence[float], seed: int) -> dict[str, float]:
    low, high = interval(np.asarray(values, dtype=float), seed)
    return {"value": float(np.mean(values)), "low": low, "high": high}


def interval(values: NDArray[np.float64], seed: int) -> tuple[float, float]:
    """The 95% interval of the mean."""
    random = np.random.default_rng(seed)
    means = [
        values[random.integers(0, len(values), (_CHUNK, len(values)))].mean(axis=1)
        for _ in range(RESAMPLES // _CHUNK)
    ]
    low, high = np.percentile(np.concatenate(means), LEVEL)
    return float(low), float(high)


def wins_by_measure(
    values: Values, measure: str, systems: Sequence[str], lower: bool
) -> list[Wins]:
    """How often the first is better than the second by a measure, question by question."""
    rows = []
    for first, second in permutations(systems, 2):
        gaps = [
            -gap if lower else gap
            for gap in paired(values[measure][first], values[measure][second])
        ]
        won, lost = sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)
        if gaps:
            rows.append(
                Wins(
                    by=measure,
                    first=first,
                    second=second,
                    won=won,
                    lost=lost,
                    ties=len(gaps) - won - lost,
                )
            )
    return rows


def wins_by_judge(verdicts: Iterable[Verdict]) -> list[Wins]:
    """The same by the judge's verdicts, one matrix a criterion."""
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
    """What each system took in sum; a cost that is unknown for one answer is unknown in sum."""
    by_system: dict[str, list[EvaluatedAnswer]] = {system: [] for system in systems}
    for answer in answers:
        by_system[answer.system].append(answer)
    rows = []
    for system, own in by_system.items():
        used = [row.answer.usage for row in own if row.answer is not None]
        steps = by_key(spent for usage in used for spent in usage.by_step.items())
        total = {
            **dict(summed(used)),
            "by_step": {step: summed(spent) for step, spent in steps.items()},
        }
        rows.append(
            SystemCost(system=system, answered=len(used), failed=len(own) - len(used), **total)
        )
    return rows


def summed(used: Sequence[StepUsage], times: float = 1.0) -> StepUsage:
    """So many times the sum; a cost that is unknown for one is unknown in sum."""
    total = {
        name: sum(getattr(usage, name) or 0 for usage in used) * times
        for name in StepUsage.model_fields
    }
    whole = {
        name: round(total[name])
        for name in ("calls", "cached_calls", "input_tokens", "output_tokens")
    }
    known = all(usage.cost_usd is not None for usage in used)
    return StepUsage(
        **whole, seconds=total["seconds"], cost_usd=total["cost_usd"] if known else None
    )


def most_different(values: Values, measure: str, most: int) -> list[str]:
    """The questions whose scores lie farthest apart between systems, the farthest first; none that
    all score alike.
    """
    by_question = by_key(scored for own in values[measure].values() for scored in own.items())
    spread = {name: (max(own) - min(own), float(np.std(own))) for name, own in by_question.items()}
    ranked = sorted(
        (name for name in spread if spread[name][0] > 0),
        key=lambda name: spread[name],
        reverse=True,
    )
    return ranked[:most]
