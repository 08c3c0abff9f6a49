"""Another try of exactly what failed when the current generation was made, without its sources."""

import time

from flows.index import derive
from flows.indexing.batches import ExtractionWork, extract_all
from flows.indexing.source_changes import author_of
from flows.operations.history import next_generation, remembered
from flows.operations.watch import watched_after
from flows.runners import open_runner
from flows.runtime import Runtime, usage_of
from storage.records import DeadLetter, Record
from storage.run_records import Usage
from storage.staging import OpenGeneration, Staging
from tasks.extract import extraction_inputs


class Letter(DeadLetter):
    """A dead letter with the document of its passage; None where it is of no passage that is still
    there.
    """

    document: str | None = None

    @property
    def needs_source(self) -> bool:
        """Whether only another run on its source can mend it: what could not be read is stored
        nowhere.
        """
        return self.step == "load"


class RetryReport(Record):
    """What came of it: `failed` are letters that were tried in vain, `waiting` those that need
    their source.

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
    letters = generation.extractions.dead_letters()
    passages = generation.documents.chunks(
        ids={letter.item for letter in letters if letter.step == "extract"}
    )
    documents = {chunk.id: chunk.document for chunk in passages}
    return tuple(Letter(**dict(letter), document=documents.get(letter.item)) for letter in letters)


async def retry(runtime: Runtime) -> RetryReport:
    """Try exactly the failed work of the current generation again, without its sources; publish
    what succeeds.

    Raises NoGeneration, WorkspaceLocked, and FailureGate where what follows from the new passages
    fails in turn.
    """
    async with remembered("retry", runtime) as summary:
        report = await _retry(runtime)
        if report.tried:
            summary.update(report.model_dump(include={"generation", "published", "succeeded"}))
            summary["seconds"] = round(report.usage.seconds, 2)
    return report


async def _retry(runtime: Runtime) -> RetryReport:
    started = time.monotonic()
    with next_generation(runtime) as staging:
        before = letters_of(staging)
        tried = [letter for letter in before if not letter.needs_source]
        succeeded = 0
        if tried:
            await _extract_again(
                {letter.item for letter in tried if letter.step == "extract"}, staging, runtime
            )
            documents = {letter.document for letter in tried if letter.document is not None}
            await derive(staging.documents.chunks(), documents, staging, runtime)
            left = {(letter.item, letter.step) for letter in letters_of(staging)}
            succeeded = sum((letter.item, letter.step) not in left for letter in tried)
        after = letters_of(staging) if succeeded else before
        number = staging.publish() if succeeded else staging.base_number or 0
    if succeeded:
        await watched_after(runtime)
    return RetryReport(
        tried=len(tried),
        succeeded=succeeded,
        generation=number,
        published=succeeded > 0,
        failed=tuple(letter for letter in after if not letter.needs_source),
        waiting=tuple(letter for letter in after if letter.needs_source),
        usage=usage_of(runtime.models.meter, time.monotonic() - started),
    )


async def _extract_again(passages: set[str], staging: Staging, runtime: Runtime) -> None:
    """Extract passages that failed; those that fail again keep a letter."""
    todo = staging.documents.chunks(ids=passages)
    # Counted as what the generation was made with, also where another model takes over what that
    # one could not do: else the next run would give it back to the one that failed.
    author = author_of("extract", staging.meta, runtime)
    inputs = {chunk.id: extraction_inputs(chunk, author) for chunk in todo}
    async with open_runner(runtime) as runner:
        failed = await extract_all(
            ExtractionWork(todo, inputs, earlier=passages), staging, runtime, runner
        )
    staging.extractions.remove_dead_letters(step="extract")
    staging.extractions.put_dead_letters(failed)
