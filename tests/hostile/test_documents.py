"""Hostile files and names: each becomes documents, a reason or a dead letter; nothing escapes,
nothing is fetched.
"""

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
LETTERS = 1_001  # of one file, at most


def content_of(case: dict[str, Any]) -> bytes:
    if "made" in case:
        return MADE[case["made"]]()
    return bytes.fromhex(case["hex"]) if "hex" in case else text_of(case["content"]).encode()


def sound(loaded: Loaded) -> list[Document]:
    """The documents, which hold nothing that cannot be stored or shown, cut into passages."""
    assert len(loaded.dead_letters) <= LETTERS
    documents = compose(loaded.parts)
    for document in documents:
        repr(document).encode()
        json.dumps(
            [document.metadata, [part.source for part in document.parts]],
            allow_nan=False,
            ensure_ascii=False,
        ).encode()
        assert not any(sign < " " and sign not in "\t\n" for sign in document.text + document.id)
        assert len(document.title) <= 500
        assert "root:" not in document.text
        chunks = chunk_document(document, 600, 100)
        assert sum(len(chunk.text) for chunk in chunks) >= len("".join(document.text.split()))
    return documents


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, id=case["name"], marks=[pytest.mark.patient] if case.get("heavy") else []
        )
        for case in TABLE["cases"]
    ],
)
def test_a_file(case: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / case["file"]).write_bytes(content_of(case))
    loaded = read_sources([tmp_path / "in"])
    documents, becomes = sound(loaded), case.get("becomes", "document")
    told = [skipped.reason for skipped in loaded.skipped] + [
        letter.error for letter in loaded.dead_letters
    ]
    if becomes != "any":
        assert (bool(documents), bool(loaded.skipped)) in {
            "document": [(True, False)],
            "skipped": [(False, True)],
            "letter": [(True, False), (False, False)],
        }[becomes]
        assert bool(loaded.dead_letters) == (becomes == "letter")
    assert any(case.get("says", "") in words for words in told) or not case.get("says")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize(
    "name",
    [os.fsencode(name) for name in TABLE["names"]] + list(map(bytes.fromhex, TABLE["names_hex"])),
)
def test_a_name(name: bytes, tmp_path: Path) -> None:
    Path(tmp_path, os.fsdecode(name)).write_text("Orla Bridge opened in 1931.")
    folder = Path(tmp_path, "in " + os.fsdecode(name))
    folder.mkdir()
    (folder / "a.md").write_text("Orla Bridge opened in 1931.")
    for source in (folder, f"{glob.escape(str(folder))}/*.md", Path(tmp_path, os.fsdecode(name))):
        assert len(sound(read_sources([source]))) == 1
    (folder / "a.md").unlink()
    (document,) = sound(read_sources([tmp_path]))
    assert not any(
        sign < " " or "\u202a" <= sign <= "\u202e" for sign in document.id + document.title
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
def test_an_office_file_of_more_than_a_gigabyte_is_refused_unread(
    member: str, tmp_path: Path
) -> None:
    """1.08 GB unpacked, of which the program holds 64 MB at no time (ru_maxrss counts KiB)."""
    with zipfile.ZipFile(
        tmp_path / "a.docx", "w", zipfile.ZIP_DEFLATED, compresslevel=1
    ) as archive:
        with zipfile.ZipFile(SAMPLE) as sample:
            for name in set(sample.namelist()) - {member}:
                archive.writestr(name, sample.read(name))
        with archive.open(member, "w") as stream:
            for _ in range(1_030):
                stream.write(b"<w:p/>  " * (1 << 17))
    ended = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path / "a.docx")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    documents, kibibytes, reason = ended.stdout.split(maxsplit=2)
    assert (documents, "1 GiB when unpacked" in reason) == ("0", True)
    assert int(kibibytes) < 64 << 10
