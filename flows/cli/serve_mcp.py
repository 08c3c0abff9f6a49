"""`trellis mcp`: the workspace for one MCP client, which starts this command and talks to it over stdin and stdout."""

from argparse import Namespace
from importlib.metadata import version

from flows.cli.screen import Screen
from flows.service.mcp_server import mcp_server
from flows.session import Sessions


def mcp(options: Namespace, screen: Screen) -> None:
    """Serve until the client goes. Standard output is the protocol's: nothing else is written there."""
    sessions = Sessions()
    screen.note("Waiting for an MCP client on standard input; clients start this command themselves.")
    try:
        mcp_server(lambda: sessions.use(options.workspace), version("trellis-rag")).run("stdio")
    finally:
        sessions.close()
