"""How are the connections to one server kept, and closed with their event loop?"""

from collections.abc import AsyncGenerator
from urllib.request import getproxies

from prompts.engine.providers import Endpoint

_CONNECT = 15.0  # seconds
_LONGEST_LINE = 2**22  # bytes of one event of a stream


class Pool:
    """`asyncio.run` closes async generators when it ends: held by one, the connections close too."""

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        import aiohttp

        headers = {"Content-Type": "application/json", "User-Agent": "trellis-rag"}
        if endpoint.key:
            headers["Authorization"] = f"Bearer {endpoint.key}"
        self.session = aiohttp.ClientSession(
            headers=headers,
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),  # our own limits admit calls
            timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=_CONNECT),
            trust_env=bool(getproxies()),
            read_bufsize=_LONGEST_LINE,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._keeper = self._keep()

    async def open(self) -> None:
        await anext(self._keeper)

    async def aclose(self) -> None:
        await self._keeper.aclose()

    async def _keep(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await self.session.close()
