"""Report each step that begins or ends to a progress bar, an event stream or a benchmark."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Called with the name of a step: True when it begins, False when it ends.
Watcher = Callable[[str, bool], None]
_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` for every step that begins or ends during the block."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


@contextmanager
def announced(name: str) -> Iterator[None]:
    """Tell the watcher, if there is one, that the step `name` runs during the block."""
    watcher = _WATCHER.get()
    if watcher is None:
        yield
        return
    watcher(name, True)
    try:
        yield
    finally:
        watcher(name, False)
