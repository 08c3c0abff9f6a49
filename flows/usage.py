"""Records in words: the fields of any of them, and what the models cost, in a line and as a table.

A cost that is not known is said to be unknown, never zero.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from pydantic import BaseModel

from prompts.engine.key_masking import MASK, mask_keys
from prompts.text.regex import regex
from storage.run_records import AnswerChange, StepUsage, UsageRow

Result = BaseModel | Mapping[str, object] | Sequence[BaseModel | Mapping[str, object]]
SHOWN = 20  # lines of a list
_CREDENTIALS = regex(r"(?<=://)[^/@\s]+@")


def facts_of(result: Result, without: Collection[str] = ()) -> list[tuple[str, str]]:
    """The fields of a record that hold something, by name, in words; each entry of a list of texts
    or records has a line, the first SHOWN of them.
    """
    rows = []
    for name, value in dict(result).items() if isinstance(result, BaseModel | Mapping) else ():
        if name not in without:
            lines = [text for text in _in_words(name, value) if text]
            lines[SHOWN:] = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
            heading = name.removesuffix("_bytes").replace("_", " ")
            rows += [("" if place else heading, text) for place, text in enumerate(lines)]
    return rows


def _in_words(name: str, value: object) -> list[str]:
    if isinstance(value, list | tuple) and value and isinstance(value[0], int):
        return [", ".join(map(str, value))]
    if isinstance(value, list | tuple):
        return [in_one_line(name, part) for part in value]
    return [in_one_line(name, value)]


def in_one_line(name: str, value: object) -> str:
    """A value in words: of a record its texts, its figures with their names, and the names of what
    is true.
    """
    if isinstance(value, StepUsage):
        return in_short(value)
    if isinstance(value, BaseModel | Mapping):
        parts = ((key, part, in_one_line(key, part)) for key, part in dict(value).items() if part)
        return ", ".join(
            (
                key
                if part is True
                else (
                    f"{text} {key}"
                    if isinstance(part, int | float) and key[-6:] != "_bytes"
                    else text
                )
            )
            for key, part, text in parts
        )
    if isinstance(value, list | tuple):
        return "; ".join(in_one_line(name, part) for part in value)
    if name.endswith("_bytes"):
        return size_in_words(int(str(value or 0)))
    return f"{value:g}" if isinstance(value, float) else " ".join(str(value or "").split())


def size_in_words(number: int) -> str:
    """Bytes as MB or GB."""
    return f"{number / 1e6:.1f} MB" if number < 1e9 else f"{number / 1e9:.2f} GB"


def in_short(used: StepUsage) -> str:
    """One line: calls, tokens, cost; empty where no model was used."""
    if not used.calls and not used.cached_calls:
        return ""
    cached = f" and {used.cached_calls:,} from the cache" if used.cached_calls else ""
    return (
        f"{used.calls:,} model {'call' if used.calls == 1 else 'calls'}{cached}, "
        f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out, {cost_of(used)}"
    )


def cost_of(used: StepUsage) -> str:
    """US dollars, to a hundredth of a cent where it is little."""
    if used.cost_usd is None:
        return "cost unknown"
    return (
        f"${used.cost_usd:.2f}"
        if used.cost_usd >= 1 or used.cost_usd == 0
        else f"${used.cost_usd:.4f}"
    )


def ledger(rows: Iterable[UsageRow]) -> str:
    """A Markdown table by step and model; says so where no model was used."""
    lines = [
        f"| {row.step} | {row.model.replace('|', ' ')} | {row.calls} | {row.cached_calls} | "
        f"{row.input_tokens} | {row.output_tokens} | {cost_of(row)} | {row.seconds:.1f} |"
        for row in rows
    ]
    if not lines:
        return "## Models\n\nNone was used: every step ran offline."
    head = (
        "| step | model | calls | cached | tokens in | tokens out | cost | seconds "
        "|\n|---|---|--:|--:|--:|--:|--:|--:|"
    )
    return "## Models\n\n" + "\n".join([head, *lines])


_MARKUP = str.maketrans(
    {sign: f"\\{sign}" for sign in "\\`*_[]#!|~"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)
# Addresses become links by themselves: an invisible joiner within each keeps it text.
_ADDRESS = regex(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)", re.IGNORECASE)


def plain(text: str) -> str:
    """Text for a Markdown artifact that stays text: no link, no picture, no heading comes out of a
    document.
    """
    return " ".join(_ADDRESS.sub("\u2060", text).translate(_MARKUP).split())


def short(text: str, most: int) -> str:
    """One line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def masked(text: str) -> str:
    """The text with every key masked, and what any address holds before its host."""
    return _CREDENTIALS.sub(f"{MASK}@", mask_keys(text))


def error_of(error: Exception) -> dict[str, str]:
    """An error as programs read it, with the keys masked: {type, message, remedy}."""
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    return {
        "type": type(error).__name__,
        "message": mask_keys(message),
        "remedy": mask_keys(getattr(error, "remedy", "")),
    }


def change_in_words(change: AnswerChange) -> list[str]:
    """A change as lines: the question, its diff, and the documents that came and went."""
    if change.error:
        return [f"{change.question} failed: {change.error}"]
    lines = [f"{change.question} (generation {change.before} to {change.generation})", *change.diff]
    lines += [f"cited now: {', '.join(change.cited)}"] if change.cited else []
    return lines + (
        [f"no longer cited: {', '.join(change.no_longer_cited)}"] if change.no_longer_cited else []
    )
