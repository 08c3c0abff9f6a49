"""Planning a traversal: the type of a question and the steps that answer it from the graph (PolyG, section 3).

The question's own words give a plan, one kind for each type; where they do not, one call to a model gives type and
plan. While walking none is made.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from prompts.engine.helper import helped
from prompts.text.question import DIRECTION, REQUEST_WORDS
from prompts.text.regex import regex
from prompts.text.words import fold, stem
from prompts.traverse import SURE, Operator, PlanStep, PlanTraversal, TraversalPlan
from storage.answer_records import QuestionType
from tasks.retrying import BRIEF
from tasks.step import step
from tasks.traverse.entity_names import Linked, NamedEntity
from tasks.traverse.meta_paths import MOST_NEAR, WordedPath, best_paths, step_score
from tasks.traverse.plan import CheckedStep, Problem, TraversalGraph, UnfitPlan, check
from tasks.traverse.relation_cues import Cue, cues_around, cues_in

_ASKS_IF = regex(r"^\W*(?:did|does|do|was|were|is|are|has|have|had)\b(?!.*\bor\b.*\bor\b)|是不是|是否|吗\W*$", re.I)
_COUNTED = regex(r"\bhow many\b|\b(?:count|number) (?:of )?(?:all )?the\b|\bwhat is the number of\b|多少|几个", re.I)
# What compares or excludes is planned by a model only.
_BEYOND_WORDS = regex(rf"\b(?:not|except|other than|without|{'|'.join(DIRECTION)})\b|n't\b", re.I)
_SHARED = regex(r"\b(?:both|common|shared?|same|mutual|also)\b|共同|都|相同", re.I)
_LINKED = regex(r"\b(?:connect|link|relat|associat|tie)\w*|关系|联系", re.I)
_IN_FIRST = "{1}"

Draft = TraversalPlan | Problem


@dataclass(frozen=True)
class Planned:
    """A question with its type and the steps that can be run on the graph, or why there are none."""

    question: str
    type: QuestionType
    confidence: float
    reason: str
    steps: tuple[CheckedStep, ...] | Problem

    @property
    def asks_if(self) -> bool:
        """Whether yes or no is asked."""
        return _ASKS_IF.search(self.question) is not None


def wrong_with(plan: TraversalPlan, graph: TraversalGraph) -> str:
    """Why a plan cannot be run on the graph, with what may have been meant; empty where it can."""
    checked = check(plan, graph)
    return checked.sentence() if isinstance(checked, Problem) else ""


@step("plan", BRIEF, asks_model=True)
async def plan(
    question: str, linked: Linked, graph: TraversalGraph, planner: PlanTraversal, *, imported: bool
) -> Planned:
    """Plan how the graph is to be walked: the type of question and the steps.

    By the planner's model where it is asked, else by the question's words. `imported`: the graph
    has all that the question names from imported triples.
    """
    return await helped(
        planner,
        lambda step: _planned(question, linked, graph, step, imported=imported),
        "the question's words give the plan",
    )


async def _planned(
    question: str, linked: Linked, graph: TraversalGraph, planner: PlanTraversal, *, imported: bool
) -> Planned:
    # Ordinary words, and names that the graph lacks, count only where two things may be meant.
    plain, every = ([name.text for name in linked.named if own or not name.doubtful] for own in (False, True))
    two = _ASKS_IF.search(question) or _LINKED.search(question)
    names = plain if len(plain) > 1 else [*every, *linked.unlinked] if two else plain or every
    typed = planner.typed_by_words(question, names)
    drafted = draft(question, typed.type, linked, graph)
    steps = check(drafted, graph) if isinstance(drafted, TraversalPlan) else drafted
    sure = typed.confidence >= SURE and not isinstance(steps, Problem)
    if not planner.asks(drafted=sure, named=bool(linked.named), imported=imported):
        return Planned(question, typed.type, typed.confidence, typed.reason, steps)
    entities = [entity for name in linked.named for entity in name.entities]
    relations = list(dict.fromkeys([*graph.leaving(entities), *graph.vocabulary.by_count()]))
    names = list(dict.fromkeys(graph.names_of(entities)))
    reply = await planner.run(question, names, linked.unlinked, ways_around(entities, graph), relations)
    return Planned(question, reply.type, 1.0, reply.reasoning, check(TraversalPlan(steps=reply.steps), graph))


def ways_around(entities: Sequence[str], graph: TraversalGraph) -> list[str]:
    """The relations that lead on from entities, in their direction: `Ada -[taught]->`, `Ada <-[taught]-`."""
    ways = [
        f"{name} <-[{relation}]-" if inverse else f"{name} -[{relation}]->"
        for entity, name in zip(entities, graph.names_of(entities), strict=True)
        for relation, inverse in graph.facts.leaving([entity])
    ]
    return list(dict.fromkeys(ways))


# --- a plan by the question's words ------------------------------------------------------------------------------


def draft(question: str, kind: QuestionType, linked: Linked, graph: TraversalGraph) -> Draft:
    """A plan for a question of a type, of relations that the graph has around what is named; or why there is none."""
    try:
        return TraversalPlan(steps=_Drafting(question, _names_in(question, kind, linked, graph), graph).steps(kind))
    except UnfitPlan as unfit:
        return unfit.problem


def _names_in(question: str, kind: QuestionType, linked: Linked, graph: TraversalGraph) -> list[NamedEntity]:
    """The names that a plan is about; of ordinary words only where two things must be named: "Is Ada an engineer?"."""
    names = [name for name in linked.named if not name.doubtful]
    if not names or (len(names) == 1 and kind in {"s*o", "spo"}):
        names = list(linked.named)
    unknown = [*linked.unlinked, *(word.strip("?.,!'\"") for word in question.split() if "_" in word and not names)]
    if unknown and (not names or (len(names) == 1 and kind in {"s*o", "spo"})):
        raise UnfitPlan(graph.unknown(unknown[0]))
    if not names:
        raise UnfitPlan(Problem("not in the graph", "the question names nothing that the graph knows."))
    return names


class _Drafting:
    """One question with the names that a plan is about; raises `UnfitPlan` where its words give none."""

    def __init__(self, question: str, names: Sequence[NamedEntity], graph: TraversalGraph) -> None:
        self.question, self.names, self.graph = question, names, graph
        self.bare = self.blanked(names)
        self.telling = [cue for cue in cues_in(self.bare) if not cue.asking]

    def steps(self, kind: QuestionType) -> tuple[PlanStep, ...]:
        """The steps for a question of this type."""
        for word in _BEYOND_WORDS.findall(self.bare) if kind not in {"s**", "s*o"} else ():
            if self.graph.vocabulary.worded_by(Cue(stem(fold(word)), word)) is None:
                raise UnfitPlan(Problem("bad plan", f'without a model, no steps are found for "{word}".'))
        first, *others = self.names
        if kind == "s**":
            return (PlanStep(operator="neighbours", sources=self.called(first)),)
        if kind == "nested":
            return self.nested()
        if kind == "sp*" or not others:
            return (self.along(self.best_of_all()[0], "count" if _COUNTED.search(self.question) else "follow"),)
        if kind == "spo" and self.telling:
            if _ASKS_IF.search(self.question) and not _SHARED.search(self.question):
                return (self.check(first, others[0]),)
            if not _LINKED.search(self.question):
                ways = [self.along(self.best_way(name)) for name in self.names[:2]]
                return (*ways, PlanStep(operator="intersect", sources=("{1}", "{2}")))
        return (PlanStep(operator="connect", sources=self.called(first), targets=self.called(*others)),)

    def nested(self) -> tuple[PlanStep, ...]:
        """First those that the question describes, then what it asks of them."""
        linking = {word for word in fold(self.question).split() if _LINKED.match(word)}
        way, name = self.best_of_all(REQUEST_WORDS | linking)
        others = [other for other in self.names if other is not name]
        if not others:
            return self.along(way), PlanStep(operator="neighbours", sources=(_IN_FIRST,))
        if len(others) == 1 and linking:
            return self.along(way), PlanStep(operator="connect", sources=self.called(*others), targets=(_IN_FIRST,))
        raise UnfitPlan(Problem("bad plan", "without a model, no steps are found that answer so nested a question."))

    def check(self, first: NamedEntity, second: NamedEntity) -> PlanStep:
        """Whether the worded relation leads from one of the two to the other."""
        tried = [
            (way, target)
            for source, target in ((second, first), (first, second))
            for way in self.ways(source, self.orders(source))
        ]
        if not tried:
            raise self.nothing_worded(self.telling, second)
        reaching = [(way, target) for way, target in tried if set(target.entities) & set(way.ends) and not way.left]
        way, target = max(reaching or tried, key=lambda pair: pair[0].score)
        return self.along(way, "check").model_copy(update={"targets": self.called(target)})

    def best_of_all(self, ignored: Collection[str] = ()) -> tuple[WordedPath, NamedEntity]:
        """The best worded way from any of the names, of equals the last name's."""
        ways: list[tuple[WordedPath, NamedEntity]] = []
        unfit: list[UnfitPlan] = []
        for name in self.names:
            try:
                ways.append((self.best_way(name, ignored), name))
            except UnfitPlan as reason:
                unfit.append(reason)
        if not ways:
            raise unfit[0]
        return max(reversed(ways), key=lambda pair: pair[0].score)

    def best_way(self, name: NamedEntity, ignored: Collection[str] = ()) -> WordedPath:
        """The meta-path from a name that the words around it describe best, without the `ignored` ones; a way that
        leaves out what the question asks for is none."""
        orders = self.orders(name, ignored)
        ways = self.ways(name, orders)
        if not ways:
            raise self.nothing_worded(orders[0], name)
        best = ways[0]
        for cue in best.left:
            relation = self.graph.vocabulary.worded_by(cue)
            if relation is not None and all(step_score(hop, (cue,))[1] is None for hop in best.hops):
                raise UnfitPlan(self.graph.no_such_way(best.ends, relation))
            if relation is None and cue.bound:
                raise UnfitPlan(self.graph.unknown_relation(cue.word, best.ends))
        if best.left and not best.worded:
            raise self.nothing_worded(orders[0], name)
        return best

    def orders(self, name: NamedEntity, ignored: Collection[str] = ()) -> list[tuple[Cue, ...]]:
        """The orders in which the words around a name may lead away from it, the other names left out."""
        dropped = {stem(word) for word in ignored}
        alone = self.blanked([other for other in self.names if other is not name])
        orders = cues_around(alone, name.start, name.end).orders()
        return [tuple(cue for cue in order if cue.key not in dropped) for order in orders]

    def ways(self, name: NamedEntity, orders: Sequence[Sequence[Cue]]) -> list[WordedPath]:
        """The meta-paths from a name that the cues describe, best first."""
        ways = [
            way for cues in orders for entity in name.entities for way in best_paths(self.graph.facts, entity, cues)
        ]
        return sorted(ways, key=lambda way: (-way.score, len(way.hops), way.hops, way.source))

    def nothing_worded(self, cues: Sequence[Cue], name: NamedEntity) -> UnfitPlan:
        """That the cues word no way from a name, with the ways that there are."""
        graph, entities = self.graph, name.entities
        relations = (graph.vocabulary.worded_by(cue) for cue in cues if not cue.asking)
        relation = next((relation for relation in relations if relation is not None), None)
        if relation is not None:
            return UnfitPlan(graph.no_such_way(entities, relation))
        if not cues:
            near = tuple(graph.leaving(entities)[:MOST_NEAR])
            return UnfitPlan(Problem("bad plan", "the question names no relation.", near))
        return UnfitPlan(graph.unknown_relation(max(cues, key=lambda cue: (cue.bound, not cue.asking)).word, entities))

    def along(self, way: WordedPath, operator: Operator = "follow") -> PlanStep:
        return PlanStep(operator=operator, sources=self.graph.names_of([way.source]), hops=way.hops)

    def called(self, *names: NamedEntity) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for named in names for name in self.graph.names_of(named.entities)))

    def blanked(self, names: Sequence[NamedEntity]) -> str:
        """The question with spaces for some names, so that places stay."""
        text = self.question
        for name in names:
            text = text[: name.start] + " " * (name.end - name.start) + text[name.end :]
        return text
