"""Each mode keeps to what it is and to the filter; auto chooses a mode and says why."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.modes.registry import mode_names, modes
from flows.query import answer_question, ask, retrieve_passages
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import load_settings
from prompts.engine.streaming import Withdrawn
from storage.answer_records import Answer, Mode, ModeDecision
from storage.errors import SettingsError, UsageError
from tests.copying import copy_of
from tests.server.client import Server
from tests.workspaces import indexed as rows_indexed

DESIGNER = "Who designed Orla Bridge?"
LEVELS: tuple[Mode, ...] = ("low", "high", "hybrid", "mix")


def documents_of(answer: Answer) -> set[str]:
    found = {passage.document for passage in answer.passages}
    return found | {citation.document for citation in answer.citations}


@pytest.mark.parametrize("mode", LEVELS)
def test_a_mode_answers_from_tables_with_sources(mode: Mode, indexed: Path) -> None:
    answer = ask(DESIGNER, workspace=indexed, mode=mode)
    assert "Tomas Reyd" in answer.answer
    assert answer.citations
    assert all(citation.verified for citation in answer.citations)
    assert (answer.trace.mode, answer.trace.structure) == (mode, "graph")
    assert answer.trace.trigger == (), "a mode that is asked for searches; memory has no part in it"


def test_the_caller_chooses_structure_and_documents(indexed: Path) -> None:
    answer = ask(
        DESIGNER, workspace=indexed, mode="hybrid", structure="chunk", documents=["bridge"]
    )
    route = answer.trace.route
    assert (answer.trace.structure, route.reason) == ("chunk", "asked for by the caller")
    assert documents_of(answer) == {"bridge"}


def test_a_name_that_nothing_has_is_in_the_trace(indexed: Path) -> None:
    answer = ask("Did Zorblax Quimby design Orla Bridge?", workspace=indexed)
    assert answer.trace.unlinked == ("Zorblax Quimby",)


# --- auto ---

DIARIES = {
    "Marit": "Marit complains about the cold quay. The ferry was late again on Monday.",
    "Ivo": "Ivo complains about the late ferry. He repaired the lamp of the quay.",
    "Ana": "Ana complains about the price of coal. Her brother sailed to Velin.",
    "Tilde": "Tilde complains about the late ferry and the fog. Tilde was born in Velin.",
    "Ulf": "Ulf complains about noise at the quay. The late ferry woke him twice.",
}
TRIPLES = (
    {"s": "Tiger Moth", "p": "designed by", "o": "Geoffrey Halland"},
    {"s": "Geoffrey Halland", "p": "born in", "o": "Terriers"},
    {"s": "Geoffrey Halland", "p": "spouse", "o": "Louise Thorn"},
)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Diaries, and a graph of triples about other things."""
    rows = [
        {"id": name.lower(), "title": f"{name}'s diary", "text": text}
        for name, text in DIARIES.items()
    ]
    return rows_indexed(tmp_path_factory.mktemp("mixed"), [*rows, *TRIPLES])


@pytest.fixture
def session(mixed: Path) -> Iterator[Session]:
    with open_session(open_runtime(load_settings({"workspace": mixed, "memory": "off"}))) as opened:
        yield opened


async def decided(
    question: str, session: Session, options: AskOptions | None = None
) -> tuple[Answer, ModeDecision]:
    answer = await answer_question(question, options or AskOptions(), session)
    assert answer.trace.decision is not None
    assert answer.trace.mode == answer.trace.decision.mode
    return answer, answer.trace.decision


async def test_a_chain_of_triples_is_walked_and_what_texts_speak_of_is_searched(
    session: Session,
) -> None:
    answer, decision = await decided("Who is the spouse of the designer of Tiger Moth?", session)
    assert (answer.values, decision.mode, decision.tried) == (("Louise Thorn",), "traverse", ())
    assert (answer.fallback, "triples" in decision.reason) == ("partial", True)
    assert all(citation.verified for citation in answer.citations)
    answer, decision = await decided("Where was Tilde born?", session)
    assert ("Velin" in answer.answer, decision.mode) == (True, "struct")


