"""The modes by name. A new mode is one new file in this folder, with a function that `@mode` marks with its name; the
search itself is told in `flows/query.py`."""

import importlib
import pkgutil
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # names alone load nothing: help and typing errors come at once
    from flows.question import ModeResult, QuestionContext
    from storage.answer_records import Passage, StructureType

    RunMode = Callable[[QuestionContext], Awaitable[ModeResult]]
    RetrieveMode = Callable[[QuestionContext, int], Awaitable[list[Passage]]]

AUTO = "auto"  # chooses among the others


@dataclass(frozen=True)
class RegisteredMode:
    """What finds the evidence for an answer; `structure`: what it is brought into, None where the router chooses;
    `retrieve`: what finds passages alone, None where that is the search."""

    run: "RunMode"
    structure: "StructureType | None"
    retrieve: "RetrieveMode | None"


_MODES: dict[str, RegisteredMode] = {}


def mode(
    *names: str, structure: "StructureType | None" = None, retrieve: "RetrieveMode | None" = None
) -> "Callable[[RunMode], RunMode]":
    """Register a function from a question to what its answer is written from, under one name or several."""

    def register(run: "RunMode") -> "RunMode":
        _MODES.update(dict.fromkeys(names, RegisteredMode(run, structure, retrieve)))
        return run

    return register


@cache
def mode_names() -> tuple[str, ...]:
    """`auto`, and every name that a file registers, read without loading it."""
    folder = Path(__file__).parent
    texts = (path.read_text(encoding="utf-8") for path in (folder.with_name("query.py"), *sorted(folder.glob("*.py"))))
    marks = (mark for text in texts for mark in re.findall(r"^@mode\((.*)\)$", text, re.MULTILINE))
    return AUTO, *(name for mark in marks for name in re.findall(r'(?<!=)"(\w+)"', mark))


def find_mode(name: str) -> RegisteredMode:
    """The mode of this name. Raises SettingsError, which names those that are there."""
    if name not in mode_names() or name == AUTO:
        from storage.errors import SettingsError

        raise SettingsError("mode", name, f"one that is there: {', '.join(mode_names())}")
    if name not in _MODES:
        importlib.import_module("flows.query")
        for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
            importlib.import_module(f"{__package__}.{module.name}")
    return _MODES[name]
