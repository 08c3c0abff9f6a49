"""Which model a role uses, by name and settings; steps are called from threads and metered."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from prompts.engine.errors import ModelMisconfigured
from prompts.engine.limits import Clock
from prompts.engine.models import ROLES, ModelChoice, Models
from prompts.engine.providers import endpoint
from prompts.engine.spending import Meter, price_of
from prompts.extract import Extract
from prompts.summarize import Summarize
from tests.server.client import Server
from tests.test_golden_prompts import SHOWN

OWN = "http://gpu.local:8000/v1"


@pytest.mark.parametrize(
    ("name", "url", "model", "address", "provider"),
    [
        ("openai/gpt-5-mini", None, "gpt-5-mini", "https://api.openai.com/v1", True),
        ("openai/gpt-5-mini", OWN, "gpt-5-mini", OWN, False),
        ("ollama_chat/qwen3:8b", None, "qwen3:8b", "http://localhost:11434/v1", False),
        ("ollama/qwen3:8b", "http://box:11434", "qwen3:8b", "http://box:11434/v1", False),
        ("hosted_vllm/Qwen/Qwen3-8B", OWN, "Qwen/Qwen3-8B", OWN, False),
        ("Qwen/Qwen3-8B", OWN, "Qwen/Qwen3-8B", OWN, False),
        ("local", f"{OWN}/chat/completions", "local", OWN, False),
        ("groq/openai/gpt-oss", None, "openai/gpt-oss", "https://api.groq.com/openai/v1", True),
    ],
)
def test_a_name_means_a_server(
    name: str, url: str | None, model: str, address: str, provider: bool
) -> None:
    found = endpoint(ModelChoice(name, url, "k"), {})
    assert found is not None
    assert (found.model, found.url, found.key) == (model, address, "k")
    assert found.listed is provider


@pytest.mark.parametrize(
    "name", ["anthropic/claude-sonnet-5", "gemini/gemini-3.5-flash", "bedrock/x", "azure/y"]
)
def test_other_providers_go_through_dspy(name: str) -> None:
    assert endpoint(ModelChoice(name), {}) is None


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (ModelChoice("opnai/gpt-5"), "openai"),
        (ModelChoice("gpt-5"), "provider/model"),
        (ModelChoice("openai/"), "provider/model"),
        (ModelChoice("ofline"), "offline"),
        (ModelChoice("hosted_vllm/x"), "TRELLIS_LM_BASE_URL"),
        (ModelChoice("openai/x", "gpu:8000"), "http://localhost:11434/v1"),
        (ModelChoice("openai/x", "file:///etc/passwd"), "http://localhost:11434/v1"),
    ],
)
def test_a_name_that_cannot_work_is_an_error_with_choices(choice: ModelChoice, words: str) -> None:
    with pytest.raises(ModelMisconfigured) as caught:
        Models({"answer": choice})
    assert words in caught.value.remedy


def test_keys_go_to_their_own_provider_only() -> None:
    environment = {"OPENAI_API_KEY": "sk-o", "HOSTED_VLLM_API_KEY": "sk-v"}
    ours, theirs, vllm = (
        endpoint(ModelChoice(*choice), environment)
        for choice in (("openai/gpt-5",), ("openai/gpt-5", OWN), ("hosted_vllm/x", OWN))
    )
    assert [found and found.key for found in (ours, theirs, vllm)] == ["sk-o", None, "sk-v"]
    with pytest.raises(ModelMisconfigured, match="needs a key") as caught:
        endpoint(ModelChoice("openai/gpt-5"), {})
    assert "OPENAI_API_KEY" in caught.value.remedy
    assert "sk-o" not in repr(ours)


def test_prices_are_known_or_none() -> None:
    price = price_of("openai/gpt-4o-mini-2024-07-18")
    assert price is not None
    assert price.cost(1_000_000, 1_000_000) == pytest.approx(0.75)
    assert price_of("ollama_chat/qwen3:8b") is None
    assert price_of("openai/gpt-4o-mini-turbo") is None
    assert price_of("ollama/llama3") is None, "the user's own server has an unknown price"
    own = Models({"answer": ModelChoice("openai/gpt-5", OWN)}).lm("answer")
    assert own.terms.price is None, "a proxy has no list price"


EXTRACT = SHOWN["ExtractGraph"]


def made(server: Server, **options: object) -> Models:
    choice = ModelChoice("openai/scripted", server.base_url, "a key")
    return Models(dict.fromkeys(ROLES, choice), **options)  # type: ignore[arg-type]


@pytest.fixture
async def models(model_server: Server) -> AsyncIterator[Models]:
    found = made(model_server, clock=Clock(sleep=lambda _: asyncio.sleep(0)))
    yield found
    await found.aclose()


async def test_a_question_has_a_ledger_and_shares_the_limits(models: Models) -> None:
    own = models.metered(Meter())
    await Summarize(own).run("Ada", ("Ada is here.",))
    assert [row[:2] for row in own.meter.rows()] == [("summarize", "openai/scripted")]
    assert models.meter.rows() == []
    assert own.lm("answer") is models.lm("extract")


def test_connections_close_with_the_loop(
    model_server: Server, recwarn: pytest.WarningsRecorder
) -> None:
    models = made(model_server)
    for number in range(3):
        asyncio.run(Summarize(models).run("Ada", (f"s{number}",)))
    assert [str(warning.message) for warning in recwarn if "nclosed" in str(warning.message)] == []


def test_a_step_is_called_without_a_loop_and_from_threads(model_server: Server) -> None:
    step = Extract(made(model_server))
    with ThreadPoolExecutor(4) as pool:
        found = [it.found for it in pool.map(lambda _: step.module(**EXTRACT), range(4))]
    assert found == [step.module(**EXTRACT).found] * 4


async def test_a_plain_call_inside_a_loop_is_an_error_that_says_how(models: Models) -> None:
    with pytest.raises(RuntimeError, match="acall"):
        Extract(models).module(**EXTRACT)
