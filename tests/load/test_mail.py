"""E-mails: their text, their headers, and every attachment as a document of its own."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from flows.index import IndexOptions, build_index
from flows.operations.forget import forget
from storage.records import Document
from tasks.load.sources import Loaded, compose, read_sources
from tests.workspaces import opened

ALTERNATIVE = "<p>The weir fee is <b>55</b> crowns.</p>"
HEADERS = {
    "from": "Ada Korb <ada@x.org>",
    "to": "桥梁 <b@x.org>",
    "date": "2026-03-03T10:00:00+01:00",
}


def message(subject: str = "Orla Bridge 报告", **headers: str) -> EmailMessage:
    made = EmailMessage()
    made["Subject"] = subject
    for name, text in headers.items():
        made[name] = text
    made.set_content("The weir fee is 55 crowns.\n")
    return made


def full_message() -> EmailMessage:
    made = message(
        From="Ada Korb <ada@x.org>", To="桥梁 <b@x.org>", Date="Tue, 3 Mar 2026 10:00:00 +0100"
    )
    made.add_alternative(ALTERNATIVE, subtype="html")
    made.add_attachment("port,fee\nVelin,120\n", subtype="csv", filename="../../fees.csv")
    made.add_attachment("port,fee\nOrla,5\n", subtype="csv", filename="fees.csv")
    made.add_attachment(b"\0\1", maintype="application", subtype="x-strange", filename="a.xyz")
    made.add_attachment('{"text": "Piers."}\n', subtype="x", filename="rows.jsonl")
    inner = message("Inner", From="b@x.org")
    inner.add_attachment("x = 1\n", filename="a.py")
    made.add_attachment(inner)
    return made


def load(folder: Path, content: bytes) -> tuple[Loaded, dict[str, Document]]:
    (folder / "m.eml").write_bytes(content)
    loaded = read_sources([folder])
    return loaded, {document.id: document for document in compose(loaded.parts)}


def test_a_mail_and_its_attachments_are_documents(tmp_path: Path) -> None:
    loaded, documents = load(tmp_path, full_message().as_bytes())
    assert {name: document.text for name, document in documents.items()} == {
        "m.eml": "# Orla Bridge 报告\n\nFrom: Ada Korb <ada@x.org>\nTo: 桥梁 <b@x.org>\n"
        "Date: Tue, 03 Mar 2026 10:00:00 +0100\n"
        "Attachments: fees.csv, fees (2).csv, a.xyz, rows.jsonl, attachment-5.eml\n\n"
        "The weir fee is 55 crowns.",
        "m.eml/fees.csv": "port | fee\nport: Velin | fee: 120",
        "m.eml/fees (2).csv": "port | fee\nport: Orla | fee: 5",
        "m.eml/rows.jsonl#1": "Piers.",
        "m.eml/attachment-5.eml": "# Inner\n\nFrom: b@x.org\nAttachments: a.py\n\n"
        "The weir fee is 55 crowns.",
        "m.eml/attachment-5.eml/a.py": "x = 1\n",
    }
    assert [one.reason for one in loaded.skipped] == ["a.xyz: unsupported type .xyz"]
    assert documents["m.eml"].metadata == HEADERS
    assert documents["m.eml/fees.csv"].metadata == {**HEADERS, "message": "m.eml"}
    assert documents["m.eml/attachment-5.eml"].metadata["from"] == "b@x.org"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (
            "From: 张三\nSubject: 桥\nContent-Type: text/plain; charset=gb2312\n\n"
            "奥拉桥于1931年通车。".encode("gb18030").decode("latin-1"),
            "# 桥\n\nFrom: 张三\n\n奥拉桥于1931年通车。",
        ),
        (
            "From: a\nContent-Type: text/html; charset=utf-8\n\n<p>One<p>Two",
            "From: a\n\nOne\n\nTwo",
        ),
        (
            "From: a\nContent-Type: multipart/mixed; boundary=lost\n\nWords of a broken mail",
            "From: a\n\nWords of a broken mail",
        ),
        (
            "Subject: =?utf-8?b?5qGl?=\nContent-Type: text/plain; charset=unheard-of\n\nOne",
            "# 桥\n\nOne",
        ),
    ],
)
def test_a_mail_is_read_in_its_encoding(raw: str, text: str, tmp_path: Path) -> None:
    assert load(tmp_path, raw.encode("latin-1"))[1]["m.eml"].text == text


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"just a note\n", "no e-mail"),
        (b"From: a\nContent-Type: multipart/encrypted\n\nx", "encrypted"),
        (b"From: a\nContent-Type: application/pkcs7-mime\n\nx", "encrypted"),
    ],
)
def test_what_is_no_readable_mail_is_skipped(raw: bytes, said: str, tmp_path: Path) -> None:
    (skipped,) = load(tmp_path, raw)[0].skipped
    assert skipped.reason.startswith(said)


def test_mails_within_mails_are_read_to_a_depth(tmp_path: Path) -> None:
    made = message("0")
    for depth in range(1, 15):
        outer = message(str(depth))
        outer.add_attachment(made)
        made = outer
    loaded, documents = load(tmp_path, made.as_bytes())
    assert len(documents) == 9
    assert [one.reason.rpartition(": ")[2] for one in loaded.skipped] == [
        "attached to more than 8 messages, one in the other"
    ]


async def test_a_changed_and_a_forgotten_mail_take_their_files_along(tmp_path: Path) -> None:
    runtime = opened(tmp_path / "ws")
    uploads = tmp_path / "ws" / "uploads"
    uploads.mkdir(parents=True)
    (uploads / "note.txt").write_text("The ferry leaves at noon.")
    (uploads / "m.eml").write_bytes(full_message().as_bytes())
    report = await build_index([uploads], IndexOptions(), runtime)
    assert report.documents.added == 7
    changed = full_message()
    changed.replace_header("Subject", "Orla Bridge")
    (uploads / "m.eml").write_bytes(changed.as_bytes())
    report = await build_index([uploads], IndexOptions(), runtime)
    assert (report.documents.changed, report.documents.removed) == (1, 0)
    report = await build_index([uploads], IndexOptions(), runtime)
    assert report.documents.unchanged == 7
    forgotten = await forget(["m.eml"], runtime)
    assert len(forgotten.documents) == 6
    assert not (uploads / "m.eml").exists()
