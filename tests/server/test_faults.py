"""Does the scripted model server misbehave as it is told, when it is told, and recover?"""

import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.server.client import Server
from tests.server.faults import KINDS, REFUSAL, SILENT_LIMIT, THOUGHT
from tests.server.inputs import PASSAGE, RECORDS, SHOWN, body, message, names, post


@pytest.mark.parametrize(
    ("rule", "status", "said"),
    [
        ({"kind": "rate_limit", "retry_after": "7"}, 429, "rate_limit_exceeded"),
        ({"kind": "quota"}, 429, "insufficient_quota"),
        ({"kind": "server_error"}, 500, "server_error"),
        ({"kind": "server_error", "status": 503}, 503, "server_error"),
        ({"kind": "unauthorized"}, 401, "invalid_api_key"),
        ({"kind": "no_model"}, 404, "model_not_found"),
        ({"kind": "overflow_openai"}, 400, "context_length_exceeded"),
        ({"kind": "overflow_vllm"}, 400, "in the messages, 512 in the completion"),
        ({"kind": "overflow_ollama"}, 400, "exceeds the context length"),
        ({"kind": "unsupported", "key": "messages"}, 400, "'messages' is not supported"),
        ({"kind": "error_in_success"}, 200, "server_error"),
    ],
)
def test_a_request_is_turned_down(model_server: Server, rule: dict[str, object], status: int, said: str) -> None:
    model_server.misbehave(rule)
    response = post(model_server, body())
    assert response.status_code == status
    assert said in json.dumps(response.json()["error"])
    assert response.headers.get("retry-after") == rule.get("retry_after")
    assert model_server.stats()["kinds"] == {rule["kind"]: 1}


def holds(text: str) -> Callable[[dict[str, Any]], bool]:
    return lambda said: said["content"] == text


@pytest.mark.parametrize(
    ("kind", "is_so"),
    [
        ("empty", holds("")),
        ("refusal", holds(REFUSAL)),
        ("refusal_field", lambda said: said["content"] is None and said["refusal"] == REFUSAL),
        ("malformed", lambda said: said["content"].startswith("{found:")),
        ("fenced", lambda said: "```json\n{" in said["content"]),
        ("duplicate_fields", lambda said: said["content"].endswith('"entities": null}}')),
        ("out_of_order", lambda said: list(json.loads(said["content"])["found"]) == ["relations", "entities"]),
        (
            "thinking",
            lambda said: said["content"].startswith("<think>") and names(said["content"].split("</think>")[1]),
        ),
        ("thinking_only", lambda said: said["content"] == f"<think>\n{THOUGHT}"),
        ("nothing", lambda said: json.loads(said["content"])["found"] == {"entities": [], "relations": []}),
        ("reasoning", lambda said: said["reasoning_content"] == THOUGHT and names(said["content"])),
        ("wrong_keys", lambda said: list(json.loads(said["content"])["结果"]) == ["实体", "关系"]),
    ],
)
def test_an_answer_is_spoiled(model_server: Server, kind: str, is_so: Callable[[dict[str, Any]], bool]) -> None:
    model_server.misbehave({"kind": kind})
    assert is_so(message(post(model_server, body())))


@pytest.mark.parametrize(
    ("kind", "line", "begins"),
    [
        ("malformed", 0, "E Ada"),
        ("out_of_order", 0, "END"),
        ("duplicate_fields", -1, "E\tAda"),
        ("wrong_keys", 0, "记录\tAda"),
    ],
)
def test_records_are_spoiled(model_server: Server, kind: str, line: int, begins: str) -> None:
    model_server.misbehave({"kind": kind})
    assert message(post(model_server, body(form=RECORDS)))["content"].split("\n")[line].startswith(begins)


def test_an_answer_is_cut(model_server: Server) -> None:
    model_server.misbehave({"kind": "truncated", "nth": 1}, {"kind": "content_filter"})
    cut = post(model_server, body()).json()["choices"][0]
    assert cut["finish_reason"] == "length"
    assert not cut["message"]["content"].endswith("}")
    assert post(model_server, body()).json()["choices"][0]["finish_reason"] == "content_filter"


