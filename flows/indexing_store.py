"""What does an index run read from the last generation, and how does it write the next one?"""

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from flows.runtime import Runtime, usage_of
from flows.side_by_side import in_thread
from storage.errors import FailureGate, NoGeneration
from storage.generations import Generation
from storage.graph import GraphRows
from storage.records import (
    Chunk,
    DeadLetter,
    Entity,
    Extraction,
    IndexReport,
    Report,
)
from storage.staging import Staging
from tasks.dedupe import Graph
from tasks.load.sources import Loaded
from tasks.retrieve.lexical import chunk_terms
from tasks.summarize import Known
from tasks.sync import (
    SyncPlan,
    holds,
    keep_out,
    plan_sync,
    touched,
    unchanged_documents,
    with_gone_inside,
    with_unchanged,
)

if TYPE_CHECKING:
    from flows.indexing import IndexOptions


@dataclass(frozen=True)
class Carried:
    """What was read from the sources and from the current generation before anything is written.

    `extractions` are those of documents that go or change, by inputs hash, with the chunk each was made of: the same
    text under another name needs no new extraction.
    """

    loaded: Loaded
    plan: SyncPlan
    full: bool
    generation: int | None
    fingerprint: str
    extractions: Mapping[str, tuple[Chunk, Extraction]]
    letters: tuple[DeadLetter, ...] = ()

    @property
    def outdated_letters(self) -> list[str]:
        """The items of stored dead letters from the sources that were read again: what still fails is reported anew."""
        return [
            letter.item
            for letter in self.letters
            if letter.step == "load" and any(holds(source, letter.item) for source in self.loaded.sources)
        ]

    @property
    def retry(self) -> bool:
        """Whether dead letters alone are a reason to run: work to try again, or rows that fail or no longer do."""
        rows = {letter.item for letter in self.loaded.dead_letters}
        return any(letter.step != "load" for letter in self.letters) or rows != set(self.outdated_letters)

    @property
    def weights(self) -> dict[tuple[str, str], float]:
        """The weight of each triple of the documents that are stored anew, by document and rendered line."""
        return {(d.id, t.rendered()): t.weight for d in self.plan.put for part in d.parts for t in part.triples}


def carried_over(loaded: Loaded, options: "IndexOptions", runtime: Runtime) -> Carried:
    """Compare the sources with the current generation."""
    try:
        generation = runtime.workspace.read()
    except NoGeneration:
        plan = plan_sync(loaded, {}, 0, options.allow_removals)
        return Carried(loaded, plan, options.full, None, "", {})
    with generation:
        known, forgotten = generation.documents.parts(), generation.documents.forgotten()
        loaded = with_gone_inside(loaded, known)
        loaded = keep_out(loaded, forgotten, generation.documents.forgotten_texts(), {part.document for part in known})
        same = frozenset[str]() if options.full else unchanged_documents(loaded, known)
        rest = loaded.model_copy(update={"parts": tuple(part for part in loaded.parts if part.document not in same)})
        mine = touched(loaded, known) - same
        stored = {document.id: document for document in generation.documents.documents(mine)}
        total = len({part.document for part in known if part.source in loaded.sources})
        plan = with_unchanged(plan_sync(rest, stored, total, options.allow_removals), len(same))
        fingerprint = str(generation.meta.get_meta("fingerprint"))
        if fingerprint != runtime.fingerprint or options.full:
            # Another chunk size, model or embedder: everything is made again from the stored texts.
            everything = {d.id: d for d in generation.documents.documents()} | {d.id: d for d in plan.put}
            kept = tuple(everything[name] for name in sorted(set(everything) - set(plan.removed)))
            plan = plan.model_copy(update={"put": kept})
        leaving = {*plan.removed, *(document.id for document in plan.put)}
        return Carried(
            loaded,
            plan,
            options.full,
            generation.number,
            fingerprint,
            {} if options.full else _extractions(generation, leaving),
            tuple(generation.extractions.dead_letters()),
        )


def _extractions(generation: Generation, documents: set[str]) -> dict[str, tuple[Chunk, Extraction]]:
    chunks = {chunk.id: chunk for chunk in generation.documents.chunks(documents=documents)}
    inputs = generation.extractions.inputs()
    return {inputs[e.chunk]: (chunks[e.chunk], e) for e in generation.extractions.extractions(list(chunks))}


def unchanged(carried: Carried, runtime: Runtime) -> bool:
    """Whether the current generation already is what this run would publish."""
    return (
        carried.generation is not None
        and carried.plan.nothing_to_do
        and carried.fingerprint == runtime.fingerprint
        and not carried.retry
    )


def only_failed_again(carried: Carried, staging: Staging, runtime: Runtime, derived: bool = False) -> bool:
    """Whether a run that had nothing but failed work to try again ends with the same failures: then nothing is new.

    Before what follows from the passages is `derived`, that is known only where nothing of it failed.
    """
    return (
        carried.generation is not None
        and carried.plan.nothing_to_do
        and carried.fingerprint == runtime.fingerprint
        and (derived or all(letter.step in ("extract", "load") for letter in carried.letters))
        and {(letter.item, letter.step) for letter in staging.extractions.dead_letters()}
        == {(letter.item, letter.step) for letter in carried.letters}
    )


def rebind(todo: Sequence[Chunk], inputs: Mapping[str, str], carried: Carried) -> tuple[list[Extraction], list[Chunk]]:
    """Take over extractions of the same text under another id; the rest still has to be extracted.

    Triples never are: their weights stand in the document, not in the text that the inputs hash.
    """
    reused, left = [], []
    for chunk in todo:
        if chunk.kind == "triples" or inputs[chunk.id] not in carried.extractions:
            left.append(chunk)
            continue
        old, extraction = carried.extractions[inputs[chunk.id]]
        reused.append(_moved(extraction, chunk.id, chunk.start - old.start))
    return reused, left


