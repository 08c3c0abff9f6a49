"""The user's own prompts: instructions, and compiled steps."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prompts.registry import instruction_names, misfit
from storage.errors import SettingsError, did_you_mean
from storage.files import text_of_file


def read_instructions(folder: Path) -> dict[str, str]:
    """Read the files `STEP.md` of a folder by step. Raises SettingsError for an empty file."""
    if not folder.is_dir():
        form = "a folder with a file STEP.md for each prompt to replace"
        raise SettingsError("prompts", str(folder), form)
    instructions: dict[str, str] = {}
    for path in sorted(folder.glob("*.md")):
        try:
            instructions[path.stem] = text_of_file(path).strip()
        except UnicodeDecodeError as error:
            raise SettingsError("prompts", str(path), "a text in UTF-8") from error
        if not instructions[path.stem]:
            form = "a file with the instruction in it, or remove it"
            raise SettingsError("prompts", str(path), form)
    return instructions


def check_instructions(instructions: Mapping[str, str]) -> None:
    """Refuse the name of an unknown step. Raises SettingsError."""
    known = instruction_names()
    for name in instructions:
        if name not in known:
            near = did_you_mean(name, known)
            form = f"the name of a step: {', '.join(known)}"
            raise SettingsError("prompts", name, form, near)


def read_programs(folder: Path) -> tuple[dict[str, Any], ...]:
    """Read the compiled steps of a folder in the order of its file names.

    Raises SettingsError for a missing folder, and a file that does not fit this version's steps.
    """
    if not folder.is_dir():
        form = "a folder with compiled steps, each as `step.save` writes it"
        raise SettingsError("programs", str(folder), form)
    return tuple(state for path in sorted(folder.glob("*.json")) for state in _states(path))


def _states(path: Path) -> list[dict[str, Any]]:
    """Return the steps of a file: one, or those of a program of several."""
    try:
        saved = json.loads(text_of_file(path))
    except ValueError as error:
        raise SettingsError("programs", str(path), "JSON as `step.save` writes it") from error
    states = [saved, *saved.values()] if isinstance(saved, dict) else []
    needed = {"step", "shape", "demos"}
    states = [state for state in states if isinstance(state, dict) and needed <= state.keys()]
    if not states:
        form = "a step of Trellis that was compiled and saved by DSPy"
        raise SettingsError("programs", str(path), form)
    for state in states:
        if problem := misfit(state):
            raise SettingsError("programs", str(path), problem)
    return states
