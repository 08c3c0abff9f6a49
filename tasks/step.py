"""The decorator of a step, and how a step runs over many items: in portions of so many tokens, calls side by side.

A step is a Prefect task inside a flow run, a plain coroutine anywhere else. Outside a flow run nothing is paid: Prefect
is not even imported.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, partial, wraps
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from storage.errors import TrellisError

if TYPE_CHECKING:  # a step that is called outside of flow runs does not wait for it
    from prefect import Task
    from prefect.client.schemas.objects import State

P = ParamSpec("P")
R = TypeVar("R")

# Seconds that an index run, which nobody waits for, gives a model to come back.
PATIENT = (30.0, 120.0)
# Seconds of the same that a recorded question gives it: somebody may look on.
BRIEF = (5.0, 20.0)
# The tag of steps that ask a model where one is set: a limit of Prefect's on it holds for all runs of a server.
MODEL = "model"

# Told the name of a step, and whether it begins or ends.
Watcher = Callable[[str, bool], None]
_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Tell `watcher` of every step that begins or ends meanwhile, as benchmarks do."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


_UNRECORDED: ContextVar[bool] = ContextVar("unrecorded", default=False)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Steps meanwhile are plain coroutines inside a flow run too: for a step that does them a thousand times."""
    token = _UNRECORDED.set(True)
    try:
        yield
    finally:
        _UNRECORDED.reset(token)


