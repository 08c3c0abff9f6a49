"""MCP: a real client starts `trellis mcp` and uses every tool and resource of it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from flows.service.access import new_key
from flows.service.asking import Questions
from flows.service.mcp_server import mcp_server
from flows.service.metrics import Metrics
from flows.service.workspaces import Workspaces
from flows.settings import load_settings
from tests.patience import PATIENCE
from tests.service.conftest import QUESTION, refused
from tests.service.serving import served_workspace
from tests.workspaces import indexed

ROOT = Path(__file__).resolve().parents[2]
BRIDGE = "Orla Bridge was designed by Tomas Reyd. It opened in 1931 and is 412 metres long."
REYD = "Tomas Reyd was born in Velin. He studied under Ana Korb in Velin."
ROWS = (
    {"id": "towns/bridge.txt", "title": "Orla Bridge", "text": BRIDGE},
    {"id": "reyd", "title": "Tomas Reyd", "text": REYD},
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return indexed(tmp_path_factory.mktemp("mcp"), ROWS)


@asynccontextmanager
async def connection_to(workspace: Path) -> AsyncIterator[Client]:
    """A client of a server in this process."""
    settings = load_settings({"workspace": workspace})
    workspaces = Workspaces(settings)
    questions = Questions(workspaces, Metrics(), settings.service)
    async with Client(mcp_server(workspaces, questions)) as connected:
        yield connected
    workspaces.close()


async def called(connected: Client, tool: str, **arguments: object) -> Any:
    """The result of a tool; the protocol wraps a list."""
    result = await connected.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content.get("result", result.structured_content)


async def test_a_client_over_stdio_uses_every_tool(workspace: Path) -> None:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "flows", "mcp", "--workspace", str(workspace)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRELLIS_EMBEDDING": "none"},
    )
    async with Client(command) as connected:
        tools = {tool.name: tool for tool in (await connected.list_tools()).tools}
        own = {"ask", "retrieve", "source"}
        assert set(tools) == {*own, "search_words", "entity", "paths", "reports", "schema"}
        for tool in tools.values():
            assert tool.annotations is not None
            assert (tool.annotations.read_only_hint, bool(tool.description)) == (True, True)

        answer = await called(connected, "ask", question=QUESTION)
        assert ("Tomas Reyd" in answer["answer"], answer["fallback"]) == (True, "partial")
        (cited, *_) = answer["citations"]
        quote = BRIDGE[cited["start"] : cited["end"]]
        span = {"document": cited["document"], "start": cited["start"], "length": len(quote)}
        source = await called(connected, "source", **span)
        assert (source["text"], source["length"]) == (quote, len(BRIDGE))
        assert cited["quote"] == quote

        (passage, *_) = await called(connected, "retrieve", question="Orla Bridge", k=1)
        assert (passage["document"], passage["text"]) == ("towns/bridge.txt", BRIDGE)
        (holding, *_) = await called(connected, "search_words", words="1931 metres")
        assert holding["text"] == BRIDGE
        (entity,) = await called(connected, "entity", name="tomas reyd")
        assert entity["name"] == "Tomas Reyd"
        assert "Orla Bridge" in {relation["other"] for relation in entity["relations"]}
        (path, *_) = await called(connected, "paths", start="Orla Bridge", end="Velin")
        assert (path["entities"][0], path["entities"][-1]) == ("Orla Bridge", "Velin")
        assert all(step["statements"][0]["quote"] for step in path["steps"])
        listed = await called(connected, "reports")
        report = await called(connected, "reports", report=listed[0]["community"])
        assert report["findings"]
        assert report["title"] == listed[0]["title"]


async def test_documents_and_reports_are_resources(workspace: Path) -> None:
    async with connection_to(workspace) as connected:
        resources = (await connected.list_resources()).resources
        addresses = {resource.name: resource.uri for resource in resources}
        report = next(address for address in addresses.values() if "//reports/" in address)
        for address, text in ((addresses["towns/bridge.txt"], BRIDGE), (report, "# ")):
            (content,) = (await connected.read_resource(address)).contents
            assert content.text.startswith(text)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "nothing"])
async def test_an_unknown_name_is_an_error_with_a_remedy(workspace: Path, name: str) -> None:
    async with connection_to(workspace) as connected:
        result = await connected.call_tool("source", {"document": name})
        assert result.is_error
        assert "See `trellis status`" in result.content[0].text  # type: ignore[union-attr]
        with pytest.raises(MCPError, match="No document"):
            await connected.read_resource(f"trellis://documents/{name}")
        unknown = await connected.call_tool("entity", {"name": "Thomas Reid"})
        assert "Tomas Reyd" in unknown.content[0].text  # type: ignore[union-attr]


async def test_answers_follow_a_new_generation(tmp_path: Path) -> None:
    workspace = await asyncio.to_thread(indexed, tmp_path, ROWS[:1])
    async with connection_to(workspace) as connected:
        assert (await called(connected, "ask", question=QUESTION))["generation"] == 1
        await asyncio.to_thread(indexed, tmp_path, ROWS)
        asked = await called(connected, "ask", question="Where was Tomas Reyd born?")
        assert asked["generation"] == 2


async def test_a_service_has_the_same_tools_over_http(workspace: Path) -> None:
    key, row = new_key("agent", "ask")
    headers = {"Authorization": f"Bearer {key}"}
    with served_workspace(workspace, keys=(row,)) as service:
        for path in ("/mcp", "/mcp/default"):
            async with (
                httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
                Client(
                    streamable_http_client(f"{service.url}{path}", http_client=http)
                ) as connected,
            ):
                answer = await called(connected, "ask", question=QUESTION)
                assert "Tomas Reyd" in answer["answer"]
                assert (await called(connected, "source", document="reyd"))["text"] == REYD
        async with httpx.AsyncClient(base_url=service.url, timeout=PATIENCE) as plain:
            refused(await plain.post("/mcp", json={}), 401, "KeyMissing")
            plain.headers.update(headers)
            counted = (await plain.get("/metrics")).text
            assert 'trellis_answers_total{fallback="partial"' in counted
            unknown = refused(await plain.post("/mcp/none", json={}), 404, "UnknownWorkspace")
            assert "default" in unknown["remedy"]
            # No session, so no stream to wait for.
            waiting = await plain.get("/mcp", headers={"accept": "text/event-stream"})
            refused(waiting, 405, "HttpError")
