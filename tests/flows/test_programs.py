"""Steps compiled by DSPy's optimisers, saved, and used by the command."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest

from flows.runtime import open_runtime
from flows.settings import load_settings
from prompts.extract import Extract
from prompts.route import Route
from prompts.tailoring import Example, ExampleEntity, Tailoring
from tests.flows.conftest import Command, row
from tests.server.client import Server
from tests.workspaces import write_rows

PAGE = (Path(__file__).parents[2] / "docs" / "compile.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
QUESTION = "Whose teacher designed Orla Bridge, and where was he born?"


@pytest.fixture
def route(copied: Command, model_server: Server) -> Route:
    """The router on the models of the command's settings."""
    return Route(open_runtime(load_settings({"workspace": copied.workspace})).models)


def test_the_examples_of_the_page_compile_and_are_used(
    copied: Command,
    model_server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unembedded: None,
) -> None:
    monkeypatch.setenv("TRELLIS_WORKSPACE", str(copied.workspace))
    monkeypatch.setenv("TRELLIS_GLEANINGS", "0")
    router: dict[str, Any] = {}
    exec(BLOCKS[0], router)  # noqa: S102 -- what the page tells a reader to run
    assert router["after"] >= router["before"] > 0
    assert len(router["compiled"].demos) == 3
    demonstrated = [demo["question"] for demo in router["compiled"].demos]
    model_server.reset()
    answer = copied("ask", QUESTION, "--effort", "high", "--json").json
    assert answer["trace"]["route"]["type"] == "graph"
    (messages,) = model_server.sent("route")
    assert [turn["role"] for turn in messages] == ["system", *["user", "assistant"] * 3, "user"]
    for question, turn in zip(demonstrated, messages[1:6:2], strict=True):
        assert question in turn["content"]
    extractor: dict[str, Any] = {}
    exec(BLOCKS[1], extractor)  # noqa: S102
    assert extractor["score"] > 0
    assert len(extractor["compiled"].demos) == 2
    model_server.reset()
    source = write_rows(tmp_path / "more.jsonl", [row(1), row(2)])
    assert copied("index", str(source), "--allow-removals", "--json").code == 0
    assert len(model_server.sent("extract")) == 5
    for messages in model_server.sent("extract"):
        assert [turn["role"] for turn in messages] == ["system", *["user", "assistant"] * 2, "user"]
        assert extractor["compiled"].demos[0]["passage"] in messages[1]["content"]
    model_server.reset()
    assert not copied("index", str(source), "--json").json["published"], "its work stays"
    (copied.workspace / "programs" / "extract.json").unlink()
    copied("index", str(source), "--json")
    # Without the program all passages are read again, with the example of our prompt.
    assert [len(messages) for messages in model_server.sent("extract")] == [4] * 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"step": "router"}, "not for 'router'"),
        ({"shape": "question -> routed, 0123456789ab"}, "core_content, question -> routed"),
        (
            {"demos": [{"question": "?", "routed": {"structure": "heap"}}]},
            "has an answer of another form",
        ),
        (None, "compiled and saved by DSPy"),
        ("{", "JSON as `step.save` writes it"),
    ],
)
def test_a_program_that_does_not_fit_is_refused(
    change: Any, words: str, route: Route, copied: Command, model_server: Server
) -> None:
    path = copied.workspace / "programs" / "route.json"
    path.parent.mkdir()
    route.module.save(path)
    if not isinstance(change, str):
        change = json.dumps({**json.loads(path.read_text()), **change} if change else {})
    path.write_text(change)
    ended = copied("ask", QUESTION)
    assert ended.code == 2
    assert words in ended.err
    assert "route.json" in ended.err
    assert model_server.requests() == []


def test_a_program_replaces_tailored_examples(route: Route, tmp_path: Path) -> None:
    entity = ExampleEntity(name="Ana Korb", kind="person", description="-")
    mill = Example(passage="Ana Korb ran a mill.", entities=(entity,))
    tailoring, path = Tailoring(examples=(mill,)), tmp_path / "extract.json"
    assert len(Extract(route.models, tailoring=tailoring).module.demos) == 1
    Extract(route.models).module.save(path)
    models = replace(route.models, programs=[json.loads(path.read_text())])
    assert Extract(models, tailoring=tailoring).module.demos == []


def test_a_saved_program_holds_no_key(route: Route, tmp_path: Path) -> None:
    secret, path = "sk-secret-4711", tmp_path / "route.json"
    headers = {"Authorization": secret}
    route.module.set_lm(dspy.LM("openai/x", api_key=secret, extra_headers=headers))
    route.module.save(path)
    assert secret not in path.read_text()
