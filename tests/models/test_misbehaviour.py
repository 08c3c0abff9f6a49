"""A model server that misbehaves: what passes leaves no trace in the graph, what stays is told with
its remedy.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from prompts.engine.errors import (
    BadKey,
    ContextOverflow,
    EngineError,
    ModelMisconfigured,
    QuotaExhausted,
    UnknownModel,
)
from prompts.extract import EXAMPLES, Extract, ExtractGraph
from storage.errors import NoGeneration
from storage.export import Export
from tests.models.running import Place
from tests.server.client import Server
from tests.workspaces import write_rows

WORLDS = (
    ("Ana Korb", "Tomas Reyd", "Ines Varga", "Velin Town", "Orla Bridge", "Holm Light"),
    ("Olle Brandt", "Mira Sand", "Jon Aske", "Kestrel Quay", "Saltmere Fen", "Tern Rock"),
    ("Petra Lind", "Ulf Moen", "Rut Hald", "Ambel Crossing", "Norrick Mill", "Gull Stone"),
)


def passage(number: int) -> dict[str, object]:
    """Some place, built and visited by people of its world."""
    *people, quay, mill, rock = WORLDS[number % 3]
    turn = number // 3
    place = (quay, mill, rock)[turn % 3]
    who, other = people[turn // 2 % 3], people[(turn // 2 + 1 + turn % 2) % 3]
    text = (
        f"{place} was built by {who}. {other} visited {place} in {1900 + number}. {who} met "
        f"{other}."
    )
    return {"id": f"d{number}", "title": place, "text": text}


ROWS: list[Mapping[str, object]] = [passage(number) for number in range(24)]
Rule = Mapping[str, object]


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


def named(rule: Rule) -> str:
    return "-".join(map(str, rule.values()))


# Kind and more, and how many further calls each costs.
PASSING: list[tuple[Rule, int]] = [
    ({"kind": "rate_limit", "retry_after": "2"}, 1),
    ({"kind": "server_error"}, 1),
    ({"kind": "reset"}, 1),
    ({"kind": "cut"}, 1),
    ({"kind": "hang", "seconds": 60}, 1),
    ({"kind": "html"}, 1),
    ({"kind": "malformed"}, 0),
    ({"kind": "round"}, 0),
    ({"kind": "refusal"}, 1),
    ({"kind": "truncated"}, 1),
    ({"kind": "thinking"}, 0),
]


AT_ONCE = ("rate_limit", "server_error", "cut", "hang", "malformed", "refusal", "thinking")


def as_cases(rules: list[tuple[Rule, Any]]) -> list[Any]:
    """The rules as parameters; the kinds that are like another's wait for `make patient`."""
    return [
        pytest.param(
            rule, more, id=named(rule), marks=() if rule["kind"] in AT_ONCE else pytest.mark.patient
        )
        for rule, more in rules
    ]


@pytest.mark.parametrize(("rule", "extra"), as_cases(PASSING))
async def test_what_passes_leaves_no_trace(
    rule: Rule, extra: int, undisturbed: tuple[Export, int], place: Place, source: Path
) -> None:
    graph, calls = undisturbed
    place.server.misbehave({"step": "extract", "nth": 2, **rule})
    # Short for the server that hangs alone: on a slow machine others answer late too.
    report = await place.index(source, timeout=5.0 if rule["kind"] == "hang" else 120.0)
    stats = place.server.stats()
    assert stats["kinds"][rule["kind"]] == 1
    assert place.graph() == graph
    assert stats["calls"] == calls + extra
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
    assert place.server.stats()["steps"][step]["calls"] <= 6, (
        "it went on although nothing could succeed"
    )
    with pytest.raises(NoGeneration):
        place.graph()
    place.server.misbehave()
    report = await place.index(source)
    assert report.published
    assert place.server.stats()["repeated"] <= 6


REFUSING: list[tuple[Rule, str]] = [
    ({"kind": "overflow_openai"}, "TRELLIS_CHUNK_TOKENS"),
    ({"kind": "refusal"}, "a model that follows the form"),
    ({"kind": "content_filter"}, "Use another model for this text"),
    ({"kind": "refusal_field"}, "Use another model for this text"),
    ({"kind": "server_error"}, "Run again later"),
    ({"kind": "reset"}, "Check that its server runs"),
]


