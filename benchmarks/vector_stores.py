"""What the index of each vector store costs over so many vectors, and how well it finds them."""

import os
import time
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runner import (
    MB,
    Cell,
    Run,
    apart,
    cpu_seconds,
    measure,
    names_of,
    option,
    peak_memory,
    whole_number,
)
from storage.layout import Layout, size_of
from storage.records import Chunk, Document
from storage.vector_search import open_vector_store
from storage.vector_store import ServerAddress, VectorStore
from storage.vectors import Hit, StoredVectors, Vector, Window
from storage.workspace import Workspace

SIZE, NEIGHBOURS, QUESTIONS, _PAGE = 384, 10, 200, 20_000
_TOPICS, _SPREAD, _DIRECTIONS = 2_000, 0.7, 48
NAMES = ("exact", "chroma", "usearch", "lancedb", "qdrant", "pgvector")


@dataclass(frozen=True)
class Job:
    """A store is measured over the vectors of a workspace in a process of its own."""

    name: str
    workspace: Path
    address: str | None
    nearest: tuple[frozenset[str], ...]  # windows of each question, by the database


@measure(
    option("--vectors", type=whole_number, default=200_000, metavar="N", help="(200000)"),
    option(
        "--stores",
        type=names_of(NAMES),
        default=["exact", "chroma", "usearch"],
        metavar="A,B",
        help=f"{', '.join(NAMES)} (exact,chroma,usearch)",
    ),
    option("--url", metavar="URL", help="the server of qdrant or pgvector"),
)
def vector_stores(run: Run) -> None:
    """What does the index of each vector store cost, and does it find the nearest vectors?

    Vectors of 384 numbers, as spread as those of passages: topics in a space of few directions,
    and passages around each. The questions are further vectors of the same kind; what the database
    finds exactly is what should be found. Building includes reading the database; the memory is the
    most that the process held beyond what it had before.
    """
    folder = run.workspace(f"vectors-{run.options.vectors}")
    if not Layout(folder).folders():
        _fill(Workspace(folder, 1, open_vector_store("exact", folder)), run.options.vectors)
    with Workspace(folder, 1).read() as generation:
        nearest = tuple(
            frozenset(hit.window for hit in generation.vectors.nearest(row, NEIGHBOURS))
            for row in vectors_of(0, QUESTIONS)
        )
    rows: dict[str, dict[str, Cell]] = {}
    for name in run.options.stores:
        rows[name] = apart(_cost, Job(name, folder, run.options.url, nearest))
        run.table(f"{run.options.vectors:,} vectors of {SIZE} numbers", rows)
    if "chroma" in rows:
        run.table("Chroma is 1", {name: _ratios(row, rows["chroma"]) for name, row in rows.items()})


def vectors_of(seed: int, count: int) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """Return `count` drawn vectors of length 1, as rows."""
    fixed, rng = np.random.default_rng(7), np.random.default_rng(seed)
    directions = fixed.standard_normal((_DIRECTIONS, SIZE))
    topics = fixed.standard_normal((_TOPICS, _DIRECTIONS))
    around = rng.standard_normal((count, _DIRECTIONS)) * _SPREAD
    rows = (topics[rng.integers(_TOPICS, size=count)] + around) @ directions
    rows += rng.standard_normal((count, SIZE)) * _SPREAD
    unit: np.ndarray[Any, np.dtype[np.float32]] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit.astype(np.float32)


def _fill(workspace: Workspace, count: int) -> None:
    """Write a generation of documents with one chunk of twenty words and one window each."""
    with workspace.write() as staging:
        for start in range(0, count, _PAGE):
            numbers = range(start, min(start + _PAGE, count))
            texts = [" ".join(f"word{number}" for _ in range(20)) for number in numbers]
            documents = [
                Document(id=f"d{at}", title=f"t{at}", text=text, language="en", parts=())
                for at, text in zip(numbers, texts, strict=True)
            ]
            staging.documents.put_documents(documents)
            chunks = [
                Chunk(
                    id=f"chk_{at:024x}",
                    document=f"d{at}",
                    ordinal=0,
                    start=0,
                    end=len(text),
                    text=text,
                    tokens=20,
                    language="en",
                    title=f"t{at}",
                    heading="",
                )
                for at, text in zip(numbers, texts, strict=True)
            ]
            staging.documents.put_chunks(chunks, [one.id for one in documents])
            windows = [
                Window(
                    id=f"{one.id}#0-{one.end}",
                    chunk=one.id,
                    document=one.document,
                    text_hash=one.id,
                )
                for one in chunks
            ]
            rows = vectors_of(start + 1, len(chunks))
            hashes = [window.text_hash for window in windows]
            staging.vectors.put("drawn", dict(zip(hashes, rows, strict=True)))
            staging.vectors.put_windows("drawn", windows)
        staging.publish()


