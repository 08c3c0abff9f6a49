"""An issuer of tokens on this machine: OpenID Connect's discovery and keys over HTTP."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "trellis"
Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


class Issuer:
    """Its `address`, its private keys by id, how often they were fetched, and whether it fails."""

    def __init__(self) -> None:
        self.address = ""
        self.keys: dict[str, Private] = {"one": rsa_key()}
        self.fetched = 0
        self.fails = False
        self.calls_itself: str | None = None

    def token(self, key: str = "one", **claims: object) -> str:
        """A token for ann, valid for a minute, unless the claims say otherwise (None: left out)."""
        now = int(time.time())
        usual = {"iss": self.address, "aud": AUDIENCE, "sub": "ann", "exp": now + 60}
        given = {name: value for name, value in (usual | claims).items() if value is not None}
        private = self.keys[key]
        algorithm = "RS256" if isinstance(private, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(given, private, algorithm, headers={"kid": key})

    def public_keys(self) -> list[dict[str, Any]]:
        rows = []
        for name, private in self.keys.items():
            kind = RSAAlgorithm if isinstance(private, rsa.RSAPrivateKey) else ECAlgorithm
            public: Any = private.public_key()
            rows.append(json.loads(kind.to_jwk(public)) | {"kid": name})
        return rows

    async def discovery(self, _: web.Request) -> web.Response:
        if self.fails:
            return web.Response(status=500)
        stated = self.calls_itself or self.address
        return web.json_response({"issuer": stated, "jwks_uri": f"{self.address}/keys"})

    async def jwks(self, _: web.Request) -> web.Response:
        self.fetched += 1
        return web.json_response({"keys": self.public_keys()})


@contextmanager
def issuing() -> Iterator[Issuer]:
    """Run an issuer in a thread with an event loop of its own."""
    issuer, loop = Issuer(), asyncio.new_event_loop()
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", issuer.discovery)
    app.router.add_get("/keys", issuer.jwks)
    runner = web.AppRunner(app)

    async def begin() -> str:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0]
        return f"http://{host}:{port}"

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        issuer.address = asyncio.run_coroutine_threadsafe(begin(), loop).result()
        yield issuer
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
