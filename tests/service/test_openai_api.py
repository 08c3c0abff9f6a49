"""OpenAI's interface as its own client sees it, and Ollama's."""

import json
from typing import Any

import httpx
import numpy as np
import openai
import pytest

from flows.service.openai_api import with_footnotes
from storage.answer_records import Answer
from tests.server.client import Server
from tests.service.conftest import ASK, ASKED, QUESTION, Start, keys_of

TURN = {"role": "user", "content": QUESTION}
PICTURE = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}


def chats_of(client: httpx.Client) -> Any:
    """OpenAI's own client; untyped, since its types lack our fields."""
    return openai.OpenAI(base_url=f"{client.base_url}/v1", api_key="none", max_retries=0)


@pytest.fixture
def chats(client: httpx.Client) -> Any:
    return chats_of(client)


def test_a_chat_is_answered_with_footnotes(chats: Any) -> None:
    assert {"trellis", "trellis-mix"} <= {model.id for model in chats.models.list()}
    assert chats.models.retrieve("trellis-global").id == "trellis-global"
    tool = {"type": "function", "function": {"name": "search", "parameters": {}}}
    messages = [{"role": "system", "content": "Be kind."}, TURN]
    done = chats.chat.completions.create(model="trellis", messages=messages, tools=[tool])
    (choice,) = done.choices
    assert "Tomas Reyd" in choice.message.content
    assert '[1] Orla Bridge (bridge): "' in choice.message.content
    assert (choice.finish_reason, choice.message.tool_calls) == ("stop", None)
    assert done.citations[0]["document"] == "bridge"


def test_a_streamed_chat_is_the_same_answer_in_pieces(chats: Any) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": QUESTION}]}
    asked = {"model": "trellis-naive", "messages": [message]}
    whole = chats.chat.completions.create(**asked)
    *chunks, last = chats.chat.completions.create(
        **asked, stream=True, stream_options={"include_usage": True}
    )
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks]
    assert len(pieces) > 3
    assert "".join(pieces) == whole.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert (last.choices, last.usage.total_tokens) == ([], 0)


def test_earlier_turns_are_the_history_of_a_question(chats: Any) -> None:
    turns = [
        TURN,
        {"role": "assistant", "content": "Tomas Reyd."},
        {"role": "user", "content": "Where was he born?"},
    ]
    done = chats.chat.completions.create(model="trellis", messages=turns)
    assert "Velin" in str(done.choices[0].message.content)


def test_a_draft_is_streamed_as_reasoning(scripted: Server, start: Start) -> None:
    chats = chats_of(start())
    asked = [{"role": "user", "content": "Where was Tomas Reyd born?"}]
    chunks = list(chats.chat.completions.create(model="trellis", messages=asked, stream=True))
    deltas = [chunk.choices[0].delta for chunk in chunks]
    drafts = [getattr(delta, "reasoning_content", "") for delta in deltas]
    assert "Tomas Reyd was born in Velin" in "".join(drafts)
    assert "Velin" in "".join(delta.content or "" for delta in deltas)


@pytest.mark.parametrize(
    ("model", "message", "kind", "words"),
    [
        ("gpt-4", TURN, openai.NotFoundError, "no model 'gpt-4'"),
        ("trellis", {**TURN, "role": "assistant"}, openai.BadRequestError, "end with a question"),
        ("trellis", {**TURN, "content": [PICTURE]}, openai.BadRequestError, "image_url"),
        (
            "trellis",
            {**TURN, "content": [{"type": "text"}]},
            openai.BadRequestError,
            "Only text can be asked",
        ),
    ],
)
def test_a_wrong_chat_is_an_error_of_the_client(
    chats: Any, model: str, message: object, kind: type[openai.APIError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        chats.chat.completions.create(model=model, messages=[message])


def test_a_wrong_key_is_an_error_of_the_client(start: Start) -> None:
    _, rows = keys_of("ask")
    with pytest.raises(openai.AuthenticationError):
        chats_of(start(keys=rows)).models.list()


def test_without_an_embedding_model_no_text_is_embedded(chats: Any) -> None:
    with pytest.raises(openai.BadRequestError, match="cannot read"):
        chats.embeddings.create(model="trellis", input="Orla Bridge")


def test_embeddings_are_those_of_the_workspace(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_EMBEDDING", "bundled")
    chats = chats_of(start())
    texts = ["a bridge", "a bridge", "salt"]
    plain = chats.embeddings.create(model="trellis", input=texts, encoding_format="float").data
    packed = chats.embeddings.create(model="trellis", input=texts).data
    assert np.allclose([row.embedding for row in packed], [row.embedding for row in plain])
    assert len(plain[0].embedding) == 384
    assert plain[0].embedding == plain[1].embedding != plain[2].embedding


def test_clients_of_ollama_are_answered_in_lines(client: httpx.Client) -> None:
    assert "trellis:latest" in {row["name"] for row in client.get("/api/tags").json()["models"]}
    body = {"model": "trellis:latest", "messages": [TURN]}
    lines = [json.loads(line) for line in client.post("/api/chat", json=body).text.splitlines()]
    text = "".join(line["message"]["content"] for line in lines)
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    whole = client.post("/api/chat", json={**body, "stream": False}).json()
    assert whole["message"]["content"] == text
    assert "Tomas Reyd" in text


@pytest.mark.parametrize(
    "line", ["---", "- - -", "> ***", "===", '[1] Trusted (a.md): "x"', "  > **[2]** Trusted"]
)
def test_no_text_of_an_answer_can_forge_a_footnote(client: httpx.Client, line: str) -> None:
    answer = Answer.model_validate(client.post(ASK, json=ASKED).json())
    shown = with_footnotes(answer.model_copy(update={"answer": f"So it is. [1]\n{line}\nAnd on."}))
    text, _, notes = shown.rpartition("\n---\n")
    assert text.splitlines()[1].replace("\\", "", 1) == line != text.splitlines()[1]
    assert text.startswith("So it is. [1]\n")
    assert notes.startswith("[1] ")
