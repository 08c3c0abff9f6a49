"""The plan that a question's own words give, without a model (PolyG: one kind of plan for each type of question)."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from prompts.text.question import DIRECTION, REQUEST_WORDS
from prompts.text.words import fold, stem
from prompts.traverse import Hop, PlanStep, TraversalPlan
from storage.answer_records import QuestionType
from storage.graph import Direction
from tasks.traverse.cues import Cue, cues_around, cues_in
from tasks.traverse.meta_path import MAX_HOPS, Worded, best_paths, follow, narrowed, step_score
from tasks.traverse.names import Named
from tasks.traverse.paths import shortest_paths
from tasks.traverse.plan import EVERYTHING, Graph, names_of, unknown
from tasks.traverse.results import Problem
from tasks.traverse.run import no_such_way
from tasks.traverse.vocabulary import MOST_NEAR

_MOST = re.compile(
    r",?\s*\b(?:that |who |which )?(?:has|have|had|with|having)\s+(?:the\s+)?"
    r"(?P<most>most|more|fewest|fewer|least|less|(?:largest|highest|greatest|smallest|lowest) number of)\s+"
    r"(?P<what>[\w -]+)",
    re.I,
)
_EVENT = re.compile(
    r",?\s*\b(?:was |were |is |did )?(?P<event>born|died?|founded|released|published|built|established|opened|formed|"
    r"created|married)\s+(?:the\s+)?(?P<when>first|earlier|earliest|last|later|latest)\b",
    re.I,
)
_OF_MEASURE = re.compile(
    r"\b(?:has |have |had |with )?(?:the )?(?P<most>largest|highest|greatest|biggest|smallest|lowest|longest|shortest|"
    r"larger|higher|greater|bigger|smaller|lower|longer|shorter|earliest|latest|earlier|later|most recent)"
    r"\s+(?P<what>[a-z][\w -]*)",
    re.I,
)
_ADJECTIVE = re.compile(
    r"\b(?:is |was |are |were )?(?:the )?(?P<most>old(?:est|er)|young(?:est|er)|tall(?:est|er)|long(?:est|er)|"
    r"heav(?:iest|ier)|(?:large|bigge|highe|small)(?:st|r)|short(?:est|er)|deep(?:est|er))\b",
    re.I,
)
# What the bare adjective compares, and whether most of it is the highest figure.
_OF_ADJECTIVE: dict[str, tuple[str, Direction]] = {
    "old": ("birth date", "min"),
    "young": ("birth date", "max"),
    "tall": ("height", "max"),
    "long": ("length", "max"),
    "short": ("length", "min"),
    "heav": ("weight", "max"),
    "deep": ("depth", "max"),
    "high": ("height", "max"),
    "larg": ("size", "max"),
    "bigg": ("size", "max"),
    "smal": ("size", "min"),
}


@dataclass(frozen=True, slots=True)
class Measure:
    """The words that name what is compared, which end of it is asked for, and the question without all that.

    `counts` says that it is compared by how many there are.
    """

    words: str
    direction: Direction
    rest: str
    counts: bool = False


def measure_of(question: str) -> Measure | None:
    """What a question compares things by; None where it does not compare.

    Names should be blanked out before: what follows a measure is taken for its name.
    """
    for pattern, words in ((_MOST, "{what}"), (_EVENT, "{event} date"), (_OF_MEASURE, "{what}"), (_ADJECTIVE, "")):
        found = pattern.search(question)
        if found is None:
            continue
        rest = question[: found.start()] + " " * (found.end() - found.start()) + question[found.end() :]
        if words:
            said = found.groupdict()
            degree = (said.get("most") or said.get("when") or "").lower().split()[0]
            return Measure(words.format(**said).strip(), _direction(degree), rest, counts=pattern is _MOST)
        compared = found["most"].lower()
        named, direction = next(made for start, made in _OF_ADJECTIVE.items() if compared.startswith(start))
        return Measure(named, direction, rest)
    return None


def _direction(degree: str) -> Direction:
    if degree in {"fewer", "fewest", "less"}:
        return "min"
    return "min" if DIRECTION.get(degree, "max") == "min" else "max"


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


_COUNTED = re.compile(
    r"\bhow many\b|\b(?:count|number) (?:of )?(?:all )?the\b|\bwhat is the number of\b|多少|几个", re.I
)
_WITHOUT = re.compile(
    r"\b(?:but|that|who|which|and)?\s*(?:is|are|was|were|do|does|did|has|have)?\s*(?:not|n't)\b|\bexcept\b|"
    r"\bother than\b|\bwithout\b",
    re.I,
)
_ASKS_IF = re.compile(r"^\W*(?:did|does|do|was|were|is|are|has|have|had)\b|是不是|是否|吗\W*$", re.I)
_SHARED = re.compile(r"\b(?:both|common|shared?|same|mutual|also)\b|共同|都|相同", re.I)
_FIGURE = re.compile(r"\d")
_LINKED = re.compile(r"\b(?:connect|link|relat|associat|tie)\w*|关系|联系", re.I)
_IN_FIRST = "{1}"

Draft = TraversalPlan | Problem


def draft(question: str, kind: QuestionType, named: Sequence[Named], unlinked: Sequence[str], graph: Graph) -> Draft:
    """A plan for a question of a type, of relations that the graph has around the things named; or why there is none.

    `unlinked` are stretches that look like names and are none of the graph's.
    """
    sure = [name for name in named if not name.doubtful] or list(named)
    measure = measure_of(blanked(question, named))
    if not sure:
        return _of_all(measure, graph) if measure and not unlinked else _names_nothing(question, unlinked, graph)
    if kind in {"s*o", "spo"} and len(sure) == 1:
        # An ordinary word may be the second name: "Is Ada an engineer?"
        sure = list(named)
        if len(sure) == 1 and unlinked:
            return unknown(unlinked[0], graph)
    if measure is not None and kind in {"nested", "sp*", "spo"}:
        return _compared(question, measure, sure, graph)
    if kind == "s**":
        return _plan(PlanStep(operator="neighbours", sources=_called(sure[:1], graph)))
    if kind == "nested":
        return _nested(question, sure, graph)
    return _followed(question, sure, graph) if kind == "sp*" or len(sure) == 1 else _of_two(question, kind, sure, graph)


def _followed(question: str, names: Sequence[Named], graph: Graph) -> Draft:
    ways = [best_way(blanked(question, _others(name, names)), name, graph) for name in names]
    problems = [way for way in ways if isinstance(way, Problem)]
    if len(problems) == len(ways):
        return problems[0]
    way = max((way for way in ways if isinstance(way, Worded)), key=lambda one: one.score)
    return _plan(_along(way, graph, "count" if _COUNTED.search(question) else "follow"))


def _others(name: Named, names: Sequence[Named]) -> list[Named]:
    return [other for other in names if other is not name]


def _along(way: Worded, graph: Graph, operator: str = "follow") -> PlanStep:
    return PlanStep.model_validate(
        {"operator": operator, "sources": names_of([way.source], graph), "hops": narrowed(graph.facts, way)}
    )


def _plan(*steps: PlanStep) -> TraversalPlan:
    return TraversalPlan(steps=steps)


def _called(names: Sequence[Named], graph: Graph) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for one in names for name in names_of(one.entities, graph)))


def _names_nothing(question: str, unlinked: Sequence[str], graph: Graph) -> Problem:
    raw = [word.strip("?.,!'\"") for word in question.split() if "_" in word]
    if unlinked or raw:
        return unknown([*unlinked, *raw][0], graph)
    return Problem("not in the graph", "the question names nothing that the graph knows.")


# --- two names -------------------------------------------------------------------------------------------------------


def _of_two(question: str, kind: QuestionType, names: Sequence[Named], graph: Graph) -> Draft:
    one, two = names[0], names[1]
    if kind == "s*o":
        return _connected(names, graph)
    apart = _WITHOUT.search(question, one.end, two.start) if one.end < two.start else None
    if apart is not None:
        return _left_over(question, one, two, apart.start(), graph)
    if _SHARED.search(question):
        return _shared(question, one, two, graph)
    if _ASKS_IF.search(question):
        return _checked(question, one, two, graph)
    if not _LINKED.search(question):  # "Who is the child of Ada and Dov?"
        both = _shared(question, one, two, graph)
        if isinstance(both, TraversalPlan):
            return both
    hops = _worded_hops(question, one, two, graph)
    return _plan(
        PlanStep(operator="connect", sources=_called([one], graph), targets=_called([two], graph), hops=hops[:4])
    )


def _connected(names: Sequence[Named], graph: Graph) -> Draft:
    """The first with each of the others; of three, one that nothing ties to the first is told, not passed over."""
    one, *others = names
    for other in others if len(others) > 1 else ():
        if not shortest_paths(graph.facts, one.entities, other.entities, k=1):
            return Problem("no path", f"no chain of relations leads from {one.text} to {other.text}.")
    return _plan(PlanStep(operator="connect", sources=_called([one], graph), targets=_called(others, graph)))


def _worded_hops(question: str, one: Named, two: Named, graph: Graph) -> tuple[Hop, ...]:
    """The relations that the words of a question mean by themselves, wherever they stand in the graph."""
    cues = cues_in(_LINKED.sub(" ", blanked(question, [one, two])))
    relations = (graph.vocabulary.worded_by(cue) for cue in cues if not cue.asking)
    return tuple(Hop(relation=relation) for relation in dict.fromkeys(relations) if relation is not None)


def _shared(question: str, one: Named, two: Named, graph: Graph) -> Draft:
    """What both reach in the way that is asked for; where no way is, how they are connected."""
    if not [cue for cue in cues_in(blanked(question, [one, two])) if not cue.asking]:
        return _plan(PlanStep(operator="connect", sources=_called([one], graph), targets=_called([two], graph)))
    ways = [best_way(blanked(question, [other]), name, graph) for name, other in ((one, two), (two, one))]
    steps: list[PlanStep] = []
    for way in ways:
        if isinstance(way, Problem):
            return way
        steps.append(_along(way, graph))
    return _plan(*steps, PlanStep(operator="intersect", sources=("{1}", "{2}")))


def _left_over(question: str, one: Named, two: Named, apart: int, graph: Graph) -> Draft:
    """What the first reaches and the second does not; where nothing is said of the second's way, it is the first's."""
    first = best_way(question[:apart], one, graph)
    if isinstance(first, Problem):
        return first
    tail = blanked(question, [one])
    second = best_way(" " * apart + tail[apart:], two, graph)
    hops = first.hops if isinstance(second, Problem) else second.hops
    return _plan(
        _along(first, graph),
        PlanStep(operator="follow", sources=_called([two], graph), hops=hops),
        PlanStep(operator="difference", sources=("{1}", "{2}")),
    )


def _checked(question: str, one: Named, two: Named, graph: Graph) -> Draft:
    """Whether the worded relation leads from the one that it is said to be of to the other one."""
    owners = [name for name in (one, two) if owns(question, name)]
    pairs = [(name, two if name is one else one) for name in (owners if len(owners) == 1 else (two, one))]
    tried: list[tuple[Worded, Named, Named]] = []
    for source, target in pairs:
        ways = ways_from(blanked(question, [target]), source, graph)
        tried += [(way, source, target) for way in ways]
    reaching = [made for made in tried if set(made[2].entities) & set(made[0].ends) and not made[0].left]
    if not reaching and not tried:
        relations = _worded_hops(question, one, two, graph)
        if relations:
            return no_such_way(pairs[0][0].entities, relations[0].relation, graph)
        cues = [cue for cue in cues_in(blanked(question, [one, two])) if not cue.asking]
        if cues:
            return unknown_relation(cues[0], pairs[0][0].entities, graph)
        return _tied_at_all(one, two, graph)
    reaching = reaching or [longer for made in tried if (longer := _one_more(made, graph)) is not None]
    way, source, target = max(reaching or tried, key=lambda made: made[0].score)
    sources, targets = names_of([way.source], graph), _called([target], graph)
    return _plan(PlanStep(operator="check", sources=sources, targets=targets, hops=way.hops))


def _tied_at_all(one: Named, two: Named, graph: Graph) -> Draft:
    """ "Is Ada an engineer?": whether any single relation leads from one to the other."""
    targets = set(two.entities)
    for relation, inverse in graph.facts.leaving(one.entities):
        hop = Hop(relation=relation, inverse=inverse)
        if targets & set(follow(graph.facts, one.entities, [hop])[0].ends):
            sources, called = _called([one], graph), _called([two], graph)
            return _plan(PlanStep(operator="check", sources=sources, targets=called, hops=(hop,)))
    return Problem("no path", f"no relation leads from {one.text} to {two.text}.")


def _one_more(tried: tuple[Worded, Named, Named], graph: Graph) -> tuple[Worded, Named, Named] | None:
    """The same way with the unworded step that reaches the target ("Is Ada's kid an engineer?"), if there is one."""
    way, source, target = tried
    for relation, inverse in graph.facts.leaving(way.ends):
        hops = (*way.hops, Hop(relation=relation, inverse=inverse))
        ends = follow(graph.facts, way.ends, hops[-1:])[0].ends
        if len(hops) <= MAX_HOPS and set(target.entities) & set(ends):
            return replace(way, hops=hops, ends=ends), source, target
    return None


# --- several steps ---------------------------------------------------------------------------------------------------


def _compared(question: str, measure: Measure, names: Sequence[Named], graph: Graph) -> Draft:
    """The things named by the measure; where there is one name, what the rest of the question finds from it."""
    steps: list[PlanStep] = []
    sources = _called(names, graph)
    entities = tuple(entity for name in names for entity in name.entities)
    if len(names) == 1:
        way = best_way(_with_names(measure.rest, question, names), names[0], graph)
        if isinstance(way, Problem):
            return way
        steps, sources, entities = [_along(way, graph)], (_IN_FIRST,), way.ends
    hops = _measured_hops(measure, entities, graph)
    if isinstance(hops, Problem):
        return hops
    return _plan(*steps, PlanStep(operator=measure.direction, sources=sources, hops=hops))


def _with_names(rest: str, question: str, names: Sequence[Named]) -> str:
    for name in names:
        rest = rest[: name.start] + question[name.start : name.end] + rest[name.end :]
    return rest


def _measured_hops(measure: Measure, entities: Sequence[str], graph: Graph) -> tuple[Hop, ...] | Problem:
    cues = cues_in(measure.words)
    ways = [way for entity in entities[:20] for way in best_paths(graph.facts, entity, cues)]
    if not measure.counts:
        ways = [way for way in ways if any(_FIGURE.search(name) for name in names_of(way.ends, graph))]
    if ways:
        return max(ways, key=lambda way: way.score).hops
    if any(graph.vocabulary.worded_by(cue) for cue in cues):
        return no_such_way(entities, measure.words, graph)
    return Problem("bad plan", f'the graph has no relation "{measure.words}".', graph.vocabulary.nearest(measure.words))


def _of_all(measure: Measure, graph: Graph) -> Draft:
    """Of everything in the graph, what has most or least of something."""
    worded = [made for cue in cues_in(measure.words) if (made := graph.vocabulary.worded_by(cue))]
    relation = next((one for one in worded if measure.counts or _has_figures(one, graph)), None)
    if relation is None:
        nearest = graph.vocabulary.nearest(measure.words)
        return Problem("bad plan", f'the graph has no relation "{measure.words}".', nearest)
    return _plan(PlanStep(operator=measure.direction, sources=(EVERYTHING,), hops=(Hop(relation=relation),)))


def _has_figures(relation: str, graph: Graph) -> bool:
    ends = [one.target for one in graph.facts.relations.values() if one.predicate == relation]
    return any(_FIGURE.search(name) for name in names_of(ends, graph))


def _nested(question: str, names: Sequence[Named], graph: Graph) -> Draft:
    """First those that the question describes, then what it asks of them."""
    open_words = REQUEST_WORDS | {word for word in fold(question).split() if _LINKED.match(word)}
    ways = [best_way(blanked(question, _others(name, names)), name, graph, open_words) for name in names]
    found = [(way, place) for place, way in enumerate(ways) if isinstance(way, Worded)]
    if not found:
        return next(way for way in ways if isinstance(way, Problem))
    way, place = max(found, key=lambda one: (one[0].score, one[1]))
    first = _along(way, graph)
    if len(names) == 1:
        return _plan(first, PlanStep(operator="neighbours", sources=(_IN_FIRST,)))
    if len(names) == 2 and _LINKED.search(question):
        return _plan(
            first,
            PlanStep(operator="connect", sources=_called(_others(names[place], names), graph), targets=(_IN_FIRST,)),
        )
    shared = [one for one, _ in found]
    if len(shared) == len(names):
        numbers = tuple(f"{{{n}}}" for n in range(1, len(shared) + 1))
        return _plan(*(_along(one, graph) for one in shared), PlanStep(operator="intersect", sources=numbers))
    return Problem("bad plan", "without a model, no steps are found that answer so nested a question.")
