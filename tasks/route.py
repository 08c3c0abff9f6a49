"""Route: choose a mode for a question, and the structure of its knowledge (StructRAG 2.2)."""

from collections.abc import Sequence

from prompts.choose import Choose
from prompts.engine.helper import helped
from prompts.route import Route, Routed
from prompts.text.evidence import Evidence
from prompts.text.question import ParsedQuestion, is_nested
from storage.answer_records import Mode, ModeDecision, QuestionType, RouteDecision, StructureType
from storage.graph import ReportSizes
from tasks.retrying import BRIEF
from tasks.step import step

AS_THEY_ARE = "the passages are read as they are"
FIRST_UNITS = 12  # pieces of the best passages, which show whether these are rows


def question_type(ask: ParsedQuestion) -> QuestionType:
    """Return PolyG's type: what of (subject, predicate, object) is asked for; nested: several."""
    if ask.form == "compare" or (ask.form in {"fact", "list", "yesno"} and is_nested(ask)):
        return "nested"
    if ask.form == "connect":
        return "s*o"
    if ask.form == "yesno":
        return "spo"
    if ask.form in {"about", "summary", "global", "howto"}:
        return "s**"
    return "sp*"


def core_content(pool: Sequence[Evidence]) -> list[str]:
    """Return the title of each document, or its first piece of text if it has none."""
    first: dict[str, str] = {}
    for piece in pool:
        first.setdefault(piece.document, piece.title or piece.text)
    return list(first.values())


def is_tabular(first: Sequence[Evidence]) -> bool:
    """Whether any of the first pieces of the best passages is a row."""
    return any(piece.cells for piece in first)


@step("route", BRIEF, asks_model=True)
async def choose_structure(
    ask: ParsedQuestion,
    core: Sequence[str],
    tabular: bool,
    router: Route,
    forced: StructureType | None,
) -> RouteDecision:
    """Choose the structure that suits the question, unless the caller forces one.

    `core` is the core content of the documents found; `tabular`: the best passages are rows.
    """
    if forced is not None:
        return RouteDecision(
            type=forced, confidence=1.0, margin=1.0, reason="asked for by the caller"
        )
    as_they_are = Routed(reason=AS_THEY_ARE, structure="chunk", confidence=1.0, margin=1.0)
    routed = await helped(
        router,
        lambda step: step.run(ask, core, tabular),
        AS_THEY_ARE,
        otherwise=lambda: as_they_are,
    )
    return RouteDecision(
        type=routed.structure,
        confidence=routed.confidence,
        margin=routed.margin,
        reason=routed.reason,
    )


# --- the mode -------------------------------------------------------------------------------------

SEARCH: Mode = "struct"
COMPUTED: Mode = "facts"
WHOLE: frozenset[Mode] = frozenset({"global", "drift"})
# Reports speak for a collection if they rest on this share of its documents, or on so many.
SPEAK_FOR, MANY_DOCUMENTS = 0.7, 20
WALK = "the graph's triples answer it"


@step("choose", BRIEF, asks_model=True)
async def choose(
    ask: ParsedQuestion,
    titles: Sequence[str],
    walk: str | None,
    sizes: ReportSizes,
    chooser: Choose,
) -> ModeDecision:
    """Choose a mode: is the question about the whole collection, about a part of it, or about typed
    facts that `chooser` knows?

    `walk` describes a walk over the graph's triples that answers the question, if there is one.
    Then a model is asked at high effort alone or where there are typed facts, and the walk is taken
    unless the model calls it a question about the whole or about facts.
    """
    spared = walk is not None and not chooser.types and chooser.spares(WALK)
    if walk is not None and (chooser.is_offline or spared):
        return ModeDecision(mode="traverse", confidence=1.0, reason=f"{WALK}: {walk}")
    scope = await helped(
        chooser, lambda step: step.run(ask, titles), "the question's wording chooses"
    )
    mode, reason = SEARCH, f"about a part of the documents: {scope.reason}"
    if scope.about == "whole" and sizes.reports:
        mode, reason = whole_mode(sizes), f"about the whole collection: {scope.reason}"
    elif scope.about == "facts":
        mode, reason = COMPUTED, f"computed from typed facts: {scope.reason}"
    elif walk is not None:
        mode, reason = "traverse", f"{WALK}: {walk}"
    return ModeDecision(mode=mode, confidence=scope.confidence, reason=reason)


def whole_mode(sizes: ReportSizes) -> Mode:
    """Read reports alone if they speak for the collection, otherwise what they lead to as well."""
    enough = sizes.reported >= min(MANY_DOCUMENTS, SPEAK_FOR * sizes.documents)
    return "global" if enough else "drift"
