"""Rewrite: one question that stands on its own, and its search queries (ERM4, Query Rewriter+)."""

from collections.abc import Sequence

from prompts.rewrite import Rewrite, Rewriting
from tasks.step import step


@step("rewrite")
async def rewrite(question: str, history: Sequence[str], rewriter: Rewrite) -> Rewriting:
    """The rewritten question, which is, in one line, the first of its queries."""
    found = await rewriter.run(question, history)
    queries = list(dict.fromkeys(" ".join(query.split()) for query in [found.question, *found.queries]))
    return found.model_copy(update={"queries": queries})
