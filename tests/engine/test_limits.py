"""Admission to a server: never more than allowed, the urgent first, nothing lost on the way."""

import asyncio
import threading

import pytest

from prompts.engine.limits import WINDOW, Limits, LocalRateLimiter
from tests.engine.fakes import ManualTime


async def _one(limits: Limits, time: ManualTime, seen: list[tuple[float, str]], name: str, **options: float) -> None:
    async with limits.slot(int(options.get("priority", 0)), int(options.get("tokens", 1))) as start:
        seen.append((time.now, name))
        await time.clock.sleep(options.get("takes", 1.0))
        if "actual" in options:
            start.tokens = int(options["actual"])


def _most_in_a_window(starts: list[float]) -> int:
    return max(sum(1 for other in starts if start <= other < start + WINDOW) for start in starts)


async def test_no_more_calls_are_in_flight_than_allowed() -> None:
    time = ManualTime()
    limits = Limits(3, clock=time.clock)
    seen: list[tuple[float, str]] = []
    await time.run(*(_one(limits, time, seen, str(number)) for number in range(10)))
    assert [at for at, _ in seen] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert limits.in_flight == 0


async def test_requests_a_minute_are_exact() -> None:
    time = ManualTime()
    limits = Limits(100, LocalRateLimiter(5, None, time.clock), time.clock)
    seen: list[tuple[float, str]] = []
    await time.run(*(_one(limits, time, seen, str(number)) for number in range(13)))
    starts = [at for at, _ in seen]
    assert starts == [0] * 5 + [60] * 5 + [120] * 3
    assert _most_in_a_window(starts) == 5


async def test_tokens_a_minute_count_what_was_used() -> None:
    time = ManualTime()
    limits = Limits(100, LocalRateLimiter(None, 100, time.clock), time.clock)
    seen: list[tuple[float, str]] = []
    await time.run(*(_one(limits, time, seen, str(number), tokens=40) for number in range(4)))
    assert [at for at, _ in seen] == [0, 0, 60, 60]
    # Estimated at 90, used 10: the next ones need not wait.
    time, seen = ManualTime(), []
    limits = Limits(1, LocalRateLimiter(None, 100, time.clock), time.clock)
    await time.run(*(_one(limits, time, seen, str(number), tokens=90, actual=3) for number in range(3)))
    assert [at for at, _ in seen] == [0, 1, 2]


async def test_a_call_larger_than_the_limit_goes_alone() -> None:
    time = ManualTime()
    limits = Limits(10, LocalRateLimiter(None, 100, time.clock), time.clock)
    seen: list[tuple[float, str]] = []
    work = (_one(limits, time, seen, "small", tokens=10), _one(limits, time, seen, "huge", tokens=5000))
    await time.run(*work, _one(limits, time, seen, "after", tokens=10))
    assert seen == [(0, "small"), (60, "huge"), (120, "after")]


async def test_a_question_goes_before_indexing_that_came_earlier() -> None:
    time = ManualTime()
    limits = Limits(1, LocalRateLimiter(2, None, time.clock), time.clock)
    seen: list[tuple[float, str]] = []
    work = [_one(limits, time, seen, f"index{number}", priority=1) for number in range(3)]
    await time.run(*work, *(_one(limits, time, seen, f"ask{number}") for number in range(2)))
    assert [name for _, name in seen] == ["index0", "ask0", "ask1", "index1", "index2"]


async def test_a_pause_holds_everybody() -> None:
    time = ManualTime()
    limits = Limits(10, clock=time.clock)
    limits.pause(30)
    seen: list[tuple[float, str]] = []
    await time.run(_one(limits, time, seen, "a"), _one(limits, time, seen, "b"))
    assert seen == [(30, "a"), (30, "b")]


async def test_who_leaves_the_queue_or_the_call_leaves_no_trace() -> None:
    time = ManualTime()
    limits = Limits(1, LocalRateLimiter(2, None, time.clock), time.clock)
    inside, waiting = asyncio.Event(), asyncio.Event()

    async def hold(entered: asyncio.Event) -> None:
        async with limits.slot(0, 1):
            entered.set()
            await asyncio.Event().wait()

    first, second = asyncio.create_task(hold(inside)), asyncio.create_task(hold(waiting))
    await inside.wait()
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert limits.in_flight == 0
    seen: list[tuple[float, str]] = []
    await time.run(_one(limits, time, seen, "a"), _one(limits, time, seen, "b"))
    assert seen == [(0, "a"), (60, "b")], "the call that ran counts for the minute, the one that never did does not"


def test_threads_with_loops_of_their_own_share_the_limit() -> None:
    limits = Limits(2)
    inside, most = 0, 0
    lock = threading.Lock()

    async def one() -> None:
        nonlocal inside, most
        async with limits.slot(0, 1):
            with lock:
                inside += 1
                most = max(most, inside)
            await asyncio.sleep(0.002)
            with lock:
                inside -= 1

    async def several() -> None:
        await asyncio.gather(*(one() for _ in range(10)))

    threads = [threading.Thread(target=asyncio.run, args=(several(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == 2
    assert limits.in_flight == 0


async def test_a_waiter_whose_loop_has_ended_does_not_hold_up_the_others() -> None:
    limits = Limits(1)

    async def abandon() -> None:
        asyncio.get_running_loop().create_task(_wait_for(limits))
        await asyncio.sleep(0.01)

    async with limits.slot(0, 1):
        await asyncio.to_thread(asyncio.run, abandon())
    async with asyncio.timeout(60), limits.slot(0, 1):
        assert limits.in_flight == 1


async def _wait_for(limits: Limits) -> None:
    async with limits.slot(0, 1):
        pytest.fail("it was admitted after its loop had ended")
