"""Which generations may go?"""

import shutil

from storage.errors import StorageError, WorkspaceFormatError
from storage.layout import LEASE, Layout, sync
from storage.locks import Lease
from storage.survey import Survey, damage, survey


def remove_old(layout: Layout, keep: int) -> list[int]:
    """Removes all but the newest `keep` generations, the current one and those being read; returns the removed numbers.

    Damaged ones stay and do not count. Retired ones go first, however many are kept, and those that were set aside and
    are retired. The caller holds the writer's lock, and has mended what there was to mend.
    """
    found = survey(layout)
    staying = stay(layout, found, keep)
    removed = []
    for number in [*found.retired, *found.published]:
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
    for number in found.retired_aside:
        shutil.rmtree(layout.folder_aside(number))
        removed.append(number)
    if removed:
        sync(layout.generations)
    return sorted(removed)


def stay(layout: Layout, found: Survey, keep: int) -> set[int]:
    """The published generations that no clean-up removes: the newest `keep`, the current one, and the damaged."""
    damaged = {number for number in found.published if _is_damaged(layout, number)}
    sound = [number for number in found.published if number not in damaged]
    current = found.pointer.current if found.pointer else None
    return {*damaged, *sound[-keep:], *([] if current is None else [current])}


def _is_damaged(layout: Layout, number: int) -> bool:
    try:
        return bool(damage(layout.folder(number), number))
    except WorkspaceFormatError:
        return False
    except StorageError:
        return True  # nothing is known of its content
