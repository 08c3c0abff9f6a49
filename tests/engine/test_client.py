"""One call: tried again where that can help, asked once by many, cached only when read, entered in the ledger."""

import asyncio
import json
import re
import time
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prompts.engine.calls import Call, Doubtful, NotAsAsked, Reply
from prompts.engine.client import Client
from prompts.engine.errors import (
    AnswerMalformed,
    AnswerTruncated,
    AnswerWithheld,
    BadKey,
    ContextOverflow,
    ModelRefused,
    ModelUnavailable,
)
from prompts.engine.failures import Failure
from prompts.engine.limits import Limits
from prompts.engine.spending import Price
from prompts.engine.streaming import Withdrawn
from tests.engine.fakes import Broken, ManualTime, MemoryCache, Scripted, Sheet, budget, call_of
from tests.patience import PATIENCE


def busy(wait: float | None = None) -> Failure:
    return Failure(ModelUnavailable("busy", "wait"), retryable=True, wait=wait)


def refused(kind: type[Any]) -> Failure:
    return Failure(kind("no", "do something"))


def read(text: str) -> str:
    if not text.startswith("ok"):
        raise NotAsAsked(f"it begins with {text[:3]!r}.")
    return text.upper()


class Bench:
    """A client over a scripted transport, with all that it writes to."""

    def __init__(self, said: Any, **options: Any) -> None:
        self.time = ManualTime(options.pop("chance", 0.0))
        self.transport = Scripted(said)
        self.cache = MemoryCache()
        self.sheet = Sheet()
        self.limits = Limits(options.pop("concurrency", 8), clock=self.time.clock)
        self.client = Client(self.transport, self.limits, cache=self.cache, clock=self.time.clock, **options)

    async def ask(self, *calls: Call) -> list[Any]:
        return await self.time.run(*(self.client.ask(call, read, 0, self.sheet) for call in calls or (call_of(),)))


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.99])
async def test_waits_double_are_jittered_and_never_longer_than_a_minute(chance: float) -> None:
    bench = Bench([busy()] * 12, chance=chance, max_attempts=12)
    (error,) = await bench.ask()
    assert isinstance(error, ModelUnavailable)
    assert ("busy" in error.message, "12 attempts" in error.message, error.remedy) == (True, True, "wait")
    assert len(bench.time.slept) == 11
    assert bench.time.slept[:3] == pytest.approx([wait * (0.5 + 0.5 * chance) for wait in (0.5, 1.0, 2.0)])
    assert max(bench.time.slept) == pytest.approx(60 * (0.5 + 0.5 * chance))


@pytest.mark.parametrize(("asked", "waited"), [(7.0, 7.0), (60.0, 60.0), (86_400.0, 60.0), (0.0, 0.0)])
async def test_a_wait_that_the_server_asks_for_is_kept_up_to_a_minute(asked: float, waited: float) -> None:
    bench = Bench([busy(asked), "ok"])
    assert await bench.ask() == ["OK"]
    assert bench.time.now == waited


async def test_all_calls_to_a_server_wait_when_it_asks_one_to() -> None:
    async def said(call: Call) -> Any:
        await asyncio.sleep(0)
        return busy(20) if call.messages[1].content == "first" and bench.time.now == 0 else "ok"

    bench = Bench(said, concurrency=1)
    assert await bench.ask(call_of("first"), call_of("second")) == ["OK", "OK"]
    assert bench.time.now == 20


async def test_the_slot_is_free_while_a_call_waits_for_its_next_try() -> None:
    async def said(call: Call) -> Any:
        await bench.time.clock.sleep(0.1)
        first = call.messages[1].content == "first" and len(bench.transport.calls) == 1
        return busy() if first else "ok"

    bench = Bench(said, concurrency=1)
    await bench.ask(call_of("first"), call_of("second"))
    order = [call.messages[1].content for call in bench.transport.calls]
    assert order == ["first", "second", "first"]


CUT, WHOLE = Reply("ok ha", "length", 10, 100), Reply("ok whole", "stop", 10, 150)


