"""Which generations may go?"""

import shutil
from pathlib import Path

from storage.layout import LEASE, Layout, empty, sync
from storage.locks import Lease


def discard_leftovers(layout: Layout) -> None:
    """Removes what a run that died left behind. The caller holds the writer's lock."""
    empty(layout.staging)
    for folder in unpublished(layout):
        shutil.rmtree(folder)


def unpublished(layout: Layout) -> list[Path]:
    """The folders of generations that were never published: their runs died."""
    last = layout.pointer().last
    return [layout.folder(number) for number in layout.folders() if number > last]


def remove_old(layout: Layout, keep: int) -> list[int]:
    """Removes all but the newest `keep` generations, the current one and those being read; returns the removed numbers.

    Retired ones go first, however many are kept. The caller holds the writer's lock.
    """
    numbers = layout.numbers()
    staying = {*numbers[-keep:], layout.pointer().current}
    removed = []
    for number in [*layout.retired(), *numbers]:
        folder = layout.folder(number)
        lease = None if number in staying else Lease.take(folder / LEASE, exclusive=True)
        if lease is None:
            continue
        # Out of the readers' sight at once, deleted after: a reader never finds half a generation.
        going = layout.staging / f"going-{number}"
        folder.rename(going)
        lease.release()
        shutil.rmtree(going)
        removed.append(number)
    if removed:
        sync(layout.generations)
    return removed
