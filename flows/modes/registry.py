"""The modes by name. A new mode is one new file in this folder, with a function that `@mode` marks with its name; the
search itself is told in `flows/query.py`."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # names alone load nothing: help and typing errors come at once
    from flows.question import ModeResult, Resources
    from storage.answer_records import Passage

    RunMode = Callable[..., Awaitable[ModeResult]]
    RetrieveMode = Callable[..., Awaitable[list[Passage]]]

AUTO = "auto"  # chooses among the others
SEARCH = "struct"  # the search itself, told in `flows/query.py`; `tasks.route` chooses it by the same name
T = TypeVar("T")


@dataclass(frozen=True)
class RegisteredMode:
    """What finds the evidence for an answer; `retrieve`: what finds its `k` passages alone, None where that is the
    search.

    Both have as parameters what they need of `flows.question.Resources`, by name."""

    run: "RunMode"
    retrieve: "RetrieveMode | None"


_MODES: dict[str, RegisteredMode] = {}


def mode(*names: str, retrieve: "RetrieveMode | None" = None) -> "Callable[[RunMode], RunMode]":
    """Register a function that makes what an answer is written from, under one name or several."""

    def register(run: "RunMode") -> "RunMode":
        _MODES.update(dict.fromkeys(names, RegisteredMode(run, retrieve)))
        return run

    return register


def call_with(function: "Callable[..., Awaitable[T]]", resources: "Resources", **further: object) -> "Awaitable[T]":
    """Call a function with those of the resources that its parameters name, and with `further` as it is."""
    names = [name for name in inspect.signature(function).parameters if name not in further]
    return function(**{name: getattr(resources, name) for name in names}, **further)


@cache
def mode_names() -> tuple[str, ...]:
    """`auto`, the search, and every name that a file registers, read without loading it."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py")))
    marks = (mark for text in texts for mark in re.findall(r"^@mode\((.*)\)$", text, re.MULTILINE))
    return AUTO, SEARCH, *(name for mark in marks for name in re.findall(r'(?<!=)"(\w+)"', mark))


def check_mode(name: str) -> None:
    """Raises SettingsError for a mode that is not there, which names the nearest and all that are."""
    if name not in mode_names():
        from storage.errors import SettingsError, did_you_mean

        near = did_you_mean(name, mode_names())
        raise SettingsError("mode", name, f"one that is there: {', '.join(mode_names())}", near)


def find_mode(name: str) -> RegisteredMode:
    """The mode of this name, which is neither `auto` nor the search. Raises SettingsError where there is none."""
    check_mode(name)
    if name not in _MODES:
        for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
            importlib.import_module(f"{__package__}.{module.name}")
    return _MODES[name]
