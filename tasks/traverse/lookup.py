"""Look-ups that a triple answers word for word: only these are supported without a model.

Nothing is read into such a question. It names one thing as the graph does and has the words of one relation, which is
walked in the direction that they say; what else it says are words that ask, or what all results are called by ("Which
*bridge* …").
"""

import re
from collections.abc import Sequence

from prompts.text.negation import is_negated
from prompts.text.words import CJK, STOPWORDS, WORD, fold, fold_name, is_han, stem
from prompts.traverse import Hop
from tasks.traverse.entity_names import Linked
from tasks.traverse.plan import CheckedStep, StepResult, TraversalGraph

SLOT = "\u25a1"  # stands for the name in the question
# Words that ask for a thing and nothing more of it: "when" and "where", "first" and "only" do.
_ASKING = frozenset("a an the who whom what which whose did do does is was were are has have had by of".split())
_ASKING_HAN = frozenset("谁什么哪些个座位的了是由被")
_OF = re.compile(rf"\b(?:of|by)(?: the)? *{SLOT}", re.IGNORECASE)
_BY_WHOM = re.compile(r"\bby\b|由谁|被谁|是谁", re.IGNORECASE)


def is_word_for_word(
    question: str, linked: Linked, steps: Sequence[CheckedStep], end: StepResult, graph: TraversalGraph
) -> bool:
    """Whether imported triples say the answer of a walk in the question's own words."""
    names = [name for name in linked.named if not name.doubtful]
    if len(steps) != 1 or len(names) != 1 or len(names[0].entities) != 1 or is_negated(question):
        return False
    [name], [step] = names, steps
    [called] = graph.names_of(name.entities)
    if step.operator != "follow" or len(step.hops) != 1 or fold_name(called) != fold_name(name.text):
        return False
    asked = f"{question[: name.start]} {SLOT} {question[name.end :]}"
    [hop], says = step.hops, _han_says if is_han(question) else _says
    return says(asked, hop, graph.names_of(end.entities))


def _says(asked: str, hop: Hop, results: Sequence[str]) -> bool:
    relation, words = set(_stems(hop.relation.replace("_", " "))), set(_stems(asked))
    telling = relation - STOPWORDS
    called = set.intersection(*({*_stems(result)} for result in results)) if results else set[str]()
    if not telling or not telling <= words or not words <= relation | called | _ASKING:
        return False
    place = min(match.start() for match in WORD.finditer(fold(asked)) if stem(match[0]) in telling)
    behind = place > fold(asked).index(SLOT)
    return hop.inverse == (bool(_BY_WHOM.search(asked)) if behind else not _OF.search(asked))


def _stems(text: str) -> list[str]:
    return [stem(word) for word in WORD.findall(re.sub(r"['’]s\b", "", fold(text)))]


def _han_says(asked: str, hop: Hop, results: Sequence[str]) -> bool:
    place, rest = asked.find(hop.relation), re.sub(rf"[^{CJK}]", "", asked.replace(hop.relation, "", 1))
    if place < 0 or not set(rest) <= _ASKING_HAN:
        return False
    return hop.inverse == (bool(_BY_WHOM.search(asked)) if place > asked.index(SLOT) else True)
