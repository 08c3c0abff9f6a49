"""Which knowledge structure does the question get? (StructRAG, section 2.2)"""

from collections.abc import Sequence

from prompts.language.asked import Ask
from prompts.reading.chains import chain
from prompts.reading.entail import Hypothesis
from prompts.route import TRY_BOTH, Route, Routed, ranked
from storage.records import QuestionType, RouteDecision, StructureType
from tasks.evidence import Pool
from tasks.step import step


def question_type(ask: Ask, hops: int) -> QuestionType:
    """PolyG's type: what of (subject, predicate, object) is missing; nested where one question holds several."""
    if ask.form == "compare" or (hops > 1 and ask.form in {"fact", "list", "yesno"}):
        return "nested"
    if ask.form == "connect":
        return "s*o"
    if ask.form == "yesno":
        return "spo"
    if ask.form in {"about", "summary", "global", "howto"}:
        return "s**"
    return "sp*"


def core_content(pool: Pool, limit: int = 40) -> list[str]:
    """Titles of the documents, or their first sentences where they have none."""
    first: dict[str, str] = {}
    for piece in pool.evidence:
        first.setdefault(piece.document, piece.title or piece.text)
    return list(first.values())[:limit]


def by_rules(ask: Ask, pool: Pool) -> list[Routed]:
    """All structures as the rules see them, the best first."""
    return ranked(ask, hop_count(ask), core_content(pool), is_tabular(pool))


def is_tabular(pool: Pool) -> bool:
    """Whether there are rows among the best passages."""
    return any(piece.cells for piece in pool.evidence[:12])


@step("route")
async def choose_structure(ask: Ask, pool: Pool, router: Route, forced: StructureType | None) -> RouteDecision:
    """The structure with confidence, margin and reason, and where the margin is small a second one to try.

    A structure that the caller asks for is taken, and no other is tried.
    """
    if forced is not None:
        return RouteDecision(type=forced, confidence=1.0, margin=1.0, reason="asked for by the caller")
    routed = await router.run(ask, hop_count(ask), core_content(pool), is_tabular(pool))
    return RouteDecision(
        type=routed.structure,
        confidence=routed.confidence,
        margin=routed.margin,
        reason=routed.reason,
        second=second_choice(routed, by_rules(ask, pool)),
    )


def second_choice(routed: Routed, ordered: Sequence[Routed]) -> StructureType | None:
    """What is tried beside the chosen structure: the best other one by the rules, where the lead is small."""
    if routed.margin >= TRY_BOTH:
        return None
    return next(other.structure for other in ordered if other.structure != routed.structure)


def hop_count(ask: Ask) -> int:
    """How many questions a question holds."""
    return 1 if ask.chinese else len(chain(ask.text))


def hypothesis_of(ask: Ask) -> Hypothesis:
    """What a passage must do to be kept: answer a plain question, or help with one that needs several passages."""
    return "strong" if ask.form == "fact" and hop_count(ask) == 1 else "weak"


def depth(ask: Ask, k: int) -> int:
    """How many passages a question of this form reads."""
    wide = {"global": 40, "summary": 24, "compare": 24, "list": 24, "connect": 16}
    return max(k, wide.get(ask.form, 12))
