"""Who watches the steps is told of each that begins or ends: a progress bar, a stream of events, a
benchmark.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Is told the name of a step, and whether it begins or ends.
Watcher = Callable[[str, bool], None]
_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Tell `watcher` of every step that begins or ends during the block."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


@contextmanager
def told(name: str) -> Iterator[None]:
    """Tell whoever watches that the step `name` begins, and after the block that it ends."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(name, True)
    try:
        yield
    finally:
        if watcher is not None:
            watcher(name, False)
