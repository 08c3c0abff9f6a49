"""Choose: the mode that answers a question.

One decision among the modes: a walk over a graph of triples where that answers, the reports where the question is about
the whole collection, else the search, whose router chooses the structure.
"""

from collections.abc import Sequence

from prompts.choose import Choose
from prompts.text.question import ParsedQuestion
from storage.answer_records import Mode, ModeDecision
from storage.graph import ReportSizes
from tasks.step import BRIEF, step

SEARCH: Mode = "struct"
WHOLE: frozenset[Mode] = frozenset({"global", "drift"})
# Reports speak for a collection where they rest on most of its documents, or on so many.
SPEAK_FOR, MANY_DOCUMENTS = 0.7, 20
WALK = "the graph's triples answer it"


@step("choose", BRIEF, asks_model=True)
async def choose(
    ask: ParsedQuestion, titles: Sequence[str], walk: str | None, sizes: ReportSizes, chooser: Choose
) -> ModeDecision:
    """Whether the question is about the whole collection or a part of it.

    `walk` says along what a walk over the graph's triples comes to an answer; None: there is no such walk. Then no
    model is asked, except at high effort: then it is walked unless the question is about the whole.
    """
    if walk is not None and (chooser.is_offline or chooser.spares(WALK)):
        return ModeDecision(mode="traverse", confidence=1.0, reason=f"{WALK}: {walk}")
    scope = await chooser.run(ask, titles)
    mode, reason = SEARCH, f"about a part of the documents: {scope.reason}"
    if scope.about == "whole" and sizes.reports:
        mode, reason = whole_mode(sizes), f"about the whole collection: {scope.reason}"
    elif walk is not None:
        mode, reason = "traverse", f"{WALK}: {walk}"
    return ModeDecision(mode=mode, confidence=scope.confidence, reason=reason)


def whole_mode(sizes: ReportSizes) -> Mode:
    """Reports alone where they speak for the collection, else what they lead to as well."""
    enough = sizes.reported >= min(MANY_DOCUMENTS, SPEAK_FOR * sizes.documents)
    return "global" if enough else "drift"
