"""What the tables of documents answer: plan, compute, tell (StructRAG, section 2.4: decompose, extract, infer).

The question becomes a plan over the tables that are there, and SQL on the workbench selects, counts and computes.
Nothing that a model writes is run: a plan names operations of ours.
"""

import asyncio
from collections.abc import Sequence

from prompts.plan_table import PlanTable
from storage.records import Document, TableResult
from tasks.step import step
from tasks.tables.relations import relations_of
from tasks.tables.run import DoesNotFit, run
from tasks.tables.tell import tell


@step("tables")
async def answer_from_tables(question: str, documents: Sequence[Document], planner: PlanTable) -> TableResult | None:
    """The result for a question, or None where the documents have no tables or the planner sees no plan.

    A plan that does not fit the tables gives a result without cells, whose `plan` says why.
    """
    # New documents take CPU: other questions go on meanwhile.
    tables = await asyncio.to_thread(relations_of, documents)
    plan = await planner.run(question, [table.view for table in tables]) if tables else None
    if plan is None:
        return None
    try:
        return tell(question, await asyncio.to_thread(run, plan, tables))
    except DoesNotFit as problem:
        return TableResult(plan=f"does not fit: {problem}")
