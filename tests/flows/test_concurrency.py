"""Is work begun before the last of the work ahead has ended, within a bound, and is none left running behind?"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial

import pytest

from flows.indexing.concurrency import background_task, side_by_side


class Works:
    """Works that last until they are let go, and how many were under way."""

    def __init__(self, count: int) -> None:
        self.gates = [asyncio.Event() for _ in range(count)]
        self.begun: list[int] = []
        self.ended: list[int] = []

    async def one(self, number: int) -> int:
        self.begun.append(number)
        try:
            await self.gates[number].wait()
        finally:
            self.ended.append(number)
        return number

    def all(self) -> list[Callable[[], Awaitable[int]]]:
        return [partial(self.one, number) for number in range(len(self.gates))]


async def test_a_straggler_holds_nobody_up_and_no_more_than_the_bound_are_begun() -> None:
    works = Works(5)
    for gate in works.gates[1:]:
        gate.set()
    assert [number async for number in side_by_side(works.all()[1:], 1)] == [1, 2, 3, 4], "one at a time keeps order"
    works.begun.clear()
    works.ended.clear()
    found = []
    async with aclosing(side_by_side(works.all(), 2)) as results:
        async for number in results:
            found.append(number)
            assert len(works.begun) - len(works.ended) <= 2
            if len(found) == 4:
                works.gates[0].set()
    assert found == [1, 2, 3, 4, 0]


async def test_an_error_ends_the_others() -> None:
    works = Works(3)

    async def fails() -> int:
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        async for _ in side_by_side([*works.all()[:2], fails], 3):
            pass
    assert sorted(works.ended) == [0, 1]
    with pytest.raises(ValueError, match="no"):
        async with background_task(fails()):
            await asyncio.sleep(0)

    async def broken() -> None:
        async with background_task(works.one(2)):
            await asyncio.sleep(0)
            raise KeyError

    with pytest.raises(KeyError):
        await broken()
    assert sorted(works.ended) == [0, 1, 2]
