"""One call: tried again where that helps, made once for many, cached, entered in the ledger."""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prompts.engine.errors import (
    AnswerMalformed,
    AnswerTruncated,
    AnswerWithheld,
    BadKey,
    ContextOverflow,
    ModelRefused,
    ModelUnavailable,
)
from prompts.engine.limits import Limits
from prompts.engine.lm import Asker, Terms
from prompts.engine.messages import Call, Doubtful, NotAsAsked, Reply
from prompts.engine.refusals import Failure
from prompts.engine.spending import Price, Spent
from prompts.engine.streaming import Withdrawn, repeats_itself, salvaged
from tests.engine.fakes import Broken, ManualTime, MemoryCache, Scripted, budget, call_of


def busy(wait: float | None = None) -> Failure:
    failure = Failure(ModelUnavailable("busy", "wait"), retryable=True)
    failure.wait = wait
    return failure


def refused(kind: type[Any]) -> Failure:
    return Failure(kind("no", "do something"))


def adapted() -> Failure:
    failure = refused(ModelRefused)
    failure.adapted = True
    return failure


def read(text: str) -> str:
    if not text.startswith("ok"):
        raise NotAsAsked(f"it begins with {text[:3]!r}.")
    return text.upper()


def cut(text: str) -> Reply:
    return Reply(text, "length", 10, 100)


class Bench:
    """A scripted model with all that it writes to."""

    def __init__(self, said: Any, chance: float = 0.0, **options: Any) -> None:
        self.time = ManualTime(chance)
        self.cache = MemoryCache()
        self.total = Spent()
        self.pieces: list[str] = []
        limiter = options.pop("limiter", None)
        limiter = limiter(self.time) if limiter else None
        limits = Limits(options.pop("concurrency", 8), limiter, self.time.clock)
        terms = Terms(limits, cache=self.cache, clock=self.time.clock, **options)
        self.lm = Scripted(said, terms)

    def asking(self, call: Call, reader: Any = read, watched: bool = False) -> Any:
        def show(piece: str | Withdrawn) -> None:
            self.pieces.append("<" if isinstance(piece, Withdrawn) else piece)

        asker = Asker(record=self.total.add, show=show if watched else None)
        return self.lm.ask(call, reader, asker)

    async def ask(self, *calls: Call, reader: Any = read, watched: bool = False) -> list[Any]:
        asked = (self.asking(call, reader, watched) for call in calls or (call_of(),))
        return await self.time.run(*asked)


@pytest.mark.parametrize("chance", [0.0, 0.99])
async def test_waits_double_up_to_a_minute(chance: float) -> None:
    bench = Bench([busy()] * 12, chance=chance, max_attempts=12)
    (error,) = await bench.ask()
    assert isinstance(error, ModelUnavailable)
    assert ("12 attempts" in error.message, error.remedy) == (True, "wait")
    share = 0.5 + 0.5 * chance
    assert bench.time.slept[:3] == pytest.approx([wait * share for wait in (0.5, 1.0, 2.0)])
    assert max(bench.time.slept) == pytest.approx(60 * share)


@pytest.mark.parametrize(("asked", "waited"), [(7.0, 7.0), (86_400.0, 60.0), (0.0, 0.0)])
async def test_all_calls_wait_as_the_server_asks(asked: float, waited: float) -> None:
    async def said(call: Call) -> Any:
        await asyncio.sleep(0)
        first = call.messages[1].content == "first" and bench.lm.calls == [call]
        return busy(asked) if first else "ok"

    bench = Bench(said, concurrency=1)
    assert await bench.ask(call_of("first"), call_of("second")) == ["OK", "OK"]
    assert bench.time.now == waited


CUT, WHOLE = cut("ok ha"), Reply("ok whole", "stop", 10, 150)


@pytest.mark.parametrize(
    ("said", "shown", "outcome"),
    [
        (["ok and more"], ["ok a", "nd m", "ore"], "OK AND MORE"),
        ([CUT, WHOLE], ["ok h", "a", "<", "ok w", "hole"], "OK WHOLE"),
        ([CUT, CUT], ["ok h", "a", "<"] * 2, (AnswerTruncated, "200 tokens.*max_tokens")),
        ([CUT, refused(ContextOverflow)], ["ok h", "a", "<"], (AnswerTruncated, "200 tokens")),
        (["nonsense", "ok now"], ["nons", "ense", "<", "ok n", "ow"], "OK NOW"),
        (["nonsense", "bad"], ["nons", "ense", "<", "bad", "<"], (AnswerMalformed, "it begins")),
        ([Broken("ok ha", busy()), "ok whole"], ["ok h", "a", "<"], "OK WHOLE"),
        ([Reply("", "withheld", 1, 0)], [], (AnswerWithheld, "another model")),
        ([refused(BadKey)], [], (BadKey, "do something")),
    ],
)
@pytest.mark.parametrize("watched", [True, False])
async def test_an_answer_is_whole_and_in_form_or_an_error(
    said: list[Any], shown: list[str], outcome: Any, watched: bool
) -> None:
    bench = Bench(said)
    (made,) = await bench.ask(watched=watched)
    assert bench.pieces == (shown if watched else [])
    assert (len(bench.lm.calls), bench.lm.terms.limits.in_flight) == (len(said), 0)
    if isinstance(outcome, tuple):
        kind, words = outcome
        assert type(made) is kind
        assert re.search(words, str(made))
        assert bench.cache.rows == {}
        return
    assert made == outcome
    bench.pieces.clear()
    assert await bench.ask(watched=True) == [outcome]
    assert len(bench.lm.calls) == len(said), "it is in the cache under the first call"
    assert bench.pieces == [outcome.lower()]


