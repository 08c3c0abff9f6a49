"""Which way through the graph do a question's words describe, or why does none fit them?"""

import re
from collections.abc import Collection, Sequence

from prompts.language.words import stem
from prompts.traverse import Hop
from tasks.traverse.cues import Cue, cues_around
from tasks.traverse.meta_path import Worded, best_paths, step_score
from tasks.traverse.names import Named
from tasks.traverse.plan import Graph
from tasks.traverse.results import Problem
from tasks.traverse.run import no_such_way
from tasks.traverse.vocabulary import MOST_NEAR


def blanked(question: str, names: Sequence[Named]) -> str:
    """The question with spaces for some names, so that places stay."""
    for name in names:
        question = question[: name.start] + " " * (name.end - name.start) + question[name.end :]
    return question


def ways_from(question: str, name: Named, graph: Graph, ignored: Collection[str] = ()) -> list[Worded]:
    """The meta-paths from a name of the question that the words around it describe, best first.

    `ignored` words describe none.
    """
    dropped = {stem(word) for word in ignored}
    found: dict[tuple[str, tuple[Hop, ...]], Worded] = {}
    for order in cues_around(question, name.start, name.end).orders():
        cues = tuple(cue for cue in order if cue.key not in dropped)
        for entity in name.entities:
            for way in best_paths(graph.facts, entity, cues):
                known = found.get((entity, way.hops))
                if known is None or known.score < way.score:
                    found[entity, way.hops] = way
    return sorted(found.values(), key=lambda way: (-way.score, len(way.hops), way.hops, way.source))


def best_way(question: str, name: Named, graph: Graph, ignored: Collection[str] = ()) -> Worded | Problem:
    """The way that fits best from a name, or why none does.

    A way that leaves out what the question asks for is none.
    """
    ways = ways_from(question, name, graph, ignored)
    if not ways:
        return _nothing_worded(question, name, graph, ignored)
    best = max(ways, key=lambda way: way.score)
    missing = missing_in(best, graph)
    if missing is None and best.left and not best.worded:
        return _nothing_worded(question, name, graph, ignored)
    return missing or best


def missing_in(way: Worded, graph: Graph) -> Problem | None:
    """What a way leaves out of the question: a relation that does not lead on there, or one that the graph lacks."""
    for cue in way.left:
        relation = graph.vocabulary.worded_by(cue)
        if relation is not None and not _said_already(cue, way.hops):
            return no_such_way(way.ends, relation, graph)
        if relation is None and cue.bound:
            return unknown_relation(cue, way.ends, graph)
    return None


def _said_already(cue: Cue, hops: Sequence[Hop]) -> bool:
    return any(step_score(hop, (cue,))[1] is not None for hop in hops)


def _nothing_worded(question: str, name: Named, graph: Graph, ignored: Collection[str]) -> Problem:
    dropped = {stem(word) for word in ignored}
    here = name.entities
    cues = [cue for cue in cues_around(question, name.start, name.end).orders()[0] if cue.key not in dropped]
    for cue in cues:
        relation = graph.vocabulary.worded_by(cue) if not cue.asking else None
        if relation is not None:
            return no_such_way(here, relation, graph)
    if not cues:
        return Problem("bad plan", "the question names no relation.", tuple(_leaving(here, graph))[:MOST_NEAR])
    asked = max(cues, key=lambda cue: (cue.bound, not cue.asking))
    return unknown_relation(asked, here, graph)


def unknown_relation(cue: Cue, here: Sequence[str], graph: Graph) -> Problem:
    """That the graph has no relation of this word, with those that come nearest."""
    nearest = graph.vocabulary.nearest(cue.word, _leaving(here, graph))
    return Problem("bad plan", f'the graph has no relation "{cue.word}".', nearest)


def _leaving(here: Sequence[str], graph: Graph) -> list[str]:
    return list(dict.fromkeys(relation for relation, _ in graph.facts.leaving(here)))


_OF_BEFORE = re.compile(r"\b(?:of|for|by)\s+(?:the\s+|a\s+|an\s+)?['\"“]?$", re.I)
_OWNED_AFTER = re.compile(r"['\"”]?\s*['’]\s*s\b")


def owns(question: str, name: Named) -> bool:
    """Whether a relation is said to be this name's ("X's spouse", "the spouse of X")."""
    return bool(_OF_BEFORE.search(question[: name.start]) or _OWNED_AFTER.match(question, name.end))
