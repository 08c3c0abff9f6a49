"""Does the scripted model server speak its protocols, count what it is asked, and misbehave on command?"""

import asyncio
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.answers import RULES
from tests.server.client import ROOT, Server, serving
from tests.server.faults import KINDS, REFUSAL, SILENT_LIMIT, THOUGHT
from tests.server.inputs import INPUTS, PASSAGE

SHOWN = '{\n "found": {\n }\n}'
RECORDS = "E<TAB>name<TAB>kind<TAB>description\nR<TAB>source<TAB>target<TAB>predicate\nEND"


def body(step: str = "extract", form: str = SHOWN, **more: object) -> dict[str, object]:
    shown = [
        f"[[ ## {name} ## ]]\n{value if isinstance(value, str) else json.dumps(value)}"
        for name, value in INPUTS[step].items()
    ]
    messages = [
        {"role": "system", "content": f"Step: {step}\nDo it.\n\n{form}"},
        {"role": "user", "content": "\n\n".join(shown)},
    ]
    return {"model": "m", "messages": messages, **more}


def post(server: Server, sent: object, path: str = "/v1/chat/completions", timeout: float = 10) -> httpx.Response:
    return server.post(path, sent, timeout)


def message(response: httpx.Response) -> dict[str, Any]:
    response.raise_for_status()
    found: dict[str, Any] = response.json()["choices"][0]["message"]
    return found


def names(content: str) -> list[str]:
    return [entity["name"] for entity in json.loads(content)["found"]["entities"]]


