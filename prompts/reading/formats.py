"""How is an answer put into the form that its question wants: JSON, a list, the bare number, one sentence?

In the same way whether a model wrote it or not. Values and citations stay as they are.
"""

import json
import re
from collections.abc import Sequence

from prompts.language.asked import Format
from prompts.language.words import is_han

_FIGURE = re.compile(r"[-−]?\d[\d,.]*\d|\d|[零〇一二两三四五六七八九十百千万亿]+")
_STOP = re.compile(r"[.。]\s*$")


def shaped(form: Format, text: str, values: Sequence[str], lines: Sequence[str], markers: Sequence[str]) -> str:
    """The answer in the form asked for.

    `text` is the answer as it would read without, `lines` its statements with their markers, `markers` all of them.
    """
    match form:
        case "json":
            said = " ".join(text.splitlines())
            return json.dumps({"answer": said, "values": list(values), "citations": list(markers)}, ensure_ascii=False)
        case "list":
            items = [f"{value} {''.join(markers)}".strip() for value in values] or list(lines) or [text]
            return "\n".join(f"- {item}" for item in items)
        case "number":
            return _number(values) or text
        case "sentence":
            return _one_sentence(text, lines)
        case "":
            return text


def _number(values: Sequence[str]) -> str:
    """The figure of the first value that has one, as written and without its unit."""
    return next((found.group() for value in values if (found := _FIGURE.search(value))), "")


def _one_sentence(text: str, lines: Sequence[str]) -> str:
    """The first statement alone, its full stop at the end."""
    first = next(iter(lines), text)
    body, marker, marks = first.partition(" [")
    stop = _STOP.search(body)
    ended = body if stop or not body else f"{body}{'。' if is_han(body) else '.'}"
    return f"{ended}{marker}{marks}"
