"""Uploads: what is forgotten leaves them, interrupted ones are removed, none replaces a source."""

import asyncio
import json
import logging
import os
import select
import signal
import subprocess
import sys
import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from flows.cli.command import main
from flows.service.access import RequestLimits
from storage.errors import DiskFull, UsageError
from storage.uploads import remove_parts, store_upload
from tests.faults.disk import full
from tests.patience import wait_for
from tests.service.conftest import DOCUMENTS, Start, client_of, connected, keys_of, refused

SECRET = "Quillon Tower was designed by Peta Lorne."
OTHER = "Xanten Gate was designed by Ulla Krantz."
LINES = [
    {"id": "one", "text": SECRET},
    {"text": OTHER},
    {"s": "Zed Hall", "p": "was built by", "o": "Yam Oro", "document": "facts"},
]
JSON_LINES = "".join(json.dumps(row) + "\n" for row in LINES)
TABLE = 's,p,o,document\nZed,"built\nby",Yam Oro,facts\nUlla Krantz,met,Bo,b\n'


def words_in(folder: Path) -> str:
    """The bytes of all files below a folder, as text."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def put(client: httpx.Client, name: str, content: str) -> None:
    answer = client.put(f"{DOCUMENTS}/{name}?index=false", content=content.encode())
    assert answer.status_code == 202, answer.text


def index(workspace: Path, *sources: Path) -> None:
    assert main(["index", *map(str, sources), "--workspace", str(workspace)]) == 0


async def chunks_of(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


# --- forgetting ---


class Case(NamedTuple):
    """An upload, a document of it, a name that goes with that, and one that stays."""

    name: str
    content: str
    document: str
    gone: str
    stays: str


CASES = (
    Case("a.jsonl", JSON_LINES, "one", "Peta Lorne", "Ulla Krantz"),
    Case("a.jsonl", JSON_LINES, "a.jsonl#2", "Ulla Krantz", "Peta Lorne"),
    Case("a.jsonl", JSON_LINES, "facts", "Yam Oro", "Peta Lorne"),
    Case("a.json", json.dumps(LINES), "one", "Peta Lorne", "Ulla Krantz"),
    Case("a.csv", TABLE, "facts", "Yam Oro", "Ulla Krantz"),
    Case("mac.csv", TABLE.replace("\n", "\r"), "facts", "Yam Oro", "Ulla Krantz"),
    Case("a/b.txt", SECRET, "a/b.txt", "Peta Lorne", ""),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{case.document}")
def test_a_forgotten_row_leaves_its_upload(
    start: Start, workspace: Path, capsys: pytest.CaptureFixture[str], case: Case
) -> None:
    client, uploads = start(), workspace / "uploads"
    put(client, case.name, case.content)
    index(workspace, uploads)
    report = client.delete(f"{DOCUMENTS}/{case.document.replace('#', '%23')}")
    assert (report.status_code, report.json()["uploads"]) == (200, [case.name]), report.text
    left = words_in(uploads)
    assert (case.gone in left, case.stays in left) == (False, True)
    assert case.gone not in words_in(workspace)
    if case.stays:  # the other rows are unchanged
        capsys.readouterr()
        main(["index", str(uploads), "--json", "--workspace", str(workspace)])
        counts = json.loads(capsys.readouterr().out)["documents"]
        assert (counts["removed"], counts["changed"], counts["added"]) == (0, 0, 0)


@pytest.mark.parametrize("name", ["later.txt", "x/unread.zip", "broken.pdf", "rows.jsonl"])
def test_an_upload_that_was_never_read_is_deleted(start: Start, workspace: Path, name: str) -> None:
    client = start()
    put(client, name, JSON_LINES)
    report = client.delete(f"{DOCUMENTS}/{name}")
    assert (report.status_code, report.json()["uploads"]) == (200, [name])
    assert list((workspace / "uploads").iterdir()) == []
    assert client.delete(f"{DOCUMENTS}/{name}").status_code == 404


def test_a_name_has_one_upload_in_any_spelling(start: Start, workspace: Path) -> None:
    client = start()
    composed, decomposed = (unicodedata.normalize(form, "Müller.md") for form in ("NFC", "NFD"))
    for name in (composed, decomposed):
        put(client, name, SECRET)
    assert len(list((workspace / "uploads").iterdir())) == 1
    assert client.delete(f"{DOCUMENTS}/{decomposed}").status_code == 200
    assert list((workspace / "uploads").iterdir()) == []


def test_the_name_of_a_file_stands_for_its_rows(start: Start, workspace: Path) -> None:
    client = start()
    put(client, "rows.jsonl", JSON_LINES)
    index(workspace, workspace / "uploads")
    report = client.delete(f"{DOCUMENTS}/rows.jsonl").json()
    assert sorted(report["documents"]) == ["facts", "one", "rows.jsonl#2"]
    left = words_in(workspace)
    assert not [name for name in ("Peta Lorne", "Ulla Krantz", "Yam Oro") if name in left]
    assert client.get(DOCUMENTS).json()["total"] == 3


def test_files_that_quote_a_forgotten_text_are_named(
    start: Start, workspace: Path, tmp_path: Path
) -> None:
    file, tailoring = tmp_path / "docs" / "q.txt", workspace / "tailoring.toml"
    file.parent.mkdir()
    file.write_text(SECRET)
    index(workspace, file.parent)
    tailoring.write_text('[tailoring]\npersona = "an engineer of Quillon Tower"\n')
    report = start().delete(f"{DOCUMENTS}/q.txt").json()
    assert report["files"] == [str(file), str(tailoring)]


def test_an_upload_is_deleted_where_nothing_is_indexed(tmp_path: Path) -> None:
    folder = tmp_path / "ws" / "uploads"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text(SECRET)
    assert main(["forget", "a.txt", "--workspace", str(tmp_path / "ws")]) == 0
    assert main(["forget", "b.txt", "--workspace", str(tmp_path / "ws")]) == 2
    assert list(folder.iterdir()) == []


# --- storing ---

INTERRUPTED = """
import asyncio, sys
from pathlib import Path
from storage.uploads import store_upload
async def pieces():
    yield b"some of it"
    print("begun", flush=True)
    await asyncio.Event().wait()
