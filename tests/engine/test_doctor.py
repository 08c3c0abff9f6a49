"""The examination: what works, what does not, and what to change."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from prompts.engine.doctor import Examined, examine
from prompts.engine.models import ROLES, CallSettings, ModelChoice, Models

RECORDS, OBJECT = "P\tAda Korb\t1912\tperson\nEND", '{"checked": {"name": "Ada Korb", "year": 1912, "kind": "person"}}'


def _server(*, wrong: bool = False, schema: bool = True, status: int = 200) -> web.Application:
    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if status != 200:
            return web.json_response({"error": {"message": "The model `m` does not exist."}}, status=status)
        if "response_format" in body and not schema:
            return web.json_response({"error": {"message": "response_format is not supported"}}, status=400)
        said = RECORDS if "<TAB>" in body["messages"][0]["content"] else OBJECT
        said = said.replace("1912", "1812") if wrong else said
        usage = {"prompt_tokens": 90, "completion_tokens": 20, "total_tokens": 110}
        return web.json_response({"choices": [{"message": {"content": said}, "finish_reason": "stop"}], "usage": usage})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    return app


async def _examined(app: web.Application) -> dict[str, Examined]:
    async with TestServer(app) as server:
        choice = ModelChoice("m", str(server.make_url("/v1")))
        models = Models({"extract": choice, "answer": choice, "route": choice}, calls=CallSettings(max_attempts=1))
        rows = await examine(models)
        await models.aclose()
    assert [row.role for row in rows] == list(ROLES)
    assert [row.role for row in rows if row.structured == "offline"] == [
        role for role in ROLES if role not in {"extract", "answer", "route"}
    ]
    return {row.role: row for row in rows}


async def test_a_good_server_passes_with_figures() -> None:
    rows = await _examined(_server())
    assert all(row.ok for row in rows.values())
    row = rows["answer"]
    assert (row.structured, row.input_tokens, row.output_tokens, row.advice) == ("json_schema", 90, 20, ())
    assert row.seconds > 0
    assert row.address.startswith("http://127.0.0.1")


@pytest.mark.parametrize(
    ("server", "role", "ok", "problem", "advice"),
    [
        (_server(schema=False), "route", True, "", "does not hold answers to a schema"),
        (_server(wrong=True), "extract", False, "1812", "stronger model"),
        (_server(status=404), "answer", False, "does not exist", "Name a model"),
    ],
    ids=["no schema", "a wrong answer", "no such model"],
)
async def test_what_is_seen_of_a_server_comes_with_advice(
    server: web.Application, role: str, ok: bool, problem: str, advice: str
) -> None:
    row = (await _examined(server))[role]
    assert (row.ok, problem in row.problem, advice in row.advice[0]) == (ok, True, True)
