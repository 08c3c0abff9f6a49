"""Decomposing and planning: a model takes a question apart, and plans a walk over the graph."""

import asyncio
from collections.abc import Iterator

import pytest

from flows.session import Session, open_session
from prompts.decompose import Decompose
from prompts.engine.effort import LIMITS, Effort
from prompts.engine.errors import AnswerMalformed
from prompts.engine.messages import NotAsAsked
from prompts.traverse import Hop, PlannedQuestion, PlanStep, PlanTraversal
from tasks.answer import Answered
from tasks.decompose import PartAnswer, answer_parts, decompose
from tasks.traverse.entity_names import link
from tasks.traverse.planning import Planned, plan, wrong_with
from tests.query.steps import scripted, sent, spared
from tests.workspaces import indexed, opened

QUESTION = "Did the architect of Tarn Hall die before the hall burned down?"
PARTS = [
    "Who was the architect of Tarn Hall?",
    "When did {1} die?",
    "When did Tarn Hall burn down?",
]


def answered(question: str, text: str, *values: str) -> PartAnswer:
    fallback = "none" if text else "abstained"
    return PartAnswer(question, Answered(text, values, (), (), fallback, "model"))  # type: ignore[arg-type]


async def test_the_parts_of_a_model_are_taken_as_they_are() -> None:
    step = scripted(Decompose, {"questions": PARTS})
    knowledge = ["Tarn Hall: 2 elements " * 9] * 2_000
    assert await decompose(QUESTION, knowledge, False, step) == PARTS
    assert len(sent(step)[0]) < 5 * LIMITS["medium"].rate


async def test_a_plain_question_is_spared_but_not_at_high_effort() -> None:
    medium = scripted(Decompose)
    assert await decompose("Who designed it?", [], True, medium) == ["Who designed it?"]
    assert "decompose" in spared(medium)
    high = scripted(Decompose, {"questions": PARTS[:1]}, effort="high")
    assert await decompose("Who designed it?", [], True, high) == PARTS[:1]
    assert spared(high) == {}


async def test_at_low_effort_a_question_stays_whole_and_the_structures_are_read_at_once() -> None:
    low = scripted(Decompose, effort="low")
    assert await decompose(QUESTION, ["Tarn Hall: 2 elements"], False, low) == [QUESTION]
    assert "decompose" in spared(low)


async def test_a_part_that_needs_a_later_one_is_asked_for_again() -> None:
    made = scripted(Decompose, *[{"questions": ["When did {2} die?", "Who was it?"]}] * 2)
    assert await decompose(QUESTION, [], False, made) == [QUESTION]
    assert len(sent(made)) == 2
    (row,) = made.models.meter.degraded()
    assert "does not come before it" in row.reason
    assert row.instead == "the question is answered whole"


async def test_links_are_filled_in_and_the_rest_goes_on_side_by_side() -> None:
    asked: list[str] = []
    second = asyncio.Event()

    async def answer_part(part: str) -> PartAnswer:
        asked.append(part)
        if part.startswith("Who"):
            await second.wait()  # answered only after the third question was asked
            return answered(part, "It was Ana Korb [1].", "Ana Korb")
        if part.startswith("When did Tarn"):
            second.set()
        return answered(part, "1931 [1].", "1931")

    found = await answer_parts(PARTS, answer_part)
    assert asked == [PARTS[0], PARTS[2], "When did Ana Korb die?"]
    assert [one.question for one in found] == [PARTS[0], "When did Ana Korb die?", PARTS[2]]


async def test_an_unanswered_question_is_filled_in_itself() -> None:
    async def answer_part(part: str) -> PartAnswer:
        return answered(part, "" if part.startswith("Who") else "1931 [1, 2].")

    found = await answer_parts(PARTS[:2], answer_part)
    assert found[1].question == "When did (Who was the architect of Tarn Hall) die?"


async def test_a_part_that_fails_ends_the_others() -> None:
    async def answer_part(part: str) -> PartAnswer:
        if part.startswith("Who"):
            raise AnswerMalformed("no answer", "try again")
        await asyncio.Event().wait()
        return answered(part, "never")

    with pytest.raises(AnswerMalformed):
        await answer_parts(PARTS, answer_part)


# --- plans ----------------------------------------------------------------------------------------

