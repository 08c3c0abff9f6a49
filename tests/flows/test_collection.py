"""Questions about a whole collection: cited, read once, the same twice, few calls, and honest where
nothing is.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from flows.index import IndexOptions, index_documents
from flows.modes.local_search import local_search
from flows.query import answer_question
from flows.question import AskOptions, resources_for
from flows.runtime import Runtime, open_runtime
from flows.session import open_session
from flows.settings import load_settings
from storage.answer_records import Answer, Mode
from tests.copying import copy_of
from tests.server.client import Server

QUESTION = "What do the speakers say about flooding of the harbour?"
ROWS = (
    (
        "marl",
        (
            "Flooding threatens the harbour of Marl each spring, said Ada Korb. Marl Council raised"
            " the quay."
        ),
    ),
    (
        "velin",
        (
            "Ivo Lamm of Velin Ferry fears that flooding closes the harbour for weeks. Velin Ferry "
            "has nine boats."
        ),
    ),
    (
        "quay",
        (
            "Marl Council spends two million against flooding. Ada Korb called the walls of the "
            "harbour too low."
        ),
    ),
    (
        "gauge",
        (
            "The gauge at Orla Bridge warns of flooding in time. Tomas Reyd built the gauge for "
            "Marl Council."
        ),
    ),
    (
        "wells",
        (
            "After the flooding of 1953 salt stood in the wells of Brant Brewery. Brant Brewery dug"
            " deeper ones."
        ),
    ),
    (
        "pilots",
        (
            "Pilots of Velin Ferry moor in the upper harbour when flooding is near. Ivo Lamm trains"
            " them in Velin."
        ),
    ),
    (
        "museum",
        (
            "Orla Museum shows paintings by Nora Vint. Nora Vint left her letters to Orla Museum in"
            " 1920."
        ),
    ),
    (
        "choir",
        (
            "The choir of Saint Ansgar sings in Orla Museum at Easter. Nora Vint wrote two songs "
            "for Saint Ansgar."
        ),
    ),
)
NAMED = "What do Ada Korb and Ivo Lamm say about flooding in the harbour?"
BY_MODEL: tuple[Mode, ...] = ("direct", "hyde", "rq", "ts", "local", "global", "drift")


def written(folder: Path, rows: tuple[tuple[str, str], ...]) -> str:
    path = folder / "rows.jsonl"
    lines = [
        json.dumps({"id": name, "title": name.capitalize(), "text": text}) for name, text in rows
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


async def made(folder: Path, rows: tuple[tuple[str, str], ...]) -> Path:
    """A workspace with these documents, indexed offline."""
    runtime = open_runtime(load_settings({"workspace": folder / "ws", "embedding": "none"}))
    await index_documents([written(folder, rows)], IndexOptions(allow_removals=True), runtime)
    return folder / "ws"


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return asyncio.run(made(tmp_path_factory.mktemp("collection"), ROWS))


@pytest.fixture
def offline(collection: Path) -> Runtime:
    return open_runtime(
        load_settings({"workspace": collection, "embedding": "none", "memory": "off"})
    )


@pytest.fixture
async def served(collection: Path, model_server: Server, tmp_path: Path) -> AsyncIterator[Runtime]:
    """The same workspace with the scripted model in every role."""
    named = {"lm": "openai/scripted", "lm_base_url": model_server.base_url, "lm_api_key": "a key"}
    workspace = copy_of(collection, tmp_path / "ws")
    runtime = open_runtime(
        load_settings({"workspace": workspace, "embedding": "none", "memory": "off", **named})
    )
    yield runtime
    await runtime.models.aclose()


async def asked(
    runtime: Runtime, question: str = QUESTION, *, mode: Mode, level: int | None = None
) -> Answer:
    with open_session(runtime) as session:
        return await answer_question(question, AskOptions(mode=mode, level=level), session)


@pytest.mark.parametrize(
    ("mode", "level"), [("global", None), ("global", 0), ("global", 1), ("drift", None)]
)
async def test_many_sources_speak_each_with_its_place(
    mode: Mode, level: int | None, offline: Runtime
) -> None:
    answer = await asked(offline, mode=mode, level=level)
    assert answer.fallback == "partial"
    assert all(
        citation.verified and citation.quote in answer.answer for citation in answer.citations
    )
    assert len({citation.document for citation in answer.citations}) >= 5
    assert "museum" not in {citation.document for citation in answer.citations}
    assert answer.trace.reports
    told = [part.answer for part in answer.trace.subquestions]
    assert told
    assert all(text in answer.answer for text in told)
    if (mode, level) == ("global", None):
        heads = [line for line in answer.answer.split("\n") if not re.search(r"\[\d+\]$", line)]
        assert heads, "claims stand under what they share"
        assert all(line.endswith(":") for line in heads)
    assert (await asked(offline, mode=mode, level=level)).answer == answer.answer


async def test_local_brings_findings_from_around_what_is_named(offline: Runtime) -> None:
    question = "What is known of Orla Museum?"
    with open_session(offline) as session:
        options = AskOptions(mode="local")
        found = await local_search(await resources_for(question, options, session))
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
    answer = await asked(served, NAMED, mode=mode)
    if mode == "direct":
        assert (answer.fallback, answer.citations) == ("ungrounded", ())
    else:
        assert answer.citations
        assert all(citation.verified for citation in answer.citations)
    assert 1 <= answer.usage.calls == model_server.stats()["calls"] <= 9
    if mode in {"ts", "global", "drift"}:
        assert all(part.answer and part.evidence for part in answer.trace.subquestions)
        assert answer.trace.subquestions
    assert (await asked(served, NAMED, mode=mode)).answer == answer.answer
