"""What do the tables of many documents answer? Decompose, extract, infer (StructRAG, section 2.4) on typed plans.

The question becomes a plan, each document gives the cells that the plan needs, and SQL on the workbench sorts, counts
and computes. Nothing that a model writes is run: a plan names operations of ours.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from prompts.language.asked import Ask
from prompts.structures.table import WriteTable
from prompts.utilize import PlanTable
from storage.records import Document
from tasks.step import step
from tasks.structurize.tables import cells_in, matching, thing_of
from tasks.utilize.gather import gather
from tasks.utilize.subjects import Subject, proper
from tasks.utilize.tell import ChunkAt, Told, tell
from tasks.utilize.work import work
from tasks.utilize.written import with_written

# Documents by id.
Read = Callable[[Sequence[str]], Mapping[str, Document]]


@step("utilize")
async def utilize(  # noqa: PLR0913, PLR0917 -- what is asked, of what, and who plans and reads
    ask: Ask, documents: Sequence[str], read: Read, chunk_at: ChunkAt, planner: PlanTable, for_table: bool = False,
    writer: WriteTable | None = None,
) -> Told | None:  # fmt: skip
    """The answer from the tables of all the documents (ids), or None where the question is none for tables, or where
    they hold nothing of it: then passages have to answer. Documents are read only for a question with a plan.

    `for_table`: the router has chosen a table; then the `writer`, where it has a model, reads the documents in which
    no rule finds what is asked for.
    """
    plan = await planner.run(ask, for_table)
    if plan is None or not documents:
        return None
    stored = read(documents)
    # New documents and attributes take CPU: other questions go on meanwhile.
    subjects = await asyncio.gather(*(asyncio.to_thread(subject_of, stored[name]) for name in documents))
    gathered = await asyncio.to_thread(gather, plan, ask.text, subjects, matching)
    if for_table and writer is not None and not writer.is_offline and (gathered is None or gathered.missing):
        subjects = await with_written(plan, subjects, stored, writer)
        gathered = await asyncio.to_thread(gather, plan, ask.text, subjects, matching)
    if gathered is None or not gathered.found:
        return None
    return tell(ask, gathered, work(gathered), chunk_at)


def subject_of(document: Document) -> Subject:
    """A document with what it is about and all its cells."""
    names = proper([name for name in thing_of(document) if name != document.title])
    return Subject(document.id, document.title, names, cells_in(document))
