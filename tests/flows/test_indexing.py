"""Index runs over a folder: what each run does again, and its concurrent work."""

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
from prompts.engine.embedders import Embedder, Floats
from storage.errors import RemovalRefused
from storage.graph_records import Entity
from storage.records import by_key
from storage.run_records import IndexReport
from storage.workspace import Generation
from tests.copying import CORPUS, corpus_in
from tests.workspaces import opened


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
    """A workspace, and what its last run extracted and embedded."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.extracted = 0
        self.embedded: list[str] = []

    def _progress(self, step: str, done: int, total: int) -> None:
        if step == "extract":
            self.extracted = total

    async def run(self, source: Path, allow_removals: bool = False) -> IndexReport:
        self.extracted, embedder = 0, CountingEmbedder()
        runtime = dataclasses.replace(
            opened(self.workspace), progress=self._progress, embedder=embedder
        )
        options = IndexOptions(allow_removals=allow_removals)
        report = await build_index([source], options, runtime)
        self.embedded = embedder.texts
        return report

    def read(self) -> Generation:
        return opened(self.workspace).workspace.read()

    def entities(self) -> dict[str, Entity]:
        """By name and alias; a name that two entities have is left out."""
        with self.read() as generation:
            entities = {entity.id: entity for entity in generation.graph.entities()}
            aliases = [(alias.name, alias.entity) for alias in generation.graph.aliases()]
        owners = by_key([*aliases, *((entity.name, entity.id) for entity in entities.values())])
        return {name: entities[ids[0]] for name, ids in owners.items() if len({*ids}) == 1}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "ws")


async def test_aliases_are_joined_and_homonyms_stay_apart(bench: Bench) -> None:
    """LightRAG merges names by exact string only: aliases split and homonyms mix there."""
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
        ("MV Kestrel", "红隼号"),
    ):
        assert found[name] == found[alias], (name, alias)
    assert found["Tobias Wren (engineer)"] != found["Tobias Wren (brewer)"]
    assert found["MV Kestrel"] != found["Kestrel Bridge"]
    with bench.read() as generation:
        names = {entity.id: entity.name for entity in generation.graph.entities()}
        triples = {
            (names[one.source], one.predicate, names[one.target])
            for one in generation.graph.relations()
        }
        reports = generation.communities.reports()
    assert ("Kestrel Bridge", "designer", "Tobias Wren") in triples
    assert len({one.level for one in reports}) >= 2
    assert report.reports == len(reports)


async def test_each_run_does_only_what_has_changed(tmp_path: Path, bench: Bench) -> None:
    corpus = corpus_in(tmp_path)
    first = await bench.run(corpus)
    assert bench.extracted
    assert bench.embedded
    second = await bench.run(corpus)
    assert (second.generation, second.published) == (1, False)
    assert (bench.extracted, bench.embedded) == (0, [])
    assert second.documents.unchanged == first.documents.added
    edited = corpus / "people" / "tobias-wren.md"
    edited.write_text(edited.read_text("utf-8").replace("Quillen Head", "Velin Head"), "utf-8")
    third = await bench.run(corpus)
    assert (third.documents.changed, third.generation) == (1, 2)
    assert 1 <= bench.extracted <= 3
    assert 1 <= len(bench.embedded) <= 3
    assert "Velin Head" in bench.entities()
    (corpus / "region" / "orrelin-sound.md").rename(corpus / "region" / "the-sound.md")
    fourth = await bench.run(corpus)
    assert (fourth.documents.renamed, fourth.documents.removed, bench.embedded) == (1, 0, [])
    for folder in ("people", "zh", "data", "museum", "news", "reports", "brewery"):
        shutil.rmtree(corpus / folder, ignore_errors=True)
    with pytest.raises(RemovalRefused):
        await bench.run(corpus)
    with bench.read() as generation:
        assert generation.number == fourth.generation, "nothing is published"
    fifth = await bench.run(corpus, allow_removals=True)
    assert (fifth.generation, fifth.documents.removed > 5) == (4, True)


async def test_an_error_ends_concurrent_work() -> None:
    ended: list[str] = []

    async def waits(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    works: list[Callable[[], Awaitable[None]]] = [partial(waits, "a"), partial(waits, "b"), fails]
    with pytest.raises(ValueError, match="no"):
        async for _ in side_by_side(works, 3):
            pass
    assert sorted(ended) == ["a", "b"]
    with pytest.raises(ValueError, match="no"):
        async with background_task(fails()):
            await asyncio.sleep(0)

    async def broken() -> None:
        async with background_task(waits("c")):
            await asyncio.sleep(0)
            raise KeyError

    with pytest.raises(KeyError):
        await broken()
    assert ended[-1] == "c"


async def test_side_by_side_keeps_to_its_limit() -> None:
    running: set[int] = set()
    most = 0

    async def work(number: int) -> int:
        nonlocal most
        running.add(number)
        most = max(most, len(running))
        await asyncio.sleep(0)
        running.remove(number)
        return number

    results = side_by_side((partial(work, number) for number in range(9)), 4)
    assert sorted([number async for number in results]) == list(range(9))
    assert most == 4
