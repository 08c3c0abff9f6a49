"""Make a question set from one's own documents, with the evidence of each answer."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flows.runtime import Runtime, usage_of
from storage.records import Chunk, Record
from storage.run_records import Usage
from tasks.chunk import chunk
from tasks.load.sources import compose, load
from tasks.question_sets.load import write_questions
from tasks.question_sets.synthesize import make_questions


class QuestionsReport(Record):
    """The file, the questions of each kind, and how many duplicates and rejects were dropped."""

    path: str
    questions: int
    kinds: dict[str, int]
    duplicates: int
    rejected: int
    usage: Usage


@dataclass(frozen=True)
class QuestionSetOptions:
    """The kinds and the number of questions; another seed draws other passages."""

    kinds: Sequence[str] = ("global",)
    number: int = 125
    seed: int = 0


async def make_question_set(
    sources: Sequence[str], options: QuestionSetOptions, path: Path, runtime: Runtime
) -> QuestionsReport:
    """Write questions about the sources (none: about what is indexed) into a file.

    The set is smaller than `number` where the documents give no more questions.
    """
    started = time.monotonic()
    chunks = await _chunks(sources, runtime)
    models = runtime.models
    made = await make_questions(chunks, options.kinds, options.number, models, options.seed)
    write_questions(made.questions, path)
    return QuestionsReport(
        path=str(path),
        questions=len(made.questions),
        kinds=Counter(question.kind for question in made.questions),
        duplicates=made.duplicates,
        rejected=made.rejected,
        usage=usage_of(models.meter, time.monotonic() - started),
    )


async def _chunks(sources: Sequence[str], runtime: Runtime) -> list[Chunk]:
    """Return the chunks of the sources as an index run cuts them, or the stored ones."""
    if not sources:
        with runtime.workspace.read() as generation:
            return generation.documents.chunks()
    settings = runtime.settings
    loaded = await load(sources, runtime.models.cache)
    return await chunk(compose(loaded.parts), settings.chunk_tokens, settings.chunk_overlap)
