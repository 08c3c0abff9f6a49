"""Documents, composed of the parts that sources contribute."""

import re
from collections.abc import Iterable

from prompts.text.languages import language_of
from storage.errors import DuplicateDocument
from storage.records import Document, Part

JOINT = "\n\n"
_LINE_NUMBER = re.compile(r"^(.*):(\d+)$")


def compose(parts: Iterable[Part]) -> list[Document]:
    """One document per id, sorted by id: text first, then triples by source and place, joined by blank lines.

    The same text twice under one id is one part; another text under it raises `DuplicateDocument`. Title, metadata and
    pages are the first part's; `language` is detected (`prompts.text.languages`), und where nothing tells it.
    """
    grouped: dict[str, list[Part]] = {}
    for part in parts:
        grouped.setdefault(part.document, []).append(part)
    return [_document(name, sorted(grouped[name], key=_order)) for name in sorted(grouped)]


def _order(part: Part) -> tuple[bool, str, str, int]:
    numbered = _LINE_NUMBER.match(part.path)
    place, line = (numbered.group(1), int(numbered.group(2))) if numbered else (part.path, 0)
    return part.kind == "triples", part.source, place, line


def _document(name: str, parts: list[Part]) -> Document:
    texts = [part for part in parts if part.kind == "text"]
    for other in texts[1:]:
        if other.text != texts[0].text:
            raise DuplicateDocument(name, texts[0].path, other.path)
    kept = tuple(texts[:1] + _each_once([part for part in parts if part.kind == "triples"]))
    text = JOINT.join(part.text for part in kept)
    first = kept[0]
    # The first part begins the text, so that its page offsets hold in the whole.
    return Document(
        id=name,
        title=first.title,
        text=text,
        language=language_of(text),
        parts=kept,
        metadata=first.metadata,
        pages=first.pages,
    )


def _each_once(parts: list[Part]) -> list[Part]:
    """The same triples count once, whether one file was named twice or a copy of it stands in another source."""
    by_file = {part.path: part for part in reversed(parts)}
    return list({part.hash: part for part in by_file.values()}.values())[::-1]
