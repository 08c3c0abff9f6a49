"""Who may use the service, and what it does with bodies that are too large or too slow."""

import json
import logging
import os
from contextlib import nullcontext
from pathlib import Path

import httpx
import pytest

from flows.service.access import DayLimits, KeyList, KeyMissing, RequestLimits, TooOften, new_key
from prompts.engine.spending import Meter, Spent
from storage.errors import SettingsError, UsageError
from tests.patience import wait_for
from tests.server.client import Server
from tests.service.conftest import (
    ASK,
    ASKED,
    DOCUMENTS,
    QUESTION,
    Start,
    connected,
    keys_of,
    refused,
)
from tests.settings import load_settings

STATUS = "/api/v1/status"
EVIL, KNOWN = {"origin": "https://evil.example"}, {"origin": "https://chat.example"}


# --- keys and roles ---


def test_without_a_key_only_health_is_shown(start: Start) -> None:
    (key,), rows = keys_of("ask")
    client = start(keys=rows)
    for method, path in (
        ("GET", STATUS),
        ("GET", "/v1/models"),
        ("GET", "/metrics"),
        ("POST", "/mcp"),
    ):
        answer = client.request(method, path)
        refused(answer, 401, "KeyMissing")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").status_code in {200, 503}
    for headers, status in (
        ({"x-api-key": rows[0]}, 401),
        ({"authorization": f"bearer {key}"}, 200),
        ({"x-api-key": key}, 200),
    ):
        assert client.get("/v1/models", headers=headers).status_code == status


def test_a_role_may_do_what_it_includes(start: Start, tmp_path: Path) -> None:
    keys, rows = keys_of("ask", "edit", "admin")
    client = start(keys=rows)
    named = {"sources": [str(tmp_path / "not there")]}
    fetching = ("http://169.254.169.254/latest", "S3://bucket/a", str(tmp_path / "a.urls/."))
    for method, path, body, expected in (
        ("GET", STATUS, None, (200, 200, 200)),
        ("PUT", f"{DOCUMENTS}/a.txt?index=false", "a text", (403, 202, 202)),
        ("DELETE", f"{DOCUMENTS}/none", None, (403, 404, 404)),
        ("POST", "/api/v1/index-runs", named, (403, 403, 202)),
        *(("POST", "/api/v1/index-runs", {"sources": [one]}, (403, 403, 403)) for one in fetching),
    ):
        answers = [
            client.request(method, path, json=body, headers={"authorization": f"Bearer {key}"})
            for key in keys
        ]
        assert tuple(answer.status_code for answer in answers) == expected, path