def step(
    name: str, waits: Sequence[float] = (), asks_model: bool = False
) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    """Mark an async function as a step called `name`.

    Inside a Prefect flow run each call is a run of one Prefect task, which is made at the first of them: its name is
    the step's, its description the first clause of the function's docstring, its tag MODEL where it `asks_model`. It
    goes on from the steps before it (see `_Place`). Arguments and results are neither hashed, nor searched, nor kept.

    There, where nobody waits, the step is tried again after each of `waits` (seconds) for as long as a model cannot be
    reached. That is the one error that time mends, after the tries that each call makes: what a server has answered
    comes from the cache. Whatever else fails has failed for good.
    """

    def decorate(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        task_of = cache(partial(_task, name, _first_clause(function), waits, (MODEL,) if asks_model else ()))

        @wraps(function)
        async def run(*args: P.args, **kwargs: P.kwargs) -> R:
            watcher = _WATCHER.get()
            if watcher is not None:
                watcher(name, True)
            try:
                flow_run = _flow_run()
                if flow_run is None:
                    return await function(*args, **kwargs)
                return await _recorded(flow_run, task_of(), partial(function, *args, **kwargs))
            finally:
                if watcher is not None:
                    watcher(name, False)

        return run

    return decorate


def _first_clause(function: Callable[..., object]) -> str:
    """What people read of a step: up to the first semicolon or full stop. What follows is for who calls it."""
    text = " ".join((function.__doc__ or "").split())
    return text.partition("; ")[0].partition(". ")[0].rstrip(".") + "."


# --- inside a flow run -----------------------------------------------------------------------------------------------


def _flow_run() -> object | None:
    """What identifies the flow run that goes on; None where there is none."""
    # Whoever runs a flow has imported Prefect; where it is not loaded there can be no flow run to belong to.
    if "prefect" not in sys.modules or _UNRECORDED.get():
        return None
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    return context.flow_run.id if context is not None and context.flow_run is not None else None


def is_tried_again() -> bool:
    """Whether the step that goes on here, if it raises ModelUnavailable, will be tried again."""
    if _flow_run() is None:
        return False
    from prefect.context import TaskRunContext

    context = TaskRunContext.get()
    waits = context.task.retry_delay_seconds if context is not None else None
    return isinstance(waits, list) and context is not None and context.task_run.run_count <= len(waits)


class _Work(Generic[R]):
    """A call of a step, and what it gave. Prefect is handed this instead of the records, through which it would walk.

    A plain class on purpose: of a data class it would walk through the fields.
    """

    result: R
    error: Exception | None = None

    def __init__(self, call: Callable[[], Awaitable[R]], description: str) -> None:
        self.call = call
        self.description = description
        self.done = _Done()


class _Done:
    """The result of a task run, as far as Prefect knows: who takes it as an argument goes on from that run."""


@dataclass(eq=False)
class _Place:
    """Where a strand of work (an asyncio task) stands in a flow run: behind the steps `done`.

    The next step goes on from these; or, where strands began here meanwhile and came to their own ends, from those
    ends. So a program that awaits a, then b and c side by side, then d draws a → b, a → c, b → d, c → d.
    """

    flow_run: object
    strand: object
    done: tuple[_Done, ...] = ()
    branches: "list[_Place]" = field(default_factory=list)
    next: "_Place | None" = None

    def ends(self) -> list[_Done]:
        """The last steps of the strand and of those that began where it stands."""
        place = self
        while place.next is not None:
            place = place.next
        return list(dict.fromkeys(end for branch in place.branches for end in branch.ends())) or list(place.done)


_PLACE: ContextVar[_Place | None] = ContextVar("place", default=None)


async def _recorded(flow_run: object, task: "Task[..., Any]", call: Callable[[], Awaitable[R]]) -> R:
    """What the call gives, as a run of the task that goes on from the steps before it."""
    strand, place = asyncio.current_task(), _PLACE.get()
    if place is None or place.flow_run != flow_run:
        place = _Place(flow_run, strand)
    elif place.strand is not strand:
        branch = _Place(flow_run, strand, place.done)
        place.branches.append(branch)
        place = branch
    _PLACE.set(place)
    work = _Work(call, task.description or "")
    await task(work, place.ends())
    if work.error is not None:
        raise work.error
    place.next = _Place(flow_run, strand, (work.done,))
    _PLACE.set(place.next)
    return work.result


async def _do(work: _Work[Any], after: Sequence[_Done]) -> "State[Any]":
    from prefect.states import Completed, Failed

    from prompts.engine.errors import EngineError
    from prompts.engine.key_masking import mask_error

    work.error = None
    try:
        work.result = await work.call()
    except (TrellisError, EngineError) as error:
        # It says what happened and what to do: raised here, Prefect would put a traceback before it.
        mask_error(error)
        work.error = error
        return Failed(message=str(error), data=error)
    except Exception as error:
        mask_error(error)  # Prefect tells the server its words
        raise
    # Prefect's page shows what a task is for nowhere else; in the log of the run it says what has ended.
    return Completed(message=work.description, data=work.done)


def _task(name: str, description: str, waits: Sequence[float], tags: Sequence[str]) -> "Task[..., Any]":
    from prefect import Task
    from prefect.cache_policies import NO_CACHE

    from prompts.engine.errors import ModelUnavailable

    def may_pass(_task: object, _run: object, state: "State[Any]") -> bool:
        return bool(waits) and isinstance(state.data, ModelUnavailable)

    return Task(
        _do, name=name, task_run_name=name, description=description, tags=tags, cache_policy=NO_CACHE,
        # Of a task that may not be tried again Prefect would log where it failed: a line with nothing in it.
        persist_result=False, retries=len(waits) or 1, retry_delay_seconds=list(waits),
        retry_jitter_factor=0.5 if waits else None, retry_condition_fn=may_pass,
    )  # fmt: skip


# --- many items ------------------------------------------------------------------------------------------------------


def portions(sizes: Sequence[int], most: int, items: int = sys.maxsize) -> list[list[int]]:
    """The places of the sizes, in order, in portions of at most `most` together and of at most so many `items`; a
    larger one is alone."""
    batches: list[list[int]] = []
    room = 0
    for place, size in enumerate(sizes):
        if not batches or size > room or len(batches[-1]) == items:
            batches.append([])
            room = most
        batches[-1].append(place)
        room -= size
    return batches


async def gather_or_cancel(work: Iterable[Coroutine[object, object, R]]) -> list[R]:
    """What each gives, in order. The first error is raised as it is, after the others were cancelled."""
    tasks: list[asyncio.Task[R]] = []
    try:
        async with asyncio.TaskGroup() as group:
            for coroutine in work:
                tasks.append(group.create_task(coroutine))
                await asyncio.sleep(0)  # answers that come while many begin are not left unread
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
