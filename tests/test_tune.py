"""`trellis tune`: what is found in a sample fits the prompts of the next run, and what people wrote stays theirs."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.operations.tune import TuneOptions, TuneReport, tune_workspace
from flows.runtime import open_runtime
from flows.settings import TAILORING_FILE, load_settings
from prompts.engine.errors import ModelRefused
from prompts.tailoring import MOST_EXAMPLE_TOKENS
from prompts.tune import Sampled, Tuned
from storage.errors import SourceNotFound, UsageError
from storage.records import Chunk
from tasks.tune import some_passages, to_tailoring
from tests.models.running import Place
from tests.records import chunk_of
from tests.server.client import Server
from tests.workspaces import write_rows

ROWS = [
    {"id": "a", "title": "Bridge", "text": "The Orla Bridge was built by Tomas Reyd in 1931. It rained that year."},
    {"id": "b", "title": "Mill", "text": "The Norrick Mill was sold by Ana Korb to the Holm Institute in 1950."},
]
PASSAGES = [Sampled(title=str(row["title"]), text=str(row["text"])) for row in ROWS]


@pytest.fixture
def place(tmp_path: Path, server_process: Server) -> Place:
    server_process.reset()
    return Place(tmp_path / "ws", server_process)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "docs.jsonl", ROWS)


async def tuned(place: Place, source: Path, seed: int = 0, force: bool = False) -> TuneReport:
    runtime = place.runtime()
    try:
        return await tune_workspace([source], TuneOptions(seed=seed, force=force), runtime)
    finally:
        await runtime.models.aclose()


def found(**values: object) -> Tuned:
    return Tuned.model_validate({"persona": "", "language": "", "entity_types": [{"name": "Person"}], **values})


def example(passage: str, *names: str, kind: str = "person", **more: object) -> dict[str, object]:
    return {"passage": passage, "entities": [{"name": name, "kind": kind} for name in names], **more}


# --- the sample ------------------------------------------------------------------------------------------------------


def chunk(document: str, ordinal: int, tokens: int = 100) -> Chunk:
    return chunk_of(document=document, ordinal=ordinal, tokens=tokens)


CHUNKS = [chunk("long", number) for number in range(30)] + [chunk(f"d{number}", 0) for number in range(5)]


@given(st.permutations(CHUNKS), st.integers(0, 5), st.integers(100, 4000))
def test_a_sample_is_bounded_and_the_same_for_a_seed(chunks: Sequence[Chunk], seed: int, tokens: int) -> None:
    chosen = some_passages(chunks, tokens, seed)
    assert chosen == some_passages(CHUNKS, tokens, seed)
    assert sum(one.tokens for one in chosen) <= tokens


def test_every_document_is_heard_before_one_is_heard_twice() -> None:
    assert {one.document for one in some_passages(CHUNKS, 600, 0)} == {one.document for one in CHUNKS}
    assert {tuple(one.id for one in some_passages(CHUNKS, 300, seed)) for seed in range(9)} != {()}
    assert len({tuple(one.id for one in some_passages(CHUNKS, 300, seed)) for seed in range(9)}) > 1


def test_there_is_a_passage_even_where_none_fits_and_none_of_triples() -> None:
    assert len(some_passages([chunk("a", 0, 500), chunk("b", 0, 500)], 100, 0)) == 1
    assert some_passages([chunk("a", 0).model_copy(update={"kind": "triples"})], 100, 0) == []


# --- what may enter a prompt -----------------------------------------------------------------------------------------


def test_an_example_keeps_what_stands_in_the_sample() -> None:
    relation = {"source": "Tomas Reyd", "target": "Orla Bridge", "predicate": "built"}
    lost = {**relation, "target": "Elsewhere"}
    made = example("The Orla Bridge\nwas built by Tomas Reyd in 1931.", "Tomas Reyd", "Elsewhere", "Orla Bridge")
    fitted = to_tailoring(found(examples=[{**made, "relations": [relation, lost]}]), PASSAGES)
    (kept,) = fitted.tailoring.examples
    assert (kept.title, [one.name for one in kept.entities]) == ("Bridge", ["Tomas Reyd", "Orla Bridge"])
    assert [(one.source, one.target) for one in kept.relations] == [("Tomas Reyd", "Orla Bridge")]
    assert {one.kind for one in kept.entities} == {"Person"}
    assert fitted.left_out == ()


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (example("The Orla Bridge fell.", "Orla Bridge"), "does not stand in the sample"),
        (example("", "Orla Bridge"), "does not stand in the sample"),
        (example("It rained that year.", "Tomas Reyd"), "none of its entities"),
        (example("It rained that year.", ""), "none of its entities"),
        (example("It rained that year.", "It", kind="ship"), "none of its entities"),
    ],
)
def test_what_was_made_up_is_left_out_and_told(shown: dict[str, object], said: str) -> None:
    fitted = to_tailoring(found(examples=[shown]), PASSAGES)
    assert fitted.tailoring.examples == ()
    assert len(fitted.left_out) == 1
    assert said in fitted.left_out[0]


def test_examples_keep_to_their_room_and_kinds_to_their_form() -> None:
    long = Sampled(title="", text="Tomas Reyd came. " + "word " * 4 * MOST_EXAMPLE_TOKENS)
    shown = [example(long.text, "Tomas Reyd"), example("Tomas Reyd came.", "Tomas Reyd")]
    kinds = [{"name": "person"}, {"name": "Person"}, {"name": "a;b"}]
    fitted = to_tailoring(found(entity_types=kinds, examples=shown), [long])
    assert [one.passage for one in fitted.tailoring.examples] == ["Tomas Reyd came."]
    assert [one.name for one in fitted.tailoring.entity_types] == ["person"]
    assert len(fitted.left_out) == 2


# --- the command's work ----------------------------------------------------------------------------------------------


async def test_what_is_found_is_kept_and_the_next_run_uses_it(place: Place, docs: Path) -> None:
    report = await tuned(place, docs)
    assert (report.documents, report.passages, report.left_out, report.usage.calls) == (2, 2, (), 1)
    assert Path(report.path) == place.workspace / TAILORING_FILE
    kept = load_settings({"workspace": place.workspace}, {}).tailoring
    assert kept == report.tailoring
    assert kept.persona == "You are a reader of Orla Bridge."
    assert (kept.kinds, kept.language) == (("actor: who acts", "scene: where it happens"), "English")
    assert [one.name for one in kept.examples[0].entities] == ["Orla Bridge", "Tomas Reyd"]
    place.server.reset()
    await place.index(docs)
    asked = [json.dumps(one["body"]) for one in place.server.requests() if one["step"] == "extract"]
    assert len(asked) == 2
    assert all("You are a reader of Orla Bridge." in one and "who acts" in one for one in asked)
    assert {row["kind"] for row in place.graph()["entities"]} <= {"actor", "scene", "thing"}


def test_a_file_that_is_there_is_replaced_by_force_alone(place: Place, docs: Path) -> None:
    path = Path(asyncio.run(tuned(place, docs)).path)
    path.write_text(path.read_text(encoding="utf-8").replace("who acts", "who does something"), encoding="utf-8")
    place.server.reset()
    with pytest.raises(UsageError, match=r"already.*--force"):
        asyncio.run(tuned(place, docs))
    assert place.server.stats()["calls"] == 0, "nothing is paid for what will not be kept"
    assert "who does something" in path.read_text(encoding="utf-8")
    asyncio.run(tuned(place, docs, force=True))
    assert "who acts" in path.read_text(encoding="utf-8")


async def test_without_a_model_nothing_is_fitted(docs: Path, tmp_path: Path) -> None:
    runtime = open_runtime(load_settings({"workspace": tmp_path / "ws"}, {}))
    with pytest.raises(UsageError, match="TRELLIS_LM"):
        await tune_workspace([docs], TuneOptions(), runtime)


async def test_what_cannot_be_tuned_to_is_told(place: Place, docs: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound):
        await tuned(place, tmp_path / "none")
    facts = write_rows(tmp_path / "facts.jsonl", [{"s": "a", "p": "b", "o": "c"}])
    with pytest.raises(UsageError, match="no text to learn from"):
        await tuned(place, facts)
    place.server.misbehave({"step": "tune", "kind": "refusal"})
    with pytest.raises(ModelRefused, match="tune"):
        await tuned(place, docs)
    assert not (place.workspace / TAILORING_FILE).exists()
