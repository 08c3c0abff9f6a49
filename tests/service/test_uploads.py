"""What was forgotten is nowhere in the uploads, whatever it was; and what a kill has cut is
removed.
"""

import asyncio
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
import pytest

from flows.cli.command import main
from flows.service.access import RequestLimits
from storage.errors import DiskFull, UsageError
from storage.uploads import remove_parts, store_upload
from tests.faults.disk import full
from tests.patience import PATIENCE, wait_for
from tests.service.conftest import Start, client_of, keys_of

DOCUMENTS = "/api/v1/documents"
SECRET = "Quillon Tower was designed by Peta Lorne."
OTHER = "Xanten Gate was designed by Ulla Krantz."
LINES = [
    {"id": "one", "text": SECRET},
    {"text": OTHER},
    {"s": "Zed Hall", "p": "was built by", "o": "Yam Oro", "document": "facts"},
]
JSON_LINES = "".join(json.dumps(row) + "\n" for row in LINES)


def words_in(folder: Path) -> str:
    """The bytes of all files below, as text."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


class Case(NamedTuple):
    """An upload, a document of it, a name that goes with that, and one that stays."""

    name: str
    content: str
    document: str
    gone: str
    stays: str


TABLE = 's,p,o,document\nZed,"built\nby",Yam Oro,facts\nUlla Krantz,met,Bo,b\n'
CASES = (
    Case("a.jsonl", JSON_LINES, "one", "Peta Lorne", "Ulla Krantz"),
    Case("a.jsonl", JSON_LINES, "a.jsonl#2", "Ulla Krantz", "Peta Lorne"),
    Case("a.jsonl", JSON_LINES, "facts", "Yam Oro", "Peta Lorne"),
    Case("a.json", json.dumps(LINES), "one", "Peta Lorne", "Ulla Krantz"),
    Case("a.csv", TABLE, "facts", "Yam Oro", "Ulla Krantz"),
    Case("a/b.txt", SECRET, "a/b.txt", "Peta Lorne", ""),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{case.document}")
def test_a_forgotten_row_leaves_its_upload(
    start: Start, workspace: Path, capsys: pytest.CaptureFixture[str], case: Case
) -> None:
    name, content, document, gone, stays = case
    client, uploads, folder = start(), workspace / "uploads", ["--workspace", str(workspace)]
    assert (
        client.put(f"{DOCUMENTS}/{name}?index=false", content=content.encode()).status_code == 202
    )
    assert main(["index", str(uploads), *folder]) == 0
    report = client.delete(f"{DOCUMENTS}/{document.replace('#', '%23')}")
    assert (report.status_code, report.json()["uploads"]) == (200, [name]), report.text
    left = words_in(uploads)
    assert (gone in left, stays in left, gone in words_in(workspace)) == (False, True, False)
    if stays:
        capsys.readouterr()
        main(["index", str(uploads), "--json", *folder])
        counts = json.loads(capsys.readouterr().out)["documents"]
        assert (counts["removed"], counts["changed"], counts["added"]) == (0, 0, 0)


@pytest.mark.parametrize("name", ["later.txt", "x/unread.zip", "broken.pdf", "rows.jsonl"])
def test_an_upload_that_was_never_read_is_deleted(start: Start, workspace: Path, name: str) -> None:
    client = start()
    client.put(f"{DOCUMENTS}/{name}?index=false", content=JSON_LINES.encode())
    report = client.delete(f"{DOCUMENTS}/{name}")
    assert (report.status_code, report.json()["uploads"]) == (200, [name])
    assert list((workspace / "uploads").iterdir()) == []
    assert client.delete(f"{DOCUMENTS}/{name}").status_code == 404


def test_a_name_is_one_however_it_is_spelt(start: Start, workspace: Path) -> None:
    client = start()
    for form in ("NFC", "NFD"):
        client.put(
            f"{DOCUMENTS}/{unicodedata.normalize(form, 'Müller.md')}?index=false",
            content=SECRET.encode(),
        )
    assert len(list((workspace / "uploads").iterdir())) == 1
    assert (
        client.delete(f"{DOCUMENTS}/{unicodedata.normalize('NFD', 'Müller.md')}").status_code == 200
    )
    assert list((workspace / "uploads").iterdir()) == []


def test_the_name_of_a_file_stands_for_its_rows(start: Start, workspace: Path) -> None:
    client = start()
    client.put(f"{DOCUMENTS}/rows.jsonl?index=false", content=JSON_LINES.encode())
    assert main(["index", str(workspace / "uploads"), "--workspace", str(workspace)]) == 0
    report = client.delete(f"{DOCUMENTS}/rows.jsonl").json()
    assert sorted(report["documents"]) == ["facts", "one", "rows.jsonl#2"]
    assert not [
        name for name in ("Peta Lorne", "Ulla Krantz", "Yam Oro") if name in words_in(workspace)
    ]
    assert client.get(DOCUMENTS).json()["total"] == 3, "what was there before"


def test_files_that_quote_what_is_forgotten_are_named(
    start: Start, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "q.txt").write_text(SECRET)
    assert main(["index", str(tmp_path / "docs"), "--workspace", str(workspace)]) == 0
    (workspace / "tailoring.toml").write_text(
        '[tailoring]\npersona = "an engineer of Quillon Tower"\n'
    )
    report = start().delete(f"{DOCUMENTS}/q.txt").json()
    assert report["files"] == [str(tmp_path / "docs" / "q.txt"), str(workspace / "tailoring.toml")]


def test_an_upload_is_deleted_where_nothing_is_indexed(tmp_path: Path) -> None:
    folder = tmp_path / "ws" / "uploads"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text(SECRET)
    assert main(["forget", "a.txt", "--workspace", str(tmp_path / "ws")]) == 0
    assert main(["forget", "b.txt", "--workspace", str(tmp_path / "ws")]) == 2
    assert list(folder.iterdir()) == []


# --- parts ----------------------------------------------------------------------------------------

_CUT = """
import asyncio, sys
from pathlib import Path
from storage.uploads import store_upload
async def pieces():
    yield b"some of it"
    print("begun", flush=True)
    await asyncio.sleep(3600)
