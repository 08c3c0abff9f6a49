"""How tests wait, whatever the speed of the machine, and what `make test` leaves out."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

PATIENCE = 1_200.0  # seconds
PAUSE, SHARE = 0.1, 0.05  # between two looks: seconds, or a share of the time waited so far


def quick_are(quick: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """The cases as parameters: `make test` runs the quick ones, `make patient` the others."""
    chosen = list(quick)
    return [
        pytest.param(case, marks=() if case in chosen else pytest.mark.patient) for case in cases
    ]


def wait_for(holds: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Wait for the first true value of `holds`."""
    began = time.monotonic()
    while not (found := holds()):
        if (waited := time.monotonic() - began) > seconds:
            pytest.fail(f"not within {seconds:.0f} s: {what}")
        time.sleep(max(PAUSE, SHARE * waited))
    return found
