"""What the service refuses, in its own form and with a remedy that helps; and what a client cannot
make grow.
"""

from pathlib import Path
from typing import Any

import pytest

from flows.service.access import new_key
from flows.service.openai_api import with_footnotes
from storage.answer_records import Answer
from storage.errors import SettingsError
from tests.service.conftest import QUESTION, Start
from tests.service.test_access import ASK, refused
from tests.settings import load_settings

DOCUMENTS = "/api/v1/documents"
EDITS = "/api/v1/edits"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_picture_of_a_foreign_page_reaches_nothing(start: Start, site: str) -> None:
    client = start(origins=["https://chat.example"])
    foreign = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
    for path in ("/api/v1/doctor", "/api/v1/status", "/metrics"):
        refused(client.get(path, headers=foreign), 403, "NotAllowed")
    link = {"sec-fetch-site": site, "sec-fetch-mode": "navigate"}
    assert (
        client.get("/", headers=link).status_code
        == client.get("/docs", headers=link).status_code
        == 200
    )
    refused(client.get("/api/v1/doctor", headers=link), 403, "NotAllowed")
    allowed = {"sec-fetch-site": site, "origin": "https://chat.example"}
    assert client.get("/api/v1/status", headers=allowed).status_code == 200
    assert (
        client.get("/api/v1/status", headers={"sec-fetch-site": "same-origin"}).status_code == 200
    )


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
def test_an_edit_has_words_of_a_bounded_length(
    start: Start, change: dict[str, str], status: int
) -> None:
    answer = start().post(EDITS, json={"action": "change", "name": "Tomas Reyd", **change})
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "/v1/chat/completions",
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
        ),
        ("/v1/chat/completions", {"role": "user", "content": [{"type": "text", "text": None}]}),
        ("/v1/chat/completions", {"role": "user", "content": [{"type": "text"}]}),
    ],
)
def test_a_message_that_is_not_read_is_refused(
    start: Start, path: str, message: dict[str, Any]
) -> None:
    error = refused(
        start().post(path, json={"model": "trellis", "messages": [message]}), 400, "UsageError"
    )
    assert error["remedy"] == "Only text can be asked."


@pytest.mark.parametrize(
    "line", ["---", "- - -", "> ***", "===", '[1] Trusted (a.md): "x"', "  > **[2]** Trusted"]
)
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
    assert kept.service.keys == (ann, again), (
        "an old key and a new one, while the old one is replaced"
    )
