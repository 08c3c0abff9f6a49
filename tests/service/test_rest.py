"""The interface under /api/v1: answers and their events, documents, the graph, reports and
generations.
"""

import json
from typing import Any

import httpx
import pytest

from flows.service.reading import paths_between
from storage.answer_records import Answer
from tests.flows.conftest import BRIDGE
from tests.server.client import Server
from tests.service.conftest import QUESTION, Start


def events_of(client: httpx.Client, body: dict[str, object]) -> list[tuple[str, Any]]:
    """The events of a streamed answer."""
    with client.stream("POST", "/api/v1/ask", json={**body, "stream": True}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        blocks = "".join(answer.iter_text()).strip().split("\n\n")
    rows = [block.split("\n") for block in blocks]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in rows
    ]


def test_an_answer_cites_characters_of_documents_that_can_be_read(start: Start) -> None:
    client = start()
    answer = Answer.model_validate(client.post("/api/v1/ask", json={"question": QUESTION}).json())
    assert "Tomas Reyd" in answer.answer
    cited = answer.citations[0]
    source = client.get(f"/api/v1/documents/{cited.document}").json()
    assert source["text"][cited.start : cited.end] == cited.quote
    assert {"document": "bridge", "start": 0, "end": len(BRIDGE), "heading": ""}.items() <= source[
        "spans"
    ][0].items()
    assert cited.chunk in {span["chunk"] for span in source["spans"]}
    found = client.post("/api/v1/retrieve", json={"question": QUESTION, "k": 1}).json()
    assert [passage["document"] for passage in found["passages"]] == ["bridge"]


def test_events_come_in_order_and_the_answer_is_the_last(start: Start) -> None:
    events = events_of(start(), {"question": QUESTION})
    steps = [data["step"] for name, data in events if name == "step" and data["state"] == "begins"]
    assert steps.index("rewrite") < steps.index("retrieve") < steps.index("answer")
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
    failed = events_of(client, {"question": "Who was Ana Korb?"})[-1]
    assert failed[0] == "error"
    assert failed[1].keys() == {"type", "message", "remedy"}


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"question": " "}, 422, "InvalidRequest"),
        ({"question": QUESTION, "colour": "red"}, 422, "InvalidRequest"),
        ({"question": QUESTION, "mode": "best"}, 400, "SettingsError"),
        ({"question": QUESTION, "where": "year >="}, 400, "FilterError"),
        ({"question": QUESTION, "documents": ["bridg"]}, 404, "UnknownDocument"),
        ({"question": QUESTION, "as_of": 9}, 404, "UnknownGeneration"),
        ({"question": QUESTION, "where": "year > 2100"}, 400, "NothingMatches"),
    ],
)
def test_what_cannot_be_asked_is_told_with_a_remedy(
    body: dict[str, object], status: int, kind: str, start: Start
) -> None:
    client = start()
    answer = client.post("/api/v1/ask", json=body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)
    if status != 422:  # where the answer has begun, the error is its last event
        assert events_of(client, body)[-1][1] == answer.json()["error"]


def test_the_graph_is_read_from_all_sides(start: Start) -> None:
    client = start()

    def get(path: str, **query: object) -> Any:
        answer = client.get(f"/api/v1/{path}", params=query)  # type: ignore[arg-type]
        assert answer.status_code == 200, answer.text
        return answer.json()

    assert [row["id"] for row in get("documents", q="orla")["documents"]] == ["bridge"]
    assert get("documents", limit=1, offset=1)["total"] == 3
    entity = get("entities", q="reyd")["entities"][0]
    assert entity["name"] == "Tomas Reyd"
    (view,) = get("entity", name="Tomas Reyd")["entities"]
    assert view["id"] == entity["id"]
    assert entity["id"] in {node["id"] for node in get("picture", name=entity["id"])["nodes"]}
    (first, *_) = get("paths", first="Orla Bridge", second="Velin")["paths"]
    assert (first["entities"][0], first["entities"][-1]) == ("Orla Bridge", "Velin")
    quote = first["steps"][0]["statements"][0]
    assert (
        get(f"documents/{quote['document']}")["text"][quote["start"] : quote["end"]]
        == quote["quote"]
    )
    for report in get("reports"):
        assert get(f"reports/{report['community']}")["findings"]
    assert {row["community"] for row in get("reports")} <= {row["id"] for row in get("communities")}
    assert (
        "Velin" in client.get("/api/v1/entity", params={"name": "Velinn"}).json()["error"]["remedy"]
    )
    assert paths_between.__doc__  # the words of the interface are those of the functions


@pytest.mark.parametrize(
    "path",
    [
        "documents/bridg",
        "entity?name=Velinn",
        "neighbourhood?name=Velinn",
        "paths?first=Orla Bridge&second=Velinn",
        "picture?name=Velinn",
        "reports/cmt_none",
        "reports?as_of=9",
        "diff?before=9",
        "index-runs/run_none",
        "status?workspace=none",
        "entities?workspace=none",
    ],
)
def test_what_is_not_there_is_a_404_in_the_form_of_all_errors(path: str, start: Start) -> None:
    answer = start().get(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["error"].keys()) == (
        404,
        {"type", "message", "remedy"},
    )


def test_the_workspace_tells_of_itself(start: Start) -> None:
    client = start()
    assert client.get("/api/v1/workspaces").json() == ["default"]
    assert [row["number"] for row in client.get("/api/v1/generations").json()] == [1]
    assert client.get("/api/v1/dead-letters").json() == client.get("/api/v1/usage").json() == []
    assert client.get("/api/v1/status").json()["counts"]["documents"] == 3
    assert client.get("/api/v1/diff", params={"before": 1}).json()["documents"]["unchanged"] == 3
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/api/v1/ask", "/api/v1/documents/{document}", "/v1/chat/completions"} <= paths.keys()
    counted = client.get("/metrics").text
    assert (
        'trellis_requests_total{method="GET",route="/api/v1/generations",status="200"} 1.0'
        in counted
    )


def test_a_workspace_without_an_index_says_how_to_begin(start: Start, workspace: Any) -> None:
    client = start(workspaces={"empty": workspace.parent / "empty"})
    asked = client.post("/api/v1/ask", json={"question": QUESTION, "workspace": "empty"})
    assert (asked.status_code, asked.json()["error"]["type"]) == (404, "NoGeneration")
    for _ in range(1000):
        if (ready := client.get("/ready")).status_code == 200:
            break
    assert ready.json() == {"status": "ready", "empty": ["empty"]}
    assert not (workspace.parent / "empty").exists()
