"""Servers of models as they behave and misbehave: OpenAI's language, and others through DSPy."""

import asyncio
import base64
import json
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from prompts.engine.calls import Call, Message
from prompts.engine.client import Client
from prompts.engine.errors import (
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
from prompts.engine.failures import Failure, refused, seconds_asked
from prompts.engine.key_masking import MASK
from prompts.engine.limits import Clock, Limits
from prompts.engine.lm import LmTransport
from prompts.engine.models import CallSettings, ModelChoice, Models
from prompts.engine.output_formats import JsonFormat, conversation
from prompts.engine.patience import FIRST_WORD, USUAL, Patience
from prompts.engine.providers import Endpoint
from prompts.summarize import Summarize, SummarizeEntity
from prompts.text.tokens import count_tokens
from tests.engine.fakes import Sheet
from tests.server.client import Server

SUMMARIZE = SummarizeEntity
FORMAT = JsonFormat()
CALL = Call(
    "summarize",
    conversation("summarize", SUMMARIZE, FORMAT, [], {"name": "Ada", "statements": ["Ada lives in Velin.", "x"]}),
    200,
    FORMAT.schema(SUMMARIZE),
)
_ROOT = Path(__file__).parents[2]
TEXTS = [
    path for suffix in ("md", "txt", "csv", "html", "jsonl") for path in _ROOT.glob(f"examples/corpus/*/*.{suffix}")
]
SAID = '{"description": "Ada lives in Velin."}'


def transport_to(
    url: str, structured: str = "json_schema", timeout: float | None = 60.0, *, own: bool = False
) -> LmTransport:
    return LmTransport.of(Endpoint("openai/m", "m", url, "sk-secret", structured, listed=not own), timeout)


@asynccontextmanager
async def answering(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """A server that answers every request so; gives its address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("/v1"))


@pytest.fixture
async def transport(model_server: Server) -> AsyncIterator[LmTransport]:
    made = transport_to(model_server.base_url)
    yield made
    await made.aclose()


async def test_a_call_arrives_with_its_schema_and_comes_back(transport: LmTransport, model_server: Server) -> None:
    reply = await transport.send(CALL)
    assert json.loads(reply.text) == json.loads(SAID)
    assert reply.finish == "stop"
    assert reply.input_tokens > 50
    assert reply.output_tokens > 3
    (request,) = model_server.requests()
    body = request["body"]
    assert isinstance(body, dict)
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("m", 200, 0.0)
    assert body["response_format"]["json_schema"]["schema"] == CALL.schema


@pytest.mark.parametrize("text", TEXTS, ids=[path.name for path in TEXTS])
def test_no_text_has_fewer_tokens_than_a_request_with_it_can_have(text: Path) -> None:
    said = text.read_text(encoding="utf-8")
    pieces = [said[start : start + 2000] for start in range(0, len(said), 2000)]
    for piece, counted in zip(pieces, count_tokens(pieces), strict=True):
        assert replace(CALL, messages=(Message("user", piece),)).least_tokens() <= counted


async def test_a_stream_gives_the_same_in_pieces(transport: LmTransport) -> None:
    whole = await transport.send(CALL)
    pieces: list[str] = []
    reply = await transport.send(CALL, pieces.append)
    assert len(pieces) > 1
    assert "".join(pieces) == reply.text == whole.text
    assert (reply.input_tokens, reply.output_tokens) == (whole.input_tokens, whole.output_tokens)


class Writer:
    """A server that writes an answer in a stream, piece by piece, until it is whole or nobody listens."""

    def __init__(self, pieces: Sequence[str], first: float = 0.0, pause: float = 0.0) -> None:
        self.pieces = pieces
        self.first = first
        self.pause = pause
        self.written = 0
        self.streamed: list[bool] = []
        self.one_at_a_time = asyncio.Lock()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.streamed.append(bool((await request.json()).get("stream")))
        async with self.one_at_a_time:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            await asyncio.sleep(self.first)
            for piece in self.pieces:
                choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
                try:
                    await response.write(f"data: {json.dumps({'id': 'c', 'choices': [choice]})}\n\n".encode())
                except ConnectionError:
                    return response
                self.written += 1
                await asyncio.sleep(self.pause)
            end = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
            await response.write(f"data: {json.dumps(end)}\n\ndata: [DONE]\n\n".encode())
        return response


async def test_a_server_of_ones_own_streams_though_nobody_watches() -> None:
    writer = Writer(["Ada ", "is here."])
    async with answering(writer.answer) as url:
        assert (await transport_to(url, own=True).send(CALL)).text == "Ada is here."
        with pytest.raises(Failure):  # this one writes nothing else
            await transport_to(url, own=True).send(replace(CALL, whole=True))
    assert writer.streamed == [True, False]


async def test_a_stream_that_goes_round_is_closed() -> None:
    record = "R\tMill\tQuay\tstands by\tThe mill stands by the quay.\n"
    writer = Writer([record] * 5000, pause=0.001)
    call = replace(CALL, schema=None, by_line=True)
    async with answering(writer.answer) as url:
        reply = await transport_to(url, own=True).send(call)
    assert (reply.finish, writer.written < 5000) == ("length", True)
    assert reply.text.count(record) >= 3


async def test_a_silent_server_is_given_up_and_the_setting_named() -> None:
    writer = Writer(["Ada "], pause=60.0)
    async with answering(writer.answer) as url:
        with pytest.raises(Failure, match=r"TRELLIS_TIMEOUT|not complete within") as caught:
            await transport_to(url, timeout=0.3, own=True).send(CALL)
    assert "TRELLIS_TIMEOUT" in caught.value.error.remedy
    assert (caught.value.retryable, caught.value.timed_out) == (True, True)


async def test_calls_in_a_server_s_queue_wait_while_it_writes_to_others() -> None:
    """Each waits longer than a single silence may last, and none is cut."""
    writer = Writer(["Ada "] * 18, pause=0.1)
    async with answering(writer.answer) as url:
        transport = transport_to(url, timeout=3.0, own=True)
        calls = [replace(CALL, messages=(Message("user", str(number)),)) for number in range(3)]
        replies = await asyncio.gather(*map(transport.send, calls))
    assert [reply.text for reply in replies] == [("Ada " * 18).strip()] * 3


def test_a_long_prompt_may_be_read_slowly_where_no_time_is_set() -> None:
    call = replace(CALL, messages=(Message("user", "word " * 6400),))  # 8,000 tokens
    assert Patience(None, own=True).first(call, streamed=True) > FIRST_WORD + 8000 / 40 - 1
    assert Patience(None, own=False).first(call, streamed=True) == USUAL
    assert Patience(9.0, own=True).first(call, streamed=True) == 9.0


async def test_sampling_goes_out_under_the_server_s_names(transport: LmTransport, model_server: Server) -> None:
    extra = {"top_p": 0.9, "seed": 7, "min_p": 0.05, "chat_template_kwargs": {"enable_thinking": False}}
    await transport.send(replace(CALL, temperature=0.3, extra=extra))
    (request,) = model_server.requests()
    body = request["body"]
    assert isinstance(body, dict)
    assert {name: body[name] for name in (*extra, "temperature")} == {**extra, "temperature": 0.3}


@pytest.mark.parametrize(
    ("field", "structured", "tried"),
    [("response_format", "text", 3), ("temperature", "json_schema", 2), ("max_tokens", "json_schema", 2)],
)
async def test_what_a_server_does_not_take_is_learnt_once(
    transport: LmTransport, model_server: Server, field: str, structured: str, tried: int
) -> None:
    model_server.misbehave({"kind": "unsupported", "key": field})
    client, sheet = Client(transport, Limits(4)), Sheet()
    for _ in range(2):
        assert json.loads(await client.ask(CALL, str, 0, sheet)) == json.loads(SAID)
    assert (len(model_server.requests()), sheet.total.calls) == (tried + 1, 2), "it was learnt for good"
    assert transport.structured == structured


async def test_what_a_server_does_not_take_of_a_stream_is_learnt_and_what_it_always_refuses_ends(
    transport: LmTransport, model_server: Server
) -> None:
    model_server.misbehave({"kind": "unsupported", "key": "stream_options"})
    client, pieces = Client(transport, Limits(4)), list[object]()
    assert await client.ask(CALL, str, 0, Sheet(), pieces.append) == "".join(map(str, pieces))
    assert ["stream_options" in str(request["body"]) for request in model_server.requests()] == [True, False]
    model_server.misbehave({"kind": "unsupported", "key": "seed"})
    with pytest.raises(ModelRefused):
        await client.ask(replace(CALL, extra={"seed": 5}), str, 0, Sheet())
    assert len(model_server.requests()) == 3


async def test_a_refusal_that_speaks_of_nothing_we_sent_is_final(transport: LmTransport, model_server: Server) -> None:
    model_server.misbehave({"kind": "unsupported", "key": "model", "says": "The temperature of the room is too high."})
    with pytest.raises(Failure) as caught:
        await transport.send(replace(CALL, temperature=None))
    assert (type(caught.value.error), caught.value.adapted) == (ModelRefused, False)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, (10, 5)),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}, (10, 30)),  # thinking that is counted apart
        (None, (CALL.tokens(), 4)),
    ],
)
async def test_tokens_are_those_that_the_server_counts_or_a_guess(usage: object, tokens: tuple[int, int]) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        message = {"role": "assistant", "content": "Ada is here."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"id": "c", "model": "m", "choices": [choice], "usage": usage})

    async with answering(answer) as url:
        reply = await transport_to(url).send(CALL)
    assert (reply.input_tokens, reply.output_tokens) == tokens


@pytest.mark.parametrize(
    ("body", "kind", "retryable"),
    [("<html>Bad gateway</html>", ModelUnavailable, True), ('{"hello": "world"}', ModelMisconfigured, False)],
)
async def test_what_is_no_answer_is_tried_again_where_a_gateway_may_have_sent_it(
    body: str, kind: type[EngineError], retryable: bool
) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text=body, content_type="text/html" if retryable else "application/json")

    async with answering(answer) as url:
        with pytest.raises(Failure) as caught:
            await transport_to(url).send(CALL)
    assert (type(caught.value.error), caught.value.retryable) == (kind, retryable)


async def test_a_server_that_answers_in_one_piece_where_a_stream_was_asked_for_is_not_asked_for_one_again() -> None:
    streams: list[bool] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        streams.append("stream" in await request.json())
        choice = {"index": 0, "message": {"role": "assistant", "content": "Ada is here."}, "finish_reason": "stop"}
        return web.json_response({"id": "c", "model": "m", "choices": [choice]})

    async with answering(answer) as url:
        client, pieces = Client(transport_to(url), Limits(4)), list[object]()
        for _ in range(2):
            assert await client.ask(CALL, str, 0, Sheet(), pieces.append) == "Ada is here."
    assert (pieces, streams) == (["Ada is here."] * 2, [True, False, False])


async def test_a_user_and_password_in_an_address_are_sent_as_such() -> None:
    headers: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        headers.append(request.headers["Authorization"])
        choice = {"index": 0, "message": {"role": "assistant", "content": "Ada is here."}, "finish_reason": "stop"}
        return web.json_response({"id": "c", "model": "m", "choices": [choice]})

    async with answering(answer) as url:
        with_user = url.replace("http://", "http://me:pa%2Fss-4711@")
        transport = LmTransport.of(Endpoint("openai/m", "m", with_user, None, "json_schema", listed=True))
        assert (await transport.send(CALL)).text == "Ada is here."
    assert headers == ["Basic " + base64.b64encode(b"me:pa/ss-4711").decode()]
    assert "pa" not in transport.address


async def test_the_key_is_never_told_and_redirects_are_not_followed() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.startswith("/moved"):
            return web.Response(status=307, headers={"Location": "/v1/chat/completions"})
        return web.Response(status=401, text=f"bad key {request.headers['Authorization']}")

    async with answering(answer) as url:
        with pytest.raises(Failure) as caught:
            await transport_to(url).send(CALL)
        assert "sk-secret" not in str(caught.value)
        assert MASK in caught.value.error.message
        with pytest.raises(Failure) as caught:
            await transport_to(url.replace("/v1", "/moved/v1")).send(CALL)
        assert isinstance(caught.value.error, ModelMisconfigured)


@pytest.mark.parametrize(("status", "quoted"), [(200, 200), (400, 500), (503, 500)])
async def test_a_key_is_not_told_either_where_a_library_ends_its_quotation_within_it(status: int, quoted: int) -> None:
    key = "sk-long-secret-4711-0815"
    left = iter(range(len(key)))

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, text="x" * (quoted - next(left)) + key + "y" * 500)

    async with answering(answer) as url:
        transport = LmTransport.of(Endpoint("openai/m", "m", url, key, "json_schema", listed=True))
        for _ in key:
            with pytest.raises(Failure) as caught:
                await transport.send(CALL)
            told = "".join(traceback.format_exception(caught.value)) + caught.value.words
            assert "x" * 100 in told
            assert key[: len(key) // 2] not in told


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (429, "You exceeded your current quota, please check your plan and billing details.", QuotaExhausted),
        (400, "Your credit balance is too low to access the Anthropic API.", QuotaExhausted),
        (
            429,
            "Rate limit reached for gpt-4o. Add a payment method at platform.openai.com/account/billing.",
            ModelUnavailable,
        ),
        (401, "Invalid token", BadKey),
        (403, "Forbidden", BadKey),
        (404, 'model "qwen" not found, try pulling it first', UnknownModel),
        (404, "The model `x` does not exist.", UnknownModel),
        (400, "x is not a valid model ID", UnknownModel),
        (404, "404 page not found", ModelMisconfigured),
        (405, "Method Not Allowed", ModelMisconfigured),
        (500, "model requires more system memory (9 GiB) than is available (4 GiB)", ModelMisconfigured),
        (400, "This model's maximum context length is 8192 tokens.", ContextOverflow),
        (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096.", ContextOverflow),
        (400, "the request exceeds the available context size. try increasing the context size", ContextOverflow),
        (500, "the input length exceeds the context length", ContextOverflow),
        (422, "`inputs` must have less than 4096 tokens. Given: 5000", ContextOverflow),
        (400, "Range of input length should be [1, 30720]", ContextOverflow),
        (400, "prompt tokens (5000) exceed what the model reads", ContextOverflow),
        (400, "max_tokens exceeds the limit of the model", ModelRefused),
        (400, "The response was filtered due to the content management policy.", AnswerWithheld),
        (422, "field required", ModelRefused),
        (502, "<html>Bad Gateway</html>", ModelUnavailable),
    ],
)
def test_what_servers_say_is_understood(status: int, said: str, kind: type[EngineError]) -> None:
    failure = refused("openai/qwen", "http://x/v1", status, said)
    assert type(failure.error) is kind
    assert failure.retryable is (kind is ModelUnavailable)
    assert failure.error.remedy
    assert ("ollama pull qwen" in failure.error.remedy) is ("pulling" in said)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("0.5", 0.5), ("-1", 0.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("soon", None), ("nan", None), ("", None)],
)
def test_retry_after_is_seconds_or_a_date(header: str, seconds: float | None) -> None:
    assert seconds_asked(header) == seconds


class Anthropic:
    """A server with Anthropic's interface; the first answers are what `refusals` say."""

    def __init__(self, *refusals: tuple[int, str, str], said: str = "Ada is here.") -> None:
        self.refusals = list(refusals)
        self.said = said
        self.bodies: list[dict[str, Any]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        if self.refusals:
            status, kind, words = self.refusals.pop(0)
            return web.json_response({"type": "error", "error": {"type": kind, "message": words}}, status=status)
        text = json.dumps({"description": self.said})
        return web.json_response(
            {
                "id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-5",
                "content": [{"type": "thinking", "thinking": "{}", "signature": "x"}, {"type": "text", "text": text}],
                "stop_reason": "end_turn", "usage": {"input_tokens": 30, "output_tokens": 9},
            }
        )  # fmt: skip


async def _nap(_: float) -> None:
    return None


async def _asked(fake: Anthropic) -> tuple[str, Models]:
    app = web.Application()
    app.router.add_post("/{path:.*}", fake.answer)
    async with TestServer(app) as server:
        choice = ModelChoice("anthropic/claude-sonnet-5", str(server.make_url("/v1")), "sk-secret")
        models = Models({"summarize": choice}, calls=CallSettings(max_attempts=3), clock=Clock(sleep=_nap))
        return await Summarize(models).run("Ada", ("Ada is here.",)), models


async def test_a_step_is_answered_and_entered() -> None:
    fake = Anthropic()
    said, models = await _asked(fake)
    assert said == "Ada is here."
    (row,) = models.meter.rows()
    assert (row[2].calls, row[2].input_tokens, row[2].output_tokens, row[2].cost_usd) == (1, 30, 9, None)
    assert "Step: summarize" in str(fake.bodies[0]["system"])


async def test_an_overloaded_provider_is_tried_again() -> None:
    fake = Anthropic((529, "overloaded_error", "Overloaded"), (429, "rate_limit_error", "slow down"))
    assert (await _asked(fake))[0] == "Ada is here."
    assert len(fake.bodies) == 3


@pytest.mark.parametrize("status", [400, 401, 404, 500])
async def test_an_error_and_all_that_it_came_from_never_hold_the_key_and_a_bad_one_is_final(
    status: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf-of-the-environment")
    words = f"{'long ' * 55} invalid x-api-key sk-secret hf-of-the-environment"
    fake = Anthropic(*[(status, "authentication_error", words)] * 3)
    with pytest.raises(EngineError) as caught:
        await _asked(fake)
    assert (type(caught.value) is BadKey, len(fake.bodies)) == ((False, 3) if status == 500 else (status != 404, 1))
    told = "".join(traceback.format_exception(caught.value)) + "".join(capfd.readouterr())
    for secret in ("sk-secret", "hf-of-the-environment", "sk-sec"):
        assert secret not in told
