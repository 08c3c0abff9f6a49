"""Choose: the mode that answers a question, the one that follows if it gives nothing, and what each would take.

One decision among the modes: a walk over a graph of triples where that answers, the reports where the question is about
the whole collection, else the search, whose router chooses the structure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from prompts.choose import Choose
from prompts.engine.calls import fitting
from prompts.engine.effort import Policy
from prompts.text.question import ParsedQuestion
from storage.answer_records import Mode, ModeDecision, ModeForecast
from tasks.reports.points import LOOK_UPS
from tasks.reports.select import reach_of
from tasks.step import step

SEARCH: Mode = "struct"
# Reports speak for a collection where they rest on most of its documents, or on so many.
SPEAK_FOR, MANY_DOCUMENTS = 0.7, 20
WALK = "the graph's triples answer it"
# What a call takes beside the text that it reads: its instructions, and what it writes.
CALL = 1_000
# `drift` reads so many reports and sentences near the question first.
PRIMER, SENTENCES = 5, 1_000


@dataclass(frozen=True)
class Walk:
    """What a walk over the graph would give: whether it is an answer by triples alone, and how it would be told."""

    answers: bool
    told: str


@dataclass(frozen=True)
class Sizes:
    """What there is to read: passages and reports with their mean tokens, how many passages a search reads, documents,
    and on how many of them the reports rest."""

    chunks: int
    chunk_tokens: float
    reports: int
    report_tokens: float
    depth: int
    documents: int
    reported: int


@dataclass(frozen=True)
class Choice:
    """The modes in the order in which they are tried, and the decision for the first."""

    order: tuple[Mode, ...]
    decision: ModeDecision


@step("choose")
async def choose(
    ask: ParsedQuestion, titles: Sequence[str], walk: Walk | None, sizes: Sizes, chooser: Choose
) -> Choice:
    """`walk` is None where the graph has no triples.

    Where it answers no model is asked, except at high effort: then it is walked unless the question is about the whole.
    """
    told = forecasts(sizes, chooser.policy)
    walks = walk is not None and walk.answers
    if walk is not None and walks and (chooser.is_offline or chooser.spares(WALK)):
        return _choice(("traverse", SEARCH), 1.0, f"{WALK}: {walk.told}", told)
    scope = await chooser.run(ask, fitting(titles, chooser.policy.limits.rate))
    if scope.about == "whole" and sizes.reports:
        return _choice(
            (whole_mode(sizes), SEARCH), scope.confidence, f"about the whole collection: {scope.reason}", told
        )
    if walk is not None and walks:
        return _choice(("traverse", SEARCH), scope.confidence, f"{WALK}: {walk.told}", told)
    return _choice((SEARCH,), scope.confidence, f"about a part of the documents: {scope.reason}", told)


def whole_mode(sizes: Sizes) -> Mode:
    """Reports alone where they speak for the collection, else what they lead to as well."""
    enough = sizes.reported >= min(MANY_DOCUMENTS, SPEAK_FOR * sizes.documents)
    return "global" if enough else "drift"


def _choice(order: tuple[Mode, ...], confidence: float, reason: str, told: Sequence[ModeForecast]) -> Choice:
    return Choice(order, ModeDecision(mode=order[0], confidence=confidence, reason=reason, forecasts=tuple(told)))


def forecasts(sizes: Sizes, policy: Policy) -> list[ModeForecast]:
    """Calls and tokens of the modes that could answer, with a model for every step, the cheapest first.

    From sizes alone: what a mode reads at this effort, and the instructions and answers of its calls.
    """
    limits = policy.limits
    read = round(min(sizes.depth * sizes.chunk_tokens, limits.answer))
    texts = round(sizes.chunks * sizes.chunk_tokens)
    reports = min(round(sizes.reports * sizes.report_tokens), reach_of(policy).tokens)
    first, look_ups = round(PRIMER * sizes.report_tokens) + SENTENCES, LOOK_UPS[policy.effort].most
    points = min(limits.points, texts)
    # Before a search answers it may choose the mode, route, structurize and decompose.
    before = {"low": 0, "medium": 2, "high": 5}[policy.effort]
    taken: dict[Mode, tuple[int, int]] = {
        "traverse": (1 + (policy.effort == "high"), read // 4),
        "naive": (1, read),
        SEARCH: (1 + before, read * (2 if before else 1)),
        "ts": (1 + ceil(texts / limits.map), texts + points),
    }
    if sizes.reports:
        taken["drift"] = (2 + look_ups, first + look_ups * limits.part + points)
        taken["global"] = (1 + ceil(reports / limits.map), reports + points)
    found = [ModeForecast(mode=mode, calls=calls, tokens=read + calls * CALL) for mode, (calls, read) in taken.items()]
    return sorted(found, key=lambda one: (one.tokens, one.calls, one.mode))