async def test_a_cut_answer_gets_twice_the_room_and_is_paid_for() -> None:
    bench = Bench([CUT, WHOLE])
    await bench.ask()
    assert [call.max_tokens for call in bench.lm.calls] == [100, 200]
    assert bench.total.output_tokens == 250


def points(text: str) -> list[str]:
    try:
        return list(json.loads(text)["points"])
    except (ValueError, KeyError) as error:
        raise NotAsAsked("it holds no points.") from error


SAYS = [f"Point {number} of what the passage says." for number in range(3)]
IN_LIST = json.dumps({"points": [*SAYS, *SAYS[2:] * 40]})[:-4]
TEXT = "The bridge opened in 1931 [1]. It was paid for by harbour dues [2]."
TEXT_LOOP = TEXT + " It was paid for by harbour dues [2]." * 40
LINES = replace(call_of(), by_line=True)
ITEMS = replace(call_of(), by_item=True, schema={"type": "object"})


@pytest.mark.parametrize(
    ("text", "call", "loops", "kept"),
    [
        ("one\ntwo\nthr", LINES, False, "one\ntwo\n…"),
        ("one\ntwo\ntwo\ntwo\ntw", LINES, True, "one\ntwo\ntwo\ntwo\n…"),
        ("on", LINES, False, None),
        (IN_LIST, ITEMS, True, json.dumps({"points": SAYS})),
        ('{"points": ["One.", "Two.", "Th', ITEMS, False, '{"points": ["One.", "Two."]}'),
        ('{"points": ["One.', ITEMS, False, None),
        ('{"points": ["One.", "Th', replace(ITEMS, by_item=False), False, None),
        (TEXT_LOOP, call_of(), True, TEXT),
        (TEXT, call_of(), False, None),
    ],
)
def test_what_is_kept_of_a_cut_or_repeating_answer(
    text: str, call: Call, loops: bool, kept: str | None
) -> None:
    assert repeats_itself(text, call) is loops
    assert salvaged(text, call) == kept


@pytest.mark.parametrize(
    ("said", "call", "outcome", "heat"),
    [
        ([cut(IN_LIST)], ITEMS, SAYS, [0.0]),
        ([cut('{"points": ["One.", "Tw')] * 2, ITEMS, ["One."], [0.0, 0.0]),
        (["nonsense", '{"points": []}'], replace(ITEMS, second_temperature=0.5), [], [0.0, 0.5]),
    ],
)
async def test_kept_items_are_an_answer_and_counted(
    said: list[Any], call: Call, outcome: Any, heat: list[float]
) -> None:
    bench = Bench(said)
    assert await bench.ask(call, reader=points) == [outcome]
    assert [call.temperature for call in bench.lm.calls] == heat
    assert bench.total.unread_lines == (said[-1] != '{"points": []}')


async def test_a_repair_says_what_was_wrong_and_not_the_answer() -> None:
    bench = Bench(["nonsense", "ok"])
    await bench.ask()
    (_, second) = bench.lm.calls
    assert [turn.role for turn in second.messages] == ["system", "user"]
    assert "it begins with 'non'." in second.messages[-1].content
    assert "nonsense" not in second.messages[-1].content


@pytest.mark.parametrize("second", ["bad", cut("bad")])
async def test_a_doubtful_answer_stands_if_the_second_try_fails(second: Any) -> None:
    def doubting(text: str) -> dict[str, object]:
        if text == "ok":
            raise Doubtful("it lists nothing.", {"said": text})
        raise NotAsAsked("it is bad.")

    bench = Bench(["ok", second, second])
    assert await bench.ask(reader=doubting) == [{"said": "ok"}]


@pytest.mark.parametrize("first", ["ok", refused(BadKey)])
async def test_equal_calls_at_one_time_are_one_call(first: Any) -> None:
    async def said(_: Call) -> Any:
        await bench.time.clock.sleep(1)
        return first if len(bench.lm.calls) == 1 else "ok"

    bench = Bench(said)
    made = await bench.ask(*[call_of()] * 10)
    failed = first != "ok"
    assert made[1:] == ["OK"] * 9
    assert isinstance(made[0], BadKey) is failed
    assert len(bench.lm.calls) == 1 + failed
    assert (bench.total.calls, bench.total.cached_calls) == (1, 9 - failed)


