"""The page's files: sent with a strict policy, to who has no key too, and complete in both
languages.
"""

import re
from pathlib import Path

import httpx

from flows.service.page_files import FOLDER, PATHS
from tests.service.conftest import Start

SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.js")}


def test_who_has_no_key_gets_the_page_and_nothing_else(start: Start) -> None:
    client = start(keys=("somebody:ask:" + "0" * 64,))
    for path in PATHS:
        response = client.get(path)
        assert response.status_code == 200
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
    assert client.get("/api/v1/workspaces").status_code == 401
    for path in ("/..%2fapp.py", "/%2e%2e/app.py", "/page_files.py", "/.env"):
        assert client.get(path).status_code in {401, 404}


def test_nothing_is_loaded_from_elsewhere_and_no_text_becomes_html() -> None:
    for name, text in SCRIPTS.items():
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
        ), name
        assert not re.search(r"""(?:from|import\(|fetch\()\s*["'`]https?:""", text), name
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    style = (FOLDER / "style.css").read_text(encoding="utf-8")
    assert not re.search(r"https?:|//", page.replace("//", "", page.count("<!--")))
    assert not re.search(r"url\(|@import", style)
    assert "<script>" not in page


def test_every_word_is_there_in_english_and_chinese() -> None:
    words = dict(re.findall(r'^  "?([\w-]+)"?: \[(.*)\],$', SCRIPTS["words.js"], re.MULTILINE))
    for key, both in words.items():
        assert len(re.findall(r'"(?:[^"\\]|\\.)+"', both)) == 2, key
    used = {key for text in SCRIPTS.values() for key in re.findall(r'\bt\("([\w-]+)"', text)}
    assert used <= words.keys()
    assert len(words) > 150


def test_feedback_is_a_question_set_and_goes_with_its_document(
    start: Start, workspace: Path
) -> None:
    client = start()
    said = {
        "question": "Who designed it?",
        "answer": "Tomas Reyd [1]",
        "helpful": True,
        "documents": ["bridge"],
        "history": ["Orla Bridge?"],
        "generation": 1,
    }
    first = client.post("/api/v1/feedback", json=said).json()
    again = client.post(
        "/api/v1/feedback", json=said | {"helpful": False, "note": "Ana Korb"}
    ).json()
    assert (first["id"], first["helpful"], again["helpful"]) == (again["id"], True, False)
    client.post("/api/v1/feedback", json=said | {"question": "When?", "documents": ["reyd"]})
    rows = client.get("/api/v1/feedback").json()
    assert [(row["question"], row["answers"], row["gold_documents"]) for row in rows] == [
        ("Who designed it?", ["Ana Korb"], []),
        ("When?", ["Tomas Reyd"], ["reyd"]),
    ]
    assert client.delete("/api/v1/documents/bridge").status_code == 200
    assert [row["question"] for row in client.get("/api/v1/feedback").json()] == ["When?"]


def test_a_picture_has_a_place_for_every_entity(start: Start) -> None:
    client = start()
    whole = client.get("/api/v1/picture").json()
    assert not whole["cut"]
    names = {node["name"]: node for node in whole["nodes"]}
    assert {"Orla Bridge", "Tomas Reyd"} <= names.keys()
    assert all(0 <= node["x"] <= 1 and 0 <= node["y"] <= 1 for node in whole["nodes"])
    assert len({(node["x"], node["y"]) for node in whole["nodes"]}) == len(whole["nodes"])
    ids = {node["id"] for node in whole["nodes"]}
    assert all(edge["source"] in ids and edge["target"] in ids for edge in whole["edges"])
    assert whole == client.get("/api/v1/picture").json()
    small = client.get("/api/v1/picture", params={"name": "Orla Bridge", "most": 2}).json()
    assert (len(small["nodes"]), small["cut"]) == (2, True)
    unknown = client.get("/api/v1/picture", params={"name": "Orla Bridges"})
    assert (unknown.status_code, "Orla Bridge" in unknown.json()["error"]["remedy"]) == (404, True)


def test_corrections_are_made_listed_and_undone_by_who_may(start: Start) -> None:
    client: httpx.Client = start()
    merged = client.post(
        "/api/v1/edits", json={"action": "merge", "name": "Tomas Reyd", "other": "Ana Korb"}
    )
    assert merged.status_code == 200, merged.text
    (edit,) = client.get("/api/v1/edits").json()
    assert (edit["id"], edit["words"]) == (1, "Ana Korb is Tomas Reyd")
    wrong = client.post("/api/v1/edits", json={"action": "split", "name": "Tomas Reyd"})
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (400, "UsageError")
    assert client.delete("/api/v1/edits/1").json()["undone"]
    assert client.get("/api/v1/edits").json() == []
    assert [row["kind"] for row in client.get("/api/v1/runs").json()] == ["undo", "edit"], (
        "what changes the index by hand is told in its history"
    )