@pytest.mark.parametrize(
    ("said", "shown", "outcome"),
    [
        (["ok and more"], ["ok a", "nd m", "ore"], "OK AND MORE"),
        ([CUT, WHOLE], ["ok h", "a", "<", "ok w", "hole"], "OK WHOLE"),
        ([CUT, CUT], ["ok h", "a", "<", "ok h", "a", "<"], (AnswerTruncated, "200 tokens.*max_tokens")),
        ([CUT, refused(ContextOverflow)], ["ok h", "a", "<"], (AnswerTruncated, "200 tokens")),
        (["nonsense", "ok now"], ["nons", "ense", "<", "ok n", "ow"], "OK NOW"),
        (["nonsense", "bad"], ["nons", "ense", "<", "bad", "<"], (AnswerMalformed, "step 'probe': it begins.*'bad'")),
        ([Broken("ok ha", busy()), "ok whole"], ["ok h", "a", "<"], "OK WHOLE"),
        ([Reply("", "withheld", 1, 0)], [], (AnswerWithheld, "another model")),
        ([refused(BadKey)], [], (BadKey, "do something")),
        ([refused(ContextOverflow)], [], (ContextOverflow, "do something")),
    ],
)
@pytest.mark.parametrize("watched", [True, False])
async def test_an_answer_is_whole_and_in_form_or_an_error_and_what_was_shown_of_another_is_withdrawn(
    said: list[Any], shown: list[str], outcome: Any, watched: bool
) -> None:
    bench = Bench(said)
    pieces: list[str] = []

    def show(piece: str | Withdrawn) -> None:
        pieces.append("<" if isinstance(piece, Withdrawn) else piece)

    def ask() -> Awaitable[str]:
        return bench.client.ask(call_of(), read, 0, bench.sheet, show if watched else None)

    (made,) = await bench.time.run(ask())
    assert pieces == (shown if watched else [])
    assert (len(bench.transport.calls), bench.limits.in_flight) == (len(said), 0)
    if isinstance(outcome, tuple):
        kind, words = outcome
        assert type(made) is kind
        assert re.search(words, str(made))
        assert bench.cache.rows == {}
        return
    assert made == outcome
    (row,) = bench.cache.rows.values()
    assert json.loads(row)["text"] == outcome.lower()
    assert await bench.time.run(ask()) == [outcome]
    assert len(bench.transport.calls) == len(said), "it is in the cache under the first call"


async def test_a_cut_answer_is_asked_for_with_twice_the_room_and_paid_for() -> None:
    bench = Bench([CUT, WHOLE])
    await bench.ask()
    assert [call.max_tokens for call in bench.transport.calls] == [100, 200]
    assert bench.sheet.total.output_tokens == 250


LOOP = "ok one\nok two\n" + "ok two\n" * 3


@pytest.mark.parametrize(
    ("said", "outcome", "calls"),
    [
        (["ok one\nok tw", "ok one\nok two\nok thr"], "OK ONE\nOK TWO\n…", 2),
        ([f"{LOOP}ok tw"], f"{LOOP.upper()}…", 1),
        (["ok on", "ok on"], AnswerTruncated, 2),
    ],
)
async def test_lines_before_a_cut_are_kept_where_they_stand_alone(said: list[str], outcome: Any, calls: int) -> None:
    bench = Bench([Reply(text, "length", 10, 100) for text in said])
    (answer,) = await bench.ask(replace(call_of(), by_line=True))
    assert (answer if isinstance(answer, str) else type(answer)) == outcome
    assert len(bench.transport.calls) == calls
    goes_round = [json.loads(row)["text"].upper() for row in bench.cache.rows.values()] == [outcome]
    assert goes_round is (calls == 1), "what was only cut is asked for again by a run with more room"


def lists(text: str) -> list[str]:
    try:
        return list(json.loads(text)["points"])
    except (ValueError, KeyError) as error:
        raise NotAsAsked("it holds no points.") from error