asyncio.run(store_upload(Path(sys.argv[1]), "a/b.txt", pieces()))
"""


@pytest.mark.parametrize("command", [["index", "SOURCE"], ["clean"], ["forget", "reyd"], ["serve"]])
def test_parts_that_a_kill_left_are_removed(
    workspace: Path, start: Start, command: list[str]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _CUT, str(workspace)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": "."},
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert remove_parts(workspace) == 0, "it is under way"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert list((workspace / "uploads").rglob(".part-*"))
    source = str(workspace.parent / "rows.jsonl")
    Path(source).write_text(json.dumps({"id": "x", "text": "A text."}) + "\n")
    if command == ["serve"]:
        assert start().get("/health").status_code == 200
    else:
        main(
            [{"SOURCE": source}.get(word, word) for word in command]
            + ["--workspace", str(workspace)]
        )
    assert list((workspace / "uploads").rglob("*")) == []


@pytest.mark.parametrize("name", ["a", "a/b/c", "a/b"])
def test_a_file_and_a_folder_have_not_one_name(tmp_path: Path, name: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"text"

    (tmp_path / "uploads" / "a").mkdir(parents=True)
    (
        (tmp_path / "uploads" / "a" / "b").mkdir()
        if name == "a/b"
        else (tmp_path / "uploads" / "a" / "b").write_text("x")
    )
    with pytest.raises(UsageError, match="stands where a folder stands"):
        asyncio.run(store_upload(tmp_path, name, pieces()))
    assert not list((tmp_path / "uploads").rglob(".part-*"))


# --- two texts under one id -----------------------------------------------------------------------


def test_an_upload_does_not_replace_a_document_of_a_source(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "zz").mkdir()  # sorts behind `ws`: the order in which sources are named decides
    (tmp_path / "zz" / "a.txt").write_text(SECRET)
    uploads, folder = workspace / "uploads", ["--workspace", str(workspace)]
    assert main(["index", str(tmp_path / "zz"), *folder]) == 0
    (key, *_), rows = keys_of("edit")
    with client_of(workspace, key, keys=rows) as client:
        refused = client.put(f"{DOCUMENTS}/a.txt?index=false", content=OTHER.encode())
        assert (refused.status_code, refused.json()["error"]["type"]) == (409, "Taken")
        assert not uploads.exists()
        row = json.dumps({"id": "a.txt", "text": OTHER})
        assert (
            client.put(f"{DOCUMENTS}/rows.jsonl?index=false", content=row.encode()).status_code
            == 202
        )
        assert main(["index", str(tmp_path / "zz"), str(uploads), *folder]) == 0
        assert client.get(f"{DOCUMENTS}/a.txt").json()["text"] == SECRET
        (letter,) = client.get("/api/v1/dead-letters").json()
        assert "has another text already" in letter["error"]
        report = client.delete(f"{DOCUMENTS}/a.txt").json()
    assert report["files"] == [str(tmp_path / "zz" / "a.txt")]


# --- slow clients ---------------------------------------------------------------------------------

HEAD = (
    b"PUT /api/v1/documents/a.txt?index=false HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length:"
    b" 100000\r\n\r\n"
)


def connected(client: httpx.Client) -> socket.socket:
    """A connection that has begun an upload."""
    place = urlsplit(str(client.base_url))
    connection = socket.create_connection((place.hostname, place.port), timeout=PATIENCE)
    connection.sendall(HEAD + b"some of it")
    return connection


def test_a_client_that_drips_is_told_and_leaves_nothing(start: Start, workspace: Path) -> None:
    client = start(limits=RequestLimits(upload_bytes=10**6, piece_seconds=1))
    with connected(client) as dripping:
        while not select.select([dripping], [], [], 0.1)[0]:
            dripping.sendall(b"x")
        assert dripping.recv(65536).startswith(b"HTTP/1.1 408")
    assert list((workspace / "uploads").rglob("*")) == []


def test_a_client_that_leaves_is_no_fault_of_ours(
    start: Start, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = start()
    with caplog.at_level(logging.INFO, "trellis.service"):
        connected(client).close()
        wait_for(
            lambda: [
                row for row in caplog.records if getattr(row, "fields", {}).get("status") == 499
            ],
            "its end",
        )
    assert not [row for row in caplog.records if row.levelno >= logging.WARNING]
    assert list((workspace / "uploads").rglob("*")) == []


def test_an_upload_that_finds_no_room_leaves_the_one_before(tmp_path: Path) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"text" * 100_000

    (tmp_path / "uploads").mkdir()
    (tmp_path / "uploads" / "a.txt").write_text("before")
    with full(), pytest.raises(DiskFull):
        asyncio.run(store_upload(tmp_path, "a.txt", pieces()))
    assert words_in(tmp_path) == "before"
