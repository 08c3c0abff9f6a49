"""Source code: its file endings, and its outline by blank lines and indentation.

Well-set code of any language shows its functions and classes by these two alone. So no parser is
needed, and a file that does not parse is cut all the same.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

ENDINGS = frozenset(
    ".py .pyi .js .mjs .cjs .jsx .ts .mts .cts .tsx .java .kt .kts .scala .groovy .go .rs .c .h "
    ".cc .cpp .cxx .hh .hpp .cs .fs .swift .m .mm .dart .rb .php .pl .pm .lua .r .jl .sh .bash "
    ".zsh .ps1 .sql .ex .exs .erl .hs .ml .clj .proto .vue .svelte .css .scss".split()
)
_LINE = re.compile(r"^[^\S\n]*+(\S[^\n]*)", re.MULTILINE)
_TAB = 4  # columns
# A line that goes on with the block above it, although it stands where that began.
_GOES_ON = re.compile(r"[)\]}{]|(?:else|elif|except|finally|catch|rescue|ensure|end|then)\b")
_BLOCK_COMMENT = re.compile(r"/\*|\*(?:[\s*/]|$)", re.MULTILINE)
_LINE_COMMENT = re.compile(r"//|#|--|;")
_NO_TITLE = re.compile(r"//|/\*|\*|#|--|;|<!--|[@\[\"'`]|[{(]{1,3}$")
_NO_DEFINITION = re.compile(
    r"(?:if|for|foreach|while|switch|match|case|return|throw|raise|try|with|import|from|use|using|"
    r"package|include|do|select|when|unless|until|loop|begin)\b"
)
_LONGEST_TITLE = 120


class CodeLine(NamedTuple):
    """A line that is not blank, `text[start:end]`, without the spaces around it.

    `indent` counts columns; a comment is indented as what follows it. `opens` says that the line
    above is blank, or that there is none.
    """

    start: int
    end: int
    indent: int
    opens: bool


def is_code(name: str) -> bool:
    """Say whether a document of this id is source code."""
    return PurePosixPath(name.lower().removesuffix(".gz")).suffix in ENDINGS


def code_lines(text: str) -> list[CodeLine]:
    """Return the lines of a text that are not blank."""
    lines = list[CodeLine]()
    for match in _LINE.finditer(text):
        start = match.start(1)
        indent = len(text[match.start() : start].expandtabs(_TAB))
        opens = not lines or text.count("\n", lines[-1].end, start) > 1
        lines.append(CodeLine(start, start + len(match[1].rstrip()), indent, opens))
    for place in range(len(lines) - 2, -1, -1):
        line, below = lines[place], lines[place + 1]
        if _BLOCK_COMMENT.match(text, line.start):
            lines[place] = line._replace(indent=below.indent)
        elif _LINE_COMMENT.match(text, line.start):  # In C, `#ifdef` within a function begins at 0.
            lines[place] = line._replace(indent=max(line.indent, below.indent))
    return lines


def blocks(text: str, lines: Sequence[CodeLine], above: int = -1) -> Iterator[tuple[int, int]]:
    """Yield the places of the outermost blocks in `lines`: functions, classes, groups of lines.

    A block begins at the least indent of more than `above` columns, after a blank line or after the
    body of another one.
    """
    base = min((line.indent for line in lines if line.indent > above), default=0)
    first = 0
    for place in range(1, len(lines)):
        before, line = lines[place - 1], lines[place]
        ended = before.indent != base or _GOES_ON.match(text, before.start)
        if (line.opens or ended) and line.indent == base and not _GOES_ON.match(text, line.start):
            yield first, place
            first = place
    if lines:
        yield first, len(lines)


def body_of(lines: Sequence[CodeLine]) -> int:
    """Return the place of the first line in a block's body, or how many lines it has."""
    base = lines[0].indent
    return next((place for place, line in enumerate(lines) if line.indent > base), len(lines))


def title_of_block(text: str, lines: Sequence[CodeLine]) -> str:
    """Return the line that defines what a block holds, empty where it defines nothing."""
    body = body_of(lines)
    words = [text[line.start : line.end] for line in lines[:body]] if body < len(lines) else []
    kept = [word for word in words if not _NO_TITLE.match(word)]
    title = " ".join(kept[-1].split()).rstrip(" {:(=[") if kept else ""
    return "" if _NO_DEFINITION.match(title) else title[:_LONGEST_TITLE]