FACTS = (
    ("Orla Bridge", "designed by", "Tomas Reyd"),
    ("Tarn Bridge", "designed by", "Tomas Reyd"),
    ("Ilse Marrand", "taught", "Tomas Reyd"),
    ("Ilse Marrand", "birthplace", "Velin"),
    ("Orla Bridge", "opened in", "1931"),
    ("Tarn Bridge", "opened in", "1926"),
)
CHAIN = "Who taught the designer of Orla Bridge?"
PLAIN = "What is the birthplace of Ilse Marrand?"
VAGUE = "Orla Bridge: mentor?"
NOBODY = "Who is the father of Zed Quorn?"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    rows = [dict(zip("spo", fact, strict=True)) for fact in FACTS]
    with open_session(opened(indexed(tmp_path_factory.mktemp("bridges"), rows))) as session:
        yield session


def planner(session: Session, *answers: object, effort: Effort = "medium") -> PlanTraversal:
    graph = session.graph.traversal
    return scripted(
        PlanTraversal, *answers, effort=effort, wrong_with=lambda made: wrong_with(made, graph)
    )


async def planned(
    question: str, session: Session, step: PlanTraversal, *, imported: bool = True
) -> Planned:
    graph = session.graph.traversal
    linked = await link(question, graph.spellings)
    return await plan(question, linked, graph, step, imported=imported)


def made(kind: str, *steps: PlanStep) -> dict[str, object]:
    return {
        "reasoning": "so it leads on",
        "type": kind,
        "steps": [one.model_dump(mode="json") for one in steps],
    }


def follow(source: str, *hops: tuple[str, bool]) -> PlanStep:
    walked = tuple(Hop(relation=name, inverse=back) for name, back in hops)
    return PlanStep(operator="follow", sources=(source,), hops=walked)


AROUND = PlanStep(operator="neighbours", sources=("Ilse Marrand",))


@pytest.mark.parametrize(
    ("question", "kind", "steps"),
    [
        (CHAIN, "sp*", [follow("Orla Bridge", ("designed by", False), ("taught", True))]),
        (PLAIN, "s**", [AROUND]),
        (
            "Which of his bridges is the oldest, Tomas Reyd?",
            "nested",
            [
                follow("Tomas Reyd", ("designed by", True)),
                PlanStep(operator="min", sources=("{1}",), hops=(Hop(relation="opened in"),)),
            ],
        ),
    ],
)
async def test_a_plan_that_the_graph_can_run_is_taken_whole(
    question: str, kind: str, steps: list[PlanStep], session: Session
) -> None:
    step = planner(session, made(kind, *steps), effort="high")
    found = await planned(question, session, step)
    assert isinstance(found.steps, tuple)
    assert [
        (one.operator, tuple(operand.text for operand in one.sources), one.hops)
        for one in found.steps
    ] == [(one.operator, one.sources, one.hops) for one in steps]
    assert (found.type, found.reason) == (kind, "so it leads on")
    (asked,) = sent(step)
    assert '"taught"' in asked
    assert ("Orla Bridge -[designed by]->" in asked) is ("Orla" in question)


def test_the_nearest_relation_is_suggested_once_only(session: Session) -> None:
    step = planner(session)
    wrong = PlannedQuestion(type="sp*", steps=(follow("Orla Bridge", ("designed", False)),))
    with pytest.raises(NotAsAsked, match=r'no relation "designed"\. Nearest: designed by'):
        step.check({"plan": wrong}, {})
    step.check({"plan": wrong}, {})


@pytest.mark.parametrize(
    ("question", "imported", "asked"),
    [
        (CHAIN, True, {"high"}),
        (PLAIN, True, {"high"}),
        (PLAIN, False, {"low", "medium", "high"}),
        (VAGUE, True, {"low", "medium", "high"}),
        (NOBODY, True, {"high"}),
    ],
)
@pytest.mark.parametrize("effort", ["low", "medium", "high"])
async def test_a_model_is_asked_by_effort(
    question: str, imported: bool, asked: set[str], effort: Effort, session: Session
) -> None:
    step = planner(session, made("s**", AROUND), effort=effort)
    found = await planned(question, session, step, imported=imported)
    assert (len(sent(step)), "plan" in spared(step)) == (effort in asked, effort not in asked)
    assert (found.reason == "so it leads on") is (effort in asked)
