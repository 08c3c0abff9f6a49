"""Export a generation as notes for Obsidian: one for each entity, document and report.

The notes link to each other and quote their sources. Text of documents and models is escaped: it
shows no Markdown of its own, so it links to nothing and fetches no picture.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from ruamel.yaml import YAML
from scipy import sparse

from flows.service.reading import EntityView, Quote, entity_views, list_reports
from storage.columns import ById, column_of
from storage.graph_records import Report
from storage.records import Document, content_id
from storage.workspace import Generation

BATCH = 200  # entities or documents that are in memory at once
QUOTED = 20  # quotes of a relation; the note says how many more there are

# What Markdown, or Obsidian in it, takes for a sign of its own.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|!$%=~^&+-])")
# What some file system refuses in a name, and what ends a link or a name in it.
_NO_NAME = re.compile(r'[\x00-\x1f\x7f"*/:<>?\\|#^\[\]`$%]+')
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # of Windows
_LONGEST = 120  # bytes of a name, of which systems allow 255 with its ending


class Note(NamedTuple):
    """A note: its path in the vault without an ending, its properties, and the lines below."""

    path: str
    properties: Mapping[str, object]
    lines: Iterable[str]


def write_vault(folder: Path, generation: Generation) -> dict[str, int]:
    """Write the notes into a folder; return the path of each with its number of links.

    Notes that are there already are kept: a new one of the same name gets another.
    """
    taken = [path.relative_to(folder).as_posix() for path in folder.rglob("*.md")]
    vault, files = Vault(generation, taken), dict[str, int]()
    for kind in (vault.entity_notes, vault.document_notes, vault.report_notes):
        for note in kind():
            path = folder / f"{note.path}.md"
            path.parent.mkdir(exist_ok=True)
            text = "\n".join(("---", _yaml(note.properties) + "---", *note.lines)) + "\n"
            path.write_text(text, encoding="utf-8")
            files[f"{note.path}.md"] = text.count("[[")  # those of texts are escaped
    return files


class Vault:
    """The notes of a generation; `taken` are the files that they must not replace."""

    def __init__(self, generation: Generation, taken: Collection[str] = ()) -> None:
        self._generation = generation
        graph, documents = generation.graph, generation.documents.summaries()
        self._entities = ById(graph.entities())
        self._reports = list_reports(generation)
        entities = self._entities.records
        names = dict(zip(column_of(entities, "id"), column_of(entities, "name"), strict=True))
        self._entity = _paths("Entities", names, taken)
        self._document = _paths("Documents", {it.id: it.title or it.id for it in documents}, taken)
        titles = {name: report.title for name, report in self._reports.items()}
        self._report = _paths("Reports", titles, taken)
        pairs = graph.entity_document_pairs()
        self._by_entity, self._by_document = pairs.counts, pairs.counts.T.tocsr()
        self._entity_ids, self._document_ids = pairs.rows, pairs.columns

    def entity_notes(self) -> Iterator[Note]:
        records = self._entities.records
        for start in range(0, len(records), BATCH):
            shown = records[start : start + BATCH]
            for place, view in enumerate(
                entity_views(shown, self._entities, self._generation), start
            ):
                path, name = self._entity[view.id], view.name
                aliases = [name, *(alias.name for alias in view.aliases)]
                properties = {"id": view.id, "kind": view.kind, "aliases": aliases}
                yield Note(path, properties, self._entity_lines(view, place))

    def _entity_lines(self, view: EntityView, place: int) -> Iterator[str]:
        yield from (f"# {_line(view.name)}", "", _line(view.description))
        yield from _section("Relations", self._relations(view))
        facts: list[tuple[str, Quote]] = [
            (f"{_line(it.type)}: {_line(it.object or it.value)} {_line(it.period)}", it)
            for it in view.facts
        ]
        claims: list[tuple[str, Quote]] = [
            (f"{_line(it.description)} ({it.status}) {_line(it.period)}", it) for it in view.claims
        ]
        for title, stated in (("Facts", facts), ("Claims", claims)):
            lines = [line for said, it in stated for line in (f"- {said}", self._quoted(it))]
            yield from _section(title, lines)
        named = self._counted(self._by_entity, place, self._document_ids, self._document)
        yield from _section("Documents", named)

    def _relations(self, view: EntityView) -> Iterator[str]:
        for relation in view.relations:
            is_out = relation.direction == "out"
            other = _link(self._entity[relation.target if is_out else relation.source])
            said = _line(relation.predicate)
            meaning = f": {_line(relation.description)}" if relation.description else ""
            yield f"- {said} → {other}{meaning}" if is_out else f"- {other} → {said}{meaning}"
            yield from map(self._quoted, relation.statements[:QUOTED])
            if len(relation.statements) > QUOTED:
                yield f"    - and {len(relation.statements) - QUOTED} more"

    def document_notes(self) -> Iterator[Note]:
        ids = self._document_ids
        for start in range(0, len(ids), BATCH):
            stored = self._generation.documents.documents(ids[start : start + BATCH])
            for place, document in enumerate(stored, start):
                properties: dict[str, object] = {**document.metadata, "id": document.id}
                properties["aliases"] = [document.title]
                path = self._document[document.id]
                yield Note(path, properties, self._document_lines(document, place))

    def _document_lines(self, document: Document, place: int) -> Iterator[str]:
        yield from (f"# {_line(document.title)}", "")
        yield from map(_line, document.text.splitlines())
        named = self._counted(self._by_document, place, self._entity_ids, self._entity)
        yield from _section("Entities", named)

    def report_notes(self) -> Iterator[Note]:
        members = {it.id: it.members for it in self._generation.communities.communities()}
        for name, report in self._reports.items():
            near = [report.parent, *report.children]
            around = [self._report[it] for it in near if it in self._report]
            around += [self._entity[it] for it in members.get(name, ()) if it in self._entity]
            properties = {"id": name, "level": report.level, "rating": report.rating}
            yield Note(self._report[name], properties, self._report_lines(report, around))

    def _report_lines(self, report: Report, around: Sequence[str]) -> Iterator[str]:
        yield from (f"# {_line(report.title)}", "", _line(report.summary))
        for finding in report.findings:
            places = (
                f"- {_link(self._document[it.document])}, characters {it.start}-{it.end}"
                for it in finding.places
            )
            yield from _section(_line(finding.summary), [_line(finding.explanation), "", *places])
        yield from _section("See also", (f"- {_link(path)}" for path in around))

    def _quoted(self, quote: Quote) -> str:
        document = _link(self._document[quote.document])
        place = f"{document}, characters {quote.start}-{quote.end}"
        return f"    - “{_line(quote.quote)}” ({place})"

    def _counted(
        self, counts: sparse.csr_matrix, row: int, ids: Sequence[str], paths: Mapping[str, str]
    ) -> Iterator[str]:
        """List what a row of the matrix counts, the most frequent first."""
        first, last = counts.indptr[row], counts.indptr[row + 1]
        cells = zip(counts.indices[first:last], counts.data[first:last], strict=True)
        for column, count in sorted(cells, key=lambda cell: (-cell[1], cell[0])):
            yield f"- {_link(paths[ids[column]])}: {count}"


def _paths(folder: str, names: Mapping[str, str], taken: Collection[str] = ()) -> dict[str, str]:
    """Give each id a path in a folder, which no other has in any case of its letters.

    A name that several share gets a part of a hash of its id.
    """
    safe = {name: file_name(text) for name, text in names.items()}
    shared = Counter(text.casefold() for text in safe.values())
    used, paths = {path.casefold() for path in taken}, dict[str, str]()
    for name, text in sorted(safe.items()):
        path = f"{folder}/{text}"
        if shared[text.casefold()] > 1 or f"{path}.md".casefold() in used:
            path = f"{path} ({content_id('note', name)[-6:]})"
        while f"{path}.md".casefold() in used:
            path += "_"
        used.add(f"{path}.md".casefold())
        paths[name] = path
    return paths


def file_name(text: str) -> str:
    """Return a name that every file system takes and that ends no link; never empty."""
    name = _NO_NAME.sub("-", unicodedata.normalize("NFC", " ".join(text.split())))
    name = name.encode("utf-8", "replace")[:_LONGEST].decode("utf-8", "ignore").strip(" .-")
    return f"{name or 'unnamed'}_" if not name or _DEVICES.fullmatch(name) else name


def _link(path: str) -> str:
    return f"[[{path}|{path.partition('/')[2]}]]"


def _line(text: str) -> str:
    """Return a text on one line, in which no sign has a meaning."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _section(title: str, lines: Iterable[str]) -> list[str]:
    """Return lines under a title; nothing where there are none."""
    below = list(lines)
    return ["", f"## {title}", "", *below] if below else []


def _yaml(properties: Mapping[str, object]) -> str:
    writer, text = YAML(typ="safe", pure=True), StringIO()
    writer.default_flow_style, writer.allow_unicode, writer.width = False, True, 10_000
    writer.dump(dict(properties), text)
    return text.getvalue()
