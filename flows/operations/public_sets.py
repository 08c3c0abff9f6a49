"""Public question sets for an evaluation: their passages are indexed, their questions written.

Both are files below `sets/` in the workspace, so that an evaluation of them is one like any other.
"""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

from flows.index import IndexOptions, index_documents
from flows.runtime import Runtime, with_budget
from storage.errors import NoGeneration, UsageError
from storage.layout import write_atomically
from storage.records import Record
from storage.run_records import NO_BUDGET, Budget, Usage
from tasks.evaluate.measures import MEASURES, needs_met
from tasks.load.sources import compose, read_sources
from tasks.question_sets.load import write_questions
from tasks.question_sets.public_sets import ReadSet, public_set, read_public_set

SETS = "sets"


@dataclass(frozen=True)
class PublicSetOptions:
    """Which set, from which folder; the first `limit` questions, or with a `seed` drawn ones."""

    name: str
    data: Path
    limit: int | None = None
    seed: int | None = None

    @property
    def sample(self) -> str:
        """The name of these questions, as `hotpotqa-100-seed7`."""
        parts = [self.name, *([str(self.limit)] if self.limit is not None else [])]
        return "-".join([*parts, *([f"seed{self.seed}"] if self.seed is not None else [])])


class PreparedSet(Record):
    """A set that can be asked: the file of its questions and the measures that fit them.

    `read_from` are its published files; `usage` is what indexing took, None where the workspace
    held the passages already.
    """

    questions: str
    asked: int
    passages: int
    read_from: tuple[str, ...]
    measures: tuple[str, ...]
    usage: Usage | None = None


async def prepare_set(
    options: PublicSetOptions, runtime: Runtime, budget: Budget = NO_BUDGET
) -> PreparedSet:
    """Index the passages of a set, unless the workspace holds them, and write its questions.

    Raises UsageError for an unknown set, for missing or foreign files, and for a workspace with
    other documents; BudgetReached.
    """
    known = public_set(options.name)
    read = await asyncio.to_thread(
        read_public_set, known, options.data, options.limit, options.seed
    )
    folder = runtime.settings.workspace / SETS
    folder.mkdir(parents=True, exist_ok=True)
    corpus, questions = folder / f"{known.name}.corpus.jsonl", folder / f"{options.sample}.jsonl"
    await asyncio.to_thread(_write, read, corpus)
    write_questions(read.questions, questions)
    usage = None
    if not await asyncio.to_thread(_is_indexed, corpus, runtime):
        indexing = with_budget(runtime, budget)
        allowed = IndexOptions(allow_removals=True)  # another sample has other passages
        usage = (await index_documents([corpus], allowed, indexing)).usage
    met = needs_met(read.questions)
    return PreparedSet(
        questions=str(questions),
        asked=len(read.questions),
        passages=len(read.passages),
        read_from=read.files,
        measures=tuple(name for name in known.measures if met.issuperset(MEASURES[name].needs)),
        usage=usage,
    )


def left_of(budget: Budget, usage: Usage | None) -> Budget:
    """Return what indexing has left of a budget, at least a token and a hundredth of a cent."""
    if usage is None:
        return budget
    tokens, usd = budget.tokens, budget.usd
    return Budget(
        tokens=tokens and max(1, tokens - usage.input_tokens - usage.output_tokens),
        usd=usd and max(0.0001, usd - (usage.cost_usd or 0)),
    )


def _write(read: ReadSet, corpus: Path) -> None:
    rows = (passage.model_dump() for passage in read.passages)
    write_atomically(corpus, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _is_indexed(corpus: Path, runtime: Runtime) -> bool:
    """Whether the workspace holds these passages and no others, however they were indexed.

    Raises UsageError where it holds documents of another source.
    """
    loaded = read_sources([corpus])
    try:
        with runtime.workspace.read() as generation:
            held, parts = generation.documents.hashes(), generation.documents.parts()
    except NoGeneration:
        return False
    if held == {document.id: document.hash for document in compose(loaded.parts)}:
        return True
    if sources := {part.source for part in parts} - set(loaded.sources):
        raise UsageError(
            f"The workspace {runtime.settings.workspace} holds documents of {min(sources)}.",
            "Evaluate a public set in a workspace of its own: --workspace DIR.",
        )
    return False