# --- protocols -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", RULES)
def test_every_step_is_answered(model_server: Server, step: str) -> None:
    response = post(model_server, body(step))
    assert list(json.loads(message(response)["content"])) == ["found"]
    usage = response.json()["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > usage["prompt_tokens"] > 20


def test_a_step_without_a_rule_is_a_clear_400(model_server: Server) -> None:
    sent = body()
    sent["messages"] = [{"role": "system", "content": "Step: judge"}, {"role": "user", "content": "[[ ## a ## ]]\nb"}]
    response = post(model_server, sent)
    assert response.status_code == 400
    assert "no rule for the step 'judge'; the steps are extract," in response.json()["error"]["message"]
    assert model_server.stats()["kinds"] == {"refused": 1}


def test_a_body_that_is_no_object_is_refused(model_server: Server) -> None:
    assert post(model_server, [1]).status_code == 400
    assert model_server.client.post("/v1/chat/completions", content=b"{").status_code == 400
    assert model_server.stats()["calls"] == 0


def test_usage_counts_the_messages_as_sent(model_server: Server) -> None:
    first = post(model_server, body()).json()["usage"]["prompt_tokens"]
    longer = post(model_server, body(form=SHOWN + " hello" * 50)).json()["usage"]["prompt_tokens"]
    assert longer - first == 50


def test_a_stream_holds_the_same_content_and_the_usage(model_server: Server) -> None:
    whole = post(model_server, body()).json()
    streamed = post(model_server, body(stream=True, stream_options={"include_usage": True}))
    assert streamed.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in streamed.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    events = [json.loads(line) for line in lines[:-1]]
    pieces = [event["choices"][0]["delta"].get("content", "") for event in events if event["choices"]]
    assert "".join(pieces) == whole["choices"][0]["message"]["content"]
    assert len(pieces) > 4
    assert events[-1]["usage"] == whole["usage"]


def test_ollama_s_own_address_answers_whole_and_in_lines(model_server: Server) -> None:
    whole = post(model_server, body(stream=False), "/api/chat").json()
    assert names(whole["message"]["content"]) == ["Ada Lovelace", "Charles Babbage"]
    lines = [json.loads(line) for line in post(model_server, body(), "/api/chat").text.splitlines()]
    assert "".join(line["message"]["content"] for line in lines) == whole["message"]["content"]
    assert (lines[-1]["done"], lines[-1]["prompt_eval_count"]) == (True, whole["prompt_eval_count"])


@pytest.mark.parametrize("provider", ["openai", "ollama_chat", "hosted_vllm"])
async def test_dspy_reaches_it_under_each_provider_s_name(model_server: Server, provider: str) -> None:
    import dspy

    lm = dspy.LM(f"{provider}/m", api_base=model_server.base_url, api_key="k", cache=False, num_retries=0)
    messages: Any = body()["messages"]
    (said,) = await lm.acall(messages=messages)
    assert names(said if isinstance(said, str) else said["text"]) == ["Ada Lovelace", "Charles Babbage"]
    assert model_server.stats()["paths"] == {"/v1/chat/completions": 1}


def test_embeddings_are_unit_vectors_that_know_shared_words(model_server: Server) -> None:
    texts = ["the red engine", "The RED engine!", "red engines sail", "蓝色的船", ""]
    sent = {"model": "e", "input": texts, "dimensions": 256}
    rows = [row["embedding"] for row in post(model_server, sent, "/v1/embeddings").json()["data"]]
    assert all(len(row) == 256 and sum(x * x for x in row) == pytest.approx(1, abs=1e-4) for row in rows)
    assert rows[0] == rows[1]

    def near(a: int, b: int) -> float:
        return float(sum(x * y for x, y in zip(rows[a], rows[b], strict=True)))

    assert near(0, 2) > near(0, 3)
    model_server.settle(dimension=16)
    assert len(post(model_server, {"input": "a"}, "/v1/embeddings").json()["data"][0]["embedding"]) == 16
    model_server.settle(dimension=384)


# --- counting --------------------------------------------------------------------------------------------------------


async def test_calls_repeats_and_the_most_at_once_are_counted(model_server: Server) -> None:
    model_server.settle(latency_ms=100)
    async with httpx.AsyncClient(base_url=model_server.url, trust_env=False) as client:
        sent = [body("extract"), body("extract"), body("route"), body("answer")]
        await asyncio.gather(*(client.post("/v1/chat/completions", json=one) for one in sent))
    stats = model_server.stats()
    assert (stats["calls"], stats["most_in_flight"], stats["in_flight"], stats["repeated"]) == (4, 4, 0, 1)
    assert {step: counted["calls"] for step, counted in stats["steps"].items()} == {
        "extract": 2,
        "route": 1,
        "answer": 1,
    }
    assert stats["prompt_tokens"] == sum(counted["prompt_tokens"] for counted in stats["steps"].values()) > 0
    assert stats["seconds"] >= 0.1
    assert {one["step"] for one in model_server.requests()} == {"extract", "route", "answer"}
    model_server.reset()
    assert (model_server.stats()["calls"], model_server.requests()) == (0, [])


def test_every_other_address_is_remembered(model_server: Server) -> None:
    assert model_server.client.get("/pixel.png?leak=1").status_code == 404
    assert post(model_server, {}, "/chat/completions").status_code == 404
    assert model_server.stats()["others"] == ["GET /pixel.png?leak=1", "POST /chat/completions"]


def test_a_client_that_gives_up_is_counted(model_server: Server) -> None:
    model_server.misbehave({"kind": "hang", "seconds": 30})
    with pytest.raises(httpx.ReadTimeout):
        post(model_server, body(), timeout=0.2)
    until = time.monotonic() + 5
    while model_server.stats()["in_flight"] and time.monotonic() < until:
        time.sleep(0.02)
    stats = model_server.stats()
    assert (stats["in_flight"], stats["dropped_by_client"]) == (0, 1)


# --- misbehaviour ----------------------------------------------------------------------------------------------------


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


def test_an_answer_is_cut_and_a_prompt_is_cut_without_a_word(model_server: Server) -> None:
    model_server.misbehave(
        {"kind": "truncated", "nth": 1}, {"kind": "overflow_silent", "nth": 2}, {"kind": "content_filter"}
    )
    cut = post(model_server, body()).json()["choices"][0]
    assert cut["finish_reason"] == "length"
    assert not cut["message"]["content"].endswith("}")
    assert post(model_server, body(form=SHOWN + " hello" * 3000)).json()["usage"]["prompt_tokens"] == SILENT_LIMIT
    assert post(model_server, body()).json()["choices"][0]["finish_reason"] == "content_filter"


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


# --- replay and life -------------------------------------------------------------------------------------------------


def test_recorded_answers_are_replayed(tmp_path: Path) -> None:
    row = {
        "text": PASSAGE,
        "response": '("entity"<|>"Ada"<|>"person"<|>"d")##<|COMPLETE|>',
        "glean_response": "<|MORE|>",
        "entities": [{"name": "Ada", "type": "person", "description": "d"}],
        "relations": [{"source": "Ada", "target": "London", "description": "r", "weight": 8.0}],
    }
    file = tmp_path / "recorded.jsonl.gz"
    file.write_bytes(gzip.compress(json.dumps(row).encode()))
    spaced = json.loads(json.dumps(body()).replace("Ada Lovelace met", "Ada  Lovelace met"))
    unknown = json.loads(json.dumps(body()).replace("Lovelace", "Byron"))
    with serving("--replay", str(file)) as server:
        assert message(post(server, spaced))["content"] == row["response"]
        refused = post(server, unknown)
        assert refused.status_code == 404
        assert "recorded.jsonl.gz holds no answer for the passage" in refused.json()["error"]["message"]
        assert message(post(server, body("summarize")))["content"] == '{"found": {"description": "Ada is here."}}'
    with serving("--replay", str(file), "--replay-as", "wire") as server:
        assert names(message(post(server, body()))["content"]) == ["Ada"]


def test_the_process_ends_with_its_parent() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.server", "--until-stdin-closes"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["base_url"].endswith("/v1")
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=10) == 0
