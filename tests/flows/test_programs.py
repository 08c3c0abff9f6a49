"""Steps compiled by DSPy's optimisers against the scripted server, saved, and loaded by the
command.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest

from flows.runtime import open_runtime
from flows.settings import load_settings
from prompts.engine.step import StepModule
from prompts.extract import Extract
from prompts.route import Route, Routed
from prompts.tailoring import Example, ExampleEntity, Tailoring
from tests.flows.conftest import Command, row
from tests.server.client import Server
from tests.workspaces import write_rows

PAGE = (Path(__file__).parents[2] / "docs" / "compile.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
QUESTION = "Whose teacher designed Orla Bridge, and where was he born?"
QUESTIONS = (
    "Whose son designed Orla Bridge?",
    "Compare the bridges.",
    "How do we close the lock?",
    "Whose quay is it?",
)


@pytest.fixture
def route(copied: Command, model_server: Server) -> Route:
    """The router on the models of the command's settings."""
    return Route(open_runtime(load_settings({"workspace": copied.workspace})).models)


def routed(structure: str) -> dict[str, object]:
    return {"reason": "by its words", "structure": structure, "confidence": 0.9, "margin": 0.5}


def examples() -> list[dspy.Example]:
    return [
        dspy.Example(
            question=text, core_content=[], routed=Routed.model_validate(routed("graph"))
        ).with_inputs("question", "core_content")
        for text in QUESTIONS
    ]


def used(step: StepModule, command: Command) -> None:
    (command.workspace / "programs").mkdir(exist_ok=True)
    step.save(command.workspace / "programs" / f"{step.step}.json")


def test_the_pages_router_and_extractor_are_compiled_and_used_by_the_command(
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
    assert [
        question in turn["content"]
        for question, turn in zip(demonstrated, messages[1:6:2], strict=True)
    ] == [True] * 3
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
    assert copied("index", str(source), "--json").json["published"] is False, (
        "what a program made stands"
    )
    (copied.workspace / "programs" / "extract.json").unlink()
    copied("index", str(source), "--json")
    assert all(len(messages) == 4 for messages in model_server.sent("extract")), (
        "our own example is shown"
    )
    assert len(model_server.sent("extract")) == 5, "without it all passages are read again"


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
def test_a_program_that_does_not_fit_is_refused_in_words_before_anything_is_asked(
    change: Any, words: str, route: Route, copied: Command, model_server: Server
) -> None:
    used(route.module, copied)
    path = copied.workspace / "programs" / "route.json"
    saved = json.loads(path.read_text())
    path.write_text(
        change if isinstance(change, str) else json.dumps({**saved, **change} if change else {})
    )
    ended = copied("ask", QUESTION)
    assert ended.code == 2
    assert words in ended.err
    assert "route.json" in ended.err
    assert model_server.requests() == []


def test_a_program_stands_in_place_of_tailorings_examples_and_holds_no_model(
    route: Route, tmp_path: Path
) -> None:
    mill = Example(
        passage="Ana Korb ran a mill.",
        entities=(ExampleEntity(name="Ana Korb", kind="person", description="-"),),
    )
    tailored = Extract(route.models, tailoring=Tailoring(examples=(mill,)))
    assert len(tailored.module.demos) == 1
    plain = Extract(route.models).module
    plain.set_lm(
        dspy.LM(
            "openai/x", api_key="sk-secret-4711", extra_headers={"Authorization": "sk-secret-4711"}
        )
    )
    plain.save(tmp_path / "extract.json")
    assert "sk-secret-4711" not in (tmp_path / "extract.json").read_text()
    models = replace(route.models, programs=[json.loads((tmp_path / "extract.json").read_text())])
    assert Extract(models, tailoring=Tailoring(examples=(mill,))).module.demos == []
