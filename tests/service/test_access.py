"""Who the service lets in, and what it does with requests that are too large, too slow, too many or
from elsewhere.
"""

import json
import logging
import os
import socket
import time
from contextlib import closing, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from flows.service.access import DayLimits, KeyList, KeyMissing, RequestLimits, TooOften, new_key
from flows.settings import load_settings
from prompts.engine.spending import Meter, Spent
from storage.errors import UsageError
from tests.patience import PATIENCE
from tests.server.client import Server
from tests.service.conftest import QUESTION, Start, keys_of

ASK = "/api/v1/ask"
ERROR = {"type", "message", "remedy"}


def refused(answer: httpx.Response, status: int, kind: str) -> dict[str, str]:
    """The error of an answer, which has the one form."""
    assert answer.status_code == status, answer.text
    error: dict[str, str] = answer.json()["error"]
    assert error.keys() == ERROR
    assert error["type"] == kind
    assert all(error.values())
    return error


def raw(client: httpx.Client, head: str, body: bytes = b"") -> str:
    """What the service answers to bytes as they are; nothing further is sent."""
    place = urlsplit(str(client.base_url))
    with closing(
        socket.create_connection((place.hostname, place.port), timeout=PATIENCE)
    ) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + body)
        answer = b""
        while b"}}" not in answer and (piece := connection.recv(65536)):
            answer += piece
    return answer.decode()


def test_without_a_key_nothing_is_told_but_that_it_works(start: Start) -> None:
    (key,), rows = keys_of("ask")
    client = start(keys=rows)
    for method, path in (
        ("GET", "/api/v1/status"),
        ("GET", "/v1/models"),
        ("GET", "/metrics"),
        ("POST", "/mcp"),
    ):
        answer = client.request(method, path)
        refused(answer, 401, "KeyMissing")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").status_code in {200, 503}
    for headers in (
        {"authorization": "Bearer " + key[:-1]},
        {"x-api-key": rows[0]},
        {"authorization": "Basic " + key},
    ):
        refused(client.get("/v1/models", headers=headers), 401, "KeyMissing")
    for headers in ({"authorization": "bearer " + key}, {"x-api-key": key}):
        assert client.get("/v1/models", headers=headers).status_code == 200


def test_a_role_may_do_what_it_includes(start: Start, tmp_path: Path) -> None:
    (asking, editing, admin), rows = keys_of("ask", "edit", "admin")
    client = start(keys=rows)

    def status(method: str, path: str, key: str, **more: object) -> int:
        headers = {"authorization": f"Bearer {key}"}
        return client.request(
            method,
            path,
            headers=headers,
            **more,  # type: ignore[arg-type]
        ).status_code

    upload = ("PUT", "/api/v1/documents/a.txt?index=false")
    assert [status(*upload, key, content=b"text") for key in (asking, editing, admin)] == [
        403,
        202,
        202,
    ]
    named = {"sources": [str(tmp_path / "not there")]}
    assert [status("POST", "/api/v1/index-runs", key, json=named) for key in (asking, editing)] == [
        403,
        403,
    ]
    assert status("POST", "/api/v1/index-runs", admin, json=named) == 202
    assert [status("DELETE", "/api/v1/documents/none", key) for key in (asking, editing)] == [
        403,
        404,
    ]
    assert [status("GET", "/api/v1/status", key) for key in (asking, editing, admin)] == [200] * 3