SAYS = [f"Point {number} of what the passage says." for number in range(3)]
IN_LIST = json.dumps({"points": [*SAYS, *SAYS[2:] * 9]})[:-4]
ONE_WORD = '{"points": ["' + "word " * 400
ROUND = {"by_item": True, "schema": {"type": "object"}, "second_temperature": 0.5}


def ended(text: str) -> Reply:
    return Reply(text, "length", 10, 100)


@pytest.mark.parametrize(
    ("said", "options", "outcome", "heat", "room"),
    [
        ([ended(IN_LIST)], ROUND, SAYS, [0.0], [100]),
        ([ended(IN_LIST), '{"points": []}'], ROUND | {"by_item": False}, [], [0.0, 0.5], [100, 100]),
        ([ended(IN_LIST)] * 2, ROUND | {"by_item": False}, "again and again", [0.0, 0.5], [100, 100]),
        ([ended(IN_LIST)], ROUND | {"by_item": False, "second_temperature": None}, "again and again", [0.0], [100]),
        ([ended(ONE_WORD)], ROUND, ["word"], [0.0], [100]),
        ([ended('{"points": ["One.", "Two.", "Th')] * 2, ROUND, ["One.", "Two."], [0.0, 0.0], [100, 200]),
        ([ended('{"points": ["One.')] * 2, ROUND, "was cut", [0.0, 0.0], [100, 200]),
    ],
)
async def test_whole_items_before_a_loop_or_a_cut_stand(
    said: list[Any], options: dict[str, Any], outcome: Any, heat: list[float], room: list[int]
) -> None:
    bench = Bench(said)
    (made,) = await bench.time.run(bench.client.ask(replace(call_of(), **options), lists, 0, bench.sheet))
    assert (outcome in str(made)) if isinstance(made, AnswerTruncated) else (made == outcome)
    assert [call.temperature for call in bench.transport.calls] == heat
    assert [call.max_tokens for call in bench.transport.calls] == room
    left_out = isinstance(made, list) and said[-1] != '{"points": []}'
    assert bench.sheet.total.unread_lines == left_out


async def test_a_text_ends_before_it_says_a_sentence_again() -> None:
    text = "ok The bridge opened in 1931 [1]. It was paid for by harbour dues [2]."
    bench = Bench([ended(text + " It was paid for by harbour dues [2]." * 5)])
    assert await bench.ask() == [text.upper()]


async def test_a_repair_says_what_was_wrong_and_not_the_answer() -> None:
    bench = Bench(["nonsense", "ok"])
    await bench.ask(replace(call_of(), second_temperature=0.5))
    first, second = bench.transport.calls
    assert [turn.role for turn in second.messages] == ["system", "user"]
    assert "it begins with 'non'." in second.messages[-1].content
    assert "nonsense" not in second.messages[-1].content
    assert (first.temperature, second.temperature) == (0.0, 0.5)


@pytest.mark.parametrize("second", ["bad", ended("bad")])
async def test_a_doubtful_answer_stands_where_the_second_try_fails(second: Any) -> None:
    def doubting(text: str) -> dict[str, object]:
        if text == "ok":
            raise Doubtful("it lists nothing.", {"said": text})
        raise NotAsAsked("it is bad.")

    bench = Bench(["ok", second, second])
    asked = bench.client.ask(call_of(), doubting, 0, bench.sheet)
    assert await bench.time.run(asked) == [{"said": "ok"}]


@pytest.mark.parametrize("first", ["ok", refused(BadKey)])
async def test_equal_calls_at_one_time_are_one_call_and_the_next_is_made_anew_where_it_failed(first: Any) -> None:
    async def said(_: Call) -> Any:
        await bench.time.clock.sleep(1)
        return first if len(bench.transport.calls) == 1 else "ok"

    bench = Bench(said)
    made = await bench.ask(*[call_of()] * 10)
    failed = first != "ok"
    assert ([isinstance(answer, BadKey) for answer in made].count(True), made[1:]) == (failed, ["OK"] * 9)
    assert len(bench.transport.calls) == 1 + failed
    assert (bench.sheet.total.calls, bench.sheet.total.cached_calls) == (1, 9 - failed)


