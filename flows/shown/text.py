"""How does text that is not ours stay text: in Markdown, and in the labels of a Mermaid picture?"""

import re
from collections.abc import Iterable, Sequence

_MARKUP = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]#!|~"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})
# Addresses become links by themselves: an invisible joiner within each keeps it text.
_ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)", re.IGNORECASE)
_HARMLESS = frozenset(" .,?!-()…")


def plain(text: str) -> str:
    """Text for a Markdown artifact that stays text: no link, no picture, no heading comes out of a document."""
    return " ".join(_ADDRESS.sub("\u2060", text).translate(_MARKUP).split())


def short(text: str, most: int) -> str:
    """One line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def label(text: str, most: int = 60) -> str:
    """Text for a Mermaid label in double quotes: whatever could be syntax, markup or a link is a character's number."""
    shown = (sign for sign in short(text, most) if sign.isprintable())
    return "".join(sign if sign.isalnum() or sign in _HARMLESS else f"#{ord(sign)};" for sign in shown)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the cells are given as Markdown (`plain` them where they are not ours)."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
