"""Does the scripted model server speak its protocols, count what it is asked, and replay a recording?"""

import asyncio
import gzip
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.answers import RULES
from tests.server.client import ROOT, Server, serving
from tests.server.inputs import PASSAGE, SHOWN, body, message, names, post

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
    until = time.monotonic() + 60
    while model_server.stats()["in_flight"] and time.monotonic() < until:
        time.sleep(0.02)
    stats = model_server.stats()
    assert (stats["in_flight"], stats["dropped_by_client"]) == (0, 1)


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
        assert process.wait(timeout=60) == 0
