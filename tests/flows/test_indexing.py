"""From folders to generations: what a second run does again, takes over, and begins side by
side.
"""

import asyncio
import dataclasses
import shutil
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from flows.index import IndexOptions, build_index
from flows.indexing.concurrency import background_task, side_by_side
from flows.runtime import Runtime, open_runtime
from prompts.engine.embedders import Embedder, Floats
from storage.errors import RemovalRefused
from storage.export import Export, export
from storage.graph_records import Entity
from storage.run_records import IndexReport
from tests.copying import CORPUS, corpus_in
from tests.settings import load_settings

SAME = IndexOptions()


class CountingEmbedder(Embedder):
    """Vectors from letters, and the texts that were asked for."""

    width = 8
    max_tokens = 256

    def __init__(self) -> None:
        super().__init__("letters", None)
        self.texts: list[str] = []

    def reads(self, text: str) -> bool:
        return max(text, default="") < "\u3000"

    def _encode(self, texts: list[str], query: bool) -> Floats:
        self.texts += texts
        return np.array(
            [[1.0 + text.count(letter) for letter in "etaoinsh"] for text in texts], np.float32
        )


class Bench:
    """A workspace and what its runs did: chunks to extract and texts to embed, in the last run."""

    def __init__(self, workspace: Path, **settings: object) -> None:
        self.workspace = workspace
        self.settings = settings
        self.extracted = 0
        self.embedded: list[str] = []

    def runtime(self) -> Runtime:
        settings = load_settings(
            {"workspace": self.workspace, "embedding": "none", **self.settings}, {}
        )
        return open_runtime(settings, self._progress)

    def _progress(self, step: str, done: int, total: int) -> None:
        if step == "extract":
            self.extracted = total

    async def run(self, *sources: Path, options: IndexOptions = SAME) -> IndexReport:
        self.extracted, embedder = 0, CountingEmbedder()
        report = await build_index(
            list(sources), options, dataclasses.replace(self.runtime(), embedder=embedder)
        )
        self.embedded = embedder.texts
        return report

    def export(self) -> Export:
        with self.runtime().workspace.read() as generation:
            return export(generation)

    def entities(self) -> dict[str, Entity]:
        """By name and alias; a name that two entities have is left out."""
        with self.runtime().workspace.read() as generation:
            entities = {entity.id: entity for entity in generation.graph.entities()}
            pairs = [(entity.name, entity.id) for entity in entities.values()]
            pairs += [(alias.name, alias.entity) for alias in generation.graph.aliases()]
        owners: dict[str, set[str]] = {}
        for name, entity in pairs:
            owners.setdefault(name, set()).add(entity)
        return {name: entities[next(iter(ids))] for name, ids in owners.items() if len(ids) == 1}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return corpus_in(tmp_path)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "ws")


async def test_the_sample_corpus_gives_a_graph_with_aliases_joined_and_homonyms_apart(
    tmp_path: Path,
) -> None:
    """LightRAG merges names by exact string only: aliases split and homonyms mix there."""
    bench = Bench(tmp_path / "ws")
    report = await bench.run(CORPUS)
    assert (report.documents.added, report.published) == (23, True)
    found = bench.entities()
    for name, alias in (
        ("Coastal Hydrology Institute", "CHI"),
        ("Coastal Hydrology Institute", "海岸水文研究所"),
        ("Marrand & Oke", "M&O"),
        ("Orrelin Sound Ferries", "OSF"),
        ("Orrelin Sound Authority", "OSA"),
        ("Kestrel Bridge", "红隼桥"),
    ):
        assert found[name] == found[alias], (name, alias)
    assert found["Tobias Wren (engineer)"] != found["Tobias Wren (brewer)"]
    assert found["MV Kestrel"] != found["Kestrel Bridge"]
    assert found["红隼号"] == found["MV Kestrel"]
    with bench.runtime().workspace.read() as generation:
        names = {entity.id: entity.name for entity in generation.graph.entities()}
        relations = generation.graph.relations()
        reports = generation.communities.reports()
    assert ("Kestrel Bridge", "designer", "Tobias Wren") in {
        (names[one.source], one.predicate, names[one.target]) for one in relations
    }
    assert (len({one.level for one in reports}) >= 2, report.reports) == (True, len(reports))


async def test_each_run_does_what_has_changed_and_no_more(corpus: Path, bench: Bench) -> None:
    first = await bench.run(corpus)
    assert bench.extracted
    assert bench.embedded
    second = await bench.run(corpus)
    assert (second.generation, second.published, bench.extracted, bench.embedded) == (
        1,
        False,
        0,
        [],
    )
    assert second.documents.unchanged == first.documents.added
    edited = corpus / "people" / "tobias-wren.md"
    edited.write_text(
        edited.read_text(encoding="utf-8").replace("Quillen Head", "Velin Head"), encoding="utf-8"
    )
    third = await bench.run(corpus)
    assert (third.documents.changed, third.generation) == (1, 2)
    assert 1 <= bench.extracted <= 3
    assert 1 <= len(bench.embedded) <= 3
    assert "Velin Head" in bench.entities()
    (corpus / "region" / "orrelin-sound.md").rename(corpus / "region" / "the-sound.md")
    fourth = await bench.run(corpus)
    assert (fourth.documents.renamed, fourth.documents.removed, bench.embedded) == (1, 0, [])
    before = bench.export()
    for folder in ("people", "zh", "data", "museum", "news", "reports", "brewery"):
        shutil.rmtree(corpus / folder, ignore_errors=True)
    with pytest.raises(RemovalRefused):
        await bench.run(corpus)
    assert bench.export() == before
    fifth = await bench.run(corpus, options=IndexOptions(allow_removals=True))
    assert (fifth.generation, fifth.documents.removed > 5) == (4, True)


class Works:
    """Works that last until they are let go, and how many were under way."""

    def __init__(self, count: int) -> None:
        self.gates = [asyncio.Event() for _ in range(count)]
        self.begun: list[int] = []
        self.ended: list[int] = []

    async def one(self, number: int) -> int:
        self.begun.append(number)
        try:
            await self.gates[number].wait()
        finally:
            self.ended.append(number)
        return number

    def all(self) -> list[Callable[[], Awaitable[int]]]:
        return [partial(self.one, number) for number in range(len(self.gates))]


async def test_an_error_ends_the_others() -> None:
    works = Works(3)

    async def fails() -> int:
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        async for _ in side_by_side([*works.all()[:2], fails], 3):
            pass
    assert sorted(works.ended) == [0, 1]
    with pytest.raises(ValueError, match="no"):
        async with background_task(fails()):
            await asyncio.sleep(0)

    async def broken() -> None:
        async with background_task(works.one(2)):
            await asyncio.sleep(0)
            raise KeyError

    with pytest.raises(KeyError):
        await broken()
    assert sorted(works.ended) == [0, 1, 2]