async def test_where_the_choice_gives_nothing_the_next_mode_answers(session: Session) -> None:
    shown: list[object] = []
    options = AskOptions(on_text=shown.append)
    answer, decision = await decided("What about zeppelins?", session, options)
    assert answer.fallback == "abstained"
    assert (decision.mode, [one.mode for one in decision.tried]) == ("struct", ["drift"])
    assert any(isinstance(one, Withdrawn) for one in shown)


# --- filters ---

LENGTH = "How long is Orla Bridge?"
ROWS = [
    {"id": "old", "title": "Orla Bridge", "text": "Orla Bridge is 412 metres long.", "year": 1999},
    {
        "id": "new",
        "title": "Orla Bridge, surveyed again",
        "text": "Orla Bridge is 430 metres long.",
        "year": 2020,
    },
    {
        "id": "ivo",
        "title": "Ivo Lamm",
        "text": "Ivo Lamm painted Orla Bridge. Ada Korb taught Ivo Lamm.",
        "year": 1960,
    },
]
NEED_A_MODEL: tuple[Mode, ...] = ("direct", "hyde")
NEED_MORE = (*NEED_A_MODEL, "facts")  # the last one needs a schema: tests/facts


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rows_indexed(tmp_path_factory.mktemp("dated"), ROWS)


@pytest.mark.parametrize("mode", [mode for mode in mode_names() if mode not in NEED_MORE])
@pytest.mark.parametrize(
    "asked", [LENGTH, "How are Ada Korb and Orla Bridge connected?", "What is Orla Bridge about?"]
)
def test_no_mode_looks_beyond_the_filter(dated: Path, mode: Mode, asked: str) -> None:
    answer = ask(asked, workspace=dated, mode=mode, where="document = 'old'")
    assert documents_of(answer) <= {"old"}
    assert "430" not in answer.answer
    assert "Lamm" not in answer.answer


@pytest.mark.parametrize("mode", NEED_A_MODEL)
def test_what_only_a_model_can_answer_says_so(dated: Path, mode: Mode) -> None:
    with pytest.raises(UsageError, match="needs a model that writes"):
        ask(LENGTH, workspace=dated, mode=mode)


# --- the registry ---

OTHERS = """
from flows.modes.basic_search import naive
from flows.modes.query_mode import QueryMode
MINE = QueryMode("mine", naive)
"""


def test_another_package_adds_a_mode(
    indexed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "others_mode.py").write_text(OTHERS)
    installed = tmp_path / "others_mode-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: others-mode\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[trellis.modes]\nmine = others_mode:MINE\n")
    monkeypatch.syspath_prepend(tmp_path)
    modes.cache_clear()
    try:
        assert ask(DESIGNER, workspace=indexed, mode="mine").trace.mode == "mine"
    finally:
        modes.cache_clear()


def test_a_mode_that_does_not_exist_is_named(indexed: Path) -> None:
    with pytest.raises(SettingsError, match="mode cannot be 'locl'"):
        ask(DESIGNER, workspace=indexed, mode="locl")


@pytest.mark.parametrize("mode", LEVELS)
async def test_one_short_call_comes_before_the_search(
    mode: Mode, indexed: Path, model_server: Server, tmp_path: Path
) -> None:
    runtime = open_runtime(load_settings({"workspace": copy_of(indexed, tmp_path / "ws")}))
    with open_session(runtime) as session:
        found = await retrieve_passages(
            "Where was the designer of Orla Bridge born?", AskOptions(mode=mode), session
        )
    await runtime.models.aclose()
    assert list(found.usage.by_step) == ["keywords"]
    assert found.usage.calls == model_server.stats()["calls"] == 1
    assert 0 < found.usage.output_tokens <= 100
