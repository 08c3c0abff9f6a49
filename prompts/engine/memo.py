"""How is a thing that never changes made only once for each signature?"""

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")
_KEPT = 256


def memo(function: Callable[P, T]) -> Callable[P, T]:
    """The function with its last results kept; its arguments are hashable, its results are never changed."""
    return cast("Callable[P, T]", lru_cache(maxsize=_KEPT)(function))
