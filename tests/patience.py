"""How long a test waits for what must happen: long, since none may depend on how fast or busy the
machine is; and what `make test` leaves to `make patient`.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

PATIENCE = 1_200.0  # seconds
PAUSE, SHARE = (
    0.1,
    0.05,
)  # seconds between two looks, and of a long wait this share of it: looking costs, too


def quick_are(quick: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """The cases as parameters of a test: `make test` does the quick ones, at least one of each
    kind, `make patient` the others.
    """
    chosen = list(quick)
    return [
        pytest.param(case, marks=() if case in chosen else pytest.mark.patient) for case in cases
    ]


def wait_for(holds: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """The first true value of `holds`."""
    began = time.monotonic()
    while not (found := holds()):
        if (waited := time.monotonic() - began) > seconds:
            pytest.fail(f"not within {seconds:.0f} s: {what}")
        time.sleep(max(PAUSE, SHARE * waited))
    return found
