"""Servers of models as they behave and misbehave: OpenAI's interface, and others through DSPy."""

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
from prompts.engine.messages import Call, Message
from prompts.engine.models import CallSettings, ModelChoice, Models
from prompts.engine.patience import FIRST_WORD, USUAL, Patience
from prompts.engine.providers import Endpoint, without_user
from prompts.engine.refusals import (
    HABITS,
    REMEMBERED,
    Failure,
    refused,
    seconds_asked,
    words_of,
)
from prompts.summarize import Summarize, SummarizeEntity
from tests.engine.fakes import ManualTime
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
Body = dict[str, Any]
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def lm_at(
    url: str,
    timeout: float | None = 60.0,
    *,
    own: bool = False,
    key: str | None = "sk-secret",
    clock: Clock | None = None,
) -> ServedLM:
    """A model `m` at this address."""
    address = without_user(url)
    habits = HABITS[address, "openai/m"]
    server = ChatServer(Endpoint("openai/m", "m", url, key, listed=not own), habits)
    terms = Terms(Limits(8), timeout=timeout, own_server=own, clock=clock or Clock())
    return ServedLM("openai/m", address, terms, engine=server, habits=habits)


async def asked(lm: ServedLM, call: Call = CALL, show: Any = None) -> str:
    return await lm.ask(call, str, Asker(show=show))


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[str]:
    """The address of a server that answers every request so."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("/v1"))


def completion(finish: str = "stop", **more: Any) -> web.Response:
    message = {"role": "assistant", "content": SAID}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return web.json_response({"id": "c", "model": "m", "choices": [choice], **more})


def chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'id': 'c', 'choices': [choice]})}\n\n".encode()


# --- one request ---------------------------------------------------------------------------------


async def test_a_call_arrives_with_schema_and_sampling(model_server: Server) -> None:
    lm, pieces = lm_at(model_server.base_url), list[str]()
    extra = {"top_p": 0.9, "seed": 7, "min_p": 0.05, "template": {"thinking": False}}
    whole = await lm.send(replace(CALL, extra=extra))
    streamed = await lm.send(CALL, pieces.append)
    await lm.aclose()
    assert (json.loads(whole.text), whole.finish) == (
        {"description": "Ada lives in Velin."},
        "stop",
    )
    assert len(pieces) > 1
    assert "".join(pieces) == streamed.text == whole.text
    assert streamed.input_tokens == whole.input_tokens > 50
    body: Any = model_server.requests()[0]["body"]
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("m", 200, 0.0)
    assert body["response_format"]["json_schema"]["schema"] == CALL.schema
    assert {name: body[name] for name in extra} == extra


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
        self.one_at_a_time = asyncio.Lock()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        assert (await request.json())["stream"]
        async with self.one_at_a_time:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for piece in self.pieces:
                try:
                    await response.write(chunk({"content": piece}))
                except ConnectionError:
                    return response
                self.written += 1
                await asyncio.sleep(self.pause)
            await response.write(chunk({}, "stop") + b"data: [DONE]\n\n")
        return response


async def test_a_stream_that_repeats_itself_is_closed() -> None:
    record = "R\tMill\tQuay\tstands by\tThe mill stands by the quay.\n"
    writer = Writer([record] * 5000, pause=0.001)
    async with answering(writer.answer) as url:
        reply = await lm_at(url, own=True).send(replace(CALL, schema=None, by_line=True))
    assert (reply.finish, writer.written < 5000) == ("length", True)
    assert reply.text.count(record) >= 3


async def test_a_silent_server_is_given_up_and_the_setting_named() -> None:
    async with answering(Writer(["Ada "], pause=60.0).answer) as url:
        with pytest.raises(Failure, match="within 1 s") as caught:
            await lm_at(url, timeout=1.0, own=True).send(CALL)
    assert "TRELLIS_TIMEOUT" in caught.value.error.remedy
    assert (caught.value.retryable, caught.value.timed_out) == (True, True)


async def test_calls_in_a_queue_wait_while_the_server_writes() -> None:
    """The last waits longer than a silence may last; all are streamed, though nobody watches."""
    async with answering(Writer(["Ada "] * 12, pause=0.1).answer) as url:
        lm = lm_at(url, timeout=2.0, own=True)
        calls = [replace(CALL, messages=(Message("user", str(n)),)) for n in range(3)]
        replies = await asyncio.gather(*map(lm.send, calls))
    assert [reply.text for reply in replies] == [("Ada " * 12).strip()] * 3


def test_a_long_prompt_may_be_read_slowly_where_no_time_is_set() -> None:
    call = replace(CALL, messages=(Message("user", "word " * 6400),))  # 8,000 tokens
    assert Patience(None, own=True).first(call, streamed=True) > FIRST_WORD + 8000 / 40 - 1
    assert Patience(None, own=False).first(call, streamed=True) == USUAL
    assert Patience(9.0, own=True).first(call, streamed=True) == 9.0


# --- refusals ------------------------------------------------------------------------------------


@dataclass
class Picky:
    """A server that refuses requests whose body is as `when` says, with these words."""

    words: object
    when: Callable[[Body], bool]
    finish: str = "stop"
    together: int = 1  # requests that must have come before one is answered
    streams: bool = True
    bodies: list[Body] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        while len(self.bodies) < self.together:  # noqa: ASYNC110 -- a server has no event for it
            await asyncio.sleep(0.01)
        if self.when(body):
            text = self.words if isinstance(self.words, str) else json.dumps(self.words)
            return web.Response(status=400, text=text, content_type="application/json")
        if not body.get("stream") or not self.streams:
            return completion(self.finish)
        stream = chunk({"content": SAID}) + chunk({}, self.finish) + b"data: [DONE]\n\n"
        return web.Response(body=stream, content_type="text/event-stream")

    @asynccontextmanager
    async def lm(self) -> AsyncIterator[ServedLM]:
        HABITS.clear()
        async with answering(self.answer) as url:
            lm = lm_at(url)
            yield lm
            await lm.aclose()


def whole(body: Body) -> bool:
    return not body.get("stream")


def streamed(body: Body) -> bool:
    return bool(body.get("stream"))


def with_system(body: Body) -> bool:
    return "system" in [turn["role"] for turn in body["messages"]]


def more_than(most: int) -> Callable[[Body], bool]:
    return lambda body: body.get("max_tokens", 0) > most


def old(words: str) -> dict[str, object]:
    return {"object": "error", "message": words, "type": "BadRequestError", "code": 400}


def pydantic(place: str, words: str) -> dict[str, object]:
    return {"detail": [{"type": "x", "loc": ["body", place], "msg": words, "input": {}}]}


LEARNT: dict[str, tuple[object, Callable[[Body], bool], int]] = {
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
    words: object, when: Callable[[Body], bool], tries: int
) -> None:
    server = Picky(words, when)
    async with server.lm() as lm:
        assert await asked(lm) == SAID
        assert len(server.bodies) == tries
        other = lm_at(lm.address)  # of another run in the process
        assert await asked(other) == SAID
        await other.aclose()
    assert len(server.bodies) == tries + 1
    if when is with_system:
        content = "\n\n".join(message.content for message in CALL.messages)
        assert server.bodies[-1]["messages"] == [{"role": "user", "content": content}]


async def test_a_refusal_is_forgotten_after_some_minutes() -> None:
    """A server that is started anew at its address may take what it refused before."""
    server = Picky(old("response_format is not there"), lambda body: "response_format" in body)
    time = ManualTime()
    async with server.lm() as known:
        lm = lm_at(known.address, clock=time.clock)
        assert await asked(lm) == SAID
        server.when = lambda _: False
        time.now = REMEMBERED
        assert await asked(lm) == SAID
        time.now += 1.0
        assert await asked(lm) == SAID
        await lm.aclose()
    in_form = ["response_format" in body for body in server.bodies]
    assert in_form == [True, True, False, False, True]


@pytest.mark.parametrize(
    ("server", "tries"),
    [
        (Picky(old("Verify your organization to stream this"), streamed), [True, False]),
        (Picky(old("stream_options is unknown"), streamed), [True, False]),
        (Picky("only stream=true is possible", whole), [True]),
        (Picky("", lambda _: False, streams=False), [True, False]),
    ],
    ids=["unverified", "no options", "streams only", "never streams"],
)
async def test_a_watched_answer_comes_as_the_server_gives_it(
    server: Picky, tries: list[bool]
) -> None:
    seen: list[object] = []
    async with server.lm() as lm:
        assert await asked(lm, show=seen.append) == SAID
        assert await asked(lm, show=seen.append) == SAID
    assert "".join(map(str, seen)) == SAID * 2
    assert [streamed(body) for body in server.bodies] == [*tries, tries[-1]]


async def test_calls_at_one_time_all_learn_from_one_refusal() -> None:
    server = Picky(pydantic("max_tokens", "Extra inputs are not permitted"), more_than(0))
    server.together = 5
    async with server.lm() as lm:
        calls = [CALL.repaired(str(number)) for number in range(5)]
        assert await asyncio.gather(*(asked(lm, call) for call in calls)) == [SAID] * 5
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
    server = Picky(words, lambda _: True)
    async with server.lm() as lm:
        with pytest.raises(EngineError) as caught:
            await asked(lm)
    assert type(caught.value) is kind
    assert words_of(words if isinstance(words, str) else json.dumps(words)) in str(caught.value)
    assert len(server.bodies) == 1


async def test_an_answer_gets_what_a_short_context_leaves() -> None:
    context = CALL.most_tokens() + 300
    words = f"'max_tokens' is too large: 4000. The maximum context length is {context} tokens"
    server = Picky(old(words), more_than(300))
    async with server.lm() as lm:
        assert await asked(lm, replace(CALL, max_tokens=4000)) == SAID
    assert [body["max_tokens"] for body in server.bodies] == [4000, 300]


async def test_a_cut_answer_is_not_asked_again_without_more_room() -> None:
    server = Picky("max_tokens must be at most 128", more_than(128), finish="length")
    async with server.lm() as lm:
        with pytest.raises(AnswerTruncated, match=r"128 tokens.*longer context"):
            await asked(lm, replace(CALL, schema=None))
    assert [body["max_tokens"] for body in server.bodies] == [200, 128]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "Too long", "code": None}}, "Too long"),
        ({"object": "error", "message": "No system role", "code": 400}, "No system role"),
        ({"detail": [{"loc": ["max_tokens"], "msg": "At most 9"}]}, "max_tokens; At most 9"),
        ("bad request:\n tenant 7", "bad request: tenant 7"),
        ("{broken", "{broken"),
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
        self.bodies: list[Body] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        if self.refusals:
            status, kind, words = self.refusals.pop(0)
            error = {"type": "error", "error": {"type": kind, "message": words}}
            if status == 200:
                return web.Response(text=words, content_type="text/html")
            return web.json_response(error, status=status)
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
        async with answering(self.answer) as url:
            choice = ModelChoice("anthropic/claude-sonnet-5", url, "sk-secret")
            calls, clock = CallSettings(max_attempts=3), Clock(sleep=lambda _: asyncio.sleep(0))
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


async def test_a_gateways_page_is_no_answer_of_another_provider() -> None:
    fake = Anthropic((200, "", "<html>Bad gateway</html>"))
    said, _ = await fake.asked()
    assert (said, len(fake.bodies)) == (SAID, 2)


@pytest.mark.parametrize(("status", "kind", "tries"), [(401, BadKey, 1), (500, EngineError, 3)])
async def test_an_error_of_a_provider_never_holds_the_key(
    status: int,
    kind: type[EngineError],
    tries: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf-of-the-environment")
    words = f"{'long ' * 20} invalid x-api-key sk-secret hf-of-the-environment"
    fake = Anthropic(*[(status, "authentication_error", words)] * 3)
    with pytest.raises(kind) as caught:
        await fake.asked()
    assert len(fake.bodies) == tries
    shown = "".join(traceback.format_exception(caught.value)) + "".join(capfd.readouterr())
    assert "sk-secret" not in shown
    assert "hf-of-the-environment" not in shown