def test_settings_are_shown_without_keys(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    (key,), rows = keys_of("ask")
    monkeypatch.setenv("TRELLIS_LM_API_KEY", "made-up-key-4711")
    shown = start(key, keys=rows).get("/api/v1/settings").text
    assert not [secret for secret in (key, rows[0].rpartition(":")[2], "4711") if secret in shown]
    assert json.loads(shown)["service"]["at_once"] == 16


def test_keys_are_read_again_when_their_file_changes(
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
        assert keys.caller(new).name == "new", "the last valid keys stay in force"


NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # the hash of ""
ANN, ANN_AGAIN, ANN_EDITS = (new_key("ann", role)[1] for role in ("ask", "ask", "edit"))
NO_HASH, TWO_ROLES = f"ann:ask:{NOTHING}", f"{ANN};{ANN_EDITS}"
TWO_FILTERS, NO_FILTER = f"{ANN};{ANN} where year > 1", f"ann:ask:{'0' * 64} where year >"
WRONG_ROWS = [";", " ; ", "ann", f"ann:root:{'0' * 64}", "ann:ask:abc", f"ann:ask:{'0' * 64};x"]


@pytest.mark.parametrize("value", [*WRONG_ROWS, NO_HASH, TWO_ROLES, TWO_FILTERS, NO_FILTER])
def test_a_wrong_row_of_a_key_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(SettingsError, match=r"service\.keys") as refusal:
        load_settings(environment={"TRELLIS_SERVICE_KEYS": value})
    assert "0000" not in str(refusal.value)


def test_a_name_may_have_an_old_and_a_new_key() -> None:
    rows = load_settings(environment={"TRELLIS_SERVICE_KEYS": f"{ANN};{ANN_AGAIN}"})
    assert rows.service.keys == (ANN, ANN_AGAIN)


# --- limits of a key ---


def test_the_tokens_of_a_day_count_for_every_interface(start: Start, scripted: Server) -> None:
    (one, other), rows = keys_of("ask", "edit")
    client = start(key=one, keys=rows, tokens_a_day=1)
    assert client.post(ASK, json=ASKED).status_code == 200, "the first question is answered whole"
    error = refused(client.post(ASK, json=ASKED), 429, "TooOften")
    assert "1 tokens of models a day" in error["message"]
    chat = {"model": "trellis", "messages": [{"role": "user", "content": QUESTION}]}
    assert client.post("/v1/chat/completions", json=chat).status_code == 429
    assert "TooOften" in client.post(ASK, json={**ASKED, "stream": True}).text
    tool = {"name": "ask", "arguments": ASKED}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}
    accept = {"accept": "application/json, text/event-stream"}
    assert "tokens of models a day" in client.post("/mcp", json=call, headers=accept).text
    assert client.get(DOCUMENTS).status_code == 200
    headers = {"authorization": f"Bearer {other}"}
    assert client.post(ASK, json=ASKED, headers=headers).status_code == 200


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
def test_a_day_limits_tokens_and_money(
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
    offline = start(usd_a_day=0.01).post(ASK, json=ASKED)
    assert offline.status_code == 200
    monkeypatch.setenv("TRELLIS_LM", "openai/m")
    monkeypatch.setenv("TRELLIS_LM_BASE_URL", model_server.base_url)
    with pytest.raises(UsageError, match="no price is known of openai/m") as refusal:
        start(usd_a_day=0.01)
    assert "TRELLIS_SERVICE_TOKENS_A_DAY" in refusal.value.remedy


def test_the_tokens_of_a_failed_question_count(start: Start, scripted: Server) -> None:
    client = start(tokens_a_day=1)
    scripted.misbehave({"kind": "unauthorized", "step": "answer"})
    asked = {"question": "Where was he born?", "history": [QUESTION, "Tomas Reyd designed it."]}
    assert client.post(ASK, json=asked).status_code == 502
    refused(client.post("/api/v1/retrieve", json=ASKED), 429, "TooOften")
    lines = client.get("/metrics").text.splitlines()
    counted = [line for line in lines if line.startswith("trellis_tokens_total{")]
    assert len(counted) == 2
    assert all(float(line.split()[-1]) > 0 for line in counted)


def test_a_key_has_a_limit_of_requests_a_minute(start: Start) -> None:
    (first, second), rows = keys_of("ask", "edit")
    client = start(keys=rows, rpm=2)

    def answer(key: str) -> httpx.Response:
        return client.get("/v1/models", headers={"x-api-key": key})

    assert [answer(first).status_code for _ in range(2)] == [200, 200]
    assert "2 requests a minute" in refused(answer(first), 429, "TooOften")["message"]
    assert answer(second).status_code == 200


# --- pages of other sites ---


def test_pages_of_other_sites_reach_nothing(start: Start) -> None:
    client = start(origins=[KNOWN["origin"]])
    cases: list[tuple[str, dict[str, str], int]] = [
        (STATUS, EVIL, 403),
        (STATUS, KNOWN, 200),
        (STATUS, {"host": "evil.example:80"}, 403),  # a name that was made to lead here
        (STATUS, {"sec-fetch-site": "same-origin"}, 200),
    ]
    for site in ("cross-site", "same-site"):
        picture = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
        link = {"sec-fetch-site": site, "sec-fetch-mode": "navigate"}
        cases += [(path, picture, 403) for path in ("/api/v1/doctor", STATUS, "/metrics")]
        cases += [("/", link, 200), ("/docs", link, 200), ("/api/v1/doctor", link, 403)]
        cases += [(STATUS, {**KNOWN, "sec-fetch-site": site}, 200)]
    for path, headers, status in cases:
        answer = client.get(path, headers=headers)
        assert answer.status_code == status, (path, headers)
        if status == 403:
            refused(answer, 403, "NotAllowed")


def test_only_a_named_origin_gets_cors_headers(start: Start) -> None:
    client = start(origins=[KNOWN["origin"]])
    wish = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    allowed = client.options(ASK, headers={**KNOWN, **wish}).headers
    assert allowed["access-control-allow-origin"] == KNOWN["origin"]
    refusal = client.options(ASK, headers={**EVIL, **wish}).headers
    assert "access-control-allow-origin" not in refusal
    # A page may send text without a preflight: it is not read as JSON.
    text = client.post(ASK, content=b'{"question": "x"}', headers={"content-type": "text/plain"})
    assert text.status_code == 422


# --- bodies and names ---


def test_a_body_that_is_too_large_is_refused(start: Start, workspace: Path) -> None:
    client = start(upload_bytes=1000)
    pieces = (b"x" * 400 for _ in range(5))  # a body without a length
    error = refused(client.put(f"{DOCUMENTS}/a.txt", content=pieces), 413, "TooLarge")
    assert ("1,000 bytes" in error["message"], "upload_bytes" in error["remedy"]) == (True, True)
    large = client.post(ASK, content=b" " * (2 << 20), headers={"content-type": "application/json"})
    assert "upload_bytes" not in refused(large, 413, "TooLarge")["remedy"]
    assert not [path for path in (workspace / "uploads").rglob("*") if path.is_file()]


def test_a_client_that_stops_sending_holds_up_nobody(start: Start) -> None:
    client = start(limits=RequestLimits(upload_bytes=1000, piece_seconds=0.5))
    head = f"POST {ASK} HTTP/1.1\nHost: 127.0.0.1\nContent-Length: 100\n\n"
    with connected(client, head, b'{"question"') as slow:
        assert "Tomas Reyd" in client.post(ASK, json=ASKED).json()["answer"]
        assert b"408" in slow.recv(65536)


@pytest.mark.parametrize(
    "name", ["a/../../x.md", "/etc/x.md", "a/.b/c.md", "a//b.md", "a\nb.md", "x" * 300, ""]
)
def test_no_document_name_leads_out_of_its_folder(
    name: str, client: httpx.Client, kept: Path
) -> None:
    before = sorted(kept.parent.rglob("*.md"))
    quoted = "".join(f"%{byte:02x}" for byte in name.encode())
    answer = client.put(f"{DOCUMENTS}/{quoted}?index=false", content=b"out")
    assert answer.status_code in {400, 404, 405}, answer.text
    assert sorted(kept.parent.rglob("*.md")) == before
    read = client.get(f"{DOCUMENTS}/{quoted}")
    assert read.status_code in {200, 404, 405} if not name else read.status_code == 404


@pytest.mark.parametrize(
    "name", ["..", "../ws", "/etc", "nothing", "", "default/../default", "de fault"]
)
def test_a_workspace_is_a_name_and_never_a_path(name: str, client: httpx.Client) -> None:
    there = {"workspace": name}
    for answer in (
        client.get("/api/v1/generations", params=there),
        client.get(DOCUMENTS, params=there),
        client.get(STATUS, params=there),
        client.post(ASK, json={**ASKED, **there}),
        client.put(f"{DOCUMENTS}/a.txt", params=there, content=b"x"),
    ):
        refused(answer, 404, "UnknownWorkspace")


# --- the log ---


@pytest.mark.parametrize("with_texts", [False, True])
def test_the_log_has_questions_only_if_settings_say_so(
    start: Start, caplog: pytest.LogCaptureFixture, with_texts: bool
) -> None:
    with caplog.at_level(logging.INFO, "trellis.service"):
        answer = start(log_texts=with_texts).post(ASK, json=ASKED)
        fields = logged(caplog, answer.headers["x-request-id"])
    assert (fields["route"], fields["status"], fields["workspace"]) == (ASK, 200, "default")
    assert (QUESTION in str(fields)) is with_texts


def logged(caplog: pytest.LogCaptureFixture, request: str) -> dict[str, object]:
    """The log line of a request, which is written after its answer."""

    def found() -> list[dict[str, object]]:
        rows = [getattr(record, "fields", {}) for record in list(caplog.records)]
        return [fields for fields in rows if fields.get("request") == request]

    line: dict[str, object] = wait_for(found, f"a line of {request}")[0]
    return line


def test_a_fault_of_the_program_shows_no_details(start: Start, workspace: Path) -> None:
    client = start()
    (workspace / "uploads").write_text("a file in the place of the folder")
    answer = client.put(f"{DOCUMENTS}/a.txt?index=false", content=b"x")
    assert str(workspace) not in answer.text
    assert answer.json()["error"].keys() == {"type", "message", "remedy"}
