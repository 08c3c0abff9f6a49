"""Meta-paths: sequences of relations with their direction, followed over sets of entities (PolyG: over relations that
exist), and found by the words of a question: the paths around a thing are ranked by how well each step is worded.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from rapidfuzz import fuzz, process

from prompts.text.regex import regex
from prompts.text.thesaurus import (
    SEXES,
    SYNONYM,
    handles,
    is_one_way,
    is_opposite,
    likeness,
    relation_words,
    sex_of,
)
from prompts.text.words import fold, is_han, stem
from prompts.traverse import MAX_HOPS, Hop
from storage.graph_records import Relation
from tasks.retrieve.facts import GraphFacts
from tasks.traverse.relation_cues import Cue

WIDEST = 2_000  # entities of one step that are walked on from
BEAM = 24  # partial paths that are tried on, of each length
_UNWORDED = 0.5  # cost of a step of which the question says nothing
_SKIPPED = 0.6  # cost of a cue that no step takes
_ASKING = 0.5  # worth of "where" and the like
_BACKWARDS = 0.1
_UNDONE = 1.0  # cost of a step back along the relation just walked ("others of that religion"), seldom meant
_LEAST_WORDED = 0.3
_AGAIN = 0.2  # worth of a cue that says once more what another one said of the same step
# Verbs that have an opposite ("taught": the pupils' side), as a question or a relation has them.
_VERBS = r"(?:taught|teach(?:es)?|mentored|supervise[sd]?|succeed(?:s|ed)?|precede[sd]?|follow(?:s|ed)?)"
_DOING = regex(rf"{_VERBS}$", re.I)
_NAMES_SOURCE = regex(rf"[\W_]of$|^{_VERBS}$", re.I)

Chain = tuple[Relation, ...]


def chains_along(facts: GraphFacts, sources: Sequence[str], hops: Sequence[Hop]) -> dict[str, Chain]:
    """For each entity at the end of a meta-path from the sources one chain of relations that leads there, the heaviest
    first; none where it leads nowhere."""
    chains: dict[str, Chain] = dict.fromkeys(sources, ()) if hops else {}
    for hop in hops:
        longer: dict[str, Chain] = {}
        for entity, chain in islice(chains.items(), WIDEST):
            for relation in facts.along(entity, hop.relation, hop.inverse):
                far = relation.source if hop.inverse else relation.target
                if not hop.kind or facts.is_a(far, hop.kind):
                    longer.setdefault(far, (*chain, relation))
        chains = longer
    return chains


# --- found by words ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordedPath:
    """A meta-path from `source`: how well the question's cues word it, how many of them do (those that only ask do not
    count), how many were used up, and those that no step takes."""

    source: str
    hops: tuple[Hop, ...] = ()
    ends: tuple[str, ...] = ()
    score: float = 0.0
    used: int = 0
    worded: int = 0
    left: tuple[Cue, ...] = ()


def best_paths(facts: GraphFacts, source: str, cues: Sequence[Cue], k: int = 3) -> list[WordedPath]:
    """The meta-paths of the graph from one entity that the cues, in this order, word best; at most k, best first."""
    telling = sum(not cue.asking for cue in cues)
    edge = [WordedPath(source, ends=(source,))]
    whole: dict[tuple[Hop, ...], WordedPath] = {}
    for _ in range(MAX_HOPS):
        grown = [longer for path in edge for longer in _longer(facts, path, cues)]
        edge = sorted(grown, key=lambda path: (-path.score, path.hops))[:BEAM]
        for path in edge:
            rest = tuple(cue for cue in cues[path.used :] if not cue.asking)
            score, left = path.score - _SKIPPED * len(rest), path.left + rest
            if path.hops not in whole or whole[path.hops].score < score:
                whole[path.hops] = replace(path, score=score, left=left, worded=telling - len(left))
    return sorted(whole.values(), key=lambda path: (-path.score, len(path.hops), path.hops))[:k]


def _longer(facts: GraphFacts, path: WordedPath, cues: Sequence[Cue]) -> list[WordedPath]:
    """A partial path with one step more, for each relation and each stretch of cues that may word it."""
    if path.used == len(cues) or (cues[path.used].asking and path.used and not cues[path.used - 1].bound):
        return []  # "where … come from" asks once, not twice
    longer: list[WordedPath] = []
    for relation, inverse in facts.leaving(path.ends[:WIDEST]):
        hop = Hop(relation=relation, inverse=inverse)
        undone = _UNDONE if path.hops and path.hops[-1] == Hop(relation=relation, inverse=not inverse) else 0.0
        ends: tuple[str, ...] | None = None
        for stop in range(path.used + 1, len(cues) + 1):
            score, left = step_score(hop, cues[path.used : stop])
            if left is None:
                continue
            ends = ends or tuple(chains_along(facts, path.ends, [hop]))
            total = path.score + score - undone
            longer.append(WordedPath(path.source, (*path.hops, hop), ends, total, stop, left=path.left + left))
    return longer


def step_score(hop: Hop, cues: Sequence[Cue]) -> tuple[float, tuple[Cue, ...] | None]:
    """How well cues word one step, and those of them that do not; None where they do not word it at all."""
    inner = relation_words(hop.relation)[0]
    score, left = 0.0, list[Cue]()
    worded = dict.fromkeys(inner, 0.0)
    for cue in cues:
        likely = {word: _meant(cue, word, hop) for word in inner}
        best = max(likely.values())
        new = any(value > worded[word] for word, value in likely.items() if not worded[word])
        for word, value in likely.items():
            worded[word] = max(worded[word], value)
        if best:
            score += best * (_ASKING if cue.asking else 1.0) * (1.0 if new else _AGAIN)
        elif not cue.asking:
            score -= _SKIPPED
            left.append(cue)
    covered = sum(worded.values()) / len(worded)
    if covered < _LEAST_WORDED:
        return 0.0, None
    return score - _UNWORDED * (1 - covered) - _BACKWARDS * hop.inverse, tuple(left)


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


# --- the relations of a graph ------------------------------------------------------------------------------------

MOST_NEAR = 3
MOST_WORDS = 2  # of a relation that one word can mean
MOST_SPELT = 1_000  # relations whose spelling is compared
_LEAST_SPELT = 60.0
_WELL_WORDED = 0.5


class Vocabulary:
    """The relations of a graph by how often they are stated, and which of them another word means; immutable."""

    def __init__(self, predicates: Iterable[str]) -> None:
        """`predicates` holds that of each relation."""
        self.counts = Counter(predicates)
        self._worded: dict[str, str | None] = {}

    @cached_property
    def _folded(self) -> Mapping[str, str]:
        return {_folded(name): name for name in sorted(self.counts, key=lambda name: (self.counts[name], name))}

    @cached_property
    def _by_handle(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for name in self.counts:
            for handle in {handle for words in relation_words(name) for word in words for handle in handles(word)}:
                found[handle].add(name)
        return found

    def known(self, relation: str) -> str | None:
        """The relation as the graph writes it ("Place of Birth" is `place_of_birth`), or None."""
        return relation if relation in self.counts else self._folded.get(_folded(relation))

    def by_count(self) -> list[str]:
        """All relations, the most stated first."""
        return sorted(self.counts, key=lambda name: (-self.counts[name], name))

    def worded_by(self, cue: Cue) -> str | None:
        """The relation that a cue by itself words well, in one direction or the other; None where there is none."""
        if cue.key not in self._worded:
            best = max(
                (
                    (step_score(Hop(relation=name, inverse=inverse), (cue,))[0], self.counts[name], name)
                    for name in self._alike(cue.key)
                    for inverse in (False, True)
                    if len(relation_words(name)[0]) <= MOST_WORDS
                ),
                default=(0.0, 0, ""),
            )
            self._worded[cue.key] = best[2] if best[0] >= _WELL_WORDED else None
        return self._worded[cue.key]

    def nearest(self, word: str, among: Sequence[str] = ()) -> tuple[str, ...]:
        """The relations that a word may have meant: by meaning (those `among` first), by spelling, else those."""
        key = stem(fold(word))
        meant = [name for name in self._alike(key) if any(likeness(key, part) for part in relation_words(name)[0])]
        meant.sort(key=lambda name: (name not in among, len(relation_words(name)[0]), -self.counts[name], name))
        folded = {name: _folded(name) for name in self.by_count()[:MOST_SPELT]}
        spelt = process.extract(_folded(word), folded, scorer=fuzz.ratio, score_cutoff=_LEAST_SPELT, limit=MOST_NEAR)
        return tuple(dict.fromkeys([*meant, *(name for _, _, name in spelt), *among]))[:MOST_NEAR]

    def _alike(self, key: str) -> list[str]:
        """The relations with a word like a stem; more may be given, none is left out."""
        if is_han(key):
            return list(self.counts)
        return sorted({name for handle in handles(key) for name in self._by_handle.get(handle, ())})


def _folded(relation: str) -> str:
    return fold(relation.replace("_", " ").replace("-", " ")).strip()
