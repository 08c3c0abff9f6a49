"""How often does Python look for cyclic garbage while an index is built?

An index run makes hundreds of thousands of records that live as long as it does; by default the collector walks through
all of them again and again, which is an eighth of a run's processor time, and finds nothing.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# New objects before a look at them, and how many looks before one at older objects; Python's own are 700, 10, 10.
_RARELY = (20_000, 20, 20)


@contextmanager
def rare_collection() -> Iterator[None]:
    """Look for cyclic garbage rarely during the block."""
    usual = gc.get_threshold()
    gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
