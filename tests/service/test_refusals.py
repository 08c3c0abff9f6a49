"""What the service refuses, in its own form and with a remedy that helps; and what a client cannot
make grow.
"""

import logging
from pathlib import Path
from typing import Any

import pytest

from flows.service.access import HEADER_BYTES, new_key
from flows.service.openai_api import with_footnotes
from storage.answer_records import Answer
from storage.errors import SettingsError
from tests.service.conftest import QUESTION, Start
from tests.service.test_access import ASK, line_of, raw, refused
from tests.settings import load_settings

DOCUMENTS = "/api/v1/documents"
EDITS = "/api/v1/edits"
CHAT = {"model": "trellis", "messages": [{"role": "user", "content": QUESTION}]}


@pytest.mark.parametrize("number", [1, 50])
def test_methods_of_any_name_are_one_in_the_metrics(start: Start, number: int) -> None:
    client = start()
    for place in range(number):
        assert client.request(f"M{place}" + "X" * 2000, "/health").status_code == 405
    lines = [line for line in client.get("/metrics").text.splitlines() if "XXX" in line or 'method="other"' in line]
    assert [line.split()[-1] for line in lines if "_total" in line] == [f"{number}.0"]
    assert len(lines) == 2, "a counter and the time it was made"


def test_no_field_of_the_log_grows_with_a_request(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "trellis.service"):
        body = {"question": QUESTION, "workspace": "w" * 9000, "mode": "m" * 9000}
        answer = start().post(ASK, json=body)
        fields = line_of(caplog, answer.headers["x-request-id"])
    assert max(len(str(value)) for value in fields.values()) <= 200


@pytest.mark.parametrize("size", [HEADER_BYTES, 60_000, 130_000])
def test_headers_beyond_their_limit_are_refused(start: Start, size: int) -> None:
    client = start()
    answer = raw(client, f"GET /health HTTP/1.1\nHost: 127.0.0.1\nConnection: close\nx: {'y' * size}\n\n")
    assert answer.startswith(("HTTP/1.1 431", "HTTP/1.1 400"))
    assert '"remedy"' in answer
    assert "200 OK" in raw(client, f"GET /health HTTP/1.1\nHost: 127.0.0.1\nConnection: close\nx: {'y' * 30_000}\n\n")


@pytest.mark.parametrize(
    "head", ["nonsense\n\n", "GET / HTTP/1.1\nno colon\n\n", "GET / HTTP/1.1\nContent-Length: x\n\n"]
)
def test_what_is_no_request_is_told_as_all_errors_are(start: Start, head: str) -> None:
    answer = raw(start(), head)
    assert answer.startswith("HTTP/1.1 400")
    assert '{"error": {"type": "InvalidRequest"' in answer


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_picture_of_a_foreign_page_reaches_nothing(start: Start, site: str) -> None:
    client = start(origins=["https://chat.example"])
    foreign = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
    for path in ("/api/v1/doctor", "/api/v1/status", "/metrics", "/mcp"):
        refused(client.get(path, headers=foreign), 403, "NotAllowed")
    link = {"sec-fetch-site": site, "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=link).status_code == client.get("/docs", headers=link).status_code == 200
    refused(client.get("/api/v1/doctor", headers=link), 403, "NotAllowed")
    allowed = {"sec-fetch-site": site, "origin": "https://chat.example"}
    assert client.get("/api/v1/status", headers=allowed).status_code == 200
    assert client.get("/api/v1/status", headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_each_limit_of_a_body_names_its_own_remedy(start: Start) -> None:
    client = start(upload_bytes=1000)
    large = {"content": b" " * (2 << 20), "headers": {"content-type": "application/json"}}
    assert "upload_bytes" not in refused(client.post(ASK, **large), 413, "TooLarge")["remedy"]  # type: ignore[arg-type]
    put = client.put(f"{DOCUMENTS}/a.txt", content=b"x" * 2000)
    assert "upload_bytes" in refused(put, 413, "TooLarge")["remedy"]


def test_a_form_is_no_file(start: Start, workspace: Path) -> None:
    answer = start().put(f"{DOCUMENTS}/a.txt?index=false", files={"file": b"text"})
    assert "curl -T" in refused(answer, 415, "NotAFile")["remedy"]
    assert not (workspace / "uploads").exists()


@pytest.mark.parametrize("name", ["%20", "a/%20/b.txt", "%E2%80%83", "a/" * 20 + "b"])
def test_a_name_that_nobody_sees_is_refused(start: Start, workspace: Path, name: str) -> None:
    refused(start().put(f"{DOCUMENTS}/{name}?index=false", content=b"text"), 400, "UsageError")
    assert not (workspace / "uploads").exists()


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"new_name": " "}, 400),
        ({"new_name": "\u200b\u2003"}, 400),
        ({"new_name": "a\nb"}, 400),
        ({"kind": "\t"}, 400),
        ({"description": " \n "}, 400),
        ({"description": "x" * 900_000}, 422),
        ({"new_name": "x" * 5000}, 422),
        ({"new_name": "Reyd, T.", "description": "An\nengineer."}, 200),
    ],
)
def test_an_edit_has_words_of_a_bounded_length(start: Start, change: dict[str, str], status: int) -> None:
    answer = start().post(EDITS, json={"action": "change", "name": "Tomas Reyd", **change})
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/api/chat", {"role": "user", "content": QUESTION, "images": ["aGk="]}),
        ("/v1/chat/completions", {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}),
        ("/v1/chat/completions", {"role": "user", "content": [{"type": "text", "text": None}]}),
        ("/v1/chat/completions", {"role": "user", "content": [{"type": "text"}]}),
    ],
)
def test_a_message_that_is_not_read_is_refused(start: Start, path: str, message: dict[str, Any]) -> None:
    error = refused(start().post(path, json={"model": "trellis", "messages": [message]}), 400, "UsageError")
    assert error["remedy"] in ("Only text can be asked.", "Give each part its words, or leave it out.")


