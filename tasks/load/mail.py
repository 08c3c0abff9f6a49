"""Read an e-mail: its text below its headers, and its attachments as files of their own.

Of a text in several forms the plain one is read.
"""

import email
from collections.abc import Iterator
from email.message import EmailMessage, MIMEPart
from email.policy import default
from mimetypes import MimeTypes
from pathlib import PurePosixPath
from typing import NamedTuple

from storage.records import Scalar
from tasks.load.discover import printable
from tasks.load.encodings import Unreadable, decode
from tasks.load.text import PageText, clean, one_line, read_html, shortened

_SHOWN = ("From", "To", "Cc", "Date")
_TEXTS = frozenset({"text/plain", "text/html"})
_SEALED = ("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime")
_ENDINGS = {"message/rfc822": ".eml"}
_TYPES = MimeTypes()  # Python's own list: that of the system differs from machine to machine.


class Attachment(NamedTuple):
    """A file in a message; no two of a message have one name."""

    name: str
    data: bytes


def read_mail(data: bytes) -> tuple[PageText, list[Attachment]]:
    """Return the text of a message, with its headers as metadata, and its attachments.

    Raises `Unreadable` where the file is no message, or encrypted.
    """
    message = email.message_from_bytes(data, EmailMessage, policy=default)
    headers = {name: text for name in _SHOWN if (text := _header(message, name))}
    subject = shortened(_header(message, "Subject"))
    if not headers and not subject:
        raise Unreadable("no e-mail: it has neither a sender nor a subject nor a date")
    if message.get_content_type() in _SEALED:
        raise Unreadable("encrypted, or signed so that it cannot be read: save it decrypted")
    texts, attachments = list[str](), dict[str, bytes]()
    for leaf in _leaves(message):
        if _is_text(leaf):
            texts.append(_text(leaf))
        else:
            attachments[_free_name(leaf, attachments)] = _content(leaf)
    head = [f"{name}: {text}" for name, text in headers.items()]
    if attachments:
        head.append(f"Attachments: {', '.join(attachments)}")
    opening = [f"# {subject}"] if subject else []
    metadata: dict[str, Scalar] = {name.lower(): text for name, text in headers.items()}
    if date := getattr(message["Date"], "datetime", None):
        metadata["date"] = date.isoformat()
    page = PageText(
        text="\n\n".join(filter(None, [*opening, "\n".join(head), *texts])),
        title=subject,
        metadata=metadata,
    )
    return page, [Attachment(*one) for one in attachments.items()]


def _header(message: EmailMessage, name: str) -> str:
    """Return a header in one line; one in plain bytes is decoded as a text file is."""
    raw = next((str(text) for key, text in message.raw_items() if key.lower() == name.lower()), "")
    if raw.isascii():
        return one_line(clean(str(message[name] or "")))
    charsets = (part.get_content_charset("") for part in message.walk())
    charset = next(filter(None, charsets), "")
    return one_line(clean(decode(raw.encode("utf-8", "surrogateescape"), charset)))


def _leaves(message: MIMEPart) -> Iterator[MIMEPart]:
    """Yield what a message consists of, without the other forms of a plain text."""
    if message.get_content_maintype() != "multipart" or not message.is_multipart():
        yield message
        return
    parts = list(message.iter_parts())
    choose = message.get_content_subtype() == "alternative" and any(
        part.get_content_type() == "text/plain" for part in parts
    )
    for leaf in (leaf for part in parts for leaf in _leaves(part)):
        if not (choose and _is_text(leaf) and leaf.get_content_type() == "text/html"):
            yield leaf


def _is_text(leaf: MIMEPart) -> bool:
    """Say whether a leaf is text to read in the message itself; a broken multipart is one, too."""
    kind = leaf.get_content_type()
    named = leaf.get_filename() or leaf.get_content_disposition() == "attachment"
    return (kind in _TEXTS and not named) or leaf.get_content_maintype() == "multipart"


def _text(leaf: MIMEPart) -> str:
    text = decode(_content(leaf), leaf.get_content_charset(""))
    is_page = leaf.get_content_type() == "text/html"
    return (read_html(text.encode("utf-8", "replace")).text if is_page else clean(text)).strip()


def _content(leaf: MIMEPart) -> bytes:
    if leaf.is_multipart():  # a message within the message
        return b"\n".join(part.as_bytes() for part in leaf.iter_parts())
    content = leaf.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _free_name(leaf: MIMEPart, taken: dict[str, bytes]) -> str:
    """Return the file name of an attachment without folders, made up where it has none."""
    kind = leaf.get_content_type()
    usual = ".txt" if leaf.get_content_maintype() in ("text", "message") else ".bin"
    ending = _ENDINGS.get(kind) or _TYPES.guess_extension(kind) or usual
    given = one_line(printable((leaf.get_filename() or "").replace("\\", "/")))
    path = PurePosixPath(PurePosixPath(given).name or f"attachment-{len(taken) + 1}")
    if not path.suffix:
        path = path.with_name(path.name + ending)
    name, number = path.name, 1
    while name in taken:
        number += 1
        name = f"{path.stem} ({number}){path.suffix}"
    return name
