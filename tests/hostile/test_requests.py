"""Hostile requests get an answer, change nothing outside the workspace, and block nobody."""

import select
import socket
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from flows.service.access import RequestLimits
from tests.flows.conftest import ROWS
from tests.hostile.made import text_of
from tests.patience import PATIENCE
from tests.service.conftest import client_of, keys_of
from tests.workspaces import indexed

TABLE = tomllib.loads(Path(__file__).with_name("inputs.toml").read_text(encoding="utf-8"))
CASES = TABLE["requests"]["cases"]
PIECE = 1 << 20


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return indexed(tmp_path_factory.mktemp("requests"), ROWS)


@pytest.fixture(scope="module")
def service(small: Path) -> Iterator[tuple[httpx.Client, str]]:
    """A client of the role `edit`, and its key."""
    (key,), rows = keys_of("edit")
    limits = RequestLimits(upload_bytes=1000, piece_seconds=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRELLIS_EMBEDDING", "none")
        with client_of(small, key, limits, keys=rows) as client:
            yield client, key


def sent(client: httpx.Client, head: bytes, length: int) -> tuple[int, bytes]:
    """Return how many bytes of a body without a length the service took, and its answer."""
    place, taken, answer = urlsplit(str(client.base_url)), 0, b""
    with socket.create_connection((place.hostname, place.port), timeout=PATIENCE) as connection:
        connection.sendall(head)
        try:
            while taken < length and not select.select([connection], [], [], 0)[0]:
                connection.sendall(b"%x\r\n%s\r\n" % (PIECE, b" " * PIECE))
                taken += PIECE
            while piece := connection.recv(65536):
                answer += piece
        except OSError:  # The service has closed the connection; its answer has arrived.
            pass
    return taken, answer


def head_of(case: dict[str, Any], key: str) -> bytes:
    """Return the bytes of a request, with its body where that has a length."""

    def words(name: str, default: str) -> str:
        given = case.get(name, default)
        return (given if isinstance(given, str) else text_of(given)).replace("{KEY}", key)

    if "raw" in case:
        return words("raw", "").encode("latin-1")
    body = words("body", "").encode()
    lines = [words("headers", ""), words("key", "authorization: Bearer {KEY}")]
    lines += ["transfer-encoding: chunked"] * ("sends" in case)
    lines += [f"content-length: {len(body)}"] * bool(body and "headers" not in case)
    first = f"{words('method', 'GET')} {words('target', '/api/v1/status')} HTTP/1.1"
    head = [
        first,
        "host: 127.0.0.1",
        "connection: close",
        "content-type: application/json",
        *filter(None, lines),
    ]
    return "".join(f"{line}\r\n" for line in [*head, ""]).encode() + body


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_request(case: dict[str, Any], service: tuple[httpx.Client, str], small: Path) -> None:
    client, key = service
    taken, answer = sent(client, head_of(case, key), case.get("sends", 0))
    top, _, body = answer.partition(b"\r\n\r\n")
    assert taken <= case.get("at_most", 0)
    if not answer and case.get("cut"):  # Cut off while it was sending, it cannot read the answer.
        assert client.get("/health").json() == {"status": "ok"}
        assert not list(small.parent.rglob("out*"))
        return
    assert int(top.split()[1]) in case["status"], answer[:500]
    assert b"Traceback" not in answer
    assert key.encode() not in answer
    assert str(small).encode() not in answer or int(top.split()[1]) == 200
    assert b"text/html" not in top
    assert b"root:" not in body
    assert not list(small.parent.rglob("out*"))
    assert client.get("/health").json() == {"status": "ok"}