asyncio.run(store_upload(Path(sys.argv[1]), "a/b.txt", pieces()))
"""


@pytest.mark.parametrize("command", [["index", "SOURCE"], ["clean"], ["forget", "reyd"], ["serve"]])
def test_parts_of_a_killed_upload_are_removed(
    workspace: Path, start: Start, command: list[str]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(workspace)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": "."},
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert remove_parts(workspace) == 0, "an unfinished upload stays"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert list((workspace / "uploads").rglob(".part-*"))
    source = workspace.parent / "rows.jsonl"
    source.write_text(json.dumps({"id": "x", "text": "A text."}) + "\n")
    if command == ["serve"]:
        assert start().get("/health").status_code == 200
    else:
        words = [str(source) if word == "SOURCE" else word for word in command]
        main([*words, "--workspace", str(workspace)])
    assert list((workspace / "uploads").rglob("*")) == []


@pytest.mark.parametrize("name", ["a", "a/b/c", "a/b"])
def test_a_file_and_a_folder_cannot_share_a_name(tmp_path: Path, name: str) -> None:
    there = tmp_path / "uploads" / "a" / "b"
    there.parent.mkdir(parents=True)
    if name == "a/b":
        there.mkdir()
    else:
        there.write_text("x")
    with pytest.raises(UsageError, match="stands where a folder stands"):
        asyncio.run(store_upload(tmp_path, name, chunks_of(b"text")))
    assert not list((tmp_path / "uploads").rglob(".part-*"))


def test_a_full_disk_leaves_the_earlier_upload(tmp_path: Path) -> None:
    (tmp_path / "uploads").mkdir()
    (tmp_path / "uploads" / "a.txt").write_text("before")
    with full(), pytest.raises(DiskFull):
        asyncio.run(store_upload(tmp_path, "a.txt", chunks_of(b"text" * 100_000)))
    assert words_in(tmp_path) == "before"


def test_a_form_is_not_a_file(start: Start, workspace: Path) -> None:
    answer = start().put(f"{DOCUMENTS}/a.txt?index=false", files={"file": b"text"})
    assert "curl -T" in refused(answer, 415, "NotAFile")["remedy"]
    assert not (workspace / "uploads").exists()


def test_an_upload_does_not_replace_a_document_of_a_source(workspace: Path, tmp_path: Path) -> None:
    source, uploads = tmp_path / "zz", workspace / "uploads"  # The order of paths decides.
    source.mkdir()
    (source / "a.txt").write_text(SECRET)
    index(workspace, source)
    (key, *_), rows = keys_of("edit")
    with client_of(workspace, key, keys=rows) as client:
        taken = client.put(f"{DOCUMENTS}/a.txt?index=false", content=OTHER.encode())
        refused(taken, 409, "Taken")
        assert not uploads.exists()
        put(client, "rows.jsonl", json.dumps({"id": "a.txt", "text": OTHER}))
        index(workspace, source, uploads)
        assert client.get(f"{DOCUMENTS}/a.txt").json()["text"] == SECRET
        (letter,) = client.get("/api/v1/dead-letters").json()
        assert "has another text already" in letter["error"]
        report = client.delete(f"{DOCUMENTS}/a.txt").json()
    assert report["files"] == [str(source / "a.txt")]


# --- slow clients ---

HEAD = f"PUT {DOCUMENTS}/a.txt?index=false HTTP/1.1\nHost: 127.0.0.1\nContent-Length: 99999\n\n"


def test_a_client_that_drips_is_refused_and_leaves_nothing(start: Start, workspace: Path) -> None:
    client = start(limits=RequestLimits(upload_bytes=10**6, piece_seconds=1))
    with connected(client, HEAD, b"some of it") as dripping:
        while not select.select([dripping], [], [], 0.1)[0]:
            dripping.sendall(b"x")
        assert dripping.recv(65536).startswith(b"HTTP/1.1 408")
    assert list((workspace / "uploads").rglob("*")) == []


def test_a_client_that_leaves_causes_no_warning(
    start: Start, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = start()

    def left() -> bool:
        fields = [getattr(row, "fields", {}) for row in list(caplog.records)]
        return any(row.get("status") == 499 for row in fields)

    with caplog.at_level(logging.INFO, "trellis.service"):
        connected(client, HEAD, b"some of it").close()
        wait_for(left, "the end of the request")
    assert not [row for row in caplog.records if row.levelno >= logging.WARNING]
    assert list((workspace / "uploads").rglob("*")) == []
