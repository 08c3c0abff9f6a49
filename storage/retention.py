"""Which generations may go?"""

import shutil

from storage.layout import LEASE, Layout, sync
from storage.locks import Lease


def remove_old(layout: Layout, keep: int) -> list[int]:
    """Removes all but the newest `keep` generations, the current one and those being read; returns the removed numbers.

    The caller holds the writer's lock.
    """
    numbers = layout.numbers()
    staying = {*numbers[-keep:], layout.pointer().current}
    removed = []
    for number in numbers:
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
