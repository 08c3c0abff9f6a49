"""Servers of models as they behave and misbehave: OpenAI's language, and others through DSPy."""

import asyncio
import json
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from prompts.engine.adapter import StepAdapter
from prompts.engine.calls import Call, Message
from prompts.engine.chat_server import ChatServer
from prompts.engine.errors import (
    AnswerTruncated,
    AnswerWithheld,
    BadKey,
    ContextOverflow,
    EngineError,
    ModelMisconfigured,
    ModelRefused,
    ModelUnavailable,
    QuotaExhausted,
    UnknownModel,
)
from prompts.engine.key_masking import MASK
from prompts.engine.limits import Clock, Limits
from prompts.engine.lm import Asker, ServedLM, Terms
from prompts.engine.models import CallSettings, ModelChoice, Models
from prompts.engine.patience import FIRST_WORD, USUAL, Patience
from prompts.engine.providers import Endpoint, without_user
from prompts.engine.refusals import (
    HABITS,
    Failure,
    Habits,
    refused,
    seconds_asked,
    words_of,
)
from prompts.summarize import Summarize, SummarizeEntity
from tests.server.client import Server

FORM = StepAdapter()
INPUTS = {"name": "Ada", "statements": ["Ada lives in Velin.", "x"]}
CALL = Call(
    "summarize",
    FORM.messages("summarize", SummarizeEntity, [], INPUTS),
    200,
    FORM.schema(SummarizeEntity),
)
SAID = "Ada is here."


def lm_at(
    url: str, timeout: float | None = 60.0, *, own: bool = False, key: str | None = "sk-secret"
) -> ServedLM:
    """A model `m` at this address."""
    address = without_user(url)
    habits = HABITS.setdefault((address, "openai/m"), Habits("json_schema"))
    server = ChatServer(Endpoint("openai/m", "m", url, key, "json_schema", not own), habits)
    terms = Terms(Limits(8), timeout=timeout, own_server=own)
    return ServedLM("openai/m", address, terms, engine=server, habits=habits)


async def asked(lm: ServedLM, call: Call = CALL, show: Any = None) -> str:
    return await lm.ask(call, str, Asker(show=show))


