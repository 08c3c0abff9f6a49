"""Extraction, batch by batch: what came stays, what failed becomes a dead letter, and too many failures end the run."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial

from flows.indexing.changes import SourceChanges, rebind
from flows.indexing.concurrency import in_thread, side_by_side
from flows.runners.runner import Runner
from flows.runtime import Runtime
from storage.errors import FailureGate
from storage.records import Chunk, DeadLetter
from storage.staging import Staging
from tasks.extract import Extracts, extraction_inputs

BATCH = 64


@dataclass(frozen=True)
class Work:
    """Chunks to extract, the hash of what each is made from, and the weights of triples (by document and line).

    `earlier` are those that failed in an earlier run too: one that goes on failing must not keep out what is new.
    """

    todo: Sequence[Chunk]
    inputs: Mapping[str, str]
    weights: Mapping[tuple[str, str], float] = field(default_factory=dict)
    earlier: Collection[str] = ()


async def extract_chunks(
    chunks: Sequence[Chunk], changes: SourceChanges, staging: Staging, runtime: Runtime, runner: Runner
) -> set[str]:
    """Extract the chunks that no earlier run has, batch by batch; the documents of those that have extractions now."""
    author = runtime.authors["extract"]
    inputs = {part.id: extraction_inputs(part, author) for part in chunks}
    stored = {} if changes.full else staging.extractions.inputs()
    anew = {document.id for document in changes.plan.put}
    todo = [
        part
        for part in chunks
        if stored.get(part.id) != inputs[part.id] or (part.kind == "triples" and part.document in anew)
    ]
    documents = {part.document for part in todo}
    reused, todo = rebind(todo, inputs, changes)
    staging.extractions.save_extractions(reused, {found.chunk: inputs[found.chunk] for found in reused})
    earlier = {letter.item for letter in changes.letters if letter.step == "extract"}
    failed = await extract_all(Work(todo, inputs, changes.weights, earlier), staging, runtime, runner)
    staging.extractions.remove_dead_letters(step="extract")
    staging.extractions.remove_dead_letters(changes.outdated_letters, step="load")
    staging.extractions.put_dead_letters([*failed, *changes.loaded.dead_letters])
    limit = runtime.settings.failure_limit
    if failed and limit < 1 and not staging.extractions.inputs():
        raise _gated("extract", failed, len(failed), limit)  # nothing at all was extracted: there is nothing to publish
    return documents


async def extract_all(work: Work, staging: Staging, runtime: Runtime, runner: Runner) -> list[DeadLetter]:
    """Extract and store; what failed. FailureGate where more of the new failed than the settings allow."""
    todo, limit = work.todo, runtime.settings.failure_limit
    new = sum(chunk.id not in work.earlier for chunk in todo)
    failed: list[DeadLetter] = []
    done = 0
    batches = [todo[start : start + BATCH] for start in range(0, len(todo), BATCH)]
    works = (partial(runner.extract, batch, work.weights) for batch in batches)
    # So many batches at once that the model never waits for the last answers of one; offline there is no waiting.
    here = 1 if runtime.models.is_offline("extract") else 2 + runtime.settings.concurrency // BATCH
    async with aclosing(side_by_side(works, await runner.at_once(here) if todo else 1)) as results:
        async for found in results:
            await in_thread(_store, found, work.inputs, staging)
            failed += found.dead_letters
            done += len(found.extractions) + len(found.dead_letters)
            runtime.progress("extract", done, len(todo))
            gate("extract", [letter for letter in failed if letter.item not in work.earlier], new, limit)
    return failed


def _store(found: Extracts, inputs: Mapping[str, str], staging: Staging) -> None:
    staging.extractions.save_extractions(
        list(found.extractions), {one.chunk: inputs[one.chunk] for one in found.extractions}
    )


def gate(step: str, failed: Sequence[DeadLetter], total: int, limit: float) -> None:
    """Raise FailureGate, with the most frequent reason, where more failed than the limit: nothing of the run stays.

    One alone never ends a run, unless the limit is 0.
    """
    if len(failed) > max(1 if limit else 0, limit * total):
        raise _gated(step, failed, total, limit)


def _gated(step: str, failed: Sequence[DeadLetter], total: int, limit: float) -> FailureGate:
    (reason, remedy), times = Counter((letter.error, letter.remedy) for letter in failed).most_common(1)[0]
    error = FailureGate(step, len(failed), total, limit)
    error.message += f" {times} of them: {reason}"
    error.remedy = remedy or error.remedy
    error.args = (error.message, error.remedy)
    return error


def replace_letters(
    staging: Staging, step: str, failed: Sequence[DeadLetter], total: int, limit: float,
    items: Collection[str] | None = None,
) -> None:  # fmt: skip
    """The dead letters of a derived step (of some items, None: of all) in place of its earlier ones; FailureGate where
    there are too many."""
    gate(step, failed, total, limit)
    staging.extractions.remove_dead_letters(items, step)
    staging.extractions.put_dead_letters(failed)
