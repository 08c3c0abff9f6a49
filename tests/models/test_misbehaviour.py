"""A server that misbehaves: passing faults leave no trace, lasting ones are told with a remedy."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from prompts.engine.errors import (
    BadKey,
    EngineError,
    ModelMisconfigured,
    QuotaExhausted,
    UnknownModel,
)
from prompts.extract import EXAMPLES, Extract, ExtractGraph
from storage.errors import NoGeneration
from storage.export import Export
from storage.run_records import IndexReport
from tests.models.running import Place
from tests.server.client import Server
from tests.workspaces import write_rows

WORLDS = (
    ("Ana Korb", "Tomas Reyd", "Ines Varga", "Velin Town", "Orla Bridge", "Holm Light"),
    ("Olle Brandt", "Mira Sand", "Jon Aske", "Kestrel Quay", "Saltmere Fen", "Tern Rock"),
    ("Petra Lind", "Ulf Moen", "Rut Hald", "Ambel Crossing", "Norrick Mill", "Gull Stone"),
)
Rule = Mapping[str, object]


def passage(number: int) -> Rule:
    """Some place, built and visited by people of its world."""
    *people, quay, mill, rock = WORLDS[number % 3]
    turn = number // 3
    place = (quay, mill, rock)[turn % 3]
    who, other = people[turn // 2 % 3], people[(turn // 2 + 1 + turn % 2) % 3]
    built, visited = f"{place} was built by {who}.", f"{other} visited {place} in {1900 + number}."
    text = f"{built} {visited} {who} met {other}."
    return {"id": f"d{number}", "title": place, "text": text}


ROWS = [passage(number) for number in range(24)]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows") / "docs.jsonl", ROWS)


@pytest.fixture(scope="module")
def undisturbed(
    source: Path, server_process: Server, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Export, int]:
    """The graph where nothing goes wrong, and how many calls it takes."""
    server_process.reset()
    server_process.settle(latency_ms=0)
    calm = Place(tmp_path_factory.mktemp("calm") / "ws", server_process)
    asyncio.run(calm.index(source))
    return calm.graph(), server_process.stats()["calls"]


PASSING = {
    "rate_limit": 1,
    "server_error": 1,
    "error_in_success": 1,
    "cut": 1,
    "hang": 1,
    "malformed": 0,
    "refusal": 1,
    "truncated": 1,
    "thinking": 0,
}
MORE: Mapping[str, Rule] = {"rate_limit": {"retry_after": "2"}, "hang": {"seconds": 60}}


@pytest.mark.parametrize(("kind", "further_calls"), PASSING.items())
async def test_what_passes_leaves_no_trace(
    kind: str, further_calls: int, undisturbed: tuple[Export, int], place: Place, source: Path
) -> None:
    graph, calls = undisturbed
    place.server.misbehave({"step": "extract", "nth": 2, "kind": kind, **MORE.get(kind, {})})
    # Short for the server that hangs alone: on a slow machine others answer late too.
    report = await place.index(source, timeout=5.0 if kind == "hang" else 120.0)
    stats = place.server.stats()
    assert stats["kinds"][kind] == 1
    assert place.graph() == graph
    assert stats["calls"] == calls + further_calls
    assert report.dead_letters == 0


@pytest.mark.parametrize(
    ("step", "kind", "error", "remedy"),
    [
        ("extract", "unauthorized", BadKey, "TRELLIS_LM_API_KEY"),
        ("extract", "quota", QuotaExhausted, "TRELLIS_LM"),
        ("report", "no_model", UnknownModel, "Name a model that the server offers .*TRELLIS_LM"),
    ],
)
async def test_what_no_call_can_escape_ends_the_run_at_once(
    step: str, kind: str, error: type[EngineError], remedy: str, place: Place, source: Path
) -> None:
    place.server.misbehave({"step": step, "kind": kind})
    with pytest.raises(ModelMisconfigured, match=remedy) as caught:
        await place.index(source, concurrency=2)
    assert caught.type is error
    assert place.server.calls(step) <= 6, "it went on although nothing could succeed"
    with pytest.raises(NoGeneration):
        place.graph()
    place.server.misbehave()
    assert (await place.index(source)).published
    assert place.server.stats()["repeated"] <= 6


def check_letter(place: Place, report: IndexReport, step: str, error: str, remedy: str) -> None:
    """One passage, and no more, is a dead letter with this error and remedy."""
    (letter,) = place.dead_letters()
    assert (letter.step, report.dead_letters, report.published) == (step, 1, True)
    assert error in letter.error
    assert remedy in letter.remedy


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("overflow_openai", "TRELLIS_CHUNK_TOKENS"),
        ("refusal", "a model that follows the form"),
        ("refusal_field", "Use another model for this text"),
        ("server_error", "Run again later"),
    ],
)
async def test_one_passage_that_never_succeeds_is_a_dead_letter(
    kind: str, remedy: str, place: Place, source: Path
) -> None:
    place.server.misbehave({"step": "extract", "text": "1903", "kind": kind})
    check_letter(place, await place.index(source), "extract", "", remedy)
    place.server.misbehave()
    place.server.reset()
    again = await place.index(source)
    assert (again.dead_letters, again.published, place.server.calls()) == (0, True, 1)


@pytest.mark.parametrize(
    ("kind", "refused"), [("no_system", 1), ("stream_alone", 0), ("short_answers", 1)]
)
async def test_a_server_gets_its_requests_as_it_takes_them(
    kind: str, refused: int, undisturbed: tuple[Export, int], place: Place, source: Path
) -> None:
    graph, calls = undisturbed
    place.server.misbehave({"kind": kind})
    report = await place.index(source, concurrency=1)
    assert (place.graph(), report.dead_letters) == (graph, 0)
    assert place.server.stats()["calls"] == calls + refused, "it refuses once"
    (answer,) = await place.ask("Who built Orla Bridge?")
    assert answer.answer
    assert place.server.stats()["kinds"].keys() == {kind}


async def test_the_lines_before_a_cut_are_kept_and_reported(place: Place, source: Path) -> None:
    place.server.misbehave({"step": "extract", "text": "1903", "kind": "truncated"})
    report = await place.index(source)
    assert (report.dead_letters, report.published) == (0, True)
    (skipped,) = report.skipped
    assert skipped.path == "extract (openai/m)"
    assert skipped.reason == "left out 1 line of its answers that hold no record"


def holds_examples(graph: Export) -> bool:
    return any(name in str(graph) for name in ("Harrow", "Quist", "Brandt & Sons", "南溪"))


async def test_a_passage_that_was_cut_silently_is_a_dead_letter(
    place: Place, tmp_path: Path
) -> None:
    rain = "It rained in Velin Town that day. " * 160
    row = {"id": "long", "title": "Rain", "text": f"{rain}Ana Korb met Tomas Reyd there."}
    source = write_rows(tmp_path / "docs.jsonl", [*ROWS, row])
    place.server.misbehave({"kind": "overflow_silent", "step": "extract", "over": 1200})
    report = await place.index(source, chunk_tokens=2000)
    remedy = "OLLAMA_CONTEXT_LENGTH or num_ctx), or lower TRELLIS_CHUNK_TOKENS"
    check_letter(place, report, "extract", "it cuts long requests", remedy)
    assert place.server.calls() == report.chunks, "it is not tried again"
    again = await place.index(source, chunk_tokens=100)
    assert (again.dead_letters, again.published) == (0, True)
    assert "Ana Korb" in str(place.graph()["relations"])
    assert not holds_examples(place.graph())


async def test_an_example_is_no_answer_to_what_was_cut(place: Place, source: Path) -> None:
    example = Extract.output_format.write(ExtractGraph, EXAMPLES[0])
    place.server.misbehave(
        {"step": "extract", "text": "1903", "kind": "says_only", "says": example}
    )
    report = await place.index(source)
    check_letter(place, report, "extract", "repeats the example of the prompt", "model")
    assert not holds_examples(place.graph())
    place.server.misbehave()
    again = await place.index(source)
    assert (again.dead_letters, again.published) == (0, True)


@pytest.mark.parametrize(
    ("step", "text", "kind"),
    [("summarize", "name ## ]]\\nTomas Reyd", "entities"), ("report", "Ana Korb", "reports")],
    ids=["summarize", "report"],
)
async def test_what_no_model_sums_up_is_quoted_and_a_dead_letter(
    step: str, text: str, kind: str, undisturbed: tuple[Export, int], place: Place, source: Path
) -> None:
    graph, _ = undisturbed
    place.server.misbehave({"step": step, "text": text, "kind": "refusal"})
    check_letter(place, await place.index(source), step, "", "a model that follows the form")
    found = place.graph()
    assert len(found[kind]) == len(graph[kind])
    assert sum(row not in graph[kind] for row in found[kind]) == 1
    place.server.misbehave()
    more = [*ROWS, {"id": "new", "title": "", "text": "so it was, and nobody spoke of it."}]
    again = await place.index(write_rows(place.workspace.parent / "docs.jsonl", more))
    assert (again.dead_letters, again.published) == (0, True)
    assert all(row in place.graph()[kind] for row in graph[kind])
