"""Propositions: listed for each passage, bound to its sentences, found by their vectors."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from flows.index import IndexOptions, build_index
from flows.operations.retry import retry
from flows.runtime import Runtime
from flows.session import open_session
from prompts.engine.embedders import Embedder, Floats
from prompts.propositions import LONGEST, MOST_LISTED, ListPropositions, ListStatements
from prompts.propositions import PropositionListed as Listed
from prompts.text.segment import sentences
from storage.database import Database
from storage.propositions import Proposition, PropositionStore
from storage.run_records import IndexReport
from tasks.propositions import bound
from tests.records import chunk_of
from tests.server.client import Server
from tests.workspaces import opened, write_rows

TEXT = "Orla Bridge was designed by Tomas Reyd. It opened in 1931. 它由托马斯·雷德设计。"
ROWS = [
    {"id": "bridge", "title": "Orla Bridge", "text": TEXT},
    {"id": "mill", "title": "Holm Mill", "text": "Holm Mill grinds salt. It is old."},
]
WORDS = ("orla", "reyd", "1931", "holm", "mill", "salt", "old", "grinds")


class WordEmbedder(Embedder):
    """Vectors that say which of a few words a text has."""

    width = len(WORDS) + 1
    max_tokens = 256

    def __init__(self) -> None:
        super().__init__("words", None)
        self.texts: list[str] = []

    def reads(self, text: str) -> bool:
        return True

    def _encode(self, texts: list[str], query: bool) -> Floats:
        self.texts += texts
        return np.array(
            [[0.1, *(float(word in text.lower()) for word in WORDS)] for text in texts], np.float32
        )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", ROWS)


def runtime_on(tmp_path: Path, server: Server, **settings: object) -> Runtime:
    tmp_path.mkdir(exist_ok=True)
    model = {"lm": "openai/m", "lm_base_url": server.base_url, "lm_api_key": "k"}
    runtime = opened(tmp_path / "ws", **{**model, "propositions": True, **settings})
    return dataclasses.replace(runtime, embedder=WordEmbedder())


async def run(source: Path, runtime: Runtime, full: bool = False) -> IndexReport:
    return await build_index([source], IndexOptions(full=full), runtime)


def stored(runtime: Runtime) -> list[Proposition]:
    with runtime.workspace.read() as generation:
        return generation.propositions.propositions()


def asked(server: Server) -> int:
    return [request["step"] for request in server.requests()].count("propositions")


async def test_each_is_bound_to_its_sentence(
    source: Path, tmp_path: Path, model_server: Server
) -> None:
    runtime = runtime_on(tmp_path, model_server)
    await run(source, runtime)
    with runtime.workspace.read() as generation:
        texts = {one.id: one.text for one in generation.documents.texts(["bridge", "mill"])}
        chunks = {chunk.id: chunk for chunk in generation.documents.chunks()}
        made = generation.propositions.propositions()
        windows = {row.id for row in generation.vectors.windows()}
    said = {one.text: texts[chunks[one.chunk].document][one.start : one.end] for one in made}
    assert said["Orla Bridge: It opened in 1931."] == "It opened in 1931."
    assert said["Holm Mill: It is old."] == "It is old."
    assert len(windows) == len(chunks) + len(made)


async def test_a_question_near_to_one_finds_its_passage(
    source: Path, tmp_path: Path, model_server: Server
) -> None:
    with_them = runtime_on(tmp_path / "with", model_server)
    without = runtime_on(tmp_path / "without", model_server, propositions=False)
    nearest = []
    for runtime in (with_them, without):
        await run(source, runtime)
        with open_session(runtime) as session:
            (near,) = session.dense(["Holm Mill old"])
            nearest.append({session.index.chunk(name).document: near[name] for name in near})
    assert nearest[0]["mill"] > 0.99 > nearest[1]["mill"]
    assert nearest[0].keys() == nearest[1].keys() == {"bridge", "mill"}


async def test_only_new_passages_are_asked_about(
    source: Path, tmp_path: Path, model_server: Server
) -> None:
    runtime = runtime_on(tmp_path, model_server)
    await run(source, runtime)
    assert asked(model_server) == 2
    write_rows(source, [*ROWS, {"id": "new", "title": "Quay", "text": "Salt lies on the quay."}])
    again = runtime_on(tmp_path, model_server)
    await run(source, again)
    assert asked(model_server) == 3
    assert isinstance(again.embedder, WordEmbedder)
    assert "Quay: Salt lies on the quay." in again.embedder.texts
    assert not any("It is old." in text for text in again.embedder.texts)


async def test_switched_off_they_and_their_windows_go(
    source: Path, tmp_path: Path, model_server: Server
) -> None:
    await run(source, runtime_on(tmp_path, model_server))
    off = runtime_on(tmp_path, model_server, propositions=False)
    await run(source, off)
    with off.workspace.read() as generation:
        assert generation.propositions.propositions() == []
        assert len(generation.vectors.windows()) == len(generation.documents.chunks())


async def test_a_failed_passage_is_tried_again(
    source: Path, tmp_path: Path, model_server: Server
) -> None:
    model_server.misbehave(
        {"kind": "malformed", "step": "propositions", "text": "Holm Mill", "times": 9}
    )
    runtime = runtime_on(tmp_path, model_server, failure_limit=1)
    report = await run(source, runtime)
    assert report.dead_letters == 1
    with runtime.workspace.read() as generation:
        (letter,) = generation.extractions.dead_letters()
    assert letter.step == "propositions"
    model_server.reset()
    again = runtime_on(tmp_path, model_server)
    assert (await retry(again)).succeeded == 1
    assert any("Holm Mill" in one.text for one in stored(again))


def test_an_index_of_an_earlier_version_has_none(tmp_path: Path) -> None:
    path = tmp_path / "index.duckdb"
    database = Database.create(path)
    for table in ("propositions", "proposition_inputs"):
        database.execute(f"DROP TABLE {table}")
    database.close()
    database = Database.open(path)
    store = PropositionStore(database)
    assert (store.propositions(), store.inputs()) == ([], {})
    database.close()
    database = Database.open(path, read_only=False)
    assert database.has_table("propositions")
    database.close()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Tomas Reyd designed Orla Bridge.", True),
        ("Orla Bridge opened in 1931.", True),
        ("Marco Polo discovered the sea route towards India.", False),
        ("托马斯·雷德设计了奥拉桥。", True),
        ("...", False),
    ],
)
def test_what_the_passage_does_not_say_is_left_out(text: str, kept: bool) -> None:
    chunk = chunk_of(TEXT, title="Orla Bridge", start=7)
    made = bound(chunk, [Listed(text=text, sentence=1)] * 2, sentences(TEXT))
    assert len(made) == kept
    assert all((one.start, one.end) == (7, 46) for one in made)


def test_the_list_and_its_texts_are_bounded() -> None:
    schema = json.dumps(ListStatements.output_format.schema(ListPropositions))
    assert f'"maxItems": {MOST_LISTED}' in schema
    assert f'"maxLength": {LONGEST}' in schema


async def test_without_a_model_there_are_none() -> None:
    assert await ListStatements().run("Orla Bridge", ["Orla Bridge is red."]) == []
