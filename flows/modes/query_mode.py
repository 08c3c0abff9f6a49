"""A mode as the registry knows it: a name, and the functions that find what an answer is written
from.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from flows.question import ModeResult, Resources
from storage.answer_records import Passage


@dataclass(frozen=True)
class QueryMode:
    """A way to find the evidence for an answer.

    `retrieve` finds the `k` best passages alone; without it the search does.
    """

    name: str
    run: Callable[[Resources], Awaitable[ModeResult]]
    retrieve: Callable[[Resources, int], Awaitable[list[Passage]]] | None = None
