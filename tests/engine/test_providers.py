"""A provider that does not speak OpenAI's language is called through DSPy, with the same limits, errors and ledger."""

import json
import traceback
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from prompts.engine.errors import BadKey, EngineError
from prompts.engine.limits import Clock
from prompts.engine.models import CallSettings, ModelChoice, Models
from prompts.summarize import Summarize


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


async def test_an_answer_that_holds_the_key_is_masked() -> None:
    said, _ = await _asked(Anthropic(said="Ada has the key Bearer sk-secret."))
    assert said == "Ada has the key Bearer [key masked]."
