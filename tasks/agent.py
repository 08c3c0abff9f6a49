"""Agent: call one tool after another, see what each finds, and stop when nothing is missing or the
budget ends (ReAct, arXiv 2210.03629; A-RAG, arXiv 2602.03442).

Every line that comes from a document is numbered evidence with its place, so that the answer cites
what was seen. What a tool finds is data for the model: it can neither call a tool nor change one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Protocol

from prompts.agent import ANSWER_TOKENS, FINISH, CallTool, ToolCall, ToolResult
from prompts.engine.effort import Effort
from prompts.engine.helper import helped
from prompts.engine.messages import rough_tokens
from prompts.engine.spending import Meter
from storage.answer_records import SubQuestion
from storage.errors import NotFound
from tasks.citations import Source, number_of
from tasks.retrying import BRIEF
from tasks.step import step

INSTEAD = "the evidence found so far is read"
NOTHING = "Nothing was found."
SHOWN_OF_RESULT = 200  # characters of a result without evidence that the trace shows


@dataclass(frozen=True, slots=True)
class AgentBudget:
    """The most calls of the model that chooses tools, and the tokens of all calls, in and out.

    A call is made only where it is expected to fit. A very long thought, or a second try after an
    unreadable answer, may exceed the tokens by that call.
    """

    calls: int
    tokens: int


# Two calls for each of the four links of MuSiQue's longest questions at medium effort, half and
# double at the others; the tokens that so many calls read where a result fills half of its room.
BUDGETS: Mapping[Effort, AgentBudget] = {
    "low": AgentBudget(4, 12_000),
    "medium": AgentBudget(8, 48_000),
    "high": AgentBudget(16, 200_000),
}


@dataclass(frozen=True, slots=True)
class Found:
    """A line of a result: words about it, and the stretch of a document that shows it, if any.

    Evidence that was shown before is quoted again only where `again` says so.
    """

    text: str
    source: Source | None = None
    again: bool = False


class Refused(Exception):
    """Raised for a call that cannot be made; the message tells the model what is wrong."""


class Toolbox(Protocol):
    """The tools of one question."""

    def described(self) -> Sequence[str]:
        """Return a line for each tool that can be called now."""

    async def call(self, call: ToolCall) -> Sequence[Found]:
        """Make a call. Raises Refused, and NotFound where a name is unknown."""


@dataclass
class Exploration:
    """What was called and seen; `sources` are numbered from 1 in the order in which they came.

    `asked` and `tokens` are what the search for further evidence took of its budget.
    """

    sources: list[Source] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    seen_by: list[list[int]] = field(default_factory=list)  # the numbers in each result
    called: dict[tuple[str, ...], int] = field(default_factory=dict)  # the place of each call
    needed: tuple[int, ...] = ()
    ended: str = ""
    asked: int = 0
    tokens: int = 0

    def add(self, call: ToolCall, found: Sequence[Found], most: int) -> None:
        """Add the lines of a result, as many as `most` tokens hold, and number their evidence."""
        numbers: dict[int, None] = {}
        shown: list[str] = []
        for each in found:
            if most <= 0:
                break
            known = len(self.sources)
            number = self._number(each.source)
            shown.append(_line(each, number, is_new=len(self.sources) > known))
            most -= rough_tokens(shown[-1])
            if number:
                numbers[number] = None
        self.called.setdefault(call.key, len(self.results) + 1)
        self.seen_by.append(list(numbers))
        self.results.append(
            ToolResult(thought=call.thought, call=call.written, result=shown or [NOTHING])
        )

    def _number(self, source: Source | None) -> int:
        """Return the number of the evidence that holds a source, a new one where none does; 0 for
        none.
        """
        if source is None:
            return 0
        known = number_of(self.sources, source.document, source.start, source.end)
        if known is None:
            self.sources.append(source)
        return known or len(self.sources)

    @property
    def best(self) -> list[Source]:
        """The evidence that the model named, then the first of each result, the second of each, …,
        because each link of the answer has a result of its own.
        """
        ranks = zip_longest(*self.seen_by)
        in_turn = [number for rank in ranks for number in rank if number is not None]
        known = [number for number in self.needed if 0 < number <= len(self.sources)]
        return [self.sources[number - 1] for number in dict.fromkeys([*known, *in_turn])]

    @property
    def trail(self) -> tuple[SubQuestion, ...]:
        """Each call with its thought, the titles that it showed, and the passages of these."""
        rows = []
        for result, numbers in zip(self.results, self.seen_by, strict=True):
            sources = [self.sources[number - 1] for number in numbers]
            titles = dict.fromkeys(source.name or source.document for source in sources)
            said = "; ".join(titles) or " ".join(result.result)[:SHOWN_OF_RESULT]
            chunks = dict.fromkeys(name for source in sources for name, _ in source.chunks)
            asked = f"{result.thought} → {result.call}" if result.thought else result.call
            rows.append(SubQuestion(question=asked, answer=said, evidence=tuple(chunks)))
        return tuple(rows)


def _line(found: Found, number: int, is_new: bool) -> str:
    """Return a line of a result: [n] words; title: text."""
    source, words = found.source, " ".join(found.text.split())
    if source is None:
        return words
    is_quoted = is_new or found.again
    quote = f"{' '.join(source.title.split())}: {source.text.strip()}" if is_quoted else ""
    told = "; ".join(filter(None, [words, quote])) or f"{source.name} (shown above)"
    return f"[{number}] {told}"


async def explore(
    question: str,
    found: Exploration,
    tools: Toolbox,
    caller: CallTool,
    budget: AgentBudget,
) -> Exploration:
    """Call tools until the model finishes or the budget ends; `found` holds the first search.

    Where the model gives no usable answer, or a call for the third time in a row, what was found so
    far is the result.
    """
    room = caller.policy.limits.part
    spent = _Spent(caller.models.meter)
    for left in range(budget.calls, 0, -1):
        needs = caller.tokens(question, tools.described(), found.results, left)
        if spent.tokens + needs > budget.tokens:
            found.ended = f"the budget of {budget.tokens:,} tokens"
            return found
        call = await next_call(question, found, tools, caller, left)
        spent.estimate(needs - ANSWER_TOKENS + rough_tokens(call.thought + call.written))
        found.asked, found.tokens = found.asked + 1, spent.tokens
        if call.tool == "finish":
            found.needed = _numbers(call.arguments)
            found.ended = "no usable call" if call is FINISH else "the model"
            return found
        if [result.call for result in found.results[-2:]] == [call.written] * 2:
            found.ended = "the same call again"  # the second was refused, which did not help
            return found
        found.add(call, await use_tool(call, found, tools), room)
        found.tokens = spent.tokens  # a tool may ask a model too
    found.ended = f"the budget of {budget.calls} calls"
    return found


@step("agent", BRIEF, asks_model=True)
async def next_call(
    question: str,
    found: Exploration,
    tools: Toolbox,
    caller: CallTool,
    left: int,
    *,
    wanted: bool = True,
) -> ToolCall:
    """Ask the model for the next of at most `left` calls; without a usable answer it is FINISH.

    `wanted`: the user asked for it, so that no profile spares the call.
    """
    described = tools.described()
    return await helped(
        caller,
        lambda step: step.run(question, described, found.results, left),
        INSTEAD,
        otherwise=lambda: FINISH,
        wanted=wanted,
    )


@step("use-tool")
async def use_tool(call: ToolCall, found: Exploration, tools: Toolbox) -> Sequence[Found]:
    """Make a call, unless it was made before; return what went wrong as a line for the model."""
    if before := found.called.get(call.key):
        return [Found(f"Refused: call {before} was the same, and its result stands above.")]
    try:
        return await tools.call(call)
    except Refused as problem:
        return [Found(f"Refused: {problem}")]
    except NotFound as problem:
        return [Found(f"{problem.message} {problem.remedy}".strip())]


def _numbers(arguments: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers among the arguments of `finish`, written as 2 or [2]."""
    bare = (argument.strip(" []") for argument in arguments)
    return tuple(int(text) for text in bare if text.isascii() and text.isdigit())


class _Spent:
    """The tokens of a search so far: those of the ledger, or the estimates where these are more,
    so that answers from the cache end it at the same call.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._before = self._entered
        self._estimated = 0

    @property
    def _entered(self) -> int:
        return sum(row.input_tokens + row.output_tokens for _, _, row in self._meter.rows())

    def estimate(self, tokens: int) -> None:
        """Add the estimate of a call."""
        self._estimated += tokens

    @property
    def tokens(self) -> int:
        return max(self._estimated, self._entered - self._before)
