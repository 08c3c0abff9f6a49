"""Routing by rules: the wording of the question votes for a structure, the titles of the documents a little."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp
from typing import get_args

from prompts.language.asked import Ask, Form
from prompts.routing.chinese import CHINESE
from prompts.routing.english import ENGLISH
from prompts.routing.signs import Vote, strength, votes
from prompts.routing.titles import title_votes
from prompts.structures.checks import StructureName

STRUCTURES: tuple[StructureName, ...] = get_args(StructureName)
# A question that shows no sign of anything else asks for a single fact.
_SINGLE = Vote("chunk", 1.1, "a single fact")
# Where nothing is asked something is to be written, which is more than a fact.
_REQUEST = Vote("catalogue", 1.4, "asks for an account")
_ASKS = re.compile(
    r"\b(?:who|whom|whose|what|which|when|where|why|how)\b|[?？]|^(?:is|was|are|were|do|does|did|has|have|had|can|may|will)\b|"
    r"哪|谁|什么|多少|几|何|怎|吗|是否|是不是",
    re.I,
)
_BY_FORM: dict[Form, Vote] = {
    "howto": Vote("algorithm", 1.2, "asks how something is done"),
    "compare": Vote("table", 1.5, "compares figures or dates of several things"),
    "connect": Vote("graph", 2.8, "asks how two things are connected"),
    "summary": Vote("catalogue", 1.5, "asks for an overview"),
    "global": Vote("catalogue", 2.0, "asks for an overview"),
    "about": Vote("catalogue", 0.8, "asks what there is to know about one thing"),
    "list": Vote("graph", 0.7, "asks for all things in one relation"),
}


@dataclass(frozen=True)
class RuleRoute:
    """A structure with its share of the votes (0-1), its lead over the next one (0-1), and the strongest votes."""

    structure: StructureName
    confidence: float
    margin: float
    reason: str


def route_offline(ask: Ask, hops: int, core_content: Sequence[str], tabular: bool) -> RuleRoute:
    """By the votes of the question and of the titles; `hops` counts its links, `tabular` says whether the best passages
    are rows."""
    return ranked(ask, hops, core_content, tabular)[0]


def ranked(ask: Ask, hops: int, core_content: Sequence[str], tabular: bool) -> list[RuleRoute]:
    """All structures, the best first: the confidence of each is its share of the softmax over the strengths, its margin
    the lead over the next one."""
    cast: dict[StructureName, list[Vote]] = {structure: [] for structure in STRUCTURES}
    for vote in _votes(ask, hops, core_content, tabular):
        cast[vote.structure].append(vote)
    weights = {structure: exp(strength(given)) for structure, given in cast.items()}
    total = sum(weights.values())
    shares = sorted(((weight / total, structure) for structure, weight in weights.items()), key=lambda s: (-s[0], s[1]))
    following = [*(share for share, _ in shares[1:]), 0.0]
    return [
        RuleRoute(
            structure=structure,
            confidence=round(share, 3),
            margin=round(share - after, 3),
            reason=_reason(cast[structure]),
        )
        for (share, structure), after in zip(shares, following, strict=True)
    ]


def _reason(given: Sequence[Vote]) -> str:
    """The strongest votes in words, at most two."""
    ordered = sorted(given, key=lambda vote: -vote.weight)
    return "; ".join(dict.fromkeys(vote.reason for vote in ordered[:2])) or "nothing speaks for it"


def _votes(ask: Ask, hops: int, core_content: Sequence[str], tabular: bool) -> Iterator[Vote]:
    """What speaks for each structure."""
    yield _SINGLE
    yield from votes(ask.text, CHINESE if ask.chinese else ENGLISH)
    if not _ASKS.search(ask.text):
        yield _REQUEST
    if ask.form in _BY_FORM and not (ask.chinese and ask.form in {"howto", "connect"}):  # the signs tell them better
        yield _BY_FORM[ask.form]
    if hops > 1 and ask.form == "compare":
        yield Vote("graph", 1.0, "what is compared must be found first")
    if hops > 1 and ask.form in {"fact", "list", "yesno"}:
        yield Vote("graph", 1.8 + 0.3 * min(hops, 4), f"a chain of {hops} questions")
    if tabular:
        yield Vote("table", 0.6 if ask.form == "list" else 0.2, "the best passages are rows of a table")
    yield from title_votes(core_content)