async def test_who_leaves_ends_its_request_and_the_next_asks() -> None:
    entered, gate = asyncio.Event(), asyncio.Event()

    async def said(_: Call) -> Any:
        entered.set()
        await gate.wait()
        return "ok"

    bench = Bench(said)
    tasks = [asyncio.create_task(bench.client.ask(call_of(), read, 0, bench.sheet)) for _ in range(2)]
    await entered.wait()
    assert bench.limits.in_flight == 1
    tasks[0].cancel()
    await asyncio.gather(tasks[0], return_exceptions=True)
    gate.set()
    assert await tasks[1] == "OK"
    assert (bench.limits.in_flight, bench.transport.in_flight) == (0, 0)


@pytest.mark.parametrize(
    "other",
    [
        call_of("another text"),
        call_of(max_tokens=101),
        Call("probe", call_of().messages, 100, schema={"type": "object"}),
        Call("probe", call_of().messages, 100, temperature=0.7),
        Call("probe", call_of().messages, 100, variant=2),
        Call("probe", call_of().messages, 100, extra={"seed": 3}),
    ],
)
async def test_whatever_changes_the_answer_changes_the_key(other: Call) -> None:
    keys = {call.key("http://a/v1", "m") for call in (call_of(), call_of(), other)}
    assert len(keys) == 2
    assert call_of().key("http://b/v1", "m") not in keys
    assert call_of().key("http://a/v1", "n") not in keys


async def test_an_answer_is_kept_before_it_is_read_and_struck_out_where_it_cannot_be() -> None:
    seen: list[list[str]] = []

    def reading(text: str) -> str:
        seen.append(list(bench.cache.rows.values()))
        return read(text)

    bench = Bench(["nonsense", "ok"])
    await bench.time.run(bench.client.ask(call_of(), reading, 0, bench.sheet))
    assert [json.loads(row)["text"] for rows in seen for row in rows] == ["nonsense", "ok"]
    bench = Bench(["nonsense", busy()], max_attempts=1)
    await bench.time.run(bench.client.ask(call_of(), reading, 0, bench.sheet))
    assert bench.cache.rows == {}


async def test_no_call_goes_out_before_the_answer_whose_slot_it_takes_is_kept() -> None:
    """The bound of what a killed process may lose: the calls under way and those answered but not kept, together."""
    open_calls: list[int] = []

    async def said(_: Call) -> Any:
        open_calls.append(len(bench.transport.calls) - len(bench.cache.rows))
        await asyncio.sleep(0)
        return "ok"

    bench = Bench(said, concurrency=3)
    await bench.ask(*(call_of(str(number)) for number in range(30)))
    assert len(open_calls) == 30
    assert max(open_calls) == 3


@pytest.mark.parametrize("row", ["", "[1]", '{"text": "not in form"}', '{"answer": 1}'])
async def test_a_cached_row_that_cannot_be_read_is_asked_again_and_replaced(row: str) -> None:
    bench = Bench(["ok"])
    key = call_of().key(bench.transport.address, bench.transport.model)
    bench.cache.put(key, row)
    assert await bench.ask() == ["OK"]
    assert [json.loads(row)["text"] for row in (bench.cache.rows[key],)] == ["ok"]


async def test_cost_seconds_and_tokens_are_entered() -> None:
    async def said(_: Call) -> Any:
        await bench.time.clock.sleep(2)
        return Reply("ok", "stop", 1000, 200)

    bench = Bench(said, price=Price(2.0, 10.0))
    await bench.ask(call_of("a"), call_of("b"))
    total = bench.sheet.total
    assert (total.calls, total.input_tokens, total.output_tokens, total.seconds) == (2, 2000, 400, 4.0)
    assert total.cost_usd == pytest.approx(0.008)
    unpriced = Bench(["ok"])
    await unpriced.ask()
    assert unpriced.sheet.total.cost_usd is None


