"""Meta-paths: the objects that stand in the stated relations to a thing (PolyG: over relations that exist).

A meta-path is a sequence of (relation, direction). It is followed over sets of entities; and where the question's words
have to find it, the paths that the graph has around a thing are ranked by how well each step is worded.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompts.text.thesaurus import SEXES, SYNONYM, is_mutual, is_one_way, is_opposite, likeness, relation_words, sex_of
from prompts.traverse import Hop
from storage.graph_records import Relation
from tasks.retrieve.facts import GraphFacts
from tasks.traverse.cues import Cue

MAX_HOPS = 4
WIDEST = 2_000  # entities of one step that are walked on from
_KEPT = 24  # partial paths that are tried on, of each length
_OUTER_PART = 0.25  # weight of the words of a dotted relation that are not in its last part
_UNWORDED = 0.5  # cost of a step of which the question says nothing
_SKIPPED = 0.6  # cost of a cue that no step takes
_SKIPPED_BOUND = 1.0
_ASKING = 0.5  # worth of "where" and the like
_PER_HOP = 0.05
_BACKWARDS = 0.1
_UNDONE = 1.0  # cost of a step back along the relation just walked ("others of that religion"), seldom meant
_LEAST_WORDED = 0.3
_AGAIN = 0.2  # worth of a cue that says once more what another one said of the same step
# Verbs that have an opposite ("taught": the pupils' side), as a question or a relation has them.
_VERBS = r"(?:taught|teach(?:es)?|mentored|supervise[sd]?|succeed(?:s|ed)?|precede[sd]?|follow(?:s|ed)?)"
_DOING = re.compile(rf"{_VERBS}$", re.I)
_NAMES_SOURCE = re.compile(rf"[\W_]of$|^{_VERBS}$", re.I)


@dataclass(frozen=True)
class Step:
    """One step that was walked: the relations that lead from the entities of the step before."""

    hop: Hop
    relations: tuple[Relation, ...]
    ends: tuple[str, ...]


@dataclass(frozen=True)
class Worded:
    """A meta-path from `source`, how well and by how many cues it is worded (those that only ask do not count), the
    cues that no step takes, and for each step whom its words name ("son": male)."""

    source: str
    hops: tuple[Hop, ...]
    score: float
    left: tuple[Cue, ...]
    ends: tuple[str, ...]
    sexes: tuple[str, ...]
    worded: int


def follow(facts: GraphFacts, sources: Sequence[str], hops: Sequence[Hop]) -> list[Step]:
    """Walk a meta-path from some entities; ends at the first step that leads nowhere, with no ends."""
    steps: list[Step] = []
    here = tuple(dict.fromkeys(sources))
    for hop in hops:
        relations = [one for entity in here[:WIDEST] for one in facts.along(entity, hop.relation, hop.inverse)]
        if hop.kind:
            relations = [one for one in relations if facts.is_a(_far(one, hop), hop.kind)]
        here = tuple(dict.fromkeys(_far(one, hop) for one in relations))
        steps.append(Step(hop, tuple(relations), here))
        if not here:
            break
    return steps


def _far(relation: Relation, hop: Hop) -> str:
    return relation.source if hop.inverse else relation.target


@dataclass(frozen=True)
class _Partial:
    hops: tuple[Hop, ...]
    ends: tuple[str, ...]
    taken: int
    score: float
    left: tuple[Cue, ...]
    sexes: tuple[str, ...]


def best_paths(facts: GraphFacts, source: str, cues: Sequence[Cue], k: int = 3) -> list[Worded]:
    """The meta-paths of the graph from one entity that the cues, in this order, word best; at most k, best first."""
    telling = sum(not cue.asking for cue in cues)
    edge = [_Partial((), (source,), 0, 0.0, (), ())]
    whole: dict[tuple[Hop, ...], Worded] = {}
    for _ in range(MAX_HOPS):
        grown = [longer for partial in edge for longer in _longer(facts, partial, cues)]
        grown.sort(key=lambda one: (-one.score, one.hops))
        edge = grown[:_KEPT]
        for one in edge:
            rest = tuple(cue for cue in cues[one.taken :] if not cue.asking)
            score = one.score - sum(map(_skip, rest))
            if one.hops not in whole or whole[one.hops].score < score:
                left = one.left + rest
                whole[one.hops] = Worded(source, one.hops, score, left, one.ends, one.sexes, telling - len(left))
    return sorted(whole.values(), key=lambda one: (-one.score, len(one.hops), one.hops))[:k]


def _longer(facts: GraphFacts, partial: _Partial, cues: Sequence[Cue]) -> list[_Partial]:
    """A partial path with one step more, for each relation and each stretch of cues that may word it."""
    if partial.taken == len(cues):
        return []
    found: list[_Partial] = []
    for relation, inverse in facts.leaving(partial.ends[:WIDEST]):
        hop = Hop(relation=relation, inverse=inverse)
        undone = _UNDONE if partial.hops and partial.hops[-1] == Hop(relation=relation, inverse=not inverse) else 0.0
        ends: tuple[str, ...] | None = None
        if cues[partial.taken].asking and partial.taken and not cues[partial.taken - 1].bound:
            continue  # "where … come from" asks once, not twice
        for stop in range(partial.taken + 1, len(cues) + 1):
            score, left = step_score(hop, cues[partial.taken : stop])
            if left is None:
                continue
            ends = ends or follow(facts, partial.ends, [hop])[0].ends
            total = partial.score + score - _PER_HOP - undone
            sex = next((sex_of(cue.word) for cue in cues[partial.taken : stop] if sex_of(cue.word)), "")
            found.append(_Partial((*partial.hops, hop), ends, stop, total, partial.left + left, (*partial.sexes, sex)))
    return found


def step_score(hop: Hop, cues: Sequence[Cue]) -> tuple[float, tuple[Cue, ...] | None]:
    """How well cues word one step, and those of them that do not; None where they do not word it at all."""
    inner, *outer = relation_words(hop.relation)
    score, left = 0.0, list[Cue]()
    worded = dict.fromkeys(inner, 0.0)
    for cue in cues:
        likely = {word: _meant(cue, word, hop) for word in inner}
        best = max(likely.values())
        new = any(value > worded[word] for word, value in likely.items() if not worded[word])
        if not best and outer:
            best = _OUTER_PART * max(likeness(cue.key, word) for part in outer for word in part)
        for word, value in likely.items():
            worded[word] = max(worded[word], value)
        if best:
            score += best * (_ASKING if cue.asking else 1.0) * (1.0 if new or not max(likely.values()) else _AGAIN)
        elif not cue.asking:
            score -= _skip(cue)
            left.append(cue)
    covered = sum(worded.values()) / len(worded)
    if covered < _LEAST_WORDED:
        return 0.0, None
    return score - _UNWORDED * (1 - covered) - _turned(hop), tuple(left)


def _meant(cue: Cue, word: str, hop: Hop) -> float:
    """Whether a cue means a word of a step's relation, walked in the step's direction.

    A relation is the name of its target (X `daughter` Y: Y is the daughter), or, as "daughter of" and "taught" are, of
    its source. A step to whom it names is worded by it, one the other way by its opposite.
    """
    names_source = bool(_NAMES_SOURCE.search(hop.relation))
    to_named = hop.inverse is names_source
    if to_named and {sex_of(cue.word), sex_of(word)} == set(SEXES):
        return 0.0
    if to_named or not is_one_way(hop.relation) or (names_source and _DOING.match(cue.word)):
        return likeness(cue.key, word)
    return SYNONYM if is_opposite(cue.key, hop.relation) else 0.0


def _turned(hop: Hop) -> float:
    if not hop.inverse:
        return 0.0
    return _BACKWARDS / 2 if is_mutual(hop.relation) else _BACKWARDS


def _skip(cue: Cue) -> float:
    return 0.0 if cue.asking else _SKIPPED_BOUND if cue.bound else _SKIPPED


def chains_of(steps: Sequence[Step], sources: Sequence[str], hops: Sequence[Hop]) -> dict[str, tuple[Relation, ...]]:
    """For each entity at the end of a whole meta-path one chain of relations that leads there, the heaviest first."""
    if len(steps) < len(hops) or not steps or not steps[-1].ends:
        return {}
    chains: dict[str, tuple[Relation, ...]] = dict.fromkeys(sources, ())
    for step in steps:
        longer: dict[str, tuple[Relation, ...]] = {}
        for relation in step.relations:
            near, far = relation.source, relation.target
            if step.hop.inverse:
                near, far = far, near
            longer.setdefault(far, (*chains[near], relation))
        chains = longer
    return chains


def narrowed(facts: GraphFacts, way: Worded) -> tuple[Hop, ...]:
    """The way's hops; "son" keeps the male ones where the graph knows of all children which they are, and has both.

    Where the way leads on from none of those kept, it keeps all.
    """
    here: Sequence[str] = (way.source,)
    hops: list[Hop] = []
    for place, (hop, sex) in enumerate(zip(way.hops, way.sexes, strict=True)):
        ends = follow(facts, here, [hop])[0].ends
        known = {next((one for one in SEXES if facts.is_a(end, one)), "") for end in ends} if sex else set()
        made = hop.model_copy(update={"kind": sex}) if known == set(SEXES) else hop
        if not follow(facts, here, [made, *way.hops[place + 1 :]])[-1].ends:
            made = hop
        here = follow(facts, here, [made])[0].ends
        hops.append(made)
    return tuple(hops)
