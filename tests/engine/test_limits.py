"""Limits and budgets: no more calls and tokens than allowed, the urgent first."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from prompts.engine.errors import BudgetSpent, ModelMisconfigured
from prompts.engine.limits import Limits
from prompts.engine.spending import Meter, Price, SpendBudget, Spent
from storage.budget import CallBudget
from tests.engine.fakes import ManualTime, budget

Seen = list[tuple[float, str]]


async def _one(
    limits: Limits, time: ManualTime, seen: Seen, name: str, priority: int = 0, tokens: int = 1
) -> None:
    async with limits.slot(priority, tokens) as start:
        seen.append((time.now, name))
        await time.clock.sleep(1.0)
        if name == "less":
            start.tokens = 3


@pytest.mark.parametrize(
    ("concurrency", "rpm", "tpm", "calls", "starts"),
    [
        (3, None, None, [("a",)] * 10, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]),
        (100, 5, None, [("a",)] * 13, [0] * 5 + [65] * 5 + [130] * 3),
        (100, None, 100, [("a", 0, 40)] * 4, [0, 0, 65, 65]),
        (1, None, 100, [("less", 0, 90)] * 3, [0, 1, 2]),
        (10, None, 100, [("small", 0, 10), ("huge", 0, 5000), ("after", 0, 10)], [0, 65, 130]),
    ],
    ids=["in flight", "calls a minute", "tokens a minute", "less was used", "above the limit"],
)
async def test_no_more_starts_than_allowed(
    concurrency: int,
    rpm: int | None,
    tpm: int | None,
    calls: list[Any],
    starts: list[float],
    tmp_path: Path,
) -> None:
    time, seen = ManualTime(), Seen()
    limiter = budget(tmp_path, time, rpm, tpm) if rpm or tpm else None
    limits = Limits(concurrency, limiter, time.clock)
    await time.run(*(_one(limits, time, seen, *call) for call in calls))
    assert [name for _, name in seen] == [call[0] for call in calls]
    assert [at for at, _ in seen] == pytest.approx(starts, abs=0.6)
    assert limits.in_flight == 0


async def test_a_question_goes_before_earlier_indexing(tmp_path: Path) -> None:
    time, seen = ManualTime(), Seen()
    limits = Limits(1, budget(tmp_path, time, rpm=2), time.clock)
    work = [_one(limits, time, seen, f"index{number}", priority=1) for number in range(3)]
    await time.run(*work, *(_one(limits, time, seen, f"ask{number}") for number in range(2)))
    assert [name for _, name in seen] == ["index0", "ask0", "ask1", "index1", "index2"]


async def test_a_cancelled_call_leaves_no_trace(tmp_path: Path) -> None:
    time = ManualTime()
    limits = Limits(1, budget(tmp_path, time, rpm=2), time.clock)
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
    seen = Seen()  # the call that ran counts for the minute, the one that never did does not
    await time.run(_one(limits, time, seen, "a"), _one(limits, time, seen, "b"))
    assert [(at // 65, name) for at, name in seen] == [(0, "a"), (1, "b")]


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


PRICE = Price(1.0, 10.0)


async def call(
    budget: SpendBudget, most: tuple[int, int], used: tuple[int, int], pause: float = 0.0
) -> int:
    async with budget.reserved(*most, PRICE) as bill:
        await asyncio.sleep(pause)
        bill.used = used
    return sum(used)


async def test_a_call_waits_for_those_under_way_and_then_fits() -> None:
    budget = SpendBudget(tokens=1_000)
    ended = await asyncio.gather(
        call(budget, (0, 900), (0, 100), 0.05), call(budget, (0, 800), (0, 800))
    )
    assert list(ended) == [100, 800]


async def test_a_closed_budget_stays_closed() -> None:
    budget = SpendBudget(tokens=1_000)
    await call(budget, (100, 800), (100, 700))
    with pytest.raises(BudgetSpent) as caught:
        await call(budget, (100, 400), (0, 0))
    error = caught.value
    assert (error.spent, error.budget, error.needed, error.unit) == (800, 1000, 500, "tokens")
    with pytest.raises(BudgetSpent):
        await call(budget, (1, 1), (1, 1))


async def test_dollars_are_counted_by_price() -> None:
    budget = SpendBudget(usd=0.02)
    await call(budget, (1_000, 1_000), (1_000, 500))  # 0.006 of at most 0.011
    await call(budget, (1_000, 1_000), (1_000, 1_000))
    with pytest.raises(BudgetSpent, match="USD"):
        await call(budget, (0, 400), (0, 0))
    with pytest.raises(ModelMisconfigured, match="unknown price"):
        async with budget.reserved(1, 1, None):
            pass


async def test_a_call_without_a_reply_is_not_counted() -> None:
    budget = SpendBudget(tokens=1_000)
    with pytest.raises(TimeoutError):
        async with budget.reserved(100, 900, None):
            raise TimeoutError
    assert await call(budget, (100, 900), (100, 900)) == 1_000


async def test_threads_and_loops_share_a_budget() -> None:
    budget = SpendBudget(tokens=1_000)
    reserved, released = threading.Event(), threading.Event()

    def embed() -> None:
        with budget.reserved_in_thread(800, None) as bill:
            reserved.set()
            released.wait(60)
            bill.used = 100, 0

    thread = asyncio.create_task(asyncio.to_thread(embed))
    await asyncio.to_thread(reserved.wait, 60)
    waiting = asyncio.create_task(call(budget, (0, 900), (0, 900)))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    released.set()
    assert await waiting == 900
    await thread


def test_an_unknown_price_makes_the_sum_unknown() -> None:
    meter = Meter()
    meter.record("a", "m", Spent(calls=1, cost_usd=1.0))
    meter.record("a", "m", Spent(calls=1, cost_usd=None))
    meter.record("a", "n", Spent(calls=1, cost_usd=2.0))
    rows = [(step, name, spent.calls, spent.cost_usd) for step, name, spent in meter.rows()]
    assert rows == [("a", "m", 2, None), ("a", "n", 1, 2.0)]


def granted(budget: CallBudget, priority: int = 1) -> bool:
    return budget.take(1, priority)[1] == 0


def test_the_calls_of_all_who_share_the_file_count(tmp_path: Path) -> None:
    time = ManualTime(now=1_800_000_000.0)
    one, other = budget(tmp_path, time, rpm=3), budget(tmp_path, time, rpm=3)
    assert [granted(it) for it in (one, other, one, other)] == [True, True, True, False]
    assert granted(budget(tmp_path, time, rpm=3, server="another"))
    time.now += 64.9
    _, wait = other.take(1, 1)
    assert 0.1 <= wait <= 0.4
    time.now += wait
    assert [granted(it) for it in (one, other, one, other)] == [True, True, True, False]


def test_a_waiting_question_goes_before_another_process_index(tmp_path: Path) -> None:
    time = ManualTime(now=1_800_000_000.0)
    index, question = budget(tmp_path, time, rpm=1), budget(tmp_path, time, rpm=1)
    assert granted(index, priority=1)
    _, wait = question.take(1, 0)
    time.now += wait
    assert not granted(index, priority=1), "the question comes first, though it comes later"
    assert granted(question, priority=0)
    # A question that was killed while it waited holds nobody up for longer than a moment.
    _, wait = question.take(1, 0)
    time.now += wait + 0.3
    assert granted(index, priority=1)
