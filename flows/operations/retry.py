"""Retry: failed work is tried again, without the sources that it came from.

Exactly what failed is done anew, from what is stored: the passages that could not be extracted, and the descriptions,
reports and decisions that a model refused. What succeeds is published.
"""

import time
from collections.abc import Sequence

from flows.index import derive
from flows.indexing.batches import Work, extract_all
from flows.indexing.changes import author_of
from flows.indexing.concurrency import relaxed_gc
from flows.runners import open_runner
from flows.runtime import Runtime, usage_of
from storage.generations import OpenGeneration
from storage.records import DeadLetter, Record
from storage.run_records import Usage
from storage.staging import Staging
from tasks.extract import extraction_inputs


class Letter(DeadLetter):
    """A dead letter with the document of its passage; None where it is of no passage that is still there."""

    document: str | None = None

    @property
    def needs_source(self) -> bool:
        """Whether only another run on its source can mend it: what could not be read is stored nowhere."""
        return self.step == "load"


class RetryReport(Record):
    """What came of it: `failed` are letters that were tried in vain, `waiting` those that need their source.

    `published` is False where nothing succeeded: then the generation is the one that was there.
    """

    tried: int
    succeeded: int
    failed: tuple[Letter, ...]
    waiting: tuple[Letter, ...]
    generation: int
    published: bool
    usage: Usage


def letters_of(generation: OpenGeneration) -> tuple[Letter, ...]:
    """All dead letters of a generation, by step and item."""
    found = generation.extractions.dead_letters()
    passages = generation.documents.chunks(ids={one.item for one in found if one.step == "extract"})
    documents = {chunk.id: chunk.document for chunk in passages}
    return tuple(Letter(**dict(one), document=documents.get(one.item)) for one in found)


async def retry(runtime: Runtime) -> RetryReport:
    """Try the failed work of the current generation again and publish what succeeds.

    Raises NoGeneration, WorkspaceLocked, and FailureGate where what follows from the new passages fails in turn.
    """
    started = time.monotonic()
    runtime.workspace.recover()
    runtime.workspace.read().close()  # NoGeneration before anything is written
    with runtime.workspace.write() as staging, relaxed_gc():
        before = letters_of(staging)
        tried = [one for one in before if not one.needs_source]
        succeeded = 0
        if tried:
            await _extract(tried, staging, runtime)
            documents = {one.document for one in tried if one.document is not None}
            await derive(staging.documents.chunks(), documents, staging, runtime)
            left = {(one.item, one.step) for one in letters_of(staging)}
            succeeded = sum((one.item, one.step) not in left for one in tried)
        after = letters_of(staging) if succeeded else before
        number = staging.publish() if succeeded else staging.base_number or 0
    return RetryReport(
        tried=len(tried), succeeded=succeeded, generation=number, published=succeeded > 0,
        failed=tuple(one for one in after if not one.needs_source),
        waiting=tuple(one for one in after if one.needs_source),
        usage=usage_of(runtime.models.meter, time.monotonic() - started),
    )  # fmt: skip


async def _extract(letters: Sequence[Letter], staging: Staging, runtime: Runtime) -> None:
    """Extract the passages of the letters; those that fail again keep a letter."""
    items = {one.item for one in letters if one.step == "extract"}
    todo = staging.documents.chunks(ids=items)
    # Counted as what the generation was made with, also where another model takes over what that one could not do:
    # else the next run would give it back to the one that failed.
    author = author_of("extract", staging.meta, runtime)
    inputs = {chunk.id: extraction_inputs(chunk, author) for chunk in todo}
    async with open_runner(runtime) as runner:
        failed = await extract_all(Work(todo, inputs, earlier=items), staging, runtime, runner)
    staging.extractions.remove_dead_letters(step="extract")
    staging.extractions.put_dead_letters(failed)