async def test_a_watched_call_beside_an_equal_one_or_from_the_cache_is_no_call_of_its_own() -> None:
    async def said(_: Call) -> Any:
        await bench.time.clock.sleep(1)
        return "ok and more"

    bench, pieces = Bench(said), list[object]()
    watched = [bench.client.ask(call_of(), read, 0, bench.sheet, pieces.append) for _ in range(2)]
    assert await bench.time.run(bench.client.ask(call_of(), read, 0, bench.sheet), *watched) == ["OK AND MORE"] * 3
    assert pieces == ["ok and more", "ok and more"], "in one piece"
    assert (bench.sheet.total.calls, bench.sheet.total.cached_calls) == (1, 2)


async def test_systems_that_are_compared_pay_alike_for_an_answer_of_the_cache() -> None:
    async def said(_: Call) -> Any:
        return Reply("ok", "stop", 1000, 200)

    bench = Bench(said, price=Price(2.0, 10.0))
    bench.client.compared = True
    assert await bench.client.ask(call_of(), read, 0, bench.sheet) == "OK"
    assert await bench.client.ask(call_of(), read, 0, bench.sheet) == "OK"
    total = bench.sheet.total
    assert (len(bench.transport.calls), total.calls, total.cached_calls) == (1, 2, 1)
    assert (total.input_tokens, total.output_tokens) == (2000, 400)
    assert total.cost_usd == pytest.approx(0.008)


async def test_an_answer_to_systems_that_are_compared_is_stored_while_others_work() -> None:
    bench = Bench(["ok"])
    bench.client.compared = True
    asking = asyncio.create_task(bench.client.ask(call_of(), read, 0, bench.sheet))
    await asyncio.sleep(0)
    deadline = time.monotonic() + PATIENCE
    while not bench.cache.rows and time.monotonic() < deadline:
        time.sleep(0.01)  # noqa: ASYNC251 -- the loop of the caller stands still
    assert len(bench.cache.rows) == 1
    assert await asking == "OK"


async def test_equal_calls_of_two_clients_that_share_their_locks_are_one() -> None:
    async def said(_: Call) -> Any:
        await asyncio.sleep(0)
        return "ok"

    first, second = Bench(said), Bench(said)
    second.client.cache, second.client.locks = first.cache, first.client.locks
    asked = [bench.client.ask(call_of(), read, 0, bench.sheet) for bench in (first, second)]
    assert await asyncio.gather(*asked) == ["OK", "OK"]
    assert len(first.transport.calls) + len(second.transport.calls) == 1


def unknown_setting() -> Failure:
    failure = refused(ModelRefused)
    failure.adapted = True
    return failure


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_request_that_leaves_out_what_was_refused_counts_as_one_more(streaming: bool, tmp_path: Path) -> None:
    bench = Bench([unknown_setting(), unknown_setting(), "ok"])
    bench.client.limits = Limits(8, budget(tmp_path, bench.time, rpm=2), bench.time.clock)
    await bench.time.run(
        bench.client.ask(call_of(), read, 0, bench.sheet, list[object]().append if streaming else None)
    )
    assert len(bench.transport.calls) == 3
    assert 65 <= bench.time.now < 66, "the third request had to wait for the next minute"
    assert bench.sheet.total.calls == 1


async def test_calls_under_way_count_with_the_longest_answer_that_they_may_get(tmp_path: Path) -> None:
    bench: Bench

    async def answered(call: Call) -> str:
        await bench.time.clock.sleep(1.0)
        return "ok"

    bench = Bench(answered)
    calls = [call_of(f"Question {number}") for number in range(4)]
    most = calls[0].most_tokens() + calls[0].max_tokens
    bench.client.limits = Limits(8, budget(tmp_path, bench.time, tpm=2 * most), bench.time.clock)
    assert await bench.ask(*calls) == ["OK"] * 4
    assert bench.transport.most_in_flight == 2, "two may use all that there is"
    assert 2 <= bench.time.now < 60, "and give back what they did not"


async def test_a_server_that_never_stops_refusing_is_given_up() -> None:
    bench = Bench(lambda _: asyncio.sleep(0, unknown_setting()))
    (error,) = await bench.ask()
    assert type(error) is ModelRefused
    assert len(bench.transport.calls) == 10
