"""A step that only helps ends no question; a profile spares steps; `k` bounds an answer's
passages.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from flows.modes.registry import find_mode
from flows.modes.structured_search import structured_search
from flows.query import answer_question
from flows.question import AskOptions, ModeResult, resources_for
from flows.session import Session, open_session
from prompts.engine.effort import GAINLESS
from prompts.engine.errors import AnswerMalformed, BadKey
from storage.answer_records import Effort, Mode
from tasks.route import SEARCH
from tests.copying import copy_of
from tests.flows.conftest import Command
from tests.flows.test_collection import NAMED, made
from tests.flows.test_collection import ROWS as TALKS
from tests.server.client import Server
from tests.workspaces import opened

HELPERS = (
    "rewrite",
    "choose",
    "route",
    "structurize",
    "filter",
    "decompose",
    "plan_table",
    "plan",
    "keywords",
    "rate",
    "partial",
    "explore",
    "hypothesize",
)
MODES: tuple[Mode, ...] = (
    "auto",
    "struct",
    "naive",
    "local",
    "low",
    "high",
    "hybrid",
    "mix",
    "global",
    "drift",
    "ts",
    "rq",
    "hyde",
    "traverse",
)
TIED = "Tell me about Nora Vint."  # the graph leads from her to two passages
PARTS = ("Who is Ada Korb?", "What does Ivo Lamm fear?")


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return asyncio.run(made(tmp_path_factory.mktemp("talks"), TALKS))


@pytest.fixture
async def session(collection: Path, model_server: Server, tmp_path: Path) -> AsyncIterator[Session]:
    """The talks on the scripted model, nothing of which is kept."""
    workspace = copy_of(collection, tmp_path / "ws")
    named = {
        "lm": "openai/scripted",
        "lm_base_url": model_server.base_url,
        "lm_api_key": "a key",
        "memory": "off",
    }
    runtime = opened(workspace, **named)
    with open_session(runtime) as session:
        yield session
    await runtime.models.aclose()


def failing(server: Server, kind: str = "malformed") -> None:
    """Every step that only helps gives nothing that can be used."""
    server.misbehave(*({"kind": kind, "step": step} for step in HELPERS))


@pytest.mark.parametrize("mode", MODES)
async def test_no_helping_step_ends_a_question(
    mode: Mode, session: Session, model_server: Server
) -> None:
    failing(model_server)
    question = TIED if mode == "traverse" else NAMED
    answer = await answer_question(question, AskOptions(mode=mode, effort="high"), session)
    assert answer.trace.answered_by == "model"
    assert answer.citations
    asked = {str(request["step"]) for request in model_server.requests()} - {"answer", "reduce"}
    assert asked
    assert {row.step for row in answer.trace.degraded} == asked
    assert all(row.reason and row.instead for row in answer.trace.degraded)


async def test_a_bad_key_of_a_helping_step_ends_the_question(
    session: Session, model_server: Server
) -> None:
    model_server.misbehave({"kind": "unauthorized", "step": "route"})
    with pytest.raises(BadKey):
        await answer_question(NAMED, AskOptions(mode="struct", effort="high"), session)


async def test_the_answer_itself_may_fail(session: Session, model_server: Server) -> None:
    model_server.misbehave({"kind": "malformed", "step": "answer"})
    with pytest.raises(AnswerMalformed):
        await answer_question(NAMED, AskOptions(mode="naive"), session)


async def test_a_part_without_an_answer_is_quoted(session: Session, model_server: Server) -> None:
    parts = {
        "kind": "writes",
        "step": "decompose",
        "says": json.dumps({"parts": {"questions": PARTS}}),
    }
    model_server.misbehave(parts, {"kind": "malformed", "step": "answer", "nth": 1, "times": 4})
    answer = await answer_question(NAMED, AskOptions(mode="struct", effort="high"), session)
    assert answer.trace.answered_by == "model"
    assert [row.question for row in answer.trace.subquestions] == list(PARTS)
    assert all(row.evidence for row in answer.trace.subquestions)
    assert {row.step for row in answer.trace.degraded} == {"answer"}
    assert sum(row.times for row in answer.trace.degraded) == len(PARTS)


# --- the profile ----------------------------------------------------------------------------------


def told(answer: Mapping[str, object]) -> dict[str, str]:
    trace = answer["trace"]
    assert isinstance(trace, dict)
    return {row["step"]: row["reason"] for row in trace["spared"]}


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
def test_a_small_model_is_asked_for_the_answer_alone(
    effort: Effort, copied: Command, model_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_PROFILE", "small")
    answer = copied("ask", NAMED, "--effort", effort, "--json").json
    assert [request["step"] for request in model_server.requests()] == ["answer"]
    assert answer["trace"]["profile"] == "small"
    assert {step for step, reason in told(answer).items() if reason == GAINLESS} == {
        "rewrite",
        "choose",
        "filter",
        "route",
        "decompose",
    }


@pytest.mark.parametrize(
    ("named", "asked"), [("filter;choose", {"choose", "filter", "answer"}), ("none", {"answer"})]
)
def test_a_setting_names_the_steps_that_help(
    named: str,
    asked: set[str],
    copied: Command,
    model_server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRELLIS_HELPER_STEPS", named)
    answer = copied("ask", NAMED, "--effort", "high", "--json").json
    assert {request["step"] for request in model_server.requests()} == asked
    assert "route" in told(answer)


# --- k --------------------------------------------------------------------------------------------


async def brought(session: Session, mode: Mode, k: int | None, effort: Effort) -> ModeResult:
    """What a mode lays before the answer step."""
    question = TIED if mode == "traverse" else NAMED
    resources = await resources_for(question, AskOptions(mode=mode, k=k, effort=effort), session)
    if mode == SEARCH:
        found = await resources.search.passages(resources.question.queries, resources.search.depth)
        return await structured_search(resources, found)
    return await find_mode(mode).run(resources)


def passages_of(result: ModeResult) -> set[str]:
    return {name for source in result.context.sources for name, _ in source.chunks}


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "auto"])
async def test_an_answer_is_made_of_at_most_k_passages(
    mode: Mode, session: Session, model_server: Server
) -> None:
    model_server.misbehave(
        {"kind": "malformed", "step": "plan"}
    )  # the scripted plan leads to one passage
    for k in (1, 2):
        some = await brought(session, mode, k, "high")
        assert 1 <= len(passages_of(some)) <= k
        shown = "\n".join(note.text for note in some.context.notes)
        assert f"[{len(some.context.sources) + 1}]" not in shown, (
            "no note points to what is not shown"
        )
    assert len(passages_of(await brought(session, mode, None, "high"))) > 1
