"""A model in one file: what is refused, and how processes share it, with a scripted server."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from flows.settings import Settings
from prompts.engine.errors import ContextOverflow, EngineError, ModelMisconfigured, ModelUnavailable
from prompts.engine.failures import refused
from prompts.engine.gguf import (
    Running,
    Served,
    SharedModel,
    file_of,
    folder_of_user,
    start_llama_cpp,
)
from prompts.engine.lm import FileEngine, LmTransport
from prompts.engine.models import CallSettings, GgufSettings, ModelChoice, Models
from prompts.engine.providers import check
from tests.engine.holding_gguf import start_scripted
from tests.engine.test_lm import CALL, SAID
from tests.patience import PATIENCE
from tests.server.client import ROOT, Server, serving

USUAL = GgufSettings()
is_installed = find_spec("xllamacpp") is not None


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that begins as a model does."""
    path = tmp_path / "small.gguf"
    path.write_bytes(b"GGUF and no model")
    return path


@contextmanager
def holder(file: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock on the model and is about to load it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.engine.holding_gguf", str(file), str(file.parent)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert line_of(process) == "loading"
        yield process
    finally:
        process.kill()
        process.communicate()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def loaded(process: subprocess.Popen[str]) -> Served:
    """Let the other process load its model; where it serves."""
    assert process.stdin is not None
    process.stdin.write("go on\n")
    process.stdin.flush()
    return Served.model_validate_json(line_of(process))


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [("nothing.gguf", "No such file"), ("", "Is a directory"), ("text.gguf", r"begins with b'Once'")],
)
def test_a_path_that_is_no_model_is_named(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "text.gguf").write_text("Once upon a time")
    with pytest.raises(ModelMisconfigured, match=words):
        file_of(f"gguf/{tmp_path / name}")


def test_a_file_without_the_prefix_is_told_its_name() -> None:
    with pytest.raises(ModelMisconfigured, match=r"Write gguf/models/small\.gguf"):
        check(ModelChoice("models/small.gguf"))


@pytest.mark.skipif(is_installed, reason="the extra `local` is installed")
def test_without_llama_cpp_the_extra_is_named(file: Path) -> None:
    with pytest.raises(ModelMisconfigured, match=r"pip install 'trellis-rag\[local\]'"):
        start_llama_cpp(file, USUAL, "key")


@pytest.mark.skipif(not is_installed, reason="llama.cpp is not installed: pip install 'trellis-rag[local]'")
def test_a_damaged_model_is_refused_in_the_words_of_llama_cpp(file: Path) -> None:
    with pytest.raises(ModelMisconfigured, match=r"cannot load .*small\.gguf: \S+"):
        start_llama_cpp(file, USUAL, "key")


def test_a_prompt_beyond_the_context_names_its_setting() -> None:
    words = "request (9030 tokens) exceeds the available context size (4096 tokens)"
    error = refused("gguf/small.gguf", "gguf/small.gguf@1", 400, words).error
    assert isinstance(error, ContextOverflow)
    assert error.remedy.startswith("Raise TRELLIS_GGUF_CONTEXT")


