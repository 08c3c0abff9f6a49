"""A step stays a DSPy module: copied, saved, loaded, compiled, streamed, called from threads, typed all the while."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from prompts.engine.limits import Clock
from prompts.engine.models import ROLES, ModelChoice, Models
from prompts.engine.spending import Meter
from prompts.extract import Extract
from prompts.summarize import Summarize
from tests.server.client import Server
from tests.test_golden_prompts import SHOWN

EXTRACT = SHOWN["ExtractGraph"]


def made(server: Server, **options: object) -> Models:
    choice = ModelChoice("openai/scripted", server.base_url, "a key")
    return Models(dict.fromkeys(ROLES, choice), **options)  # type: ignore[arg-type]


@pytest.fixture
async def models(model_server: Server) -> AsyncIterator[Models]:
    found = made(model_server, clock=Clock(sleep=lambda _: asyncio.sleep(0)))
    yield found
    await found.aclose()


@pytest.fixture
def plain_models(model_server: Server) -> Models:
    """For tests without a loop of their own: the connections belong to the loop that the engine keeps."""
    return made(model_server)


async def test_a_question_has_a_ledger_of_its_own_and_shares_the_limits(models: Models) -> None:
    own = models.metered(Meter())
    await Summarize(own).run("Ada", ("Ada is here.",))
    assert [row[:2] for row in own.meter.rows()] == [("summarize", "openai/scripted")]
    assert models.meter.rows() == []
    client, other = own.client("answer"), models.client("extract")
    assert client is not None
    assert client is other


def test_connections_close_with_the_loop(model_server: Server, recwarn: pytest.WarningsRecorder) -> None:
    models = made(model_server)
    for number in range(3):
        asyncio.run(Summarize(models).run("Ada", (f"s{number}",)))
    assert [str(warning.message) for warning in recwarn if "nclosed" in str(warning.message)] == []


def test_it_is_called_without_a_loop_and_from_threads(plain_models: Models) -> None:
    step = Extract(plain_models)
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(step.module(**EXTRACT).found)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [step.module(**EXTRACT).found] * 4


async def test_a_plain_call_inside_a_loop_is_an_error_that_says_how(models: Models) -> None:
    with pytest.raises(RuntimeError, match="acall"):
        Extract(models).module(**EXTRACT)


def test_dspy_writes_nothing_into_the_home_folder(
    plain_models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    Extract(plain_models).module(**EXTRACT)
    assert list(tmp_path.iterdir()) == []
