"""Which mode answers a question, which one follows if it gives nothing, and what would each of them take?

One decision among the modes: a walk over a graph of triples where that answers, the reports where the question is about
the whole collection, else the search, whose router chooses the structure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from prompts.choose import Choose
from prompts.language.asked import Ask
from storage.records import Mode, ModeDecision, ModeForecast
from tasks.reports.tree import READ_MOST, READ_TOKENS
from tasks.step import step

SEARCH: Mode = "struct"
# Reports speak for a collection where they rest on most of its documents, or on so many.
SPEAK_FOR, MANY_DOCUMENTS = 0.7, 20
TITLES = 12
# What a call takes beside the text that it reads: its instructions, and what it writes.
CALL = 600
# What the steps of a search read at most, in two calls; a portion of reports or texts; the answer's points.
SEARCHED, PORTION, POINTS = 2_300, 3_000, 1_200
# `drift` reads so many reports and sentences near the question, then looks up so much.
PRIMER, SENTENCES, LOOK_UPS, LOOKED_UP = 5, 1_000, 5, 400


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
async def choose(ask: Ask, titles: Sequence[str], walk: Walk | None, sizes: Sizes, chooser: Choose) -> Choice:
    """`walk` is None where the graph has no triples; no call is made where it answers."""
    told = forecasts(sizes)
    if walk is not None and walk.answers:
        return _choice(("traverse", SEARCH), 1.0, f"the graph's triples answer it: {walk.told}", told)
    scope = await chooser.run(ask, list(titles[:TITLES]))
    whole = whole_mode(sizes)
    if scope.about == "whole" and sizes.reports:
        return _choice((whole, SEARCH), scope.confidence, f"about the whole collection: {scope.reason}", told)
    return _choice((SEARCH,), scope.confidence, f"about a part of the documents: {scope.reason}", told)


def whole_mode(sizes: Sizes) -> Mode:
    """Reports alone where they speak for the collection, else what they lead to as well."""
    enough = sizes.reported >= min(MANY_DOCUMENTS, SPEAK_FOR * sizes.documents)
    return "global" if enough else "drift"


def _choice(order: tuple[Mode, ...], confidence: float, reason: str, told: Sequence[ModeForecast]) -> Choice:
    return Choice(order, ModeDecision(mode=order[0], confidence=confidence, reason=reason, forecasts=tuple(told)))


def forecasts(sizes: Sizes) -> list[ModeForecast]:
    """Calls and tokens of the modes that could answer, with a model for every step, the cheapest first.

    From sizes alone: what a mode reads, and the instructions and answers of its calls.
    """
    read = round(min(sizes.depth * sizes.chunk_tokens, SEARCHED))
    texts = round(sizes.chunks * sizes.chunk_tokens)
    reports = round(min(sizes.reports, READ_MOST) * sizes.report_tokens)
    reports, first = min(reports, READ_TOKENS), round(PRIMER * sizes.report_tokens) + SENTENCES
    taken: dict[Mode, tuple[int, int]] = {
        "traverse": (1, 0),
        "naive": (1, read),
        SEARCH: (2, read),
        "ts": (1 + ceil(texts / PORTION), texts),
    }
    if sizes.reports:
        taken["drift"] = (2 + LOOK_UPS, first + LOOK_UPS * LOOKED_UP)
        taken["global"] = (1 + ceil(reports / PORTION), reports + POINTS)
    found = [ModeForecast(mode=mode, calls=calls, tokens=read + calls * CALL) for mode, (calls, read) in taken.items()]
    return sorted(found, key=lambda one: (one.tokens, one.calls, one.mode))
