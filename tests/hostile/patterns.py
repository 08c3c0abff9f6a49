"""Run each pattern of the product on long texts of its own parts (`python -m` runs all of them).

Each pattern runs in a process of its own, which the system ends after SECONDS of processor time.
"""

import ast
import collections
import importlib
import inspect
import itertools
import os
import pkgutil
import re
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from lark import Lark, Token, Tree

from tests.test_project import NEED_AN_EXTRA

# What the patterns of the product are made of. EMPTY takes no character of its own.
GRAMMAR = r"""
either: sequence ("|" sequence)*
sequence: (part | repeated)*
repeated: part TIMES
?part: group | SIGN | EMPTY
group: OPENING either ")"

EMPTY.3: /[\^$]|\\[AbBZ1-9]|\(\?[a-zA-Z]+\)|\(\?P=\w+\)/
TIMES.2: /(?:[*+?]|\{\d+(?:,\d*)?\}|\{,\d+\})[+?]?/
OPENING: /\((?:\?(?:[:>=!]|<[=!]|P<\w+>|[a-zA-Z]*(?:-[a-z]+)?:))?/
SIGN: /\\(?:x\w{2}|u\w{4}|U\w{8}|.)|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\()\[|*+?]/s
"""
VERBOSE = r"""
SPACE.4: /\s+|#.*/
%ignore SPACE
"""
AROUND = ("(?=", "(?!", "(?<=", "(?<!")
Node = Tree[Token] | Token

PACKAGES = ("flows", "tasks", "prompts", "storage")
LENGTH = 100_000
WHOLE_LINES = ("tasks.extract._TRIPLE_LINES",)  # matched once a line, from its beginning
SECONDS = 2.0  # A linear search takes some milliseconds, a quadratic one half a minute.
SEARCHES = {
    f"re.{name}" for name in ("findall", "finditer", "fullmatch", "match", "search", "split", "sub")
}


def modules() -> Iterator[ModuleType]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if found.name.endswith("__main__"):
                continue
            try:
                yield importlib.import_module(found.name)
            except ModuleNotFoundError:
                if f"{found.name.rpartition('.')[2]}.py" not in NEED_AN_EXTRA:
                    raise


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


def parsed(pattern: re.Pattern[Any]) -> Tree[Token]:
    """Return a pattern as a tree of its parts."""
    written = pattern.pattern
    text = written.decode("latin-1") if isinstance(written, bytes) else written
    return _parser(bool(pattern.flags & re.VERBOSE)).parse(text)


@cache
def _parser(verbose: bool) -> Lark:
    grammar = f"{GRAMMAR}\n{VERBOSE}" if verbose else GRAMMAR
    return Lark(grammar, parser="lalr", start="either")


def sample(node: Node) -> str:
    """Return a text that a part of a pattern matches, if possible."""
    match node:
        case Token(type="SIGN"):
            return _sign(str(node))
        case Tree(data="either", children=[first, *_]):
            return sample(first)
        case Tree(data="sequence", children=parts):
            return "".join(map(sample, parts))
        case Tree(data="repeated", children=[part, times]):
            least = re.match(r"\{(\d+)", str(times))
            return sample(part) * max(1, int(least[1]) if least else 1)
        case Tree(data="group", children=[opening, inner]) if opening not in AROUND:
            return sample(inner)
    return ""


@cache
def _sign(part: str) -> str:
    """Return a character that a part of a pattern matches: a usual one, one of the part's, any."""
    signs = itertools.chain('a 7-(["x', part, map(chr, range(sys.maxunicode + 1)))
    return next((sign for sign in signs if re.fullmatch(part, sign)), "")


def repeats(node: Node, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield what stands before each repetition, and what it repeats."""
    if isinstance(node, Token):
        return
    if node.data == "repeated":
        yield before, sample(node.children[0])
    for child in node.children:
        yield from repeats(child, before)
        if node.data == "sequence":
            before += sample(child)


def texts(pattern: re.Pattern[str], length: int) -> list[str]:
    """Return long texts that nearly match: repetitions, alone and after what precedes them."""
    tree = parsed(pattern)
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
