"""How much room does each part of a workspace take, what bounds it, and what would a clean-up free?"""

from storage.generations import Workspace
from storage.layout import LEASE, Layout, size_of
from storage.locks import Lease
from storage.records import Record
from storage.retention import stay
from storage.side import SidePart
from storage.survey import survey


class GenerationSize(Record):
    """`read`: somebody reads it now. `goes`: a clean-up removes it."""

    number: int
    size_bytes: int
    current: bool
    read: bool
    goes: bool


class Sizes(Record):
    """Bytes on disk. `side_bytes` is the file of `side`, `holes_bytes` what of it is empty; `leftover_bytes` is what a
    run left behind, `set_aside_bytes` are generations that were never published; `freed_bytes` is about what `trellis
    clean` frees."""

    generations: tuple[GenerationSize, ...]
    kept_generations: int
    side: tuple[SidePart, ...]
    side_bytes: int
    holes_bytes: int
    leftover_bytes: int
    set_aside_bytes: int
    total_bytes: int
    freed_bytes: int


def measure(workspace: Workspace, keep: int | None = None) -> Sizes:
    """What a workspace takes; nothing is made where there is none. `keep` is how many generations a clean-up leaves."""
    layout, most = Layout(workspace.root), keep or workspace.keep_generations
    generations = _generations(layout, most)
    side_bytes = sum(file.stat().st_size for file in layout.root.glob(f"{layout.side_file.name}*"))
    holes, leftovers = workspace.side.holes(), size_of(layout.staging)
    aside = sum(size_of(layout.folder(number)) for number in survey(layout).unpublished) + size_of(layout.set_aside)
    return Sizes(
        generations=generations, kept_generations=most, side=tuple(workspace.side.parts()),
        side_bytes=side_bytes, holes_bytes=holes, leftover_bytes=leftovers, set_aside_bytes=aside,
        total_bytes=size_of(layout.root),
        freed_bytes=leftovers + holes + sum(one.size_bytes for one in generations if one.goes),
    )  # fmt: skip


def _generations(layout: Layout, keep: int) -> tuple[GenerationSize, ...]:
    found = survey(layout)
    staying, current = stay(layout, found, keep), found.pointer.current if found.pointer else None
    sizes = []
    for number in sorted({*found.published, *found.retired}):
        read = _is_read(layout, number)
        sizes.append(
            GenerationSize(
                number=number, size_bytes=size_of(layout.folder(number)), current=number == current, read=read,
                goes=number not in staying and not read,
            )
        )  # fmt: skip
    return tuple(sizes)


def _is_read(layout: Layout, number: int) -> bool:
    lease = Lease.take(layout.folder(number) / LEASE, exclusive=True)
    if lease is not None:
        lease.release()
    return lease is None