def _cost(job: Job) -> dict[str, Cell]:
    os.environ["DO_NOT_TRACK"] = "1"
    store = _store(job)
    with Workspace(job.workspace, 1).read() as generation:
        stored = generation.vectors
        store.prepare()
        on_disk, before = size_of(stored.folder), peak_memory()
        before = peak_memory()  # Only now: the first one told of all that was before
        wall, cpu = time.monotonic(), cpu_seconds()
        Layout(job.workspace).clear_leftovers()
        store.build(stored, None)
        cost: dict[str, Cell] = {
            "build s": time.monotonic() - wall,
            "build CPU s": cpu_seconds() - cpu,
            "build MB": peak_memory() - before,
            "disk MB": (size_of(stored.folder) - on_disk) / MB,
        }
    return cost | apart(_search_cost, job)


def _search_cost(job: Job) -> dict[str, Cell]:
    questions = vectors_of(0, QUESTIONS)
    with Workspace(job.workspace, 1).read() as generation:
        store, before = _store(job), peak_memory()
        before = peak_memory()  # Only now: the first one told of all that was before
        wall = time.monotonic()
        with closing(store.open(generation.vectors)) as index:
            found: list[list[Hit]] = [index.search(questions[0], NEIGHBOURS)]
            opened, times, cpu = time.monotonic() - wall, [], cpu_seconds()
            for row in questions[1:]:
                wall = time.monotonic()
                found.append(index.search(row, NEIGHBOURS))
                times.append(1000 * (time.monotonic() - wall))
            cpu = cpu_seconds() - cpu
        hits = [
            len(best & {hit.window for hit in got})
            for best, got in zip(job.nearest, found, strict=True)
        ]
    return {
        "recall@10": sum(hits) / (NEIGHBOURS * len(hits)),
        "open and first ms": 1000 * opened,
        "query CPU ms": 1000 * cpu / len(times),
        "query ms p50": float(np.percentile(times, 50)),
        "query ms p95": float(np.percentile(times, 95)),
        "search MB": peak_memory() - before,
    }


def _ratios(row: dict[str, Cell], first: dict[str, Cell]) -> dict[str, Cell]:
    return {
        key: float(value or 0) / float(first[key] or 1)
        for key, value in row.items()
        if key != "recall@10"
    }


def _store(job: Job) -> VectorStore:
    if job.name == "lancedb":
        return LanceStore()
    address = ServerAddress(job.address) if job.address and job.name != "chroma" else None
    return open_vector_store(job.name, job.workspace, address)


class LanceIndex:
    """An open table of LanceDB."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def search(self, vector: Vector, count: int) -> list[Hit]:
        query = self._table.search(vector).distance_type("cosine").limit(count)
        rows = query.nprobes(40).refine_factor(5).select(["window", "_distance"]).to_list()
        return [Hit(row["window"], 1.0 - row["_distance"]) for row in rows]

    def close(self) -> None:
        """A table holds nothing that has to be closed."""


class LanceStore:
    """A candidate that is measured alone: a LanceDB table with its index IVF_HNSW_SQ."""

    def __init__(self) -> None:
        import lancedb  # measured where it is installed

        self._connect = lancedb.connect

    def prepare(self) -> None:
        """Nothing has to be ready."""

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        import pyarrow  # comes with it

        kind = pyarrow.list_(pyarrow.float32(), SIZE)
        schema = pyarrow.schema([("window", pyarrow.string()), ("vector", kind)])

        def batches() -> Any:
            for page in stored.entries(_PAGE):
                flat = np.concatenate([entry.vector for entry in page])
                vectors = pyarrow.FixedSizeListArray.from_arrays(flat, SIZE)
                names = pyarrow.array([entry.id for entry in page])
                yield pyarrow.RecordBatch.from_arrays([names, vectors], schema=schema)

        reader = pyarrow.RecordBatchReader.from_batches(schema, batches())
        table = self._connect(stored.folder / "lance").create_table("windows", reader)
        table.create_index(metric="cosine", index_type="IVF_HNSW_SQ")

    def open(self, stored: StoredVectors) -> LanceIndex:
        return LanceIndex(self._connect(stored.folder / "lance").open_table("windows"))

    def keep_only(self, numbers: Collection[int]) -> None:
        """Nothing is shared between measures."""