def _moved(extraction: Extraction, chunk: str, shift: int) -> Extraction:
    mentions = (
        m.model_copy(update={"chunk": chunk, "start": m.start + shift, "end": m.end + shift})
        for m in extraction.mentions
    )
    relations = (
        r.model_copy(update={"chunk": chunk, "start": r.start + shift, "end": r.end + shift})
        for r in extraction.relations
    )
    claims = (
        c.model_copy(update={"chunk": chunk, "start": c.start + shift, "end": c.end + shift}) for c in extraction.claims
    )
    return Extraction(chunk=chunk, mentions=tuple(mentions), relations=tuple(relations), claims=tuple(claims))


def gate(step: str, failed: Sequence[DeadLetter], total: int, limit: float) -> None:
    """Raise FailureGate, with the most frequent reason, where more failed than the limit: nothing of the run stays.

    One alone never ends a run, unless the limit is 0.
    """
    if len(failed) <= max(1 if limit else 0, limit * total):
        return
    (reason, remedy), times = Counter((letter.error, letter.remedy) for letter in failed).most_common(1)[0]
    error = FailureGate(step, len(failed), total, limit)
    error.message += f" {times} of them: {reason}"
    error.remedy = remedy or error.remedy
    error.args = (error.message, error.remedy)
    raise error


def keep_letters(staging: Staging, step: str, failed: Sequence[DeadLetter], total: int, limit: float) -> None:
    """The dead letters of a derived step in place of its earlier ones; FailureGate where there are too many."""
    gate(step, failed, total, limit)
    staging.extractions.remove_dead_letters(step=step)
    staging.extractions.put_dead_letters(failed)


def replace_letters(
    staging: Staging, step: str, failed: Sequence[DeadLetter], items: Collection[str], total: int, limit: float
) -> None:
    """The dead letters of some items of a derived step in place of their earlier ones; FailureGate likewise."""
    gate(step, failed, total, limit)
    staging.extractions.remove_dead_letters(items, step)
    staging.extractions.put_dead_letters(failed)


def store_chunks(staging: Staging, plan: SyncPlan, chunks: Sequence[Chunk]) -> set[str]:
    """Documents and chunks of what is new; what has gone is removed with all it had.

    Returns the documents that have other chunks than before, or some at another place.
    """
    owners = {*plan.removed, *(document.id for document in plan.put)}
    before = {(one.document, one.id, one.start) for one in staging.documents.chunks(documents=owners)}
    after = {(one.document, one.id, one.start) for one in chunks}
    with staging.transaction():
        staging.documents.remove_documents(list(plan.removed))
        staging.documents.put_documents(list(plan.put))
        staging.documents.put_chunks(list(chunks), documents=[document.id for document in plan.put])
    return {document for document, _, _ in before ^ after}


async def store_terms(staging: Staging, chunks: Sequence[Chunk], batch: int) -> None:
    """The terms of the chunks that have none yet, batch by batch: what waits for a model gets its turn in between."""
    done = staging.postings.chunks_with_postings()
    todo = [chunk for chunk in chunks if chunk.id not in done]
    for start in range(0, len(todo), batch):
        counts = {}
        for one in todo[start : start + batch]:
            counts[one.id] = dict(chunk_terms(one))
            await asyncio.sleep(0)
        await in_thread(staging.postings.put_postings, counts)


def store_graph(
    staging: Staging,
    graph: Graph,
    entities: Sequence[Entity],
) -> None:
    """The graph, with its entities as they are described."""
    rows = GraphRows(
        entities, graph.aliases, graph.entity_occurrences, graph.relations, graph.relation_occurrences,
        graph.claims, graph.strengths,
    )  # fmt: skip
    staging.graph.replace_graph(rows)


def store_vectors(staging: Staging, model: str, vectors: Mapping[str, NDArray[np.float32]]) -> None:
    """New vectors, by text hash."""
    staging.vectors.put(model, dict(vectors))


def known_reports(staging: Staging) -> dict[str, Report]:
    """The last generation's reports, by what they were written from."""
    return {report.inputs: report for report in staging.communities.reports()}


def known_descriptions(
    staging: Staging, entities: Collection[str] | None = None, relations: Collection[str] | None = None
) -> dict[str, Known]:
    """What models have written of these entities and relations of the last generation (None: of all), by id."""
    inputs = staging.descriptions.inputs()
    if not inputs:
        return {}
    known = {
        one.id: Known(inputs=inputs[one.id], text=one.description)
        for one in staging.graph.entities(entities)
        if one.id in inputs
    }
    return known | {
        one.id: Known(inputs=inputs[one.id], text=one.description, keys=one.keys)
        for one in staging.graph.relations(relations)
        if one.id in inputs
    }


def summary_of(carried: Carried, runtime: Runtime, started: float, published: int | None = None) -> IndexReport:
    """The report of a run that published `published`, or found nothing to do (None)."""
    with runtime.workspace.read(published) as generation:
        counts = generation.meta.counts()
        number = generation.number
    seconds = time.monotonic() - started
    return IndexReport(
        generation=number,
        published=published is not None,
        documents=carried.plan.counts,
        skipped=carried.loaded.skipped,
        chunks=counts["chunks"],
        entities=counts["entities"],
        relations=counts["relations"],
        claims=counts["claims"],
        communities=counts["communities"],
        reports=counts["reports"],
        dead_letters=counts["dead_letters"],
        usage=usage_of(runtime.models.meter, seconds),
        seconds=seconds,
    )
