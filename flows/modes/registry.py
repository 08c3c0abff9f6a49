"""Modes by name: what each brings that does not search like `auto`. A new mode is a function here and its name."""

from collections.abc import Awaitable, Callable, Mapping

from flows.modes.baselines import direct, hyde, naive, rewritten, source_texts
from flows.modes.drift_search import drift_search
from flows.modes.dual_level_search import dual_level_search
from flows.modes.global_search import global_search
from flows.modes.local_search import local_search
from flows.modes.result import ModeResult
from flows.modes.traversal import traversal
from flows.question import QuestionContext
from storage.records import Mode

RunMode = Callable[[QuestionContext], Awaitable[ModeResult]]

RUN_MODE: Mapping[Mode, RunMode] = {
    "local": local_search,
    "global": global_search,
    "drift": drift_search,
    "low": dual_level_search,
    "high": dual_level_search,
    "hybrid": dual_level_search,
    "mix": dual_level_search,
    "traverse": traversal,
    "naive": naive,
    "ts": source_texts,
    "hyde": hyde,
    "rq": rewritten,
    "direct": direct,
}