def test_a_prompt_is_cut_without_a_word(model_server: Server) -> None:
    passage = " ".join([PASSAGE, *["Nobody was there."] * 800, "Mary Shelley met Lord Byron in Geneva."])
    whole = post(model_server, body(passage=passage))
    assert {"Mary Shelley", "Lord Byron"} <= set(names(message(whole)["content"]))
    for rule, limit in (({}, SILENT_LIMIT), ({"over": 300}, 300)):
        model_server.misbehave({"kind": "overflow_silent", **rule})
        cut = post(model_server, body(passage=passage))
        assert "Ada Lovelace" in names(message(cut)["content"])
        assert "Mary Shelley" not in names(message(cut)["content"]), "what is not read is not answered"
        assert 0.9 * limit <= cut.json()["usage"]["prompt_tokens"] <= limit < whole.json()["usage"]["prompt_tokens"]
        assert cut.json()["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_a_connection_breaks(model_server: Server, stream: bool) -> None:
    model_server.misbehave({"kind": "reset", "nth": 1}, {"kind": "cut", "nth": 2})
    for _ in range(2):
        with pytest.raises(httpx.TransportError):
            post(model_server, body(stream=stream))
    assert post(model_server, body(stream=stream)).is_success


@pytest.mark.parametrize("stream", [False, True])
def test_a_body_drips(model_server: Server, stream: bool) -> None:
    model_server.misbehave({"kind": "drip", "seconds": 0.4})
    started = time.monotonic()
    assert post(model_server, body(stream=stream)).is_success
    assert time.monotonic() - started > 0.3


@pytest.mark.parametrize("kind", ["overflow_openai", "overflow_vllm", "overflow_ollama"])
def test_a_context_has_a_length(model_server: Server, kind: str) -> None:
    model_server.misbehave({"kind": kind, "over": 200})
    assert post(model_server, body()).is_success
    assert post(model_server, body(form=SHOWN + " hello" * 200)).status_code == 400


def test_a_page_of_html_comes_with_a_status_of_success(model_server: Server) -> None:
    model_server.misbehave({"kind": "html"})
    response = post(model_server, body())
    assert (response.status_code, response.text[:6]) == (200, "<html>")


def test_rules_count_the_requests_that_they_are_about(model_server: Server) -> None:
    model_server.misbehave(
        {"kind": "quota", "step": "route", "nth": 2},
        {"kind": "server_error", "step": "answer", "every": 2, "times": 1},
        {"kind": "rate_limit", "step": "extract", "nth": 1, "times": 2},
        {"kind": "unauthorized", "step": "decompose", "text": "nowhere in it"},
        {"kind": "no_model", "step": "embeddings"},
        {"kind": "unsupported", "key": "temperature"},
    )

    def statuses(step: str, calls: int) -> list[int]:
        return [post(model_server, body(step)).status_code for _ in range(calls)]

    assert statuses("route", 3) == [200, 429, 200]
    assert statuses("answer", 5) == [200, 500, 200, 200, 200]
    assert statuses("extract", 3) == [429, 429, 200]
    assert statuses("decompose", 1) == [200]
    assert post(model_server, body("decompose", temperature=0)).status_code == 400
    assert post(model_server, {"input": "a"}, "/v1/embeddings").status_code == 404
    model_server.misbehave()
    assert post(model_server, {"input": "a"}, "/v1/embeddings").status_code == 200


@pytest.mark.parametrize("rule", [{"kind": "sulk"}, {"kind": "quota", "nth": 0}, {"kind": "quota", "often": True}])
def test_a_script_that_cannot_be_read_is_refused(model_server: Server, rule: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not a script of misbehaviour"):
        model_server.misbehave(rule)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/chat", "/v1/embeddings"])
def test_no_kind_breaks_the_server(model_server: Server, kind: str, path: str) -> None:
    model_server.misbehave({"kind": kind, "seconds": 0.01, "times": 1})
    sent = {"input": ["a"]} if path.endswith("embeddings") else body(stream=False)
    try:
        assert post(model_server, sent, path).status_code != 500 or kind == "server_error"
    except httpx.TransportError:
        assert kind in {"reset", "cut"}
    assert post(model_server, sent, path).is_success