async def test_a_cancelled_call_ends_and_an_equal_one_is_made() -> None:
    entered, gate = asyncio.Event(), asyncio.Event()

    async def said(_: Call) -> Any:
        entered.set()
        await gate.wait()
        return "ok"

    bench = Bench(said)
    tasks = [asyncio.create_task(bench.asking(call_of())) for _ in range(2)]
    await entered.wait()
    assert bench.lm.terms.limits.in_flight == 1
    tasks[0].cancel()
    await asyncio.gather(tasks[0], return_exceptions=True)
    gate.set()
    assert await tasks[1] == "OK"
    assert (bench.lm.terms.limits.in_flight, bench.lm.in_flight) == (0, 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": call_of("another text").messages},
        {"max_tokens": 101},
        {"schema": {"type": "object"}},
        {"temperature": 0.7},
        {"variant": 2},
        {"extra": {"seed": 3}},
    ],
)
def test_whatever_changes_the_answer_changes_the_key(changes: dict[str, Any]) -> None:
    other = replace(call_of(), **changes)
    assert call_of().key("a", "m") == call_of().key("a", "m") != other.key("a", "m")
    assert len({call_of().key(*it) for it in (("a", "m"), ("b", "m"), ("a", "n"))}) == 3


async def test_no_call_goes_out_before_the_last_answer_is_kept() -> None:
    """A killed process loses at most the calls that were under way."""
    open_calls: list[int] = []

    async def said(_: Call) -> Any:
        open_calls.append(len(bench.lm.calls) - len(bench.cache.rows))
        await asyncio.sleep(0)
        return "ok"

    bench = Bench(said, concurrency=3)
    await bench.ask(*(call_of(str(number)) for number in range(30)))
    assert (len(open_calls), max(open_calls)) == (30, 3)


@pytest.mark.parametrize("row", ["", "[1]", '{"text": "not in form"}', '{"answer": 1}'])
async def test_a_cached_row_that_cannot_be_read_is_replaced(row: str) -> None:
    bench = Bench(["ok"])
    key = call_of().key(bench.lm.address, bench.lm.model)
    bench.cache.put(key, row)
    assert await bench.ask() == ["OK"]
    assert json.loads(bench.cache.rows[key])["text"] == "ok"


@pytest.mark.parametrize("compared", [False, True])
async def test_cost_seconds_and_tokens_are_entered(compared: bool) -> None:
    async def said(_: Call) -> Any:
        await bench.time.clock.sleep(2)
        return Reply("ok", "stop", 1000, 200)

    bench = Bench(said, price=Price(2.0, 10.0), compared=compared)
    await bench.ask(call_of("a"), call_of("b"))
    await bench.ask(call_of("a"))
    paid, total = 3 if compared else 2, bench.total  # systems that are compared pay alike
    assert (total.calls, total.cached_calls, total.seconds) == (paid, 1, 4.0)
    assert (total.input_tokens, total.output_tokens) == (1000 * paid, 200 * paid)
    assert total.cost_usd == pytest.approx(0.004 * paid)


async def test_a_request_that_was_refused_counts_for_the_minute(tmp_path: Path) -> None:
    bench = Bench([adapted(), adapted(), "ok"], limiter=lambda time: budget(tmp_path, time, rpm=2))
    await bench.ask()
    assert 65 <= bench.time.now < 66, "the third request had to wait for the next minute"
    assert bench.total.calls == 1


async def test_calls_under_way_count_with_their_longest_answer(tmp_path: Path) -> None:
    async def answered(_: Call) -> str:
        await bench.time.clock.sleep(1.0)
        return "ok"

    calls = [call_of(f"Question {number}") for number in range(4)]
    most = calls[0].most_tokens() + calls[0].max_tokens
    bench = Bench(answered, limiter=lambda time: budget(tmp_path, time, tpm=2 * most))
    assert await bench.ask(*calls) == ["OK"] * 4
    assert bench.lm.most_in_flight == 2, "two may use all that there is"
    assert 2 <= bench.time.now < 60, "and give back what they did not"


async def test_a_server_that_never_stops_refusing_is_given_up() -> None:
    bench = Bench(lambda _: asyncio.sleep(0, adapted()))
    (error,) = await bench.ask()
    assert type(error) is ModelRefused
    assert len(bench.lm.calls) == 10


async def test_prompts_of_dspy_itself_go_on_the_same_terms() -> None:
    bench = Bench(["a proposal"])
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    for _ in range(2):  # the second answer comes from the cache
        assert await bench.lm.acall(messages=messages) == ["a proposal"]
    (call,) = bench.lm.calls
    assert [turn.content for turn in call.messages] == ["s", "u"]
