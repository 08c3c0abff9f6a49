"""Hostile files and names become documents, a reason or a dead letter; nothing escapes."""

import glob
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from storage.records import Document
from tasks.chunk import chunk_document
from tasks.load.sources import Loaded, compose, read_sources
from tests.hostile.made import MADE, SAMPLE, text_of
from tests.server.client import ROOT

TABLE = tomllib.loads(Path(__file__).with_name("documents.toml").read_text(encoding="utf-8"))
MOST_LETTERS = 1_001  # of one file


def content_of(case: dict[str, Any]) -> bytes:
    if "made" in case:
        return MADE[case["made"]]()
    return bytes.fromhex(case["hex"]) if "hex" in case else text_of(case["content"]).encode()


def sound(loaded: Loaded) -> list[Document]:
    """Compose and cut the documents; check that all of them can be stored and shown."""
    assert len(loaded.dead_letters) <= MOST_LETTERS
    documents = compose(loaded.parts)
    for document in documents:
        repr(document).encode()
        places = [(part.source, part.path) for part in document.parts]
        json.dumps([document.metadata, places], allow_nan=False, ensure_ascii=False).encode()
        assert not any(sign < " " and sign not in "\t\n" for sign in document.text + document.id)
        assert len(document.title) <= 500
        assert "root:" not in document.text
        chunks = chunk_document(document, 600, 100)
        assert sum(len(chunk.text) for chunk in chunks) >= len("".join(document.text.split()))
    return documents


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["name"], marks=[pytest.mark.patient] * case.get("heavy", False))
        for case in TABLE["cases"]
    ],
)
def test_a_file(case: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / case["file"]).write_bytes(content_of(case))
    loaded = read_sources([tmp_path / "in"])
    documents, becomes = sound(loaded), case.get("becomes", "document")
    if becomes != "any":
        assert bool(loaded.skipped) == (becomes == "skipped")
        assert bool(loaded.dead_letters) == (becomes == "letter")
        assert bool(documents) == (becomes == "document") or becomes == "letter"
    said = [one.reason for one in loaded.skipped] + [one.error for one in loaded.dead_letters]
    assert "says" not in case or any(case["says"] in words for words in said)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize(
    "name",
    [os.fsencode(name) for name in TABLE["names"]] + list(map(bytes.fromhex, TABLE["names_hex"])),
)
def test_a_name(name: bytes, tmp_path: Path) -> None:
    file, folder = Path(tmp_path, os.fsdecode(name)), Path(tmp_path, "in " + os.fsdecode(name))
    folder.mkdir()
    for place in (file, folder / "a.md"):
        place.write_text("Orla Bridge opened in 1931.")
    (folder / "b.jsonl").write_text('{"text": "a"}\n{"s": "a", "p": "b", "o": "c"}')
    assert len(sound(read_sources([file]))) == 1
    assert len(sound(read_sources([f"{glob.escape(str(folder))}/*.md"]))) == 1
    documents = sound(read_sources([tmp_path]))
    assert len(documents) == 4
    assert not any(
        sign < " " or "\u202a" <= sign <= "\u202e"
        for document in documents
        for sign in document.id + document.title
    )


READ = """
import sys
from resource import RUSAGE_SELF, getrusage
from tasks.load.sources import read_sources
before = getrusage(RUSAGE_SELF).ru_maxrss
loaded = read_sources([sys.argv[1]])
taken = getrusage(RUSAGE_SELF).ru_maxrss - before
print(len(loaded.parts), taken, *(skipped.reason for skipped in loaded.skipped))
"""


@pytest.mark.patient
@pytest.mark.parametrize("member", ["word/document.xml", "word/media/image1.png"])
def test_an_office_file_of_more_than_a_gigabyte_is_not_unpacked(
    member: str, tmp_path: Path
) -> None:
    """Of 1.08 GB the program holds less than 64 MB at any time (ru_maxrss counts KiB)."""
    path = tmp_path / "a.docx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with zipfile.ZipFile(SAMPLE) as sample:
            for name in set(sample.namelist()) - {member}:
                archive.writestr(name, sample.read(name))
        with archive.open(member, "w") as stream:
            for _ in range(1_030):
                stream.write(b"<w:p/>  " * (1 << 17))
    command = [sys.executable, "-c", READ, str(path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    documents, kibibytes, reason = ended.stdout.split(maxsplit=2)
    assert (documents, "1 GiB when unpacked" in reason) == ("0", True)
    assert int(kibibytes) < 64 << 10
