"""What failed is kept, told and tried again, also where its source is gone; a passage is never
silently read as empty.

Regressions of others' behaviour: a chunk whose extraction fails becomes empty rows and the run goes
on; a model that only thinks, or slips in form, gives 0 entities and the document counts as
processed.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from storage.records import DeadLetter
from storage.workspace import Workspace
from tests.flows.conftest import PEOPLE, Command, row
from tests.server.client import Server
from tests.workspaces import write_rows

pytestmark = pytest.mark.usefixtures("unembedded")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return Path(write_rows(tmp_path / "docs.jsonl", [row(number) for number in range(12)]))


def letters(trellis: Command) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = trellis("dead-letter", "--json").json
    return found


def mentions(trellis: Command, document: str) -> set[str]:
    """The names that the graph has from a document."""
    with Workspace(trellis.workspace).read() as generation:
        chunks = [chunk.id for chunk in generation.documents.chunks(documents=[document])]
        return {
            one.name
            for found in generation.extractions.extractions(chunks)
            for one in found.mentions
        }


def test_an_empty_list_for_a_long_passage_is_asked_again_with_what_it_overlooks(
    model_server: Server, fresh: Command, docs: Path
) -> None:
    model_server.misbehave({"step": "extract", "nth": 3, "kind": "nothing"})
    report = fresh("index", str(docs), "--json").json
    assert report["dead_letters"] == 0
    assert model_server.calls() == 13
    asked = [one for one in model_server.requests() if "lists no entity" in json.dumps(one)]
    assert len(asked) == 1
    assert any(name in json.dumps(asked).partition("lists no entity")[2] for name in PEOPLE)


def test_what_failed_is_listed_with_its_document_and_remedy(
    model_server: Server, fresh: Command, docs: Path
) -> None:
    docs.write_text(docs.read_text() + '{"neither": "text nor triple"}\n')
    model_server.misbehave({"step": "extract", "text": "in 1905", "kind": "refusal"})
    fresh("index", str(docs))
    extract, load = letters(fresh)
    assert set(extract) == {*DeadLetter.model_fields, "document"}
    assert [(letter["step"], letter["document"]) for letter in (extract, load)] == [
        ("extract", "d5"),
        ("load", None),
    ]
    told = fresh("dead-letter").out
    for part in (
        extract["item"],
        "of d5",
        extract["error"],
        extract["remedy"],
        load["item"],
        "--retry",
        "trellis index",
    ):
        assert part in told
    assert fresh("dead-letter", "--retry", "--as-of", "1").code == 2
    model_server.misbehave()
    done = fresh("dead-letter", "--retry", "--json")
    assert (done.code, done.json["tried"], done.json["succeeded"]) == (0, 1, 1)
    assert done.json["waiting"][0]["item"].endswith("docs.jsonl:13"), (
        "what could not be read waits for its source"
    )
    assert "trellis index" in fresh("dead-letter", "--retry").out


def test_a_retry_does_what_failed_and_nothing_else_without_the_source(
    model_server: Server, fresh: Command, docs: Path
) -> None:
    fresh("index", str(docs))
    with Workspace(fresh.workspace).read() as generation:
        whole = generation.graph.entities(), generation.graph.relations()
    shutil.rmtree(fresh.workspace)
    model_server.misbehave({"step": "extract", "text": "in 1905", "kind": "refusal"})
    fresh("index", str(docs))
    docs.unlink()
    model_server.misbehave()
    model_server.reset()
    done = fresh("dead-letter", "--retry", "--json")
    assert done.code == 0
    report = done.json
    assert (report["tried"], report["succeeded"], report["published"], report["generation"]) == (
        1,
        1,
        True,
        2,
    )
    assert (report["failed"], report["waiting"]) == ([], [])
    assert model_server.calls() == 1
    assert letters(fresh) == []
    with Workspace(fresh.workspace).read() as generation:
        assert (generation.graph.entities(), generation.graph.relations()) == whole
    assert fresh("status", "--json").json["runs"][0]["kind"] == "retry"


def test_what_fails_again_stays_and_keeps_nothing_out(
    model_server: Server,
    fresh: Command,
    docs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = [{"step": "extract", "text": f"in {year}", "kind": "refusal"} for year in (1903, 1905)]
    model_server.misbehave(*broken)
    gate = fresh("index", str(docs), "--json")
    assert (gate.code, gate.json["error"]["type"]) == (
        5,
        "FailureGate",
    ), "two of twelve are more than a tenth"
    assert fresh("dead-letter").code == 2, "nothing was published"
    monkeypatch.setenv("TRELLIS_FAILURE_LIMIT", "1.5")
    assert fresh("index", str(docs)).code == 2
    monkeypatch.setenv("TRELLIS_FAILURE_LIMIT", "0.5")
    assert fresh("index", str(docs), "--json").json["dead_letters"] == 2
    assert not fresh("index", str(docs), "--json").json["published"], "what fails again is no news"
    monkeypatch.delenv("TRELLIS_FAILURE_LIMIT")
    new = write_rows(tmp_path / "new.jsonl", [row(20)])
    report = fresh("index", str(new), "--json").json
    assert (report["published"], report["dead_letters"], bool(mentions(fresh, "d20"))) == (
        True,
        2,
        True,
    )
    model_server.misbehave(broken[0])
    again = fresh("dead-letter", "--retry", "--json")
    assert (again.code, again.json["succeeded"], again.json["published"]) == (1, 1, True)
    assert [letter["document"] for letter in again.json["failed"]] == ["d3"]
    assert [letter["document"] for letter in letters(fresh)] == ["d3"]
    assert (mentions(fresh, "d3"), "Velin Town" in mentions(fresh, "d5")) == (set(), True)
    vain = fresh("dead-letter", "--retry", "--json")
    assert (vain.code, vain.json["published"], vain.json["generation"]) == (
        1,
        False,
        again.json["generation"],
    )
    assert "0 of 1 succeeded: generation" in fresh("dead-letter", "--retry").out


def test_nothing_indexed_and_nothing_failed_are_told(fresh: Command, trellis: Command) -> None:
    assert fresh("dead-letter", "--retry").code == 2
    assert "Nothing failed" in trellis("dead-letter").out


BRIDGE = (
    "Orla Bridge was designed by Tomas Reyd. Orla Bridge is {} metres long. It stands in Velin near"
    " Holm Light."
)


def index(trellis: Command, *arguments: object) -> Any:
    done = trellis("index", *map(str, arguments), "--json")
    assert done.code == 0, done.err
    return done.json
