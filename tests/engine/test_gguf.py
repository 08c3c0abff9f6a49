"""A model in one file: what is refused, and where its calls go, with a scripted server."""

import asyncio
from importlib.util import find_spec
from pathlib import Path

import pytest

from flows.settings import Settings
from prompts.engine.errors import ContextOverflow, EngineError, ModelMisconfigured
from prompts.engine.gguf import address_of_file, file_of, served
from prompts.engine.models import CallSettings, GgufSettings, ModelChoice, Models
from prompts.engine.providers import check
from prompts.engine.refusals import refused
from tests.engine.test_servers import CALL

is_installed = find_spec("xllamacpp") is not None


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that begins as a model does."""
    path = tmp_path / "small.gguf"
    path.write_bytes(b"GGUF and no model")
    return path


@pytest.mark.parametrize(
    ("name", "words"),
    [("nothing.gguf", "No such file"), ("text.gguf", "begins with b'Once'")],
)
def test_a_path_that_is_no_model_is_named(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "text.gguf").write_text("Once upon a time")
    with pytest.raises(ModelMisconfigured, match=words):
        file_of(f"gguf/{tmp_path / name}")


def test_a_file_without_the_prefix_is_told_its_name() -> None:
    with pytest.raises(ModelMisconfigured, match=r"Write gguf/models/small\.gguf"):
        check(ModelChoice("models/small.gguf"))


def test_a_model_that_cannot_start_names_what_is_missing(file: Path) -> None:
    words = "cannot load .*small" if is_installed else r"pip install 'trellis-rag\[local\]'"
    with pytest.raises(ModelMisconfigured, match=words):
        served(address_of_file(f"gguf/{file}"), file, GgufSettings())
    lm = Models({"answer": ModelChoice(f"gguf/{file}")}).lm("answer")
    with pytest.raises(EngineError, match=words):
        asyncio.run(lm.send(CALL))


def test_a_prompt_beyond_the_context_names_its_setting() -> None:
    words = "request (9030 tokens) exceeds the available context size (4096 tokens)"
    error = refused(("gguf/small.gguf", "http://127.0.0.1:1/v1"), 400, words).error
    assert isinstance(error, ContextOverflow)
    assert error.remedy.startswith("Raise TRELLIS_GGUF_CONTEXT")


def test_the_limits_of_prompts_follow_its_context() -> None:
    small = Settings(lm="gguf/a.gguf", gguf_context=4_000)
    assert small.policy("high").limits.answer == 1_600
    url = "http://127.0.0.1:1/v1"
    by_server = Settings(lm="gguf/a.gguf", lm_base_url=url, gguf_context=4_000)
    assert by_server.policy("high").limits.answer == 16_000


def test_there_are_as_many_calls_at_once_as_slots(file: Path) -> None:
    calls = CallSettings(gguf=GgufSettings(slots=3))
    lm = Models({"answer": ModelChoice(f"gguf/{file}")}, calls=calls).lm("answer")
    assert lm.terms.limits.concurrency == 3
    assert lm.address.startswith(f"gguf/{file}@"), "a changed file has another address"
