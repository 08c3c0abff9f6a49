"""A mode as the registry knows it: a name, and the functions that find what an answer is written
from.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from flows.question import ModeResult, Resources
from storage.answer_records import Passage

T = TypeVar("T")


@dataclass(frozen=True)
class QueryMode:
    """A way to find the evidence for an answer.

    `retrieve` finds the `k` best passages alone; without it the search does. The parameters of both
    functions name what they need of `flows.question.Resources`.
    """

    name: str
    run: Callable[..., Awaitable[ModeResult]]
    retrieve: Callable[..., Awaitable[list[Passage]]] | None = None


def call_with(function: Callable[..., Awaitable[T]], resources: Resources, **further: object) -> Awaitable[T]:
    """Call a function with those of the resources that its parameters name, and with `further`."""
    names = [name for name in inspect.signature(function).parameters if name not in further]
    return function(**{name: getattr(resources, name) for name in names}, **further)
