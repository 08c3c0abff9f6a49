"""The interface under /api/v1: answers and their events, documents, the graph, reports, edits."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from storage.answer_records import Answer
from tests.flows.conftest import BRIDGE
from tests.patience import wait_for
from tests.server.client import Server
from tests.service.conftest import ASK, ASKED, QUESTION, Start, keys_of, refused

EDITS = "/api/v1/edits"
FEEDBACK = "/api/v1/feedback"


def get(client: httpx.Client, path: str, **query: Any) -> Any:
    answer = client.get(f"/api/v1/{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def events_of(client: httpx.Client, body: Mapping[str, object]) -> list[tuple[str, Any]]:
    """The events of a streamed answer."""
    with client.stream("POST", ASK, json={**body, "stream": True}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        blocks = "".join(answer.iter_text()).strip().split("\n\n")
    rows = [block.split("\n") for block in blocks]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in rows
    ]


# --- answers ---


def test_an_answer_cites_characters_of_a_stored_text(client: httpx.Client) -> None:
    answer = Answer.model_validate(client.post(ASK, json=ASKED).json())
    assert "Tomas Reyd" in answer.answer
    cited = answer.citations[0]
    source = get(client, f"documents/{cited.document}")
    assert source["text"][cited.start : cited.end] == cited.quote
    whole = {"document": "bridge", "start": 0, "end": len(BRIDGE), "heading": ""}
    assert whole.items() <= source["spans"][0].items()
    assert cited.chunk in {span["chunk"] for span in source["spans"]}
    found = client.post("/api/v1/retrieve", json={**ASKED, "k": 1}).json()
    assert [passage["document"] for passage in found["passages"]] == ["bridge"]


def test_the_answer_is_the_last_event(client: httpx.Client) -> None:
    events = events_of(client, ASKED)
    steps = [data["step"] for name, data in events if name == "step" and data["state"] == "begins"]
    assert steps.index("rewrite") < steps.index("trigger-check") < steps.index("answer")
    assert [name for name, _ in events].count("answer") == 1
    assert "Tomas Reyd" in Answer.model_validate(events[-1][1]).answer


def test_the_draft_of_a_model_is_streamed(scripted: Server, start: Start) -> None:
    client = start()
    events = events_of(client, {"question": "Where was Tomas Reyd born?"})
    texts = [data["text"] for name, data in events if name == "text"]
    assert len(texts) > 1
    assert "Tomas Reyd was born in Velin" in "".join(texts)
    assert events[-1][0] == "answer"
    scripted.misbehave({"kind": "unauthorized", "step": "answer"})
    name, error = events_of(client, {"question": "Who was Ana Korb?"})[-1]
    assert (name, error.keys()) == ("error", {"type", "message", "remedy"})


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"question": " "}, 422, "InvalidRequest"),
        ({"colour": "red"}, 422, "InvalidRequest"),
        ({"mode": "best"}, 400, "SettingsError"),
        ({"where": "year >="}, 400, "FilterError"),
        ({"documents": ["bridg"]}, 404, "UnknownDocument"),
        ({"as_of": 9}, 404, "UnknownGeneration"),
        ({"where": "year > 2100"}, 400, "NothingMatches"),
    ],
)
def test_an_impossible_question_is_refused(
    body: dict[str, object], status: int, kind: str, client: httpx.Client
) -> None:
    answer = client.post(ASK, json={**ASKED, **body})
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)
    if status != 422:  # a stream ends with the same error
        assert events_of(client, {**ASKED, **body})[-1][1] == answer.json()["error"]


def test_administrators_see_the_latest_questions(start: Start) -> None:
    (admin, asker), rows = keys_of("admin", "ask")
    client = start(key=admin, keys=rows)
    client.post(ASK, json=ASKED)
    client.post(ASK, json={**ASKED, "documents": ["bridg"]})
    failed, answered = get(client, "questions")
    assert (answered["question"], answered["label"]) == (QUESTION, "excerpts")
    assert "bridg" in failed["error"]
    client.headers["authorization"] = f"Bearer {asker}"
    assert client.get("/api/v1/questions").status_code == 403


def test_the_mode_lazy_tells_its_cost_before(scripted: Server, start: Start) -> None:
    client, lazy = start(), {**ASKED, "mode": "lazy", "budget": 2}
    told = client.post(f"{ASK}/forecast", json=lazy).json()
    assert told["tests"] == 2
    assert told["calls"] == sum(step["calls"] for step in told["steps"]) > 1
    assert scripted.stats()["calls"] == 0
    assert client.post(ASK, json=lazy).json()["trace"]["relevance"]["tests"] <= 2
    refused(client.post(f"{ASK}/forecast", json=ASKED), 400, "UsageError")


# --- documents, the graph and the workspace ---


def test_documents_entities_paths_and_reports_are_read(client: httpx.Client) -> None:
    (bridge,) = get(client, "documents", q="orla")["documents"]
    assert (bridge["id"], bridge["date"]) == ("bridge", "1931")
    assert get(client, "documents", limit=1, offset=1)["total"] == 3
    entity = get(client, "entities", q="reyd")["entities"][0]
    (view,) = get(client, "entity", name="Tomas Reyd")["entities"]
    assert (entity["name"], entity["id"]) == ("Tomas Reyd", view["id"])
    (first, *_) = get(client, "paths", first="Orla Bridge", second="Velin")["paths"]
    assert (first["entities"][0], first["entities"][-1]) == ("Orla Bridge", "Velin")
    place = first["steps"][0]["statements"][0]
    text = get(client, f"documents/{place['document']}")["text"]
    assert text[place["start"] : place["end"]] == place["quote"]
    reports = get(client, "reports")
    assert all(get(client, f"reports/{row['community']}")["findings"] for row in reports)
    communities = {row["id"] for row in get(client, "communities")}
    assert {row["community"] for row in reports} <= communities


def test_a_picture_has_a_place_for_every_entity(client: httpx.Client) -> None:
    whole = get(client, "picture")
    nodes = {node["id"]: node for node in whole["nodes"]}
    assert {"Orla Bridge", "Tomas Reyd"} <= {node["name"] for node in nodes.values()}
    assert all(0 <= node["x"] <= 1 and 0 <= node["y"] <= 1 for node in nodes.values())
    assert len({(node["x"], node["y"]) for node in nodes.values()}) == len(nodes)
    assert all({edge["source"], edge["target"]} <= nodes.keys() for edge in whole["edges"])
    assert (whole["cut"], whole) == (False, get(client, "picture"))
    small = get(client, "picture", name="Orla Bridge", most=2)
    assert (len(small["nodes"]), small["cut"]) == (2, True)
    by_id = get(client, "picture", name=small["start"][0])
    assert small["start"][0] in {node["id"] for node in by_id["nodes"]}


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("documents/bridg", "bridge"),
        ("entity?name=Velinn", "Velin"),
        ("paths?first=Orla Bridge&second=Velinn", "Velin"),
        ("picture?name=Orla Bridges", "Orla Bridge"),
        ("reports/cmt_none", "trellis reports"),
        ("reports?as_of=9", "1"),
        ("diff?before=9", "1"),
        ("index-runs/run_none", "GET /api/v1/index-runs"),
        ("status?workspace=none", "default"),
        ("entities?workspace=none", "default"),
        ("no-such-route", "GET /docs"),
    ],
)
def test_an_unknown_name_is_a_404_with_a_remedy(path: str, near: str, client: httpx.Client) -> None:
    answer = client.get(f"/api/v1/{path}")
    error = answer.json()["error"]
    assert (answer.status_code, error.keys()) == (404, {"type", "message", "remedy"})
    assert near in error["remedy"]


def test_the_workspace_describes_itself(client: httpx.Client) -> None:
    assert get(client, "workspaces") == ["default"]
    assert [row["number"] for row in get(client, "generations")] == [1]
    assert get(client, "dead-letters") == get(client, "usage") == []
    assert get(client, "status")["counts"]["documents"] == 3
    assert get(client, "diff", before=1)["documents"]["unchanged"] == 3
    counted = 'trellis_requests_total{method="GET",route="/api/v1/generations",status="200"} '
    assert counted in client.get("/metrics").text


def test_the_description_of_the_interface_names_errors(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()
    assert {"/api/v1/documents/{document}", "/v1/chat/completions"} <= described["paths"].keys()
    responses = described["paths"][ASK]["post"]["responses"]
    assert {"401", "403", "404", "409", "422", "429", "500", "503"} <= responses.keys()
    schemas = [responses[code]["content"]["application/json"]["schema"] for code in ("401", "422")]
    assert schemas[0] == schemas[1]
    shown = described["components"]["schemas"]["ErrorDetails"]["properties"]
    assert set(shown) == {"type", "message", "remedy"}


def test_a_workspace_without_an_index_says_how_to_begin(start: Start, workspace: Path) -> None:
    empty = workspace.parent / "empty"
    client = start(workspaces={"empty": empty})
    asked = client.post(ASK, json={**ASKED, "workspace": "empty"})
    assert (asked.status_code, asked.json()["error"]["type"]) == (404, "NoGeneration")
    ready = wait_for(lambda: (answer := client.get("/ready")).is_success and answer, "readiness")
    assert ready.json() == {"status": "ready", "empty": ["empty"]}
    assert not empty.exists()


# --- edits and feedback ---


def test_an_edit_is_made_listed_and_undone(start: Start) -> None:
    client = start()
    merge = {"action": "merge", "name": "Tomas Reyd", "other": "Ana Korb"}
    merged = client.post(EDITS, json=merge)
    assert merged.status_code == 200, merged.text
    (edit,) = client.get(EDITS).json()
    assert (edit["id"], edit["words"]) == (1, "Ana Korb is Tomas Reyd")
    assert client.delete(f"{EDITS}/1").json()["undone"]
    assert client.get(EDITS).json() == []
    assert [row["kind"] for row in get(client, "runs")] == ["undo", "edit"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"action": "split"}, 400),
        ({"new_name": " "}, 400),
        ({"new_name": "\u200b\u2003"}, 400),
        ({"new_name": "a\nb"}, 400),
        ({"kind": "\t"}, 400),
        ({"description": " \n "}, 400),
        ({"description": "x" * 900_000}, 422),
        ({"new_name": "x" * 5000}, 422),
    ],
)
def test_an_edit_without_fit_words_is_refused(
    client: httpx.Client, change: dict[str, str], status: int
) -> None:
    answer = client.post(EDITS, json={"action": "change", "name": "Tomas Reyd", **change})
    assert answer.status_code == status, answer.text


def test_an_edit_may_have_several_lines(start: Start) -> None:
    change = {"new_name": "Reyd, T.", "description": "An\nengineer."}
    answer = start().post(EDITS, json={"action": "change", "name": "Tomas Reyd", **change})
    assert answer.status_code == 200, answer.text


def test_feedback_is_a_question_set_and_goes_with_its_document(start: Start) -> None:
    client = start()
    rated = {
        "question": QUESTION,
        "answer": "Tomas Reyd [1]",
        "helpful": True,
        "documents": ["bridge"],
        "history": ["Orla Bridge?"],
        "generation": 1,
    }
    first = client.post(FEEDBACK, json=rated).json()
    again = client.post(FEEDBACK, json={**rated, "helpful": False, "note": "Ana Korb"}).json()
    assert (first["id"], first["helpful"], again["helpful"]) == (again["id"], True, False)
    client.post(FEEDBACK, json={**rated, "question": "When?", "documents": ["reyd"]})
    rows = client.get(FEEDBACK).json()
    assert [(row["question"], row["answers"], row["gold_documents"]) for row in rows] == [
        (QUESTION, ["Ana Korb"], []),
        ("When?", ["Tomas Reyd"], ["reyd"]),
    ]
    assert client.delete("/api/v1/documents/bridge").status_code == 200
    assert [row["question"] for row in client.get(FEEDBACK).json()] == ["When?"]
