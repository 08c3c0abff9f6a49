"""Index runs whose calls go in batches, through the queues that OpenAI and Anthropic offer."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from prompts.engine.models import CallSettings, ModelChoice, Models
from storage.errors import FailureGate
from storage.export import Export
from tests.models.running import Place, quick
from tests.models.test_killed import killed_at_the_end
from tests.patience import wait_for
from tests.server.dripping import BODY, dripping
from tests.workspaces import quays, write_rows

PASSAGES = 24
OPENAI: Mapping[str, object] = {"batches": True}
ANTHROPIC: Mapping[str, object] = {"batches": True, "lm": "anthropic/m"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "docs.jsonl", quays(PASSAGES))


def paths(place: Place) -> dict[str, int]:
    """How many requests came by each path."""
    found: dict[str, int] = {}
    for row in place.server.requests():
        found[row["path"]] = found.get(row["path"], 0) + 1
    return found


def comparable(graph: Export) -> dict[str, object]:
    """All but the hash of a report, in which the model's name counts."""
    reports = [{name: value for name, value in row.items() if name != "inputs"} for row in graph["reports"]]
    return {**graph, "reports": reports}


@pytest.mark.parametrize(("settings", "path"), [(OPENAI, "/v1/responses"), (ANTHROPIC, "/v1/messages")])
async def test_a_run_in_batches_gives_the_graph_of_plain_calls(
    settings: Mapping[str, object], path: str, place: Place, source: Path, tmp_path: Path
) -> None:
    place.server.settle(batch_polls=3)
    report = await place.index(source, **settings)
    assert set(paths(place)) == {path}
    assert report.usage.by_step["extract"].calls == PASSAGES
    assert report.usage.by_step["extract"].input_tokens > 0
    plain = replace(place, workspace=tmp_path / "plain")
    await plain.index(source)
    assert comparable(place.graph()) == comparable(plain.graph())


async def test_what_a_batch_leaves_unanswered_is_asked_by_itself(place: Place, source: Path) -> None:
    place.server.misbehave({"kind": "quota", "step": "extract", "nth": 3, "times": 2})
    await place.index(source, **OPENAI)
    assert paths(place)["/v1/chat/completions"] == 2
    assert not place.dead_letters()


async def test_a_server_without_a_queue_gets_plain_calls(
    place: Place, source: Path, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere = f"{place.server.url}/elsewhere"  # no path of the queue is there, and no other
    with pytest.raises(Exception, match="HTTP 404"):
        await place.index(source, lm_base_url=elsewhere, **OPENAI)
    assert "takes no batches: calls are sent one by one" in caplog.text


def test_a_killed_run_waits_for_its_batch_again(place: Place, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.server.settle(batch_polls=1_000_000)
    monkeypatch.setenv("TRELLIS_BATCHES", "true")
    file = place.workspace / "side.sqlite"

    def noted() -> int:
        if not file.exists():
            return 0
        with closing(sqlite3.connect(file)) as connection, suppress(sqlite3.OperationalError):  # not made yet
            return int(connection.execute("SELECT count(*) FROM cache WHERE key LIKE 'batch %'").fetchone()[0])
        return 0

    with killed_at_the_end(place, source):
        wait_for(lambda: place.server.calls() == PASSAGES and noted() == PASSAGES, "the batch to be noted")
    place.server.settle(batch_polls=0)
    report = asyncio.run(place.index(source, **OPENAI))
    assert report.chunks == PASSAGES
    assert place.server.calls() == PASSAGES
    assert place.server.stats()["repeated"] == 0
    assert noted() == 0


@pytest.mark.parametrize(
    ("polls", "speed", "seconds", "words"),
    [
        pytest.param(-1, 200, 0.3, "no reply within", marks=pytest.mark.patient),
        (10**9, 1_000_000, 120, "is not done after 25 hours"),
    ],
)
async def test_a_batch_that_never_ends_is_given_up_and_waited_for_again_by_the_next_run(
    polls: int, speed: int, seconds: float, words: str, place: Place, source: Path
) -> None:
    place.server.settle(batch_polls=polls)
    with pytest.raises(FailureGate, match=words):
        await replace(place, clock=quick(speed)).index(source, timeout=seconds, max_attempts=1, **OPENAI)
    place.server.settle(batch_polls=0)
    assert (await place.index(source, **OPENAI)).chunks == PASSAGES
    assert place.server.calls() == PASSAGES
    assert place.dead_letters() == []


async def test_a_queue_that_takes_a_batch_byte_by_byte_is_given_up(place: Place, source: Path) -> None:
    with dripping(BODY) as (address, requests), pytest.raises(FailureGate, match="no reply within"):
        await place.index(source, lm_base_url=address, timeout=0.3, max_attempts=1, **OPENAI)
    assert requests


def test_only_an_index_run_goes_in_batches_at_half_the_price() -> None:
    choice = ModelChoice("openai/gpt-4o-mini", api_key="k")
    models = Models({"extract": choice, "answer": choice}, calls=CallSettings(batches=True))
    plain, batched = models.client("answer"), models.client("extract")
    assert plain is not None
    assert batched is not None
    assert plain.price is not None
    assert batched.price is not None
    assert batched.price.output == plain.price.output / 2
    assert batched.limits is not plain.limits
    assert models.examined().client("extract") is not None
    assert models.examined().client("extract").price == plain.price  # type: ignore[union-attr]
