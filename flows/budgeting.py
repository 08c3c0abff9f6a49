"""How much may a run spend? What is given on the command line or in a form becomes the purse of its calls."""

from dataclasses import replace

from flows.runtime import Runtime
from prompts.engine.embedding_api import ApiEmbedder
from prompts.engine.purse import Purse
from prompts.engine.roles import Role
from storage.errors import UsageError
from storage.spending import Budget

# The roles of an index run.
INDEXING: tuple[Role, ...] = ("extract", "resolve", "summarize", "report")


def within(runtime: Runtime, budget: Budget) -> Runtime:
    """The runtime with so much to spend, embedding included.

    Raises UsageError for dollars where the price of a model is unknown, and where calls are made by other processes.
    """
    if budget.tokens is None and budget.usd is None:
        return runtime
    if runtime.settings.runner != "local":
        raise UsageError(
            f"A budget cannot be kept by the runner {runtime.settings.runner!r}: its processes count apart.",
            "Use the runner `local` (TRELLIS_RUNNER), or leave the budget out.",
        )
    embedder = runtime.embedder
    if budget.usd is not None:
        unpriced = runtime.models.unpriced(INDEXING)
        if isinstance(embedder, ApiEmbedder) and embedder.unpriced:
            unpriced.append(embedder.name)
        if unpriced:
            raise UsageError(
                f"A budget in US dollars cannot be kept: nobody has told the price of {', '.join(unpriced)}.",
                "Give a budget in tokens (--budget-tokens), or use models with a list price.",
            )
    purse = Purse(budget.tokens, budget.usd)
    if isinstance(embedder, ApiEmbedder):
        embedder = embedder.within(purse)
    return replace(runtime, models=runtime.models.within(purse), embedder=embedder)
