"""What fails is kept, listed and retried, also without its source; no passage silently yields
nothing.

Other systems turn a failed extraction into empty rows and go on, or count a document as processed
although the model returned no entity.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from storage.records import DeadLetter
from storage.workspace import Workspace
from tests.flows.conftest import PEOPLE, Command, Ended, row
from tests.server.client import Server
from tests.workspaces import write_rows

pytestmark = pytest.mark.usefixtures("unembedded")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return Path(write_rows(tmp_path / "docs.jsonl", [row(number) for number in range(12)]))


def refusing(year: int) -> dict[str, object]:
    """The rule that refuses the passage of a year."""
    return {"step": "extract", "text": f"in {year}", "kind": "refusal"}


def letters(trellis: Command) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = trellis("dead-letter", "--json").json
    return found


def retried(trellis: Command) -> Ended:
    return trellis("dead-letter", "--retry", "--json")


def graph_of(trellis: Command) -> tuple[object, object]:
    with Workspace(trellis.workspace).read() as generation:
        return generation.graph.entities(), generation.graph.relations()


def mentions(trellis: Command, document: str) -> set[str]:
    """The names that the graph has from a document."""
    with Workspace(trellis.workspace).read() as generation:
        chunks = [chunk.id for chunk in generation.documents.chunks(documents=[document])]
        found = generation.extractions.extractions(chunks)
        return {mention.name for extraction in found for mention in extraction.mentions}


def test_an_empty_list_for_a_long_passage_is_asked_again(
    model_server: Server, fresh: Command, docs: Path
) -> None:
    model_server.misbehave({"step": "extract", "nth": 3, "kind": "nothing"})
    assert fresh("index", str(docs), "--json").json["dead_letters"] == 0
    assert model_server.calls() == 13
    requests = [json.dumps(one) for one in model_server.requests()]
    (again,) = [text for text in requests if "lists no entity" in text]
    assert any(name in again.partition("lists no entity")[2] for name in PEOPLE)


def test_a_failure_is_listed_with_document_and_remedy(
    model_server: Server, fresh: Command, docs: Path
) -> None:
    docs.write_text(docs.read_text() + '{"neither": "text nor triple"}\n')
    model_server.misbehave(refusing(1905))
    fresh("index", str(docs))
    extract, load = letters(fresh)
    assert set(extract) == {*DeadLetter.model_fields, "document"}
    assert (extract["step"], extract["document"]) == ("extract", "d5")
    assert (load["step"], load["document"]) == ("load", None)
    shown = fresh("dead-letter").out
    parts = [extract[key] for key in ("item", "error", "remedy")] + ["of d5", load["item"]]
    assert [part for part in [*parts, "--retry", "trellis index"] if part not in shown] == []
    assert fresh("dead-letter", "--retry", "--as-of", "1").code == 2
    model_server.misbehave()
    done = retried(fresh)
    assert (done.code, done.json["tried"], done.json["succeeded"]) == (0, 1, 1)
    assert done.json["waiting"][0]["item"].endswith("docs.jsonl:13"), "a broken row needs its file"
    assert "trellis index" in fresh("dead-letter", "--retry").out


def test_a_retry_without_the_source_does_only_what_failed(
    model_server: Server, fresh: Command, docs: Path
) -> None:
    fresh("index", str(docs))
    whole = graph_of(fresh)
    shutil.rmtree(fresh.workspace)
    model_server.misbehave(refusing(1905))
    fresh("index", str(docs))
    docs.unlink()
    model_server.misbehave()
    model_server.reset()
    done = retried(fresh)
    assert done.code == 0
    counts = {"tried": 1, "succeeded": 1, "published": True, "generation": 2}
    assert counts.items() <= done.json.items()
    assert (done.json["failed"], done.json["waiting"], letters(fresh)) == ([], [], [])
    assert model_server.calls() == 1
    assert graph_of(fresh) == whole
    assert fresh("status", "--json").json["runs"][0]["kind"] == "retry"


def test_too_many_failures_publish_nothing(
    model_server: Server, fresh: Command, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_server.misbehave(refusing(1903), refusing(1905))
    gate = fresh("index", str(docs), "--json")
    assert (gate.code, gate.json["error"]["type"]) == (5, "FailureGate")
    assert fresh("dead-letter").code == fresh("dead-letter", "--retry").code == 2
    monkeypatch.setenv("TRELLIS_FAILURE_LIMIT", "1.5")
    assert fresh("index", str(docs)).code == 2


def test_what_fails_again_stays_and_blocks_nothing(
    model_server: Server,
    fresh: Command,
    docs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model_server.misbehave(refusing(1903), refusing(1905))
    monkeypatch.setenv("TRELLIS_FAILURE_LIMIT", "0.5")
    assert fresh("index", str(docs), "--json").json["dead_letters"] == 2
    assert not fresh("index", str(docs), "--json").json["published"], "the same failures again"
    monkeypatch.delenv("TRELLIS_FAILURE_LIMIT")
    new = write_rows(tmp_path / "new.jsonl", [row(20)])
    report = fresh("index", str(new), "--json").json
    assert (report["published"], report["dead_letters"]) == (True, 2)
    assert mentions(fresh, "d20")
    model_server.misbehave(refusing(1903))
    again = retried(fresh)
    assert (again.code, again.json["succeeded"], again.json["published"]) == (1, 1, True)
    for failed in (again.json["failed"], letters(fresh)):
        assert [letter["document"] for letter in failed] == ["d3"]
    assert (mentions(fresh, "d3"), "Velin Town" in mentions(fresh, "d5")) == (set(), True)
    vain = retried(fresh)
    assert (vain.code, vain.json["published"]) == (1, False)
    assert vain.json["generation"] == again.json["generation"]
    assert "0 of 1 succeeded: generation" in fresh("dead-letter", "--retry").out


def test_without_failures_it_says_so(trellis: Command) -> None:
    assert "Nothing failed" in trellis("dead-letter").out
