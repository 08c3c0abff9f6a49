"""Retry exactly what failed when the current generation was made, without its sources."""

import time

from flows.index import derive
from flows.indexing.batches import (
    ExtractionWork,
    embed_propositions,
    extract_all,
    propose_all,
)
from flows.indexing.source_changes import author_of
from flows.operations.history import next_generation, remembered
from flows.operations.watch import watched_after
from flows.runners import open_runner
from flows.runtime import Runtime, usage_of
from prompts.propositions import ListStatements
from storage.records import DeadLetter, Record
from storage.run_records import Usage
from storage.staging import OpenGeneration, Staging
from tasks.extract import extraction_inputs
from tasks.propositions import proposition_inputs


class Letter(DeadLetter):
    """A dead letter with the document of its passage; None where it has no stored passage."""

    document: str | None = None

    @property
    def needs_source(self) -> bool:
        """Whether only another run on its source can help: what could not be read is not stored."""
        return self.step == "load"


class RetryReport(Record):
    """The result of a retry: `failed` letters failed again, `waiting` letters need their source.

    Where nothing succeeded, nothing is `published` and `generation` is the current one.
    """

    tried: int
    succeeded: int
    failed: tuple[Letter, ...]
    waiting: tuple[Letter, ...]
    generation: int
    published: bool
    usage: Usage


def letters_of(generation: OpenGeneration) -> tuple[Letter, ...]:
    """Return all dead letters of a generation, by step and item."""
    letters = generation.extractions.dead_letters()
    passages = generation.documents.chunks(
        ids={letter.item for letter in letters if letter.step in {"extract", ListStatements.step}}
    )
    documents = {chunk.id: chunk.document for chunk in passages}
    return tuple(Letter(**dict(letter), document=documents.get(letter.item)) for letter in letters)


async def retry(runtime: Runtime) -> RetryReport:
    """Retry the failed work of the current generation, and publish what succeeds.

    Raises NoGeneration, WorkspaceLocked, and FailureGate where too much of what follows from the
    new passages fails.
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
            passages = {letter.item for letter in tried if letter.step == "extract"}
            await _extract_again(passages, staging, runtime)
            unlisted = {letter.item for letter in tried if letter.step == ListStatements.step}
            await _propose_again(unlisted, staging, runtime)
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
    """Extract the passages; those that fail again keep a dead letter."""
    todo = staging.documents.chunks(ids=passages)
    # Counted as work of the generation's own author, also where another model takes over: else the
    # next run would give these passages back to the model that failed.
    author = author_of("extract", staging.meta, runtime)
    inputs = {chunk.id: extraction_inputs(chunk, author) for chunk in todo}
    async with open_runner(runtime) as runner:
        failed = await extract_all(
            ExtractionWork(todo, inputs, earlier=passages), staging, runtime, runner
        )
    staging.extractions.remove_dead_letters(step="extract")
    staging.extractions.put_dead_letters(failed)


async def _propose_again(passages: set[str], staging: Staging, runtime: Runtime) -> None:
    """List the propositions of the passages; those that fail again keep a dead letter."""
    proposer = ListStatements(runtime.models)
    todo = staging.documents.chunks(ids=passages) if passages else []
    author = author_of(proposer.step, staging.meta, runtime) if todo else ""
    inputs = {chunk.id: proposition_inputs(chunk, author) for chunk in todo}
    failed = await propose_all(todo, inputs, proposer, staging, runtime)
    staging.extractions.remove_dead_letters(passages, proposer.step)
    staging.extractions.put_dead_letters(failed)
    await embed_propositions(todo, staging, runtime)
