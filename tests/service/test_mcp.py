"""MCP: a real client starts `trellis mcp` and uses every tool and resource of it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
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
from flows.session import Sessions
from flows.settings import load_settings
from tests.patience import PATIENCE
from tests.service.serving import served_workspace
from tests.workspaces import indexed

ROOT = Path(__file__).resolve().parents[2]
BRIDGE = "Orla Bridge was designed by Tomas Reyd. It opened in 1931 and is 412 metres long."
ROWS = (
    {"id": "towns/bridge.txt", "title": "Orla Bridge", "text": BRIDGE},
    {
        "id": "reyd",
        "title": "Tomas Reyd",
        "text": "Tomas Reyd was born in Velin. He studied under Ana Korb in Velin.",
    },
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return indexed(tmp_path_factory.mktemp("mcp"), ROWS)


@pytest.fixture(scope="module")
def sessions() -> Iterator[Sessions]:
    sessions = Sessions()
    yield sessions
    sessions.close()


@asynccontextmanager
async def client(workspace: Path, sessions: Sessions) -> AsyncIterator[Client]:
    """A client of the server in this process."""
    settings = load_settings({"workspace": workspace})
    workspaces = Workspaces(settings, sessions)
    questions = Questions(workspaces, Metrics(), settings.service)
    async with Client(mcp_server(workspaces, questions)) as connected:
        yield connected


async def called(connected: Client, tool: str, **arguments: object) -> Any:
    """What a tool gives; a list is wrapped by the protocol."""
    result = await connected.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content.get("result", result.structured_content)


async def test_a_client_over_stdio_uses_every_tool(workspace: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRELLIS_EMBEDDING": "none"}
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "flows", "mcp", "--workspace", str(workspace)],
        env=environment,
    )
    async with Client(command) as connected:
        tools = (await connected.list_tools()).tools
        assert {tool.name for tool in tools} == {
            "ask",
            "retrieve",
            "entity",
            "paths",
            "reports",
            "source",
        }
        assert all(
            tool.annotations and tool.annotations.read_only_hint and tool.description
            for tool in tools
        )

        answer = await called(connected, "ask", question="Who designed Orla Bridge?")
        assert "Tomas Reyd" in answer["answer"]
        assert answer["fallback"] == "partial"
        (cited, *_) = answer["citations"]
        assert BRIDGE[cited["start"] : cited["end"]] == cited["quote"]
        source = await called(
            connected,
            "source",
            document=cited["document"],
            start=cited["start"],
            length=len(cited["quote"]),
        )
        assert (source["text"], source["length"]) == (cited["quote"], len(BRIDGE))

        (passage, *_) = await called(connected, "retrieve", question="Orla Bridge", k=1)
        assert (passage["document"], passage["text"]) == ("towns/bridge.txt", BRIDGE)
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


async def test_documents_and_reports_are_resources(workspace: Path, sessions: Sessions) -> None:
    async with client(workspace, sessions) as connected:
        resources = (await connected.list_resources()).resources
        addresses = {resource.name: resource.uri for resource in resources}
        read = await connected.read_resource(addresses["towns/bridge.txt"])
        assert [content.text for content in read.contents] == [BRIDGE]  # type: ignore[union-attr]
        (report, *_) = [
            address for address in addresses.values() if address.startswith("trellis://reports/")
        ]
        assert (await connected.read_resource(report)).contents[0].text.startswith("# ")  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "nothing"])
async def test_what_is_not_there_is_told_with_its_remedy(
    workspace: Path, sessions: Sessions, name: str
) -> None:
    async with client(workspace, sessions) as connected:
        result = await connected.call_tool("source", {"document": name})
        assert result.is_error
        assert "See `trellis status`" in result.content[0].text  # type: ignore[union-attr]
        with pytest.raises(MCPError, match="No document"):
            await connected.read_resource(f"trellis://documents/{name}")
        unknown = await connected.call_tool("entity", {"name": "Thomas Reid"})
        assert "Tomas Reyd" in unknown.content[0].text  # type: ignore[union-attr]


async def test_answers_follow_a_new_generation(tmp_path: Path, sessions: Sessions) -> None:
    workspace = await asyncio.to_thread(indexed, tmp_path, ROWS[:1])
    async with client(workspace, sessions) as connected:
        assert (await called(connected, "ask", question="Who designed Orla Bridge?"))[
            "generation"
        ] == 1
        await asyncio.to_thread(indexed, tmp_path, ROWS)
        assert (await called(connected, "ask", question="Where was Tomas Reyd born?"))[
            "generation"
        ] == 2


async def test_a_service_gives_the_same_over_http_to_who_has_a_key(workspace: Path) -> None:
    key, row = new_key("agent", "ask")
    with served_workspace(workspace, keys=(row,)) as service:
        async with httpx.AsyncClient(timeout=PATIENCE) as plain:
            refused = await plain.post(f"{service.url}/mcp", json={})
            assert (refused.status_code, refused.json()["error"]["type"]) == (401, "KeyMissing")
        headers = {"Authorization": f"Bearer {key}"}
        for address in ("/mcp", "/mcp/default"):
            async with (
                httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
                Client(
                    streamable_http_client(f"{service.url}{address}", http_client=http)
                ) as connected,
            ):
                answer = await called(connected, "ask", question="Who designed Orla Bridge?")
                assert "Tomas Reyd" in answer["answer"]
                assert (await called(connected, "source", document="reyd"))["text"] == ROWS[1][
                    "text"
                ]
        async with httpx.AsyncClient(headers=headers, timeout=PATIENCE) as plain:
            counted = (await plain.get(f"{service.url}/metrics")).text
            assert 'trellis_answers_total{fallback="partial"' in counted, (
                "they are counted, and wait their turn, like others"
            )
            unknown = await plain.post(f"{service.url}/mcp/nothing", json={})
            assert (unknown.status_code, "default" in unknown.json()["error"]["remedy"]) == (
                404,
                True,
            )
