"""Rewrite: one question that stands on its own, and its search queries (ERM4, Query Rewriter+)."""

from collections.abc import Mapping, Sequence

from prompts.rewrite import Rewrite, Rewriting
from storage.errors import UsageError
from tasks.step import step


def turns(history: Sequence[str | Mapping[str, object]]) -> tuple[str, ...]:
    """The words of a conversation's earlier turns, each given as its text or as `{"role", "content"}` of a chat.

    Raises UsageError for anything else, also for other roles than user and assistant: they are no turns.
    """
    if isinstance(history, str):
        raise UsageError("The history is one text.", "Give it as a list of turns, oldest first.")
    return tuple(map(_words, history))


def _words(turn: object) -> str:
    if isinstance(turn, str):
        return turn
    words = turn.get("content") if isinstance(turn, Mapping) and turn.get("role") in {"user", "assistant"} else None
    if isinstance(words, str):
        return words
    raise UsageError(
        f"A turn of the history is {str(turn)[:80]}.",
        'Give a turn as its text, or as {"role": "user" or "assistant", "content": its text}.',
    )


@step("rewrite")
async def rewrite(question: str, history: Sequence[str], rewriter: Rewrite) -> Rewriting:
    """The rewritten question, which is, in one line, the first of its queries."""
    found = await rewriter.run(question, history)
    queries = list(dict.fromkeys(" ".join(query.split()) for query in [found.question, *found.queries]))
    return found.model_copy(update={"queries": queries})