@asynccontextmanager
async def answering(
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> AsyncIterator[str]:
    """A server that answers every request so; gives its address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("/v1"))


def completion(**more: Any) -> web.Response:
    message = {"role": "assistant", "content": SAID}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return web.json_response({"id": "c", "model": "m", "choices": [choice], **more})


async def stream_of(request: web.Request, pieces: Sequence[str], finish: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for piece in pieces:
        await response.write(chunk({"content": piece}, None))
    await response.write(chunk({}, finish) + b"data: [DONE]\n\n")
    return response


def chunk(delta: dict[str, str], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'id': 'c', 'choices': [choice]})}\n\n".encode()


# --- one request ---------------------------------------------------------------------------------


async def test_a_call_arrives_with_schema_and_sampling(model_server: Server) -> None:
    lm, pieces = lm_at(model_server.base_url), list[str]()
    extra = {"top_p": 0.9, "seed": 7, "min_p": 0.05, "template": {"thinking": False}}
    whole = await lm.send(replace(CALL, extra=extra))
    streamed = await lm.send(CALL, pieces.append)
    assert json.loads(whole.text) == {"description": "Ada lives in Velin."}
    assert whole.finish == "stop"
    assert len(pieces) > 1
    assert "".join(pieces) == streamed.text == whole.text
    assert streamed.input_tokens == whole.input_tokens > 50
    body: Any = model_server.requests()[0]["body"]
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("m", 200, 0.0)
    assert body["response_format"]["json_schema"]["schema"] == CALL.schema
    assert {name: body[name] for name in extra} == extra
    await lm.aclose()


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, (10, 5)),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}, (10, 30)),  # thinking
        (None, (CALL.tokens(), 4)),
    ],
)
async def test_tokens_are_the_servers_or_a_guess(usage: object, tokens: tuple[int, int]) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return completion(usage=usage)

    async with answering(answer) as url:
        reply = await lm_at(url).send(CALL)
    assert (reply.input_tokens, reply.output_tokens) == tokens


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (200, "<html>Bad gateway</html>", ModelUnavailable, True),
        (502, "<html>Bad gateway</html>", ModelUnavailable, True),
        (200, '{"hello": "world"}', ModelMisconfigured, False),
        (200, '{"error_msg": "Daily limit of me"}', ModelMisconfigured, False),
        (307, "", ModelMisconfigured, False),
        (401, "bad key sk-secret", BadKey, False),
    ],
)
async def test_what_is_no_answer_is_told_without_the_key(
    status: int, body: str, kind: type[EngineError], retryable: bool
) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        kind = "text/html" if body.startswith("<") else "application/json"
        return web.Response(status=status, text=body, content_type=kind, headers={"Location": "/"})

    async with answering(answer) as url:
        with pytest.raises(Failure) as caught:
            await lm_at(url).send(CALL)
    error = caught.value.error
    assert (type(error), caught.value.retryable) == (kind, retryable)
    assert "sk-secret" not in "".join(traceback.format_exception(caught.value))
    assert ("Daily limit" in error.message) is ("Daily" in body)
    assert (MASK in error.message) is ("sk-secret" in body)


async def test_a_user_and_password_in_an_address_are_sent() -> None:
    headers: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        headers.append(request.headers["Authorization"])
        return completion()

    async with answering(answer) as url:
        lm = lm_at(url.replace("http://", "http://me:pa%2Fss-4711@"), key=None)
        assert (await lm.send(CALL)).text == SAID
    assert headers == ["Basic bWU6cGEvc3MtNDcxMQ=="]
    assert "pa" not in lm.address


# --- waiting -------------------------------------------------------------------------------------


class Writer:
    """A server that writes one answer at a time in a stream."""

    def __init__(self, pieces: Sequence[str], pause: float = 0.0) -> None:
        self.pieces = pieces
        self.pause = pause
        self.written = 0
        self.streamed: list[bool] = []
        self.one_at_a_time = asyncio.Lock()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.streamed.append(bool((await request.json()).get("stream")))
        async with self.one_at_a_time:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for piece in self.pieces:
                try:
                    await response.write(chunk({"content": piece}, None))
                except ConnectionError:
                    return response
                self.written += 1
                await asyncio.sleep(self.pause)
            await response.write(chunk({}, "stop") + b"data: [DONE]\n\n")
        return response


async def test_an_own_server_streams_though_nobody_watches() -> None:
    writer = Writer(["Ada ", "is here."])
    async with answering(writer.answer) as url:
        assert (await lm_at(url, own=True).send(CALL)).text == SAID
    assert writer.streamed == [True]


async def test_a_stream_that_goes_round_is_closed() -> None:
    record = "R\tMill\tQuay\tstands by\tThe mill stands by the quay.\n"
    writer = Writer([record] * 5000, pause=0.001)
    async with answering(writer.answer) as url:
        reply = await lm_at(url, own=True).send(replace(CALL, schema=None, by_line=True))
    assert (reply.finish, writer.written < 5000) == ("length", True)
    assert reply.text.count(record) >= 3


async def test_a_silent_server_is_given_up_and_the_setting_named() -> None:
    async with answering(Writer(["Ada "], pause=60.0).answer) as url:
        with pytest.raises(Failure, match="within 3 s") as caught:
            await lm_at(url, timeout=3.0, own=True).send(CALL)
    assert "TRELLIS_TIMEOUT" in caught.value.error.remedy
    assert (caught.value.retryable, caught.value.timed_out) == (True, True)


async def test_calls_in_a_queue_wait_while_the_server_writes() -> None:
    """Each waits longer than a single silence may last, and none is cut."""
    async with answering(Writer(["Ada "] * 18, pause=0.1).answer) as url:
        lm = lm_at(url, timeout=3.0, own=True)
        calls = [replace(CALL, messages=(Message("user", str(n)),)) for n in range(3)]
        replies = await asyncio.gather(*map(lm.send, calls))
    assert [reply.text for reply in replies] == [("Ada " * 18).strip()] * 3


def test_a_long_prompt_may_be_read_slowly_where_no_time_is_set() -> None:
    call = replace(CALL, messages=(Message("user", "word " * 6400),))  # 8,000 tokens
    assert Patience(None, own=True).first(call, streamed=True) > FIRST_WORD + 8000 / 40 - 1
    assert Patience(None, own=False).first(call, streamed=True) == USUAL
    assert Patience(9.0, own=True).first(call, streamed=True) == 9.0


# --- refusals ------------------------------------------------------------------------------------


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
        told = self.refuses(body)
        if told is not None:
            text = told[1] if isinstance(told[1], str) else json.dumps(told[1])
            return web.Response(status=told[0], text=text, content_type="application/json")
        if body.get("stream"):
            return await stream_of(request, [SAID], self.finish)
        message = {"role": "assistant", "content": SAID}
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        return web.json_response({"id": "c", "model": "m", "choices": [choice]})

    @asynccontextmanager
    async def lm(self) -> AsyncIterator[ServedLM]:
        HABITS.clear()
        async with answering(self.answer) as url:
            lm = lm_at(url)
            yield lm
            await lm.aclose()


def refusing(words: object, when: Callable[[dict[str, Any]], bool], status: int = 400) -> Picky:
    return Picky(lambda body: (status, words) if when(body) else None)


def whole(body: dict[str, Any]) -> bool:
    return not body.get("stream")


def streamed(body: dict[str, Any]) -> bool:
    return bool(body.get("stream"))


def with_system(body: dict[str, Any]) -> bool:
    return "system" in [turn["role"] for turn in body["messages"]]


def more_than(most: int) -> Callable[[dict[str, Any]], bool]:
    return lambda body: body.get("max_tokens", 0) > most


def old(words: str) -> dict[str, object]:
    return {"object": "error", "message": words, "type": "BadRequestError", "code": 400}


def pydantic(place: str, words: str) -> dict[str, object]:
    return {"detail": [{"type": "x", "loc": ["body", place], "msg": words, "input": {}}]}


LEARNT: dict[str, tuple[object, Callable[[dict[str, Any]], bool], int]] = {
    "stream alone": ({"error": {"message": "This model only supports stream mode."}}, whole, 2),
    "no system": (old("System role not supported"), with_system, 2),
    "no such role": ({"error": {"message": "'messages[0].role' is wrong"}}, with_system, 2),
    "at most": ({"error": {"message": "max_tokens: 200 > 128, the maximum"}}, more_than(128), 2),
    "range": (old("the valid range of max_tokens is [1, 128]"), more_than(128), 2),
    "field's bound": (pydantic("max_tokens", "should be at most 128"), more_than(128), 2),
    "other name": (pydantic("max_tokens", "Extra inputs are not permitted"), more_than(0), 2),
    "no temperature": (old("temperature is not supported"), lambda it: "temperature" in it, 2),
    "no form": (old("response_format is not there"), lambda it: "response_format" in it, 3),
    "no extra keys": (
        {"error": {"message": 'Unknown name "additionalProperties" at response_schema'}},
        lambda body: "additionalProperties" in str(body.get("response_format")),
        2,
    ),
}


@pytest.mark.parametrize(("words", "when", "tries"), LEARNT.values(), ids=LEARNT)
async def test_a_refusal_is_learnt_once_for_all_calls(
    words: object, when: Callable[[dict[str, Any]], bool], tries: int
) -> None:
    server = refusing(words, when)
    async with server.lm() as lm:
        assert await asked(lm) == SAID
        assert len(server.bodies) == tries
        other = lm_at(lm.address)  # of another run in the process
        assert await asked(other) == SAID
        await other.aclose()
    assert len(server.bodies) == tries + 1


@pytest.mark.parametrize(
    ("words", "when", "tries"),
    [
        (old("Verify your organization to stream this"), streamed, 2),
        (old("stream_options is unknown"), lambda body: "stream_options" in body, 2),
        ("only stream=true is possible", whole, 1),
    ],
)
async def test_a_watched_answer_comes_as_the_server_gives_it(
    words: object, when: Callable[[dict[str, Any]], bool], tries: int
) -> None:
    server, seen = refusing(words, when), list[object]()
    async with server.lm() as lm:
        assert await asked(lm, show=seen.append) == SAID
    assert ("".join(map(str, seen)), len(server.bodies)) == (SAID, tries)


async def test_a_server_that_never_streams_is_not_asked_to_again() -> None:
    streams: list[bool] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        streams.append("stream" in await request.json())
        return completion()

    HABITS.clear()
    async with answering(answer) as url:
        lm, pieces = lm_at(url), list[object]()
        for _ in range(2):
            assert await asked(lm, show=pieces.append) == SAID
    assert (pieces, streams) == ([SAID] * 2, [True, False, False])


async def test_instructions_become_a_part_of_the_first_turn() -> None:
    server = refusing(old("System role not supported"), with_system)
    async with server.lm() as lm:
        await asked(lm)
    (turn,) = server.bodies[-1]["messages"]
    system, user = (message.content for message in CALL.messages)
    assert turn == {"role": "user", "content": f"{system}\n\n{user}"}


async def test_calls_at_one_time_all_learn_from_one_refusal() -> None:
    server = refusing(pydantic("max_tokens", "Extra inputs are not permitted"), more_than(0))
    server.together = 5
    async with server.lm() as lm:
        calls = [CALL.repaired(str(number)) for number in range(5)]
        said = await asyncio.gather(*(asked(lm, call) for call in calls))
    assert said == [SAID] * 5
    assert len(server.bodies) == 10


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("max_tokens is too large", ModelRefused),
        (old("The prompt is longer than the context length of 9"), ContextOverflow),
        ({"detail": "the field 'foo' is missing"}, ModelRefused),
    ],
)
async def test_what_cannot_be_learnt_is_told_in_the_servers_words(
    words: object, kind: type[EngineError]
) -> None:
    server = refusing(words, lambda _: True)
    async with server.lm() as lm:
        with pytest.raises(EngineError) as caught:
            await asked(lm)
    assert type(caught.value) is kind
    assert words_of(words if isinstance(words, str) else json.dumps(words)) in str(caught.value)
    assert len(server.bodies) == 1


async def test_an_answer_gets_what_a_short_context_leaves() -> None:
    context = CALL.most_tokens() + 300
    told = f"'max_tokens' is too large: 4000. The maximum context length is {context} tokens"
    server = refusing(old(told), more_than(300))
    async with server.lm() as lm:
        assert await asked(lm, replace(CALL, max_tokens=4000)) == SAID
    assert [body["max_tokens"] for body in server.bodies] == [4000, 300]


async def test_a_cut_answer_is_not_asked_again_without_more_room() -> None:
    server = refusing("max_tokens must be at most 128", more_than(128))
    server.finish = "length"
    async with server.lm() as lm:
        with pytest.raises(AnswerTruncated, match=r"128 tokens.*longer context"):
            await asked(lm, replace(CALL, schema=None))
    assert [body["max_tokens"] for body in server.bodies] == [200, 128]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "Too long", "code": None}}, "Too long"),
        ({"error": "only 'text'"}, "only 'text'"),
        ({"object": "error", "message": "No system role", "code": 400}, "No system role"),
        ({"detail": [{"loc": ["max_tokens"], "msg": "At most 9"}]}, "max_tokens; At most 9"),
        ({"errors": ["a", "b"]}, "a; b"),
        ("bad request:\n tenant 7", "bad request: tenant 7"),
        ("{broken", "{broken"),
        ("", ""),
    ],
)
def test_the_words_of_an_error_body_are_found(body: object, words: str) -> None:
    assert words_of(body if isinstance(body, str) else json.dumps(body)) == words


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (429, "You exceeded your current quota, please check your plan.", QuotaExhausted),
        (400, "Your credit balance is too low to access the Anthropic API.", QuotaExhausted),
        (429, "Rate limit reached. Add a payment method at x.com/account.", ModelUnavailable),
        (401, "Invalid token", BadKey),
        (403, "Forbidden", BadKey),
        (404, 'model "qwen" not found, try pulling it first', UnknownModel),
        (400, "x is not a valid model ID", UnknownModel),
        (404, "404 page not found", ModelMisconfigured),
        (405, "Method Not Allowed", ModelMisconfigured),
        (400, "This model's maximum context length is 8192 tokens.", ContextOverflow),
        (400, "The prompt is longer than the maximum model length of 4096.", ContextOverflow),
        (400, "the request exceeds the available context size", ContextOverflow),
        (500, "the input length exceeds the context length", ContextOverflow),
        (422, "`inputs` must have less than 4096 tokens. Given: 5000", ContextOverflow),
        (400, "max_tokens exceeds the limit of the model", ModelRefused),
        (400, "The response was filtered: content management policy.", AnswerWithheld),
        (422, "field required", ModelRefused),
        (502, "Bad Gateway", ModelUnavailable),
    ],
)
def test_what_servers_say_is_understood(status: int, said: str, kind: type[EngineError]) -> None:
    failure = refused(("openai/qwen", "http://x/v1"), status, said)
    assert type(failure.error) is kind
    assert failure.retryable is (kind is ModelUnavailable)
    assert failure.error.remedy


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("0.5", 0.5), ("-1", 0.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("soon", None), ("", None)],
)
def test_retry_after_is_seconds_or_a_date(header: str, seconds: float | None) -> None:
    assert seconds_asked(header) == seconds


# --- a provider that DSPy calls ------------------------------------------------------------------


class Anthropic:
    """A server with Anthropic's interface; the first answers are what `refusals` say."""

    def __init__(self, *refusals: tuple[int, str, str]) -> None:
        self.refusals = list(refusals)
        self.bodies: list[dict[str, Any]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        if self.refusals:
            status, kind, words = self.refusals.pop(0)
            told = {"type": "error", "error": {"type": kind, "message": words}}
            return web.json_response(told, status=status)
        said = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5",
            "content": [
                {"type": "thinking", "thinking": "{}", "signature": "x"},
                {"type": "text", "text": json.dumps({"description": SAID})},
            ],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 30, "output_tokens": 9},
        }
        return web.json_response(said)

    async def asked(self) -> tuple[str, Models]:
        async def nap(_: float) -> None:
            return None

        async with answering(self.answer) as url:
            choice = ModelChoice("anthropic/claude-sonnet-5", url, "sk-secret")
            calls, clock = CallSettings(max_attempts=3), Clock(sleep=nap)
            models = Models({"summarize": choice}, calls=calls, clock=clock)
            return await Summarize(models).run("Ada", ("Ada is here.",)), models


async def test_another_provider_is_asked_tried_again_and_entered() -> None:
    fake = Anthropic((529, "overloaded_error", "Overloaded"), (429, "rate_limit_error", "slower"))
    said, models = await fake.asked()
    assert (said, len(fake.bodies)) == (SAID, 3)
    ((_, _, spent),) = models.meter.rows()
    assert (spent.calls, spent.input_tokens, spent.output_tokens) == (1, 30, 9)
    assert spent.cost_usd is None, "a price is known at its own address alone"
    assert "Step: summarize" in str(fake.bodies[0]["system"])


@pytest.mark.parametrize("status", [401, 500])
async def test_an_error_of_a_provider_never_holds_the_key(
    status: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf-of-the-environment")
    words = f"{'long ' * 20} invalid x-api-key sk-secret hf-of-the-environment"
    fake = Anthropic(*[(status, "authentication_error", words)] * 3)
    with pytest.raises(EngineError) as caught:
        await fake.asked()
    assert (type(caught.value) is BadKey, len(fake.bodies)) == (
        (False, 3) if status == 500 else (True, 1)
    )
    told = "".join(traceback.format_exception(caught.value)) + "".join(capfd.readouterr())
    assert "sk-secret" not in told
    assert "hf-of-the-environment" not in told
