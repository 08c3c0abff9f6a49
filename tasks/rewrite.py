"""What exactly is asked, and by which queries is the evidence found? (ERM4, Query Rewriter+)"""

from collections.abc import Sequence

from prompts.rewrite import MAX_QUERIES, Rewrite, Rewriting
from tasks.step import step


@step("rewrite")
async def rewrite(question: str, history: Sequence[str], rewriter: Rewrite) -> Rewriting:
    """One question that stands on its own, and its search queries, the question first."""
    found = await rewriter.run(question, history)
    queries = list(dict.fromkeys([found.question, *found.queries]))[:MAX_QUERIES]
    return found.model_copy(update={"queries": queries})
