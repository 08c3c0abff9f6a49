"""Is a question about a whole collection, or about a part of it? (GraphRAG, section 1: global sensemaking)

"What do the guests worry about?" is about all that was said; "What did Ana Korb worry about in 1931?" about one thing.
A log-linear model over wordings, single words and names; `python -m benchmarks.auto_weights` fits it.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from math import exp

from prompts.language.asked import Ask
from prompts.language.spans import names_of
from prompts.language.words import HAN_RUN
from prompts.offline.route import ranked
from prompts.routing.scope_en import ENGLISH
from prompts.routing.scope_weights import WEIGHTS_EN, WEIGHTS_ZH
from prompts.routing.scope_zh import CHINESE
from prompts.structures.checks import StructureName

BIAS, NAMED = "(bias)", "names something"
# A Chinese question of this form ("反复出现的主题是什么") says so itself; the lists that were fitted to have none.
GLOBAL_ZH = 1.0
MOST_NAMED = 2
_ROUTED: dict[StructureName, str] = {
    "table": "asks for figures beside each other",
    "graph": "asks for a chain of relations",
    "algorithm": "asks for steps",
    "catalogue": "asks for an overview",
    "chunk": "asks for one passage",
}
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


@dataclass(frozen=True, slots=True)
class Scope:
    """How sure it is (0-1) that a question is about the whole, and the strongest signs for what is likelier."""

    whole: float
    reason: str


def signs_of(ask: Ask) -> dict[str, float]:
    """What a question shows: wordings by their reason, how many things it names, the structure that its wording speaks
    for, and its words (in Chinese characters and pairs of them)."""
    structure = ranked(ask, 1, (), tabular=False)[0].structure
    marks = CHINESE if ask.chinese else ENGLISH
    signs = {mark.reason: 1.0 for mark in marks if mark.pattern.search(ask.text)}
    # An English question begins with a capital in any case.
    named = sum(ask.chinese or name.start > 0 or " " in name.text for name in names_of(ask.text))
    signs |= {NAMED: float(min(named, MOST_NAMED)), _ROUTED[structure]: 1.0}
    return {BIAS: 1.0, **signs, **dict.fromkeys(_words(ask), 1.0)}


def _words(ask: Ask) -> list[str]:
    if not ask.chinese:
        return _WORD.findall(ask.text.lower().replace("\u2019", "'"))
    runs = [match.group() for match in HAN_RUN.finditer(ask.text)]
    return [*"".join(runs), *(one + two for run in runs for one, two in pairwise(run))]


def scope_of(ask: Ask) -> Scope:
    """By the question's wording."""
    weights = WEIGHTS_ZH if ask.chinese else WEIGHTS_EN
    given = {sign: weights[sign] * value for sign, value in signs_of(ask).items() if value and sign in weights}
    total = sum(given.values()) + GLOBAL_ZH * (ask.chinese and ask.form == "global" and NAMED not in given)
    # The bias stands for what no sign tells; words alone are told of only where nothing else speaks.
    side = 1 if total >= 0 else -1
    told = [sign for sign in given if " " in sign and given[sign] * side > 0]
    told.sort(key=lambda sign: -abs(given[sign]))
    words = [f'"{sign}"' for sign in sorted(given, key=lambda sign: -given[sign] * side) if given[sign] * side > 0]
    told = told or [word for word in words if word != f'"{BIAS}"']
    return Scope(round(1 / (1 + exp(-total)), 3), "; ".join(told[:2]) or "no sign of the whole")