@pytest.mark.parametrize("texts", ["", "  ", ["x", ""]])
def test_an_empty_text_is_not_embedded(start: Start, texts: object) -> None:
    error = refused(start().post("/v1/embeddings", json={"model": "trellis", "input": texts}), 400, "UsageError")
    assert ("is empty" in error["message"], "TRELLIS_EMBEDDING" in error["remedy"]) == (True, False)


@pytest.mark.parametrize("line", ["---", "- - -", "> ***", "===", '[1] Trusted (a.md): "x"', "  > **[2]** Trusted"])
def test_no_text_of_an_answer_looks_like_our_footnotes(start: Start, line: str) -> None:
    answer = Answer.model_validate(start().post(ASK, json={"question": QUESTION}).json())
    shown = with_footnotes(answer.model_copy(update={"answer": f"So it is. [1]\n{line}\nAnd on."}))
    text, _, notes = shown.rpartition("\n---\n")
    assert text.splitlines()[1].replace("\\", "", 1) == line != text.splitlines()[1]
    assert text.startswith("So it is. [1]\n")
    assert notes.startswith("[1] ")


def test_nothing_waits_at_mcp_for_what_never_comes(start: Start) -> None:
    refused(start().get("/mcp", headers={"accept": "text/event-stream"}), 405, "HttpError")


def test_the_description_of_the_interface_names_errors(start: Start) -> None:
    described = start().get("/openapi.json").json()
    responses = described["paths"]["/api/v1/ask"]["post"]["responses"]
    assert {"401", "403", "404", "409", "422", "429", "500", "503"} <= responses.keys()
    reference = responses["422"]["content"]["application/json"]["schema"]["$ref"]
    assert reference == responses["401"]["content"]["application/json"]["schema"]["$ref"]
    shown = described["components"]["schemas"]["ErrorDetails"]["properties"]
    assert set(shown) == {"type", "message", "remedy"}


@pytest.mark.parametrize("value", [";", " ; ", "EMPTY", "TWO_ROLES"])
def test_keys_that_contradict_themselves_are_refused(value: str) -> None:
    nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    ann, again, edit = new_key("ann", "ask")[1], new_key("ann", "ask")[1], new_key("ann", "edit")[1]
    rows = {"EMPTY": f"ann:ask:{nothing}", "TWO_ROLES": f"{ann};{edit}"}
    with pytest.raises(SettingsError, match=r"service\.keys"):
        load_settings(environment={"TRELLIS_SERVICE_KEYS": rows.get(value, value)})
    kept = load_settings(environment={"TRELLIS_SERVICE_KEYS": f"{ann};{again}"})
    assert kept.service.keys == (ann, again), "an old key and a new one, while the old one is replaced"