def test_a_folder_that_others_may_read_holds_no_keys(tmp_path: Path) -> None:
    folder = folder_of_user(tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    with pytest.raises(ModelMisconfigured, match="Set TMPDIR"):
        folder_of_user(tmp_path)


# --- settings --------------------------------------------------------------------------------------------------------


def test_the_limits_of_prompts_follow_its_context() -> None:
    assert Settings(lm="gguf/a.gguf", gguf_context=4_000).policy("high").limits.answer == 1_600
    assert Settings(lm="gguf/a.gguf", gguf_context=4_000, context_window=8_000).policy("high").limits.answer == 1_400
    by_server = Settings(lm="gguf/a.gguf", lm_base_url="http://127.0.0.1:1/v1", gguf_context=4_000)
    assert by_server.policy("high").limits.answer == 16_000


def test_there_are_as_many_calls_at_once_as_slots(file: Path) -> None:
    calls = CallSettings(concurrency=16, gguf=GgufSettings(slots=3))
    client = Models({"answer": ModelChoice(f"gguf/{file}")}, calls=calls).client("answer")
    assert client is not None
    assert client.limits.concurrency == 3
    assert client.price is None


# --- sharing ---------------------------------------------------------------------------------------------------------


def test_another_process_with_the_same_settings_shares_the_model(file: Path) -> None:
    ours = SharedModel(file, USUAL, start_scripted, file.parent)
    others = SharedModel(file, GgufSettings(threads=1), start_scripted, file.parent)
    with holder(file) as process:
        theirs = loaded(process)
        assert ours.served() == theirs
        assert others.served() != theirs
        assert (ours.is_ours, others.is_ours) == (False, True)
    others.close()


def test_a_model_that_another_process_loads_is_waited_for(file: Path) -> None:
    ours = SharedModel(file, USUAL, start_scripted, file.parent)
    found: list[Served] = []
    with holder(file) as process:
        asking = threading.Thread(target=lambda: found.append(ours.served()))
        asking.start()
        assert found == []
        theirs = loaded(process)
        asking.join(PATIENCE)
        assert found == [theirs]


def test_a_model_of_a_killed_process_is_taken_over(file: Path) -> None:
    ours = SharedModel(file, USUAL, start_scripted, file.parent)
    with holder(file) as process:
        theirs = loaded(process)
        assert ours.served() == theirs
    mine = ours.served()
    assert ours.is_ours
    assert mine.url != theirs.url
    assert SharedModel(file, USUAL, start_scripted, file.parent).served() == mine
    ours.close()


def test_a_model_whose_process_died_is_started_again(file: Path) -> None:
    started: list[Running] = []

    def start(path: Path, settings: GgufSettings, key: str) -> Running:
        started.append(start_scripted(path, settings, key))
        return started[-1]

    model = SharedModel(file, USUAL, start, file.parent)
    first = model.served()
    assert model.served() == first
    started[0].end()
    assert model.served().url == started[1].url
    model.close()


def test_a_start_that_fails_leaves_the_model_to_others(file: Path) -> None:
    def fail(*_: object) -> Running:
        raise ModelMisconfigured("It cannot be loaded.")

    with pytest.raises(ModelMisconfigured):
        SharedModel(file, USUAL, fail, file.parent).served()
    next_one = SharedModel(file, USUAL, start_scripted, file.parent)
    assert next_one.served().url
    next_one.close()


def test_an_address_where_nothing_answers_names_the_file_to_remove(file: Path) -> None:
    started: list[Running] = []

    def start(path: Path, settings: GgufSettings, key: str) -> Running:
        started.append(start_scripted(path, settings, key))
        return started[-1]

    silent = SharedModel(file, USUAL, start, file.parent)
    silent.served()
    started[0].end()
    other = SharedModel(file, USUAL, start_scripted, file.parent, patience=0)
    with pytest.raises(ModelUnavailable) as caught:
        other.served()
    assert str(other.lock_file) in caught.value.remedy
    other.lock_file.unlink()
    other.served()
    assert other.is_ours
    for model in (silent, other):
        model.close()


def test_a_changed_file_is_another_model(file: Path) -> None:
    before = SharedModel(file, USUAL, start_scripted, file.parent).lock_file
    file.write_bytes(b"GGUF and another one")
    assert SharedModel(file, USUAL, start_scripted, file.parent).lock_file != before


# --- calls -----------------------------------------------------------------------------------------------------------


def test_a_call_goes_to_where_the_model_is_now(file: Path, model_server: Server) -> None:
    with serving() as second:
        addresses = [model_server.base_url, second.base_url]
        started: list[Running] = []

        def start(*_: object) -> Running:
            waiting = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True)
            started.append(Running(addresses[len(started)], waiting))
            return started[-1]

        model = SharedModel(file, USUAL, start, file.parent)
        transport = LmTransport.on_file(FileEngine(f"gguf/{file}", "gguf/small@1", model), PATIENCE)

        async def asked() -> list[str]:
            first = await transport.send(CALL)
            started[0].end()
            again = await transport.send(CALL)
            await transport.aclose()
            return [first.text, again.text]

        assert [text.replace('":"', '": "') for text in asyncio.run(asked())] == [SAID, SAID]
        assert (model_server.calls("summarize"), second.calls("summarize")) == (1, 1)
        assert transport.address == "gguf/small@1"
        assert second.base_url in transport.place
        assert all(request["authorization"] for request in second.requests())
        model.close()


def test_a_model_that_cannot_start_is_an_error_in_our_words(file: Path) -> None:
    def fail(*_: object) -> Running:
        raise ModelMisconfigured("It cannot be loaded.", "Name another.")

    model = SharedModel(file, USUAL, fail, file.parent)
    transport = LmTransport.on_file(FileEngine(f"gguf/{file}", "gguf/small@1", model), PATIENCE)
    with pytest.raises(EngineError, match=r"It cannot be loaded\. Name another\."):
        asyncio.run(transport.send(CALL))
