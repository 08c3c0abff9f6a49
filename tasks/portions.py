"""What goes together into one call? Things in their order, in portions within so many tokens."""

from collections.abc import Sequence


def portions(sizes: Sequence[int], most: int) -> list[list[int]]:
    """The places of the sizes, in order, in portions of at most `most` together; a larger one is alone."""
    found: list[list[int]] = []
    room = 0
    for place, size in enumerate(sizes):
        if not found or size > room:
            found.append([])
            room = most
        found[-1].append(place)
        room -= size
    return found
