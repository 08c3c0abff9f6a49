"""Which mode does `auto` follow? One decision for each question, made before anything is searched.

walk the triples, if there are any ─ choose ─ answer ─ (nothing found) the next mode
"""

from collections.abc import Sequence
from dataclasses import replace

from flows.asking_view import View
from flows.traversing import traversed
from prompts.choose import Choose
from prompts.engine.models import Models
from prompts.reading.evidence import Evidence
from prompts.reading.gist import Gist
from storage.records import Citation, Mode, ModeDecision
from tasks.choose import SEARCH, Choice, Sizes, Walk, choose
from tasks.route import depth

HALF = 0.5


async def chosen(view: View, models: Models) -> Choice:
    """The mode for the question, and those that follow where it gives nothing.

    A structure or documents that the caller names are searched: there the router decides.
    """
    if view.options.structure is not None or view.options.documents is not None:
        decision = ModeDecision(mode=SEARCH, confidence=1.0, reason="what the caller names is searched")
        return Choice((SEARCH,), decision)
    walk = await _walk(view)
    return await choose(view.taken, _titles(view), walk, _sizes(view), Choose(models), len(view.links))


async def _walk(view: View) -> Walk | None:
    """What a walk by rules alone gives; None where the question names something that texts speak of too, or nothing:
    there the search reads both."""
    alone = view.session.triples_alone
    named = view.session.ground.graph.spellings.named(view.question) if alone else []
    if not named or any(not alone.issuperset(one.entities) for one in named if not one.doubtful):
        return None
    found = await traversed(view, [view.question], Models.offline())
    answers = found.reading is not None and found.reading.support != "abstained"
    return Walk(answers, f"{found.route.reason} ({len(found.subquestions)} steps)")


def _titles(view: View) -> list[str]:
    return list(dict.fromkeys(chunk.title for chunk in view.session.sample if chunk.title))


def _sizes(view: View) -> Sizes:
    session, reports = view.session, view.session.report_sizes
    return Sizes(
        chunks=len(session.index.chunks),
        chunk_tokens=session.passage_tokens,
        reports=reports.reports,
        report_tokens=reports.signs * session.tokens_a_sign,
        depth=depth(view.taken, view.options.k),
        documents=len(session.index.documents),
        reported=reports.documents,
    )


def speaks_to(view: View, citations: Sequence[Citation]) -> bool:
    """Whether what a second mode cites is about the question: one quote has half of what it asks for, if it asks for
    anything but what there is."""
    if Gist(view.relevance).of_all:
        return True
    quoted = (Evidence(place, one.document, one.title, one.quote) for place, one in enumerate(citations))
    return any(view.relevance.judge(piece).coverage >= HALF for piece in quoted)


def in_mode(view: View, mode: Mode) -> View:
    """The question as it is asked in a mode that was chosen; the search stays that of `auto`."""
    return view if mode == SEARCH else replace(view, options=replace(view.options, mode=mode))
