"""`trellis graph` and `show`: what is in a generation?"""

from argparse import Namespace

from flows.cli.opening import runtime_of
from flows.cli.screen import Screen
from storage.generations import Generation
from storage.records import Record, Scalar

SHOWN = 200


class DocumentView(Record):
    """A stored document: its text as offsets count it, and where it came from."""

    document: str
    title: str
    language: str
    text: str
    pages: tuple[int, ...]
    metadata: dict[str, Scalar]
    sources: tuple[str, ...]
    generation: int


def show(options: Namespace, screen: Screen) -> int:
    """Print a document's text and nothing else."""
    with _generation(options) as generation:
        document = generation.documents.document(options.document)
        number = generation.number
    if not screen.as_json:
        screen.exactly(document.text)
        return 0
    screen.json(
        DocumentView(
            document=document.id, title=document.title, language=document.language, text=document.text,
            pages=document.pages, metadata=document.metadata, generation=number,
            sources=tuple(sorted({part.source for part in document.parts})),
        )
    )  # fmt: skip
    return 0


def graph(options: Namespace, screen: Screen) -> int:
    """Show every entity that has the name."""
    from flows.cli.entity import look_up

    with _generation(options) as generation:
        found = look_up(options.name, generation)
    if screen.as_json:
        screen.json(found)
        return 0
    for place, entity in enumerate(found.entities):
        if place:
            screen.line()
        screen.line(f"{entity.name} ({entity.kind})", style="bold")
        if entity.description:
            screen.line(entity.description, indent=2)
        screen.line(f"{entity.occurrences} occurrences in {entity.documents} documents, id {entity.id}", indent=2)
        for alias in entity.aliases:
            screen.line(f"also {alias.name}: {alias.reason}", indent=2)
        for relation in entity.relations[:SHOWN]:
            arrow = "→" if relation.direction == "out" else "←"
            screen.line(f"{arrow} {relation.predicate} {arrow} {relation.other}", indent=2, style="cyan")
            for said in relation.statements:
                screen.line(f'"{" ".join(said.quote.split())}" ({said.document})', indent=6)
        if len(entity.relations) > SHOWN:
            screen.line(f"and {len(entity.relations) - SHOWN} more relations (--json lists all)", indent=2, style="dim")
        for claim in entity.claims[:SHOWN]:
            told = ", ".join(part for part in (claim.kind, claim.status, claim.period) if part)
            screen.line(f"claim: {claim.description} ({told}; {claim.document})", indent=2)
    return 0


def _generation(options: Namespace) -> Generation:
    return runtime_of(options).workspace.read(options.as_of)
