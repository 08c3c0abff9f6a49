"""A failing helping step ends no question, a profile spares steps, `k` bounds passages."""

import json
from collections.abc import AsyncIterator
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
from tests.flows.test_collection import NAMED, TEXTS
from tests.server.client import Server
from tests.workspaces import indexed, opened

HELPERS = [
    *"rewrite choose route structurize filter decompose plan_table plan keywords rate".split(),
    *"partial explore subquestions relevance hypothesize agent recognize".split(),
]
MODES: list[Mode] = [
    "auto",
    "struct",
    "naive",
    "local",
    "low",
    "high",
    "hybrid",
    "mix",
    "global",
    "lazy",
    "drift",
    "ts",
    "rq",
    "hyde",
    "traverse",
    "agent",
]
TIED = "Tell me about Nora Vint."  # the graph leads from her to two passages
PARTS = ("Who is Ada Korb?", "What does Ivo Lamm fear?")


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [{"id": name, "title": name.capitalize(), "text": text} for name, text in TEXTS.items()]
    return indexed(tmp_path_factory.mktemp("talks"), rows)


@pytest.fixture
async def session(collection: Path, model_server: Server, tmp_path: Path) -> AsyncIterator[Session]:
    """The talks on the scripted model."""
    model = {"lm": "openai/scripted", "lm_base_url": model_server.base_url, "lm_api_key": "k"}
    runtime = opened(copy_of(collection, tmp_path / "ws"), memory="off", **model)
    with open_session(runtime) as session:
        yield session
    await runtime.models.aclose()


def question_for(mode: Mode) -> str:
    return TIED if mode == "traverse" else NAMED


@pytest.mark.parametrize("mode", MODES)
async def test_no_helping_step_ends_a_question(
    mode: Mode, session: Session, model_server: Server
) -> None:
    model_server.misbehave(*({"kind": "malformed", "step": step} for step in HELPERS))
    options = AskOptions(mode=mode, effort="high")
    answer = await answer_question(question_for(mode), options, session)
    assert answer.trace.answered_by == "model"
    assert answer.citations
    asked = {str(request["step"]) for request in model_server.requests()} - {"answer", "reduce"}
    assert asked
    assert {row.step for row in answer.trace.degraded} == asked
    assert all(row.reason and row.instead for row in answer.trace.degraded)


@pytest.mark.parametrize(
    ("kind", "step", "mode", "error"),
    [
        ("unauthorized", "route", "struct", BadKey),
        ("malformed", "answer", "naive", AnswerMalformed),
    ],
)
async def test_a_bad_key_or_a_bad_answer_ends_a_question(
    kind: str,
    step: str,
    mode: Mode,
    error: type[Exception],
    session: Session,
    model_server: Server,
) -> None:
    model_server.misbehave({"kind": kind, "step": step})
    with pytest.raises(error):
        await answer_question(NAMED, AskOptions(mode=mode, effort="high"), session)


async def test_a_part_without_an_answer_is_quoted(session: Session, model_server: Server) -> None:
    says = json.dumps({"parts": {"questions": PARTS}})
    parts = {"kind": "writes", "step": "decompose", "says": says}
    model_server.misbehave(parts, {"kind": "malformed", "step": "answer", "nth": 1, "times": 4})
    answer = await answer_question(NAMED, AskOptions(mode="struct", effort="high"), session)
    assert answer.trace.answered_by == "model"
    assert [row.question for row in answer.trace.subquestions] == list(PARTS)
    assert all(row.evidence for row in answer.trace.subquestions)
    assert {row.step for row in answer.trace.degraded} == {"answer"}
    assert sum(row.times for row in answer.trace.degraded) == len(PARTS)


# --- the profile ----------------------------------------------------------------------------------


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
def test_a_small_model_is_asked_for_the_answer_alone(
    effort: Effort, copied: Command, model_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_PROFILE", "small")
    answer = copied("ask", NAMED, "--effort", effort, "--json").json
    assert [request["step"] for request in model_server.requests()] == ["answer"]
    assert answer["trace"]["profile"] == "small"
    spared = {row["step"] for row in answer["trace"]["spared"] if row["reason"] == GAINLESS}
    assert spared == {"rewrite", "choose", "filter", "route", "decompose"}


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
    assert "route" in {row["step"] for row in answer["trace"]["spared"]}


# --- k --------------------------------------------------------------------------------------------


async def brought(session: Session, mode: Mode, k: int | None) -> ModeResult:
    """What a mode gives to the answer step."""
    options = AskOptions(mode=mode, k=k, effort="high")
    resources = await resources_for(question_for(mode), options, session)
    if mode == SEARCH:
        found = await resources.search.passages(resources.question.queries, resources.search.depth)
        return await structured_search(resources, found)
    return await find_mode(mode).run(resources)


def passages_of(result: ModeResult) -> set[str]:
    return {name for source in result.context.sources for name, _ in source.chunks}


@pytest.mark.parametrize("mode", MODES[1:])
async def test_an_answer_is_made_of_at_most_k_passages(
    mode: Mode, session: Session, model_server: Server
) -> None:
    model_server.misbehave({"kind": "malformed", "step": "plan"})  # which finds one passage
    for k in (1, 2):
        some = await brought(session, mode, k)
        assert 1 <= len(passages_of(some)) <= k
        shown = "\n".join(note.text for note in some.context.notes)
        assert f"[{len(some.context.sources) + 1}]" not in shown, "a note cites what is not shown"
    assert len(passages_of(await brought(session, mode, None))) > 1
