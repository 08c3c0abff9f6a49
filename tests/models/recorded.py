"""Reads what a model answered in nano-graphrag's form of an extraction.

`("entity"<|>NAME<|>KIND<|>TEXT)` and `("relationship"<|>SOURCE<|>TARGET<|>TEXT<|>STRENGTH)`. Models take liberties that
lose nothing: numbered lists, code fences, curly quotes, "relation", no `##` between two. Raises NotAsAsked for what is
not in form, as our own output formats do.
"""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from prompts.engine.calls import NotAsAsked
from prompts.extract import EntityFound, Extracted, RelationFound

_RECORD = re.compile(
    r"\(\s*[\"“]?(entity|relation(?:ship)?)[\"”]?\s*<\|>(.*?)\)\s*(?=##|<\|COMPLETE|\(|```|\d+\.|\*\*|\Z)", re.S | re.I
)
_BETWEEN = re.compile(r"<?\|>")
_PARTS = {"entity": 3, "relationship": 4}
_QUOTES = ' \t\r\n"“”'


def rows(path: Path) -> list[Mapping[str, object]]:
    """The rows of a compressed JSON Lines file."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines() if line.strip()]


def read_extraction(answer: str, *further: str) -> Extracted:
    """The entities and relations of an answer and of those to further rounds, in order, none joined."""
    found = [record for said in (answer, *further) if said.strip() for record in _records(said)]
    try:
        return Extracted(
            entities=[
                EntityFound(name=name, kind=kind.casefold(), description=text)
                for letter, name, kind, text, *_ in found
                if letter == "entity"
            ],
            relations=[
                RelationFound(
                    source=source,
                    target=target,
                    predicate="is related to",
                    description=text,
                    strength=float(strength[0]),
                )
                for letter, source, target, text, *strength in found
                if letter == "relationship"
            ],
        )
    except (ValidationError, ValueError) as error:
        raise NotAsAsked(f"a record cannot be read: {error}.") from error


def _records(answer: str) -> Iterator[list[str]]:
    matches = list(_RECORD.finditer(answer))
    if not matches:
        raise NotAsAsked(f"it holds no record: {answer[:60]!r}.")
    for match in matches:
        kind = "entity" if match[1].casefold() == "entity" else "relationship"
        parts = [part.strip(_QUOTES) for part in _BETWEEN.split(match[2])]
        if len(parts) != _PARTS[kind]:
            raise NotAsAsked(f"{match[0][:60]!r} has {len(parts)} parts after its kind, not {_PARTS[kind]}.")
        yield [kind, *parts]
