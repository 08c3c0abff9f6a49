"""What servers say when they refuse: read in any form, learnt once, and sent otherwise."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from prompts.engine.client import Client
from prompts.engine.error_words import words_of
from prompts.engine.errors import AnswerTruncated, ContextOverflow, EngineError, ModelRefused
from prompts.engine.limits import Limits
from prompts.engine.server_habits import HABITS, largest_below
from tests.engine.fakes import Sheet
from tests.engine.test_lm import CALL, answering, transport_to

SAID = "Ada is here."


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "Too long", "code": None}}, "Too long"),
        ({"error": {"message": "No", "code": "unsupported_value"}}, "No (unsupported_value)"),
        ({"error": "only 'text'"}, "only 'text'"),
        ({"object": "error", "message": "No system role", "code": 400}, "No system role"),
        ({"detail": "It is closed"}, "It is closed"),
        (
            {"detail": [{"loc": ["body", "max_tokens"], "msg": "At most 9", "input": {"a": "long"}}]},
            "body.max_tokens: At most 9",
        ),
        ({"detail": {"error": "no such tenant"}}, "no such tenant"),
        ({"code": 20012, "message": "No such thing", "data": None}, "No such thing"),
        ({"error_code": 17, "error_msg": "Daily limit"}, "Daily limit"),
        ({"errors": ["a", "b"]}, "a; b"),
        (
            {"error": {"message": "Provider error", "metadata": {"raw": '{"error": "too hot"}'}}},
            "Provider error; too hot",
        ),
        ("bad request:\n tenant 7", "bad request: tenant 7"),
        ("<html><style>p {}</style><h1>502 Bad Gateway</h1>nginx</html>", "502 Bad Gateway nginx"),
        ({"unheard": "of"}, '{"unheard": "of"}'),
        ("{broken", "{broken"),
        ("", ""),
    ],
)
def test_the_words_of_an_error_body_are_found(body: object, words: str) -> None:
    assert words_of(body if isinstance(body, str) else json.dumps(body)) == words


@dataclass
class Picky:
    """A server that refuses what `refuses` says of a request's body: (status, body) or None."""

    refuses: Callable[[dict[str, Any]], tuple[int, object] | None]
    finish: str = "stop"
    together: int = 1  # requests that must have come before one is answered
    bodies: list[dict[str, Any]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        while len(self.bodies) < self.together:  # noqa: ASYNC110 -- a server has no event for it
            await asyncio.sleep(0.01)
        refused = self.refuses(body)
        if refused is not None:
            status, told = refused
            if isinstance(told, str):
                return web.Response(status=status, text=told)
            return web.json_response(told, status=status)
        if not body.get("stream"):
            message = {"role": "assistant", "content": SAID}
            choice = {"index": 0, "message": message, "finish_reason": self.finish}
            return web.json_response({"id": "c", "model": "m", "choices": [choice]})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for delta, finish in (({"content": SAID}, None), ({}, self.finish)):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            await response.write(f"data: {json.dumps({'id': 'c', 'choices': [choice]})}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        HABITS.clear()
        async with answering(self.answer) as url:
            transport = transport_to(url)
            yield Client(transport, Limits(8))
            await transport.aclose()


def roles(body: dict[str, Any]) -> list[str]:
    return [turn["role"] for turn in body["messages"]]


def refusing(words: object, when: Callable[[dict[str, Any]], bool], status: int = 400) -> Picky:
    return Picky(lambda body: (status, words) if when(body) else None)


def whole(body: dict[str, Any]) -> bool:
    return not body.get("stream")


def with_system(body: dict[str, Any]) -> bool:
    return "system" in roles(body)


def with_form(body: dict[str, Any]) -> bool:
    return "response_format" in body


def more_than(most: int) -> Callable[[dict[str, Any]], bool]:
    return lambda body: body.get("max_tokens", 0) > most


def old(words: str) -> dict[str, object]:
    return {"object": "error", "message": words, "type": "BadRequestError", "code": 400}


def pydantic(place: str, words: str) -> dict[str, object]:
    return {"detail": [{"type": "x", "loc": ["body", place], "msg": words, "input": {}}]}


LEARNT: dict[str, tuple[object, Callable[[dict[str, Any]], bool], int]] = {
    "stream alone": ({"error": {"message": "This model only supports stream mode."}}, whole, 2),
    "thinking streams": ({"detail": "thinking must be off for non-streaming calls"}, whole, 2),
    "no stream": (old("Streaming is not available here"), lambda body: bool(body.get("stream")), 1),
    "no system": (old("System role not supported"), with_system, 2),
    "no such role": ({"error": {"message": "'messages[0].role' is wrong"}}, with_system, 2),
    "no instruction": ("Developer instruction is not enabled", with_system, 2),
    "alternate": (old("Conversation roles must alternate user/assistant/…"), with_system, 2),
    "at most": ({"error": {"message": "max_tokens: 200 > 128, which is the maximum"}}, more_than(128), 2),
    "range": (old("the valid range of max_tokens is [1, 128]"), more_than(128), 2),
    "field's bound": (pydantic("max_tokens", "should be at most 128"), more_than(128), 2),
    "other name": (pydantic("max_tokens", "Extra inputs are not permitted"), more_than(0), 2),
    "no form": (old("response_format is not supported"), with_form, 3),
    "no extra keys": (
        {"error": {"message": 'Unknown name "additionalProperties" at response_schema'}},
        lambda body: "additionalProperties" in str(body.get("response_format")),
        2,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("words", "when", "tries"), LEARNT.values(), ids=LEARNT)
async def test_a_refusal_is_learnt_once_for_all_calls(
    words: object, when: Callable[[dict[str, Any]], bool], tries: int
) -> None:
    server = refusing(words, when)
    async with server.client() as client:
        assert await client.ask(CALL, str, 0, Sheet()) == SAID
        assert len(server.bodies) == tries
        other = transport_to(client.transport.address)  # of another run in the process
        assert await Client(other, Limits(8)).ask(CALL, str, 0, Sheet()) == SAID
        await other.aclose()
    assert len(server.bodies) == tries + 1


async def test_a_refused_stream_is_asked_for_as_a_whole() -> None:
    server = refusing(old("Verify your organization to stream this"), lambda body: bool(body.get("stream")))
    pieces: list[object] = []
    async with server.client() as client:
        assert await client.ask(CALL, str, 0, Sheet(), pieces.append) == SAID
    assert (pieces, len(server.bodies)) == ([SAID], 2)


async def test_what_only_streams_is_shown_where_somebody_watches() -> None:
    server = refusing("only stream=true is possible", whole)
    pieces: list[object] = []
    async with server.client() as client:
        assert await client.ask(CALL, str, 0, Sheet()) == SAID
        assert await client.ask(CALL, str, 0, Sheet(), pieces.append) == SAID
    assert ("".join(map(str, pieces)), len(server.bodies)) == (SAID, 3)


async def test_instructions_become_a_part_of_the_first_turn() -> None:
    server = refusing(old("System role not supported"), with_system)
    async with server.client() as client:
        await client.ask(CALL, str, 0, Sheet())
    (turn,) = server.bodies[-1]["messages"]
    system, user = (message.content for message in CALL.messages)
    assert turn == {"role": "user", "content": f"{system}\n\n{user}"}


async def test_calls_at_one_time_all_learn_from_one_refusal() -> None:
    server = refusing(pydantic("max_tokens", "Extra inputs are not permitted"), more_than(0))
    server.together = 5
    async with server.client() as client:
        calls = [CALL.repaired(str(number)) for number in range(5)]
        said = await asyncio.gather(*(client.ask(call, str, 0, Sheet()) for call in calls))
    assert said == [SAID] * 5
    assert len(server.bodies) == 10


@pytest.mark.parametrize(
    ("words", "kind", "remedy"),
    [
        ("max_tokens is too large", ModelRefused, "Lower TRELLIS_MAX_TOKENS"),
        (old("The prompt is longer than the context length of 9"), ContextOverflow, "TRELLIS_CHUNK_TOKENS"),
        ({"detail": "the field 'foo' is missing"}, ModelRefused, "see its words"),
    ],
)
async def test_what_cannot_be_learnt_is_told_in_the_server_s_words(
    words: object, kind: type[EngineError], remedy: str
) -> None:
    server = refusing(words, lambda _: True)
    async with server.client() as client:
        with pytest.raises(EngineError, match=remedy) as caught:
            await client.ask(CALL, str, 0, Sheet())
    assert type(caught.value) is kind
    assert words_of(words if isinstance(words, str) else json.dumps(words)) in caught.value.message
    assert len(server.bodies) == 1


async def test_an_answer_gets_what_a_short_context_leaves() -> None:
    context = CALL.most_tokens() + 300
    long = CALL.__class__(CALL.step, CALL.messages, 4000)
    server = refusing(
        old(f"'max_tokens' is too large: 4000. This model's maximum context length is {context} tokens"), more_than(300)
    )
    async with server.client() as client:
        assert await client.ask(long, str, 0, Sheet()) == SAID
    assert [body["max_tokens"] for body in server.bodies] == [4000, 300]


async def test_a_cut_answer_is_not_asked_for_again_with_no_more_room() -> None:
    server = refusing("max_tokens must be at most 128", more_than(128))
    server.finish = "length"
    async with server.client() as client:
        with pytest.raises(AnswerTruncated, match=r"128 tokens.*longer context"):
            await client.ask(CALL, str, 0, Sheet())
    assert [body["max_tokens"] for body in server.bodies] == [200, 128]


async def test_a_success_that_holds_an_error_is_told_in_its_words() -> None:
    server = refusing({"error_code": 17, "error_msg": "Open daily limit reached"}, lambda _: True, status=200)
    async with server.client() as client:
        with pytest.raises(EngineError, match="Open daily limit reached"):
            await client.ask(CALL, str, 0, Sheet())


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("at most 2048, you gave 4096", 2048),
        ("[1, 2,048]", 2048),
        ("gpt-1106 and 4096", None),
        ("limit 8192", None),
        ("1", None),
    ],
)
def test_the_limit_is_the_largest_number_below(words: str, number: int | None) -> None:
    assert largest_below(4096, words) == number
