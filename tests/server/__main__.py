"""Starts the scripted model server (`python -m tests.server`) and prints its address as JSON."""

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Sequence

from aiohttp import web

from tests.server.app import ModelServer
from tests.server.ledger import tokens_of

HOST = "127.0.0.1"


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    ends = "end with the process that started this one"
    parser.add_argument("--until-stdin-closes", action="store_true", help=ends)
    return parser.parse_args(arguments)


async def serve(options: argparse.Namespace) -> None:
    """Serve until cancelled, or until standard input closes where that is asked for."""
    tokens_of(["loads the encoding before the first request pays for it"])
    server = ModelServer()
    runner = web.AppRunner(
        server.app(), access_log=None, handler_cancellation=True, shutdown_timeout=1.0
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, options.port, backlog=1024)
        await site.start()
        url = f"http://{HOST}:{runner.addresses[0][1]}"
        sys.stdout.write(json.dumps({"url": url, "base_url": f"{url}/v1"}) + "\n")
        sys.stdout.flush()
        if options.until_stdin_closes:
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
        else:
            await asyncio.Event().wait()
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(parsed()))
