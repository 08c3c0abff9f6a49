"""Patterns that are compiled at their first use."""

import re
from importlib import import_module
from pkgutil import walk_packages

import pytest

import prompts
import tasks
from prompts.text.regex import regex


def test_it_does_what_a_compiled_pattern_does() -> None:
    word = regex(r"\b(k\w+)", re.I)
    compiled = re.compile(r"\b(k\w+)", re.I)
    text = "Kestrel and kite"
    for _ in range(2):  # the first use and those after it
        assert word.findall(text) == compiled.findall(text) == ["Kestrel", "kite"]
        assert word.sub("x", text) == "x and x"
        assert (match := word.search(text, 4)) is not None
        assert match[1] == "kite"
    assert (word.pattern, word.flags, word.groups) == (compiled.pattern, compiled.flags, 1)


def test_a_pattern_of_bytes() -> None:
    assert regex(rb"\d+").findall(b"1 and 22") == [b"1", b"22"]


def test_what_is_not_well_formed_is_told_at_its_first_use() -> None:
    broken = regex("(")
    with pytest.raises(re.error, match="unterminated subpattern"):
        broken.search("")


def test_what_a_pattern_does_not_have() -> None:
    with pytest.raises(AttributeError, match="find"):
        regex("x").find  # type: ignore[attr-defined]  # noqa: B018


def test_every_pattern_of_the_product_is_well_formed() -> None:
    found = [
        value
        for package in (prompts, tasks)
        for module in walk_packages(package.__path__, f"{package.__name__}.")
        for value in vars(import_module(module.name)).values()
        if type(value) is type(regex(""))
    ]
    assert len(found) > 200
    assert all(re.compile(pattern.pattern, pattern.flags) for pattern in found)
