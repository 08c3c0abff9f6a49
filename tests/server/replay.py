"""What did a real model answer to this passage?

A recording is a file of JSON lines (`.gz` or plain) with `text`, `response` and, where there is one, `glean_response`;
with `entities` and `relations` it can also be told in the form that a request asks for.
"""

import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.server.outputs import Entity, Extraction, Relation


class NotRecordedError(LookupError):
    """The recording holds no answer for the text."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A model's raw answers to a passage, and what they say."""

    response: str
    glean_response: str
    found: Extraction | None


def key_of(text: str) -> str:
    """A hash of the letters and digits alone: a prompt may fold white space or take markers out of a passage."""
    return hashlib.blake2b("".join(re.findall(r"\w+", text)).encode(), digest_size=16).hexdigest()


class Recording:
    """Recorded answers by passage."""

    def __init__(self, path: Path) -> None:
        self.path = path
        stored = path.read_bytes()
        lines = (gzip.decompress(stored) if path.suffix == ".gz" else stored).decode().split("\n")
        rows = [json.loads(line) for line in lines if line.strip()]
        self._rows = {key_of(row["text"]): _recorded(row) for row in rows}

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, text: str) -> Recorded:
        """The answers to a passage; NotRecordedError where there are none."""
        key = key_of(text)
        if key not in self._rows:
            raise NotRecordedError(
                f"{self.path.name} holds no answer for the passage {key} ({' '.join(text.split())[:60]!r}, "
                f"{len(text)} characters); it has {len(self)} passages, to be asked exactly as recorded"
            )
        return self._rows[key]


def _recorded(row: Mapping[str, object]) -> Recorded:
    entities, relations = row.get("entities"), row.get("relations")
    found = None
    if isinstance(entities, list) and isinstance(relations, list):
        found = Extraction(
            tuple(Entity(one["name"], one["type"], one["description"]) for one in entities),
            tuple(
                Relation(one["source"], one["target"], "is related to", one["description"], float(one["weight"]))
                for one in relations
            ),
        )
    return Recorded(str(row["response"]), str(row.get("glean_response") or ""), found)
