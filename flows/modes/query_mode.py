"""A query mode: a name, and the functions that find the evidence for an answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from flows.question import ModeResult, Resources
from storage.answer_records import Passage


@dataclass(frozen=True)
class QueryMode:
    """A way to find the evidence for an answer.

    `retrieve` returns the `k` best passages alone; a mode without it uses the search's.
    """

    name: str
    run: Callable[[Resources], Awaitable[ModeResult]]
    retrieve: Callable[[Resources, int], Awaitable[list[Passage]]] | None = None
