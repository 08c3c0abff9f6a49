"""When do the rules understand a question for sure, and how much evidence does a model read of it?

Cheap first: what rules decide for sure costs no call. A model is asked about the rest, with the evidence that is
nearest to the question, within a budget of tokens.
"""

from collections.abc import Iterable, Sequence

from prompts.engine.calls import rough_tokens
from prompts.language.asked import Ask
from prompts.reading.evidence import Evidence
from prompts.reading.pick import names_of
from prompts.reading.relevance import Relevance

MOST_WORDS = 14
_SIMPLE = frozenset({"fact", "list", "yesno"})
# Words of a question that compares or joins without the forms that the rules know.
_JOINING = frozenset("and or both same first last than between either".split())


def is_plain(ask: Ask) -> bool:
    """Whether a question asks one short thing of one named thing."""
    if ask.form not in _SIMPLE or ask.expects == "text" or ask.options:
        return False
    if ask.chinese:
        return ask.text.count("的") < 2 and not any(word in ask.text for word in ("和", "与", "还是", "都"))
    words = ask.text.lower().strip(" ?").split()
    named = sum(name.start > 0 for name in names_of(ask.text))
    return len(words) <= MOST_WORDS and named == 1 and not _JOINING & set(words)


def nearest(evidence: Sequence[Evidence], relevance: Relevance, budget: int) -> list[Evidence]:
    """The evidence that is nearest to the question, as much as fits into so many tokens (one piece at least), in its
    own order."""
    ranked = sorted(evidence, key=lambda piece: (-relevance.judge(piece).score, piece.number))
    return sorted(within(ranked, budget), key=lambda piece: piece.number)


def within(ranked: Iterable[Evidence], budget: int) -> list[Evidence]:
    """The first pieces that fit into so many tokens; at least one."""
    kept: list[Evidence] = []
    for piece in ranked:
        budget -= rough_tokens(piece.text) + rough_tokens(piece.title) + 3
        if kept and budget < 0:
            break
        kept.append(piece)
    return kept
