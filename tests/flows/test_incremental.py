"""A workspace that grew by many small runs equals one that is indexed at once.

Random documents are added, changed, removed and renamed; their names are shortened, shared and
misspelt.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from flows.index import IndexOptions, build_index
from storage.export import Export, export
from storage.graph_records import Community, Report
from tests.patience import quick_are
from tests.test_communities import check
from tests.workspaces import opened

SEQUENCES, EACH = 200, 5
RUNS, SMALL = 3, 4
RESOLVED = [
    *"documents chunks mentions entities aliases entity_occurrences relations".split(),
    *"relation_occurrences claims".split(),
]

_PEOPLE = (
    "Ada Kestrel|Ada M. Kestrel|Kestrel|A. Kestrel|Bruno Holm|Dr. Holm|Mira Sund|M. Sundt"
).split("|")
_PLACES = (
    "Bergvik|Bergvik Harbour|the Harbour|Nolla|Mercury (planet)|Mercury (element)|Mercury"
).split("|")
_FIRMS = ("Nordlicht AG|Nordlicht|Harbour Survey Office|HSO|Tern Shipping Ltd|Tern Shipping").split(
    "|"
)
_SENTENCES = [
    "{person} founded {firm} in {year}.",
    "{person} is a {trade} from {place}.",
    "{firm} is based in {place} and employs {number} people.",
    "{firm}, also known as {other}, was sued by {person} in {year}.",
    "{person} married {other_person} in {place}.",
    "{place} is a town in {other_place}.",
    "The {firm} report of {year} names {person} and {other_person}.",
    "{place}是{person}的故乡。",
]


def _sentence(chance: random.Random) -> str:
    return chance.choice(_SENTENCES).format(
        person=chance.choice(_PEOPLE),
        other_person=chance.choice(_PEOPLE),
        firm=chance.choice(_FIRMS),
        other=chance.choice(_FIRMS),
        place=chance.choice(_PLACES),
        other_place=chance.choice(_PLACES),
        trade=chance.choice(["painter", "geologist", "harbour master"]),
        year=chance.randrange(1890, 1990),
        number=chance.randrange(2, 900),
    )


def _text(chance: random.Random) -> str:
    def some(separator: str, part: Callable[[], str]) -> str:
        return separator.join(part() for _ in range(chance.randrange(1, 4)))

    return some("\n\n", lambda: some(" ", lambda: _sentence(chance)))


def _title(chance: random.Random) -> str:
    return chance.choice([*_PEOPLE, *_PLACES, *_FIRMS]) if chance.random() < 0.7 else ""


class World:
    """A file of documents that changes at random."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.file = folder / "documents.jsonl"
        self.chance = random.Random(seed)  # noqa: S311 -- a sample, no secret
        self.rows: dict[str, dict[str, str]] = {}
        self.named = 0
        for _ in range(self.chance.randrange(3, 9)):
            self._add()
        self._write()

    def change(self) -> None:
        """Some additions, changes, removals and renamings at once."""
        for _ in range(self.chance.randrange(1, 4)):
            what = self.chance.choice("add add change extend remove rename retitle".split())
            name = self.chance.choice(sorted(self.rows))
            if what == "add" or (what == "remove" and len(self.rows) < 3):
                self._add()
            elif what == "change":
                self.rows[name]["text"] = _text(self.chance)
            elif what == "extend":  # the rest keeps its words, but not its place
                self.rows[name]["text"] = f"{_sentence(self.chance)}\n\n{self.rows[name]['text']}"
            elif what == "retitle":
                self.rows[name]["title"] = _title(self.chance)
            elif what == "remove":
                del self.rows[name]
            else:
                self.rows[self._name()] = self.rows.pop(name)
        self._write()

    def _name(self) -> str:
        self.named += 1
        return f"{self.chance.choice('abcxyz')}{self.named}"

    def _add(self) -> None:
        self.rows[self._name()] = {"title": _title(self.chance), "text": _text(self.chance)}

    def _write(self) -> None:
        rows = [json.dumps({"id": name, **row}) for name, row in self.rows.items()]
        self.chance.shuffle(rows)
        self.file.write_text("\n".join(rows), encoding="utf-8")


async def _indexed(source: Path, workspace: Path, full: bool = False) -> Export:
    small = {"chunk_tokens": 40, "community_size": SMALL, "community_drift": 0.5}
    runtime = opened(workspace, **small)
    await build_index([source], IndexOptions(full=full, allow_removals=True), runtime)
    with runtime.workspace.read() as generation:
        return export(generation)


def _check(found: Export) -> None:
    """Every level is a partition of all entities; reports have communities and real quotes."""
    communities = TypeAdapter(list[Community]).validate_python(found["communities"])
    check([str(row["id"]) for row in found["entities"]], communities, SMALL)
    documents = {row["id"]: str(row["text"]) for row in found["documents"]}
    for report in found["reports"]:
        assert report["community"] in {community.id for community in communities}
        for finding in Report.model_validate(report).findings:
            quoted = " ".join(documents[finding.document][finding.start : finding.end].split())
            assert quoted, "a finding without its place"
            assert quoted in finding.explanation or finding.explanation in quoted


@pytest.mark.slow
@pytest.mark.parametrize("first", quick_are([0], range(0, SEQUENCES, EACH)))
async def test_small_runs_end_where_one_run_does(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + EACH):
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = World(folder, seed)
        grown = await _indexed(world.file, folder / "grown")
        for _ in range(RUNS):
            world.change()
            grown = await _indexed(world.file, folder / "grown")
            _check(grown)
        anew = await _indexed(world.file, folder / "anew")
        for kind in RESOLVED:
            assert grown[kind] == anew[kind], f"seed {seed}"
        if seed == first:
            assert await _indexed(world.file, folder / "grown", full=True) == anew
