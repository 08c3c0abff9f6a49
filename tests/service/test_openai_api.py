"""OpenAI's interface as its own client sees it, and Ollama's."""

import json
from typing import Any

import numpy as np
import pytest

from tests.server.client import Server
from tests.service.conftest import QUESTION, Start, keys_of


def client_for(start: Start, **service: object) -> Any:
    """OpenAI's own client; untyped, since what we add to its records is not in its types."""
    from openai import OpenAI

    (key,), rows = keys_of("ask")
    return OpenAI(base_url=f"{start(keys=rows, **service).base_url}/v1", api_key=key, max_retries=0)


def test_a_chat_is_answered_with_footnotes(start: Start) -> None:
    client = client_for(start)
    assert {"trellis", "trellis-mix"} <= {model.id for model in client.models.list()}
    assert client.models.retrieve("trellis-global").id == "trellis-global"
    tool = {"type": "function", "function": {"name": "search", "parameters": {}}}
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": QUESTION}]
    done = client.chat.completions.create(model="trellis", messages=messages, tools=[tool])
    text = done.choices[0].message.content
    assert "Tomas Reyd" in text
    assert '[1] Orla Bridge (bridge): "' in text
    assert (done.choices[0].finish_reason, done.choices[0].message.tool_calls) == ("stop", None)
    assert done.citations[0]["document"] == "bridge"


def test_a_streamed_chat_is_the_same_answer_in_pieces(start: Start) -> None:
    client = client_for(start)
    asked = {
        "model": "trellis-naive",
        "messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}],
    }
    whole = client.chat.completions.create(**asked)
    chunks = list(
        client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True})
    )
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert len(pieces) > 3
    assert "".join(pieces) == whole.choices[0].message.content
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage.total_tokens == 0


def test_earlier_turns_are_the_history_of_a_question(start: Start) -> None:
    client = client_for(start)
    turns = [("user", QUESTION), ("assistant", "Tomas Reyd."), ("user", "Where was he born?")]
    done = client.chat.completions.create(
        model="trellis",
        messages=[{"role": role, "content": text} for role, text in turns],
    )
    assert "Velin" in str(done.choices[0].message.content)


def test_a_draft_comes_as_reasoning(scripted: Server, start: Start) -> None:
    client = client_for(start)
    asked = [{"role": "user", "content": "Where was Tomas Reyd born?"}]
    chunks = list(client.chat.completions.create(model="trellis", messages=asked, stream=True))
    drafts = [getattr(chunk.choices[0].delta, "reasoning_content", "") for chunk in chunks]
    assert "Tomas Reyd was born in Velin" in "".join(drafts)
    assert "Velin" in "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def test_errors_are_those_that_the_client_knows(start: Start) -> None:
    import openai

    client = client_for(start)
    with pytest.raises(openai.NotFoundError, match="no model 'gpt-4'"):
        client.chat.completions.create(
            model="gpt-4", messages=[{"role": "user", "content": QUESTION}]
        )
    with pytest.raises(openai.BadRequestError, match="does not end with a question"):
        client.chat.completions.create(
            model="trellis", messages=[{"role": "assistant", "content": "Yes?"}]
        )
    image = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}
    with pytest.raises(openai.BadRequestError, match="image_url"):
        client.chat.completions.create(
            model="trellis", messages=[{"role": "user", "content": [image]}]
        )
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").models.list()
    with pytest.raises(
        openai.BadRequestError, match="cannot read"
    ):  # this workspace has no vectors
        client.embeddings.create(model="trellis", input="Orla Bridge")


def test_embeddings_are_those_of_the_workspace(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_EMBEDDING", "bundled")
    client = client_for(start)
    texts = ["a bridge", "a bridge", "salt"]
    plain = client.embeddings.create(model="trellis", input=texts, encoding_format="float").data
    packed = client.embeddings.create(model="trellis", input=texts).data
    assert np.allclose([row.embedding for row in packed], [row.embedding for row in plain])
    assert len(plain[0].embedding) == 384
    assert plain[0].embedding == plain[1].embedding != plain[2].embedding


def test_ollamas_clients_are_answered_in_lines(start: Start) -> None:
    client = start()
    assert "trellis:latest" in {row["name"] for row in client.get("/api/tags").json()["models"]}
    body = {"model": "trellis:latest", "messages": [{"role": "user", "content": QUESTION}]}
    lines = [json.loads(line) for line in client.post("/api/chat", json=body).text.splitlines()]
    text = "".join(line["message"]["content"] for line in lines)
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    whole = client.post("/api/chat", json={**body, "stream": False}).json()
    assert whole["message"]["content"] == text
    assert "Tomas Reyd" in text
