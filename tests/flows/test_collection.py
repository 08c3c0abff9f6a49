"""Questions about a whole collection: cited, the same each time, and answered with few calls."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from flows.modes.local_search import local_search
from flows.question import AskOptions, resources_for
from flows.runtime import Runtime
from flows.session import open_session
from storage.answer_records import Answer, Mode
from tests.copying import copy_of
from tests.server.client import Server
from tests.workspaces import asked, indexed, opened

QUESTION = "What do the speakers say about flooding of the harbour?"
NAMED = "What do Ada Korb and Ivo Lamm say about flooding in the harbour?"
BY_MODEL: tuple[Mode, ...] = ("direct", "hyde", "rq", "ts", "local", "global", "drift")
TEXTS = {
    "marl": "Flooding threatens the harbour of Marl each spring, said Ada Korb. Marl Council raised"
    " the quay.",
    "velin": "Ivo Lamm of Velin Ferry fears that flooding closes the harbour for weeks. Velin Ferry"
    " has nine boats.",
    "quay": "Marl Council spends two million against flooding. Ada Korb called the walls of the"
    " harbour too low.",
    "gauge": "The gauge at Orla Bridge warns of flooding in time. Tomas Reyd built the gauge for"
    " Marl Council.",
    "wells": "After the flooding of 1953 salt stood in the wells of Brant Brewery. Brant Brewery"
    " dug deeper ones.",
    "pilots": "Pilots of Velin Ferry moor in the upper harbour when flooding is near. Ivo Lamm"
    " trains them in Velin.",
    "museum": "Orla Museum shows paintings by Nora Vint. Nora Vint left her letters to Orla Museum"
    " in 1920.",
    "choir": "The choir of Saint Ansgar sings in Orla Museum at Easter. Nora Vint wrote two songs"
    " for Saint Ansgar.",
}


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [{"id": name, "title": name.capitalize(), "text": text} for name, text in TEXTS.items()]
    return indexed(tmp_path_factory.mktemp("collection"), rows)


@pytest.fixture
def offline(collection: Path) -> Runtime:
    return opened(collection, memory="off")


@pytest.fixture
async def served(collection: Path, model_server: Server, tmp_path: Path) -> AsyncIterator[Runtime]:
    """A copy of the workspace, with the scripted model in every role."""
    model = {"lm": "openai/scripted", "lm_base_url": model_server.base_url, "lm_api_key": "a key"}
    runtime = opened(copy_of(collection, tmp_path / "ws"), memory="off", **model)
    yield runtime
    await runtime.models.aclose()


async def answered(question: str, runtime: Runtime, mode: Mode, level: int | None = None) -> Answer:
    with open_session(runtime) as session:
        return await asked(question, session, mode=mode, level=level)


@pytest.mark.parametrize(
    ("mode", "level"), [("global", None), ("global", 0), ("global", 1), ("drift", None)]
)
async def test_many_sources_speak_each_with_its_place(
    mode: Mode, level: int | None, offline: Runtime
) -> None:
    answer = await answered(QUESTION, offline, mode, level)
    assert answer.fallback == "partial"
    assert all(cited.verified and cited.quote in answer.answer for cited in answer.citations)
    documents = {citation.document for citation in answer.citations}
    assert len(documents) >= 5
    assert "museum" not in documents
    assert answer.trace.reports
    parts = [part.answer for part in answer.trace.subquestions]
    assert parts
    assert all(text in answer.answer for text in parts)
    if (mode, level) == ("global", None):
        heads = [line for line in answer.answer.split("\n") if not re.search(r"\[\d+\]$", line)]
        assert heads, "claims stand under what they share"
        assert all(line.endswith(":") for line in heads)
    assert (await answered(QUESTION, offline, mode, level)).answer == answer.answer


async def test_local_brings_findings_from_around_what_is_named(offline: Runtime) -> None:
    with open_session(offline) as session:
        options = AskOptions(mode="local")
        resources = await resources_for("What is known of Orla Museum?", options, session)
        found = await local_search(resources)
    (findings,) = (
        note.text for note in found.context.notes if note.label == "Findings of community reports"
    )
    numbers = [int(number) for number in re.findall(r"\[(\d+)\]$", findings, re.M)]
    assert {found.context.sources[number - 1].document for number in numbers} == {"museum", "choir"}
    assert all(line.startswith(f"- {found.reports[0].title}: ") for line in findings.splitlines())


@pytest.mark.parametrize("mode", BY_MODEL)
async def test_a_model_answers_in_each_mode_with_few_calls(
    mode: Mode, served: Runtime, model_server: Server
) -> None:
    answer = await answered(NAMED, served, mode)
    if mode == "direct":
        assert (answer.fallback, answer.citations) == ("ungrounded", ())
    else:
        assert answer.citations
        assert all(citation.verified for citation in answer.citations)
    assert 1 <= answer.usage.calls == model_server.stats()["calls"] <= 9
    if mode in {"ts", "global", "drift"}:
        assert answer.trace.subquestions
        assert all(part.answer and part.evidence for part in answer.trace.subquestions)
    assert (await answered(NAMED, served, mode)).answer == answer.answer