def test_settings_are_shown_without_keys(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    (key,), rows = keys_of("ask")
    monkeypatch.setenv("TRELLIS_LM_API_KEY", "made-up-key-4711")
    shown = start(key, keys=rows).get("/api/v1/settings").text
    assert key not in shown
    assert rows[0].rpartition(":")[2] not in shown
    assert "4711" not in shown
    assert json.loads(shown)["service"]["at_once"] == 16


def test_a_key_has_so_many_tokens_a_day_whatever_way_it_asks(
    start: Start, model_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("LM", "openai/m"),
        ("LM_BASE_URL", model_server.base_url),
        ("LM_API_KEY", "k"),
    ):
        monkeypatch.setenv(f"TRELLIS_{name}", value)
    (one, other), rows = keys_of("ask", "edit")
    client = start(key=one, keys=rows, tokens_a_day=1)
    assert client.post(ASK, json={"question": QUESTION}).status_code == 200, (
        "what takes the last of them is answered"
    )
    error = refused(client.post(ASK, json={"question": QUESTION}), 429, "TooOften")
    assert "1 tokens of models a day" in error["message"]
    chat = {"model": "trellis", "messages": [{"role": "user", "content": QUESTION}]}
    assert client.post("/v1/chat/completions", json=chat).status_code == 429
    assert "TooOften" in client.post(ASK, json={"question": QUESTION, "stream": True}).text
    tool = {"name": "ask", "arguments": {"question": QUESTION}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}
    accept = {"accept": "application/json, text/event-stream"}
    assert "tokens of models a day" in client.post("/mcp", json=call, headers=accept).text
    assert client.get("/api/v1/documents").status_code == 200
    allowed = client.post(
        ASK, json={"question": QUESTION}, headers={"authorization": f"Bearer {other}"}
    )
    assert allowed.status_code == 200


@pytest.mark.parametrize(
    ("tokens", "usd", "spent", "allowed"),
    [
        (None, None, Spent(input_tokens=10**9, cost_usd=1e6), True),
        (11, None, Spent(input_tokens=5, output_tokens=5, cost_usd=None), True),
        (10, None, Spent(input_tokens=5, output_tokens=5), False),
        (None, 0.5, Spent(input_tokens=10**9, cost_usd=0.49), True),
        (None, 0.5, Spent(cost_usd=0.5), False),
        (None, 0.5, Spent(input_tokens=1, cost_usd=None), False),
    ],
)
def test_a_day_has_so_many_tokens_and_so_much_money(
    tokens: int | None, usd: float | None, spent: Spent, allowed: bool
) -> None:
    limits, meter = DayLimits(tokens, usd), Meter()
    limits.check()
    meter.record("answer", "m", spent)
    limits.add(meter)
    with nullcontext() if allowed else pytest.raises(TooOften):
        limits.check()


def test_money_is_limited_only_where_prices_are_known(
    start: Start, model_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert start(usd_a_day=0.01).post(ASK, json={"question": QUESTION}).status_code == 200, (
        "offline nothing is spent"
    )
    for name, value in (("LM", "openai/m"), ("LM_BASE_URL", model_server.base_url)):
        monkeypatch.setenv(f"TRELLIS_{name}", value)
    with pytest.raises(UsageError, match="price of openai/m") as refusal:
        start(usd_a_day=0.01)
    assert "TRELLIS_SERVICE_TOKENS_A_DAY" in refusal.value.remedy


def test_what_a_question_took_counts_though_it_failed(
    start: Start, model_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("LM", "openai/m"),
        ("LM_BASE_URL", model_server.base_url),
        ("LM_API_KEY", "k"),
    ):
        monkeypatch.setenv(f"TRELLIS_{name}", value)
    client = start(tokens_a_day=1)
    model_server.misbehave({"kind": "unauthorized", "step": "answer"})
    asked = {"question": "Where was he born?", "history": [QUESTION, "Tomas Reyd designed it."]}
    assert client.post(ASK, json=asked).status_code == 502
    refused(client.post("/api/v1/retrieve", json={"question": QUESTION}), 429, "TooOften")
    counted = [
        line
        for line in client.get("/metrics").text.splitlines()
        if line.startswith("trellis_tokens_total{")
    ]
    assert len(counted) == 2
    assert all(float(line.split()[-1]) > 0 for line in counted)


def test_a_key_has_so_many_requests_a_minute(start: Start) -> None:
    (first, second), rows = keys_of("ask", "edit")
    client = start(keys=rows, rpm=2)

    def answers(key: str) -> httpx.Response:
        return client.get("/v1/models", headers={"x-api-key": key})

    assert [answers(first).status_code for _ in range(2)] == [200, 200]
    assert "2 requests a minute" in refused(answers(first), 429, "TooOften")["message"]
    assert answers(second).status_code == 200


def test_pages_of_others_may_not_call(start: Start) -> None:
    client = start(origins=["https://chat.example"])
    refused(
        client.post(ASK, json={"question": QUESTION}, headers={"origin": "https://evil.example"}),
        403,
        "NotAllowed",
    )
    # A name that was made to lead to this machine: the page of that name would be on its own
    # origin.
    refused(client.get("/api/v1/status", headers={"host": "evil.example:80"}), 403, "NotAllowed")
    preflight = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    allowed = client.options(ASK, headers={"origin": "https://chat.example", **preflight})
    assert allowed.headers["access-control-allow-origin"] == "https://chat.example"
    assert (
        "access-control-allow-origin"
        not in client.options(ASK, headers={"origin": "https://evil.example", **preflight}).headers
    )
    # What a page may send without asking first is not taken for JSON.
    assert (
        client.post(
            ASK, content=b'{"question": "x"}', headers={"content-type": "text/plain"}
        ).status_code
        == 422
    )


def test_a_body_that_is_too_large_is_refused_before_it_comes(start: Start, workspace: Path) -> None:
    client = start(upload_bytes=1000)
    head = "PUT /api/v1/documents/big.txt HTTP/1.1\nHost: 127.0.0.1\nContent-Length: 1000000000\n\n"
    answer = raw(client, head)
    assert answer.startswith("HTTP/1.1 413")
    assert "1,000 bytes" in answer
    pieces = (b"x" * 400 for _ in range(5))  # without a length it is counted as it comes
    refused(client.put("/api/v1/documents/big.txt", content=pieces), 413, "TooLarge")
    assert not [path for path in (workspace / "uploads").rglob("*") if path.is_file()]
    refused(
        client.post(ASK, content=b" " * (2 << 20), headers={"content-type": "application/json"}),
        413,
        "TooLarge",
    )
    assert raw(client, head.replace("1000000000", "-5")).startswith("HTTP/1.1 400")


def test_a_client_that_stops_sending_holds_up_nobody(start: Start) -> None:
    client = start(limits=RequestLimits(upload_bytes=1000, piece_seconds=0.5))
    head = (
        f"POST {ASK} HTTP/1.1\nHost: 127.0.0.1\nContent-Type: application/json\nContent-Length: "
        "100\n\n"
    )
    place = urlsplit(str(client.base_url))
    with closing(socket.create_connection((place.hostname, place.port), timeout=PATIENCE)) as slow:
        slow.sendall(head.replace("\n", "\r\n").encode() + b'{"question"')
        assert "Tomas Reyd" in client.post(ASK, json={"question": QUESTION}).json()["answer"]
        assert b"408" in slow.recv(65536)


@pytest.mark.parametrize(
    "name",
    [
        "../x.md",
        "a/../../x.md",
        "/etc/x.md",
        ".hidden",
        "a/.b/c.md",
        "a//b.md",
        "a\\b.md",
        "a\nb.md",
        "x" * 300,
        "",
    ],
)
def test_no_name_of_a_document_leads_out_of_its_folder(
    name: str, start: Start, workspace: Path
) -> None:
    client = start()
    before = sorted(workspace.parent.rglob("*.md"))
    quoted = "".join(f"%{byte:02x}" for byte in name.encode())
    answer = client.put(f"/api/v1/documents/{quoted}?index=false", content=b"out")
    assert answer.status_code in {400, 404, 405}, answer.text
    assert sorted(workspace.parent.rglob("*.md")) == before
    read = client.get(f"/api/v1/documents/{quoted}")
    assert read.status_code in {200, 404, 405} if not name else read.status_code == 404


@pytest.mark.parametrize(
    "name", ["..", "../ws", "/etc", "nothing", "", "default/../default", "de fault"]
)
def test_a_workspace_is_a_name_and_never_a_path(name: str, start: Start) -> None:
    client = start()
    for path in ("generations", "documents", "status"):
        refused(client.get(f"/api/v1/{path}", params={"workspace": name}), 404, "UnknownWorkspace")
    refused(
        client.post(ASK, json={"question": QUESTION, "workspace": name}), 404, "UnknownWorkspace"
    )
    refused(
        client.put("/api/v1/documents/a.txt", params={"workspace": name}, content=b"x"),
        404,
        "UnknownWorkspace",
    )


def test_the_log_tells_what_was_done_and_not_what_was_asked(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "trellis.service"):
        for words in (False, True):
            answer = start(log_texts=words).post(ASK, json={"question": QUESTION})
            fields = line_of(caplog, answer.headers["x-request-id"])
            assert (fields["route"], fields["status"], fields["workspace"]) == (ASK, 200, "default")
            assert (QUESTION in str(fields)) is words


def line_of(caplog: pytest.LogCaptureFixture, request: str) -> dict[str, object]:
    """The line of a request, which is written once its answer is out."""
    for _ in range(500):
        for record in list(caplog.records):
            fields: dict[str, object] = getattr(record, "fields", {})
            if fields.get("request") == request:
                return fields
        time.sleep(0.02)
    raise AssertionError(f"no line of the log has {request}")


def test_a_fault_of_ours_tells_nothing_of_itself(start: Start, workspace: Path) -> None:
    client = start()
    assert client.post(ASK, json={"question": QUESTION}).status_code == 200
    (workspace / "uploads").write_text("a file in the place of the folder")
    answer = client.put("/api/v1/documents/a.txt?index=false", content=b"x")
    assert str(workspace) not in answer.text
    assert answer.json()["error"].keys() == ERROR


def test_keys_are_read_anew_when_their_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "trellis.toml"
    monkeypatch.setenv("TRELLIS_CONFIG", str(file))
    (old, old_row), (new, new_row) = (new_key(name, "ask") for name in ("old", "new"))

    def write(text: str, at: int) -> None:
        file.write_text(text, encoding="utf-8")
        os.utime(file, (at, at))

    write(f'[service]\nkeys = ["{old_row}"]\n', 1)
    keys = KeyList(load_settings({"workspace": tmp_path / "ws"}))
    assert keys.caller(old).name == "old"
    write(f'[service]\nkeys = ["{new_row}"]\n', 2)
    assert keys.caller(new).name == "new"
    with pytest.raises(KeyMissing):
        keys.caller(old)
    for at, text in enumerate(["", "[service"], start=3):
        write(text, at)
        assert keys.caller(new).name == "new", "the last ones hold"
