"""Run each pattern of the product on long texts of its own parts (`python -m` runs all of them).

Each pattern runs in a process of its own, which the system ends after SECONDS of processor time.
"""

import ast
import collections
import importlib
import inspect
import os
import pkgutil
import re
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

# The modules that parse patterns have no types.
kind: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")
Tree = Iterable[tuple[Any, Any]]

PACKAGES = ("flows", "tasks", "prompts", "storage")
LENGTH = 100_000
WHOLE_LINES = ("tasks.extract._TRIPLE_LINES",)  # matched once a line, from its beginning
SECONDS = 2.0  # A linear search takes some milliseconds, a quadratic one half a minute.
SEARCHES = {
    f"re.{name}" for name in ("findall", "finditer", "fullmatch", "match", "search", "split", "sub")
}
_REPEATS = {kind.MAX_REPEAT, kind.MIN_REPEAT, kind.POSSESSIVE_REPEAT}
_CLASSES = {kind.CATEGORY_DIGIT: "7", kind.CATEGORY_SPACE: " ", kind.CATEGORY_WORD: "a"}


def modules() -> Iterator[ModuleType]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def patterns() -> dict[str, re.Pattern[str]]:
    """Return each pattern that a module compiles, also in tables, or passes to `re`, by name."""
    found: dict[str, re.Pattern[str]] = {}
    for module in modules():
        held = [
            (name, pattern)
            for name, value in vars(module).items()
            for pattern in _within(value, 3, re.Pattern)
        ]
        for name, pattern in (*held, *_in_calls(module)):
            if pattern not in found.values():
                found[f"{module.__name__}.{name}#{len(found)}"] = pattern
    return found


def _within(value: object, depth: int, wanted: type[Any]) -> Iterator[Any]:
    if isinstance(value, wanted):
        yield value
    elif depth and isinstance(value, dict | list | tuple | set | frozenset):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _within(part, depth - 1, wanted)


def _in_calls(module: ModuleType) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the patterns in calls of `re.search` and the like.

    For a variable of a loop these are all texts in the module's tables that look like patterns.
    """
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text("utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in SEARCHES and node.args:
            try:
                # Our own source.
                texts = [eval(ast.unparse(node.args[0]), vars(module))]  # noqa: S307
            except NameError:
                texts = [
                    text
                    for table in vars(module).values()
                    if isinstance(table, tuple | dict)
                    for text in _within(table, 3, str)
                    if set(text) & set("\\[(|*+")
                ]
            flags = re.IGNORECASE if "re.I" in ast.unparse(node) else 0
            named = ast.unparse(node.func).removeprefix("re.")
            yield from ((named, re.compile(text, flags)) for text in texts if isinstance(text, str))


def sample(tree: Tree) -> str:
    """Return a text that a parsed pattern matches, if possible."""
    return "".join(_sample(code, argument) for code, argument in tree)


def _sample(code: Any, argument: Any) -> str:  # noqa: PLR0911 -- a case for each kind of part
    match code, argument:
        case kind.LITERAL, int(sign):
            return chr(sign)
        case kind.NOT_LITERAL, int(sign):
            return "a" if sign != ord("a") else "b"
        case kind.ANY, _:
            return "a"
        case kind.IN, [*parts]:
            return _of_set(parts)
        case kind.BRANCH, (_, [first, *_]):
            return sample(first)
        case kind.SUBPATTERN, (*_, inner):
            return sample(inner)
        case kind.ATOMIC_GROUP, inner:
            return sample(inner)
        case code, (int(least), _, inner) if code in _REPEATS:
            return sample(inner) * max(1, int(least))
    return ""


def _of_set(parts: list[tuple[Any, Any]]) -> str:
    if parts[0][0] is kind.NEGATE:
        excluded = {
            chr(argument)
            for code, argument in parts
            if code is kind.LITERAL and isinstance(argument, int)
        }
        return next(sign for sign in 'a 7-(["x' if sign not in excluded)
    (code, argument), *_ = parts
    if code is kind.RANGE and isinstance(argument, tuple):
        return chr(argument[0])
    return _CLASSES.get(argument, "a") if code is kind.CATEGORY else chr(int(str(argument)))


def repeats(tree: Tree, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield what stands before each repetition, and what it repeats."""
    for code, argument in tree:
        match code, argument:
            case code, (_, _, inner) if code in _REPEATS:
                yield before, sample(inner)
                yield from repeats(inner, before)
            case kind.SUBPATTERN, (*_, inner):
                yield from repeats(inner, before)
            case kind.BRANCH, (_, branches):
                for branch in branches:
                    yield from repeats(branch, before)
            case ((kind.ASSERT | kind.ASSERT_NOT), (_, inner)):
                yield from repeats(inner, before)
        before += _sample(code, argument)


def texts(pattern: re.Pattern[str], length: int) -> list[str]:
    """Return long texts that nearly match: repetitions, alone and after what precedes them."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE & ~re.DEBUG)
    whole = sample(tree)
    parts = {(before, unit) for before, unit in repeats(tree) if unit}
    units = (
        {unit for _, unit in parts}
        | {before + unit for before, unit in parts}
        | {whole, whole[:-1], whole[:1]}
    )
    begun = [before + unit * (length // len(unit)) for before, unit in parts]
    return sorted(
        {
            text + end
            for text in (*begun, *(u * (length // len(u)) for u in units if u))
            for end in ("", "\x00")
        }
    )


def searched(name: str, pattern: re.Pattern[Any], text: str) -> None:
    """Use the pattern as its module does: only from the beginning where it only matches there."""
    module, _, variable = name.partition("#")[0].rpartition(".")
    given: Any = (
        text.encode("utf-8", "surrogatepass") if isinstance(pattern.pattern, bytes) else text
    )
    uses = set(re.findall(rf"\b{variable}\.(\w+)\(", inspect.getsource(sys.modules[module]))) or {
        variable
    }
    if name.startswith(WHOLE_LINES) or uses <= {"match", "fullmatch"}:
        pattern.match(given)
        pattern.fullmatch(given)
    else:
        collections.deque(pattern.finditer(given), 0)


def too_slow(name: str, pattern: re.Pattern[str]) -> str:
    """Return the beginning of a text on which the pattern takes more than SECONDS, if any."""
    reading, writing = os.pipe()
    if child := os.fork():
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8", errors="replace") as tried:
            last = (tried.read().splitlines() or [""])[-1]
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended in {0, -signal.SIGVTALRM}, name
        return last if ended else ""
    broken = 1
    try:
        for text in texts(pattern, LENGTH):
            os.write(writing, f"{text[:40]!a}…{text[-20:]!a}\n".encode())
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            searched(name, pattern, text)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        broken = 0
    finally:
        os._exit(broken)  # The child goes no further, whatever happens to it.


def main() -> int:
    found = patterns()
    slow = 0
    for name, pattern in found.items():
        if text := too_slow(name, pattern):
            slow += 1
            sys.stdout.write(f"{name} {pattern.pattern!r} on {text}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(found)} patterns, {slow} too slow\n")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
