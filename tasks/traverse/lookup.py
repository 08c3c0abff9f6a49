"""Look-ups: how a question is answered from the graph without a model.

A look-up reads nothing into a question. The question names one thing of the graph and has the words
of one or two relations that lead on from it; its other words only ask, or name the kind of the
results ("Which *bridge* …"). A look-up is supported if one relation is walked in the direction that
the words say. For all other questions the graph shows what it holds: the shortest paths between two
things, or what is stated of one.
"""

import re
from collections.abc import Iterator, Sequence

from prompts.text.negation import is_negated
from prompts.text.words import CJK, STOPWORDS, WORD, fold, fold_name, is_han, stem
from prompts.traverse import Hop, PlanStep
from storage.answer_records import Fallback
from tasks.traverse.entity_names import Linked, NamedEntity
from tasks.traverse.meta_paths import chains_along
from tasks.traverse.plan import CheckedStep, Problem, StepResult, TraversalGraph

MOST_HOPS = 2
SLOT = "\u25a1"  # in place of the name in the question
# Words that only ask for a thing; "when", "where", "first" and "only" say more about it.
_ASKING = frozenset(
    "a an the who whom what which whose did do does is was were are has have had by of".split()
)
_ASKING_HAN = frozenset("谁什么哪些个座位的了是由被")
_OF = re.compile(rf"\b(?:of|by)(?: the)? *{SLOT}", re.IGNORECASE)
_BY_WHOM = re.compile(r"\bby\b|由谁|被谁|是谁", re.IGNORECASE)


def plan_without_model(question: str, linked: Linked, graph: TraversalGraph) -> PlanStep | Problem:
    """Plan a look-up, or a step that shows what the graph holds of the names.

    Returns a Problem if the graph holds nothing of them.
    """
    names = [name for name in linked.named if not name.doubtful] or list(linked.named)
    if len(names) < 2 and linked.unlinked:
        return graph.unknown(linked.unlinked[0])
    if not names:
        return Problem("not in the graph", "the question names nothing that the graph knows.")
    first, *others = names
    if others:
        targets = tuple(name for other in others for name in graph.names_of(other.entities))
        return PlanStep(operator="connect", sources=graph.names_of(first.entities), targets=targets)
    if hops := _worded_hops(question, first, graph):
        return PlanStep(operator="follow", sources=graph.names_of(first.entities), hops=hops)
    return PlanStep(operator="neighbours", sources=graph.names_of(first.entities))


def support_of_lookup(
    question: str,
    linked: Linked,
    steps: Sequence[CheckedStep],
    end: StepResult,
    graph: TraversalGraph,
) -> Fallback | None:
    """Return how far imported triples support what a walk found, or None if it is no look-up."""
    names = [name for name in linked.named if not name.doubtful]
    if len(steps) != 1 or len(names) != 1 or len(names[0].entities) != 1 or is_negated(question):
        return None
    [name], [step] = names, steps
    [called] = graph.names_of(name.entities)
    if step.operator != "follow" or fold_name(called) != fold_name(name.text):
        return None
    asked = _slotted(question, name)
    relations = [hop.relation for hop in step.hops]
    if len(step.hops) > MOST_HOPS or not _says(asked, relations, graph.names_of(end.entities)):
        return None
    [hop, *others] = step.hops
    return "none" if not others and _is_inverse(asked, hop.relation) == hop.inverse else "partial"


def _worded_hops(question: str, name: NamedEntity, graph: TraversalGraph) -> tuple[Hop, ...]:
    """Return one or two relations from a name whose words the question has, if any."""
    asked = _slotted(question, name)
    for hops in sorted(_ways(name.entities, asked, graph), key=lambda hops: (len(hops), hops)):
        ends = graph.names_of(list(chains_along(graph.facts, name.entities, hops)))
        if _says(asked, [hop.relation for hop in hops], ends):
            return hops
    return ()


def _ways(entities: Sequence[str], asked: str, graph: TraversalGraph) -> Iterator[tuple[Hop, ...]]:
    """Yield the ways that the words name: one relation in their direction, or two relations."""
    for first in _leaving(entities, asked, graph):
        if _is_inverse(asked, first.relation) == first.inverse:
            yield (first,)
        ends = list(chains_along(graph.facts, entities, [first]))
        for second in _leaving(ends, asked, graph):
            if second.relation != first.relation:
                yield first, second


def _leaving(entities: Sequence[str], asked: str, graph: TraversalGraph) -> list[Hop]:
    leaving = graph.facts.leaving(entities)
    return [Hop(relation=name, inverse=inverse) for name, inverse in leaving if _holds(asked, name)]


def _slotted(question: str, name: NamedEntity) -> str:
    return f"{question[: name.start]} {SLOT} {question[name.end :]}"


def _holds(asked: str, relation: str) -> bool:
    if is_han(asked):
        return relation in asked
    telling = _words_of(relation) - STOPWORDS
    return bool(telling) and telling <= set(_stems(asked))


def _says(asked: str, relations: Sequence[str], results: Sequence[str]) -> bool:
    """Whether the question says these relations and nothing else but the kind of the results.

    Words that all results share are their kind.
    """
    if is_han(asked):
        return _han_says(asked, relations)
    known = set(_ASKING)
    known |= set.intersection(*({*_stems(result)} for result in results)) if results else set()
    known = known.union(*map(_words_of, relations))
    return all(_holds(asked, relation) for relation in relations) and set(_stems(asked)) <= known


def _is_inverse(asked: str, relation: str) -> bool:
    """Whether the words ask for the source of a relation: "who designed □", "□ was designed by"."""
    if is_han(asked):
        behind = asked.index(relation) > asked.index(SLOT)
        return bool(_BY_WHOM.search(asked)) if behind else True
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
