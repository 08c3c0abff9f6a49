"""Stored conversations: each belongs to one user, and holds nothing that was forgotten."""

import json
from collections.abc import Callable

import httpx
import pytest

from storage.conversations import Conversation
from tests.service.conftest import ASK, ASKED, DOCUMENTS, QUESTION, Start, keys_of, refused
from tests.service.test_rest import events_of, get

MINE = "/api/v1/conversations"
OTHER = "Where was Tomas Reyd born?"
CHINESE = "托马斯生于何处？"


def ask(client: httpx.Client, conversation: str, question: str = QUESTION, **body: object) -> None:
    answer = client.post(ASK, json={"question": question, "conversation": conversation, **body})
    assert answer.status_code == 200, answer.text


def titles(client: httpx.Client) -> dict[str, str]:
    return {row["id"]: row["title"] for row in get(client, "conversations")}


def test_a_conversation_is_listed_opened_renamed_deleted(start: Start) -> None:
    client = start()
    ask(client, "a")
    ask(client, "b", CHINESE)
    events_of(client, {"question": OTHER, "conversation": "a"})
    assert list(titles(client).items()) == [("a", QUESTION), ("b", CHINESE)]
    opened = Conversation.model_validate(get(client, "conversations/a"))
    assert [turn.answer.question for turn in opened.turns] == [QUESTION, OTHER]
    assert opened.turns[0].answer.citations[0].document == "bridge"
    renamed = client.patch(f"{MINE}/b", json={"title": " 出生地 "}).json()
    assert (renamed["title"], titles(client)["b"]) == ("出生地", "出生地")
    ask(client, "b")
    assert titles(client)["b"] == "出生地"
    assert [row["id"] for row in client.delete(f"{MINE}/a").json()] == ["b"]
    refused(client.get(f"{MINE}/a"), 404, "UnknownConversation")
    client.delete(MINE)
    assert titles(client) == {}
    client.post(ASK, json=ASKED)  # names no conversation, as other programs do
    assert titles(client) == {}


REQUESTS: dict[str, Callable[[httpx.Client], httpx.Response]] = {
    "open": lambda client: client.get(f"{MINE}/a"),
    "rename": lambda client: client.patch(f"{MINE}/a", json={"title": "mine"}),
    "delete": lambda client: client.delete(f"{MINE}/a"),
}


def test_no_other_key_sees_or_changes_a_conversation(start: Start) -> None:
    (asker, admin), rows = keys_of("ask", "admin")
    client = start(key=asker, keys=rows)
    ask(client, "a")
    client.headers["authorization"] = f"Bearer {admin}"
    assert titles(client) == {}
    for request in REQUESTS.values():
        refused(request(client), 404, "UnknownConversation")
    client.delete(MINE)
    ask(client, "a", OTHER)  # the same id is another conversation
    assert titles(client) == {"a": OTHER}
    client.headers["authorization"] = f"Bearer {asker}"
    assert titles(client) == {"a": QUESTION}


def test_a_forgotten_document_leaves_conversations(start: Start) -> None:
    client = start()
    ask(client, "a")
    client.patch(f"{MINE}/a", json={"title": "When Orla opened"})
    ask(client, "a", OTHER, documents=["reyd"])
    ask(client, "b")
    report = client.delete(f"{DOCUMENTS}/bridge").json()
    assert report["conversation_turns"] == 2
    assert titles(client) == {"a": OTHER}
    assert "Orla" not in json.dumps(get(client, "conversations/a"))


def test_the_oldest_turns_go_beyond_the_setting(start: Start) -> None:
    client = start(kept_turns=2)
    for conversation in ("a", "b", "b"):
        ask(client, conversation)
    assert [*titles(client)] == ["b"]
    without = start(kept_turns=0)
    ask(without, "c")
    assert titles(without) == {}


def test_a_rating_is_kept_with_its_answer(start: Start) -> None:
    client = start()
    ask(client, "a")
    answer = get(client, "conversations/a")["turns"][0]["answer"]
    body = {name: answer[name] for name in ("question", "answer", "generation")}
    for helpful in (True, False):
        client.post("/api/v1/feedback", json={**body, "helpful": helpful, "conversation": "a"})
        assert get(client, "conversations/a")["turns"][0]["helpful"] is helpful


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 65])
def test_an_id_has_letters_and_digits(name: str, start: Start) -> None:
    answer = start().post(ASK, json={**ASKED, "conversation": name})
    assert answer.status_code == 422
