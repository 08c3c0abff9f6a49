"""How are passages extracted batch by batch, so that what came stays and too many failures end the run?"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial

from flows.indexing_store import gate
from flows.runners.runner import Runner
from flows.runtime import Runtime
from flows.side_by_side import in_thread, side_by_side
from storage.records import Chunk, DeadLetter
from storage.staging import Staging
from tasks.extract import Extracts

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