@pytest.mark.parametrize(("rule", "remedy"), as_cases(REFUSING))
async def test_one_passage_that_never_succeeds_is_a_dead_letter(
    rule: Rule, remedy: str, place: Place, source: Path
) -> None:
    place.server.misbehave({"step": "extract", "text": "1903", **rule})
    report = await place.index(source)
    (letter,) = place.dead_letters()
    assert (letter.step, report.dead_letters, report.published) == ("extract", 1, True)
    assert remedy in letter.remedy
    assert letter.error
    place.server.misbehave()
    place.server.reset()
    again = await place.index(source)
    assert (again.dead_letters, again.published) == (0, True)
    assert place.server.stats()["steps"]["extract"]["calls"] == 1


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
    assert place.server.stats()["calls"] == calls + refused, "it is told once"
    (answer,) = await place.ask("Who built Orla Bridge?")
    assert answer.answer
    assert place.server.stats()["kinds"].keys() == {kind}


async def test_the_lines_before_a_cut_are_kept_and_the_report_says_so(
    place: Place, source: Path
) -> None:
    place.server.misbehave({"step": "extract", "text": "1903", "kind": "truncated"})
    report = await place.index(source)
    assert (report.dead_letters, report.published) == (0, True)
    (told,) = report.skipped
    assert told.path == "extract (openai/m)"
    assert told.reason == "left out 1 line of its answers that hold no record"


async def test_a_passage_that_the_server_cut_without_a_word_is_a_dead_letter_and_no_thin_graph(
    place: Place, tmp_path: Path
) -> None:
    long = " ".join(
        [*["It rained in Velin Town that day."] * 160, "Ana Korb met Tomas Reyd there."]
    )
    source = write_rows(
        tmp_path / "docs.jsonl", [*ROWS, {"id": "long", "title": "Rain", "text": long}]
    )
    place.server.misbehave({"kind": "overflow_silent", "step": "extract", "over": 1200})
    report = await place.index(source, chunk_tokens=2000)
    (letter,) = place.dead_letters()
    assert (letter.step, report.dead_letters, report.published) == ("extract", 1, True)
    assert "read only" in letter.error
    assert "it cuts long requests" in letter.error
    assert "OLLAMA_CONTEXT_LENGTH" in letter.remedy
    assert "TRELLIS_CHUNK_TOKENS" in letter.remedy
    assert place.server.stats()["steps"]["extract"]["calls"] == report.chunks, (
        "it is not tried again"
    )
    again = await place.index(source, chunk_tokens=100)
    assert (again.dead_letters, again.published) == (0, True)
    assert "Ana Korb" in str(place.graph()["relations"])
    assert not holds_examples(place.graph())


EXTRACTED = Extract.output_format.write(ExtractGraph, EXAMPLES[0])


def holds_examples(graph: Export) -> bool:
    return any(name in str(graph) for name in ("Harrow", "Quist", "Brandt & Sons", "南溪"))


@pytest.mark.parametrize(
    ("step", "text", "said"), [("extract", "1903", EXTRACTED)], ids=["extract"]
)
async def test_an_example_that_is_answered_in_place_of_what_was_cut_is_no_part_of_the_graph(
    step: str, text: str, said: str, place: Place, source: Path
) -> None:
    place.server.misbehave({"step": step, "text": text, "kind": "says_only", "says": said})
    report = await place.index(source)
    (letter,) = place.dead_letters()
    assert (letter.step, report.dead_letters, report.published) == (step, 1, True)
    assert "repeats the example of the prompt" in letter.error
    assert letter.remedy
    assert not holds_examples(place.graph())
    place.server.misbehave()
    again = await place.index(source)
    assert (again.dead_letters, again.published) == (0, True)


async def test_a_question_that_the_server_cut_without_a_word_says_so(
    place: Place, source: Path
) -> None:
    await place.index(source)
    place.server.misbehave({"kind": "overflow_silent", "over": 600, "step": "answer"})
    with pytest.raises(ContextOverflow, match=r"cuts long requests.*OLLAMA_CONTEXT_LENGTH"):
        await place.ask("Who built Orla Bridge, Holm Light and Velin Town?")


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
    report = await place.index(source)
    (letter,) = place.dead_letters()
    assert (letter.step, report.dead_letters, report.published) == (step, 1, True)
    assert "a model that follows the form" in letter.remedy
    found = place.graph()
    assert len(found[kind]) == len(graph[kind])
    assert sum(row not in graph[kind] for row in found[kind]) == 1
    place.server.misbehave()
    more = [*ROWS, {"id": "new", "title": "", "text": "so it was, and nobody spoke of it."}]
    again = await place.index(write_rows(place.workspace.parent / "docs.jsonl", more))
    assert (again.dead_letters, again.published) == (0, True)
    assert all(row in place.graph()[kind] for row in graph[kind])
