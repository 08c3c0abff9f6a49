"""A plan is data that is checked against the graph before it runs; steps run in order, each with what it found."""

import pytest

from flows.session import Session
from prompts.traverse import MAX_STEPS, Hop, PlanStep, TraversalPlan
from tasks.traverse.plan import CheckedStep, Problem, StepResult, check, traverse

CHILDREN = Hop(relation="children")


def follow(*sources: str, hops: tuple[Hop, ...] = (CHILDREN,)) -> PlanStep:
    return PlanStep(operator="follow", sources=sources, hops=hops)


def plan(*steps: PlanStep) -> TraversalPlan:
    return TraversalPlan(steps=steps)


def checked(session: Session, *steps: PlanStep) -> tuple[CheckedStep, ...]:
    found = check(plan(*steps), session.graph.traversal)
    assert not isinstance(found, Problem), found.sentence()
    return found


async def names(session: Session, *steps: PlanStep) -> list[set[str] | str]:
    """What each step finds: names or values, or the sentence of its Problem."""
    outcomes = await traverse(checked(session, *steps), session.graph.traversal)
    graph = session.graph.traversal
    return [
        set(one.values or graph.names_of(one.entities)) if isinstance(one, StepResult) else one.sentence()
        for one in outcomes
    ]


@pytest.mark.parametrize(
    ("steps", "kind", "says"),
    [
        ((follow("ada_vell", hops=(Hop(relation="offspring"),)),), "bad plan", 'no relation "offspring"'),
        ((follow("zed_quorn"),), "not in the graph", '"zed_quorn"'),
        ((follow("{1}"),), "bad plan", "no earlier step"),
        ((follow("ada_vell"), follow("{2}")), "bad plan", "no earlier step"),
        ((follow("ada_vell", hops=()),), "bad plan", "names no relation"),
        ((PlanStep(operator="connect", sources=("ada_vell",)),), "bad plan", "nothing to reach"),
        ((PlanStep(operator="intersect", sources=("ada_vell",)),), "bad plan", "two results"),
        ((follow("*"),), "bad plan", "from everything"),
    ],
)
def test_what_the_graph_cannot_run_is_refused_with_the_reason(
    steps: tuple[PlanStep, ...], kind: str, says: str, session: Session
) -> None:
    problem = check(plan(*steps), session.graph.traversal)
    assert isinstance(problem, Problem)
    assert (problem.kind, says in problem.reason) == (kind, True)


def test_an_unknown_relation_comes_with_the_nearest(session: Session) -> None:
    for meant, relation in (("offspring", "children"), ("place of berth", "place_of_birth"), ("wife", "spouse")):
        problem = check(plan(follow("ada_vell", hops=(Hop(relation=meant),))), session.graph.traversal)
        assert isinstance(problem, Problem)
        assert problem.nearest[0] == relation


def test_a_relation_is_known_however_it_is_spaced_or_capitalised(session: Session) -> None:
    (step,) = checked(session, follow("bruno_vell", hops=(Hop(relation="Place of Birth"),)))
    assert step.hops[0].relation == "place_of_birth"


def test_more_steps_than_the_cap_are_no_plan() -> None:
    with pytest.raises(ValueError, match="at most"):
        plan(*[follow("ada_vell")] * (MAX_STEPS + 1))


LOST = follow("bruno_vell", hops=(Hop(relation="religion"),))
UP = Hop(relation="children", inverse=True)
PAIR = {"bruno_vell", "cleo_vell"}


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (
            (follow("ada_vell"), follow("{1}"), PlanStep(operator="count", sources=("{2}",))),
            [PAIR, {"edda_vell", "finn_vell", "gus_arlen"}, {"3"}],
        ),
        # nothing to take away leaves the first
        (
            (follow("ada_vell"), follow("hermit_oyl"), PlanStep(operator="difference", sources=("{1}", "{2}"))),
            [PAIR, None, PAIR],
        ),
        # a way may go against its relations
        ((follow("gus_arlen", hops=(UP, UP)),), [{"ada_vell", "dov_arlen"}]),
    ],
)
async def test_steps_run_in_order_and_hand_on_what_they_found(
    steps: tuple[PlanStep, ...], found: list[set[str] | None], session: Session
) -> None:
    given = await names(session, *steps)
    assert [one if isinstance(one, set) else None for one in given] == found


async def test_a_step_that_needs_one_without_a_result_has_its_problem(session: Session) -> None:
    lost, after, other = await names(session, LOST, follow("{1}"), follow("ada_vell"))
    assert lost == after
    assert str(lost).startswith("No path: the graph states no `religion` of bruno_vell.")
    assert other == PAIR


async def test_what_is_shared_and_sorted_is_counted_in_the_database(session: Session) -> None:
    born = (Hop(relation="date_of_birth"),)
    outcomes = await traverse(
        checked(session, PlanStep(operator="sort", sources=("ada_vell", "dov_arlen"), hops=born)),
        session.graph.traversal,
    )
    assert isinstance(outcomes[0], StepResult)
    assert session.graph.traversal.names_of(outcomes[0].entities) == ("dov_arlen", "ada_vell")


async def test_paths_may_be_bound_to_relations(session: Session) -> None:
    def between(*relations: str) -> PlanStep:
        hops = tuple(Hop(relation=relation) for relation in relations)
        return PlanStep(operator="connect", sources=("ada_vell",), targets=("dov_arlen",), hops=hops)

    found = await traverse(checked(session, between("children"), between("religion")), session.graph.traversal)
    assert isinstance(found[0], StepResult)
    assert {relation.predicate for chain in found[0].chains for relation in chain} == {"children"}
    assert isinstance(found[1], Problem)
    assert found[1].kind == "no path"
