"""`trellis mcp`: the workspace for one MCP client, which starts this command and talks to it over stdin and stdout."""

from argparse import Namespace

from flows.cli.screen import Screen
from flows.service.mcp_server import mcp_server
from flows.service.workspaces import Workspaces
from flows.settings import load_settings


def mcp(options: Namespace, screen: Screen) -> None:
    """Serve until the client goes. Standard output is the protocol's: nothing else is written there."""
    workspaces = Workspaces(load_settings({"workspace": options.workspace}))
    screen.note("Waiting for an MCP client on standard input; clients start this command themselves.")
    try:
        mcp_server(workspaces).run("stdio")
    finally:
        workspaces.close()
