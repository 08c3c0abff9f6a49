"""Look-ups: what a walk may answer without a model, and when a triple says it word for word.

Nothing is read into a look-up. It names one thing as the graph does and has the words of one or two relations; what
else it says are words that ask, or what all results are called by ("Which *bridge* …"). It is supported where one
relation is walked in the direction that the words say; which way two relations are meant no words tell for sure.
"""

import re
from collections.abc import Sequence

from prompts.text.negation import is_negated
from prompts.text.words import CJK, STOPWORDS, WORD, fold, fold_name, is_han, stem
from storage.answer_records import Fallback
from tasks.traverse.entity_names import Linked
from tasks.traverse.plan import CheckedStep, StepResult, TraversalGraph

MOST_HOPS = 2
SLOT = "\u25a1"  # stands for the name in the question
# Words that ask for a thing and nothing more of it: "when" and "where", "first" and "only" do.
_ASKING = frozenset("a an the who whom what which whose did do does is was were are has have had by of".split())
_ASKING_HAN = frozenset("谁什么哪些个座位的了是由被")
_OF = re.compile(rf"\b(?:of|by)(?: the)? *{SLOT}", re.IGNORECASE)
_BY_WHOM = re.compile(r"\bby\b|由谁|被谁|是谁", re.IGNORECASE)


def support_of_lookup(
    question: str, linked: Linked, steps: Sequence[CheckedStep], end: StepResult, graph: TraversalGraph
) -> Fallback | None:
    """How far imported triples support what a walk found for a question; None where it is no look-up."""
    names = [name for name in linked.named if not name.doubtful]
    if len(steps) != 1 or len(names) != 1 or len(names[0].entities) != 1 or is_negated(question):
        return None
    [name], [step] = names, steps
    [called] = graph.names_of(name.entities)
    if step.operator != "follow" or fold_name(called) != fold_name(name.text):
        return None
    asked = f"{question[: name.start]} {SLOT} {question[name.end :]}"
    chinese, relations = is_han(question), [hop.relation for hop in step.hops]
    says = _han_says(asked, relations) if chinese else _says(asked, relations, graph.names_of(end.entities))
    if not says or len(step.hops) > MOST_HOPS:
        return None
    [hop, *others] = step.hops
    walked = _han_inverse(asked, hop.relation) if chinese else _inverse(asked, hop.relation)
    return "none" if walked == hop.inverse and not others else "partial"


def _says(asked: str, relations: Sequence[str], results: Sequence[str]) -> bool:
    words, known = set(_stems(asked)), set(_ASKING)
    known |= set.intersection(*({*_stems(result)} for result in results)) if results else set()
    for relation in relations:
        own = _words_of(relation)
        if not own - STOPWORDS or not own - STOPWORDS <= words:
            return False
        known |= own
    return words <= known


def _inverse(asked: str, relation: str) -> bool:
    """Whether the words ask for what the relation leads to the name from: "who designed □", "□ was designed by"."""
    telling = _words_of(relation) - STOPWORDS
    place = min(match.start() for match in WORD.finditer(fold(asked)) if stem(match[0]) in telling)
    behind = place > fold(asked).index(SLOT)
    return bool(_BY_WHOM.search(asked)) if behind else not _OF.search(asked)


def _words_of(relation: str) -> set[str]:
    return set(_stems(relation.replace("_", " ")))


def _stems(text: str) -> list[str]:
    return [stem(word) for word in WORD.findall(re.sub(r"['’]s\b", "", fold(text)))]


def _han_says(asked: str, relations: Sequence[str]) -> bool:
    rest = asked
    for relation in relations:
        if relation not in rest:
            return False
        rest = rest.replace(relation, "", 1)
    return set(re.sub(rf"[^{CJK}]", "", rest)) <= _ASKING_HAN


def _han_inverse(asked: str, relation: str) -> bool:
    return bool(_BY_WHOM.search(asked)) if asked.index(relation) > asked.index(SLOT) else True
