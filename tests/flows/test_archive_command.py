"""`trellis archive`, `restore` and `clean`: a workspace travels without secrets, and gives back room."""

import sqlite3
import tarfile
from pathlib import Path

import pytest

from flows.usage import size_in_words
from storage.workspace import Workspace
from tests.flows.conftest import KEY, ROWS, Command, write_rows
from tests.server.client import Server

QUESTION = "Who designed Orla Bridge?"


def test_a_restored_workspace_answers_and_goes_on(
    copied: Command, fresh: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_VECTOR_STORE", "chroma")
    before = copied("ask", QUESTION, "--json").json
    file = tmp_path / "kept.tar.gz"
    made = copied("archive", str(file), "--json").json
    assert (made["generation"], made["size_bytes"]) == (1, file.stat().st_size)
    restored = fresh("restore", str(file), "--json")
    assert (restored.code, restored.json["created"]) == (0, made["created"])
    after = fresh("ask", QUESTION, "--json").json
    assert (after["answer"], after["citations"]) == (before["answer"], before["citations"])
    assert list(fresh.workspace.glob("generations/*/chroma-*")), "the vectors are served as before"
    source = write_rows(tmp_path / "docs.jsonl", [{"id": "new", "text": "The Velin Ferry closed in 1950."}])
    assert fresh("index", str(source), "--json").json["generation"] == 2
    assert fresh("restore", str(file)).code == 2
    assert copied("archive", str(file)).code == 2


def test_an_archive_holds_no_key(
    fresh: Command, model_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_rows(tmp_path / "docs.jsonl", ROWS)
    assert fresh("index", str(source)).code == 0
    fresh("ask", QUESTION)
    monkeypatch.setenv("TRELLIS_LM_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("TRELLIS_MAX_ATTEMPTS", "1")
    assert fresh("ask", "How long is Orla Bridge?").code == 1  # what failed is in the history of runs, or nowhere
    assert fresh("archive", str(tmp_path / "kept.tar")).code == 0
    assert len(model_server.requests()) > 3
    assert KEY.encode() not in (tmp_path / "kept.tar").read_bytes()
    with tarfile.open(tmp_path / "kept.tar") as archive:
        assert {"LOCK", "IDENTITY", "limits.sqlite"} & {Path(name).name for name in archive.getnames()} == set()


def test_status_tells_sizes_and_what_a_clean_up_frees(copied: Command, tmp_path: Path) -> None:
    for number in range(2):
        more = write_rows(tmp_path / "more.jsonl", [{"id": "new", "text": f"Note {number} names Velin."}])
        assert copied("index", str(more)).code == 0
    sizes = copied("status", "--json").json["sizes"]
    assert [one["goes"] for one in sizes["generations"]] == [False] * 3
    assert {one["name"] for one in sizes["database"]} == {"memory", "model answers", "embeddings", "runs"}
    shown = copied("status").out
    assert f"generation 3 {size_in_words(sizes['generations'][2]['size_bytes'])}" in " ".join(shown.split())
    with Workspace(copied.workspace).read(1):
        assert copied("clean", "--keep", "1", "--json").json["removed"] == [2]
    with Workspace(copied.workspace).write():
        locked = copied("clean", "--json")
    assert (locked.code, locked.json["error"]["type"]) == (4, "WorkspaceLocked")
    cleaned = copied("clean", "--keep", "1", "--json").json
    assert (cleaned["removed"], cleaned["freed_bytes"] > 100_000) == ([1], True)
    assert copied("ask", QUESTION, "--json").json["generation"] == 3
    copied("clean")  # what the question wrote may be packed
    assert copied("clean").out.startswith("Removed no generation; freed 0.0 MB")


def test_caches_are_cleaned_only_when_asked(copied: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def embedded(file: Path) -> int:
        with sqlite3.connect(file) as connection:
            return int(connection.execute("SELECT count(*) FROM cache").fetchone()[0])

    assert copied("clean").code == 0
    assert embedded(copied.workspace / "side.sqlite") > 0
    assert copied("clean", "--caches").code == 0
    assert embedded(copied.workspace / "side.sqlite") == 0
    monkeypatch.setenv("TRELLIS_CACHE_DIR", str(tmp_path / "cache"))
    assert copied("retrieve", QUESTION).code == 0
    assert [part["name"] for part in copied("status", "--json").json["caches"]] == ["embeddings"]
    assert embedded(tmp_path / "cache" / "caches.sqlite") == 1
    assert copied("clean", "--caches").code == 0
    assert embedded(tmp_path / "cache" / "caches.sqlite") == 0
