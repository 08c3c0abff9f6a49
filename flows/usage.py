"""Records as text: the fields of any record, and what the models cost, as a line and a table.

An unknown cost is called unknown, never zero.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from pydantic import BaseModel

from prompts.engine.key_masking import MASK, mask_keys
from storage.run_records import (
    AnswerChange,
    Forecast,
    QuestionForecast,
    StepForecast,
    StepUsage,
    UsageRow,
)

Result = BaseModel | Mapping[str, object] | Sequence[BaseModel | Mapping[str, object]]
SHOWN = 20  # lines of a list
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def facts_of(result: Result, without: Collection[str] = ()) -> list[tuple[str, str]]:
    """Return the names and texts of a record's fields that are not empty.

    Each entry of a list of texts or records has a line of its own, up to SHOWN lines.
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
    """Return a value as text: of a record its texts, its figures with names, and what is true."""
    if isinstance(value, StepUsage):
        return in_short(value)
    if isinstance(value, BaseModel | Mapping):
        return ", ".join(_entry(key, part) for key, part in dict(value).items() if part)
    if isinstance(value, list | tuple):
        return "; ".join(in_one_line(name, part) for part in value)
    if name.endswith("_bytes"):
        return size_in_words(int(str(value or 0)))
    return f"{value:g}" if isinstance(value, float) else " ".join(str(value or "").split())


def _entry(name: str, value: object) -> str:
    if value is True:
        return name
    named = isinstance(value, int | float) and not name.endswith("_bytes")
    return f"{in_one_line(name, value)} {name}" if named else in_one_line(name, value)


def size_in_words(number: int) -> str:
    """Return bytes as MB or GB."""
    return f"{number / 1e6:.1f} MB" if number < 1e9 else f"{number / 1e9:.2f} GB"


def in_short(used: StepUsage) -> str:
    """Return one line with calls, tokens and cost; empty if no model was used."""
    if not used.calls and not used.cached_calls:
        return ""
    cached = f" and {used.cached_calls:,} from the cache" if used.cached_calls else ""
    return (
        f"{used.calls:,} model {'call' if used.calls == 1 else 'calls'}{cached}, "
        f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out, {cost_of(used)}"
    )


def cost_of(used: StepUsage) -> str:
    """Return US dollars, below one dollar to a hundredth of a cent."""
    if used.cost_usd is None:
        return "cost unknown"
    return f"${used.cost_usd:.4f}" if 0 < used.cost_usd < 1 else f"${used.cost_usd:.2f}"


def forecast_in_words(plan: Forecast | QuestionForecast | StepForecast) -> str:
    """Return one line with the calls, tokens and cost of a forecast."""
    if not plan.calls:
        return "no calls"
    tokens = f"{plan.input_tokens:,} tokens in, {plan.output_tokens:,} out"
    cost = cost_of(StepUsage(cost_usd=plan.cost_usd))
    return f"about {plan.calls:,} calls, {tokens}, {cost}"


def ledger(rows: Iterable[UsageRow]) -> str:
    """Return a Markdown table by step and model, or a sentence if no model was used."""
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
# Markdown makes addresses links; an invisible joiner within each prevents that.
_ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)", re.IGNORECASE)


def plain(text: str) -> str:
    """Escape text for Markdown, so that a document can bring no link, picture or heading."""
    return " ".join(_ADDRESS.sub("\u2060", text).translate(_MARKUP).split())


def short(text: str, most: int) -> str:
    """Return the text as one line of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def masked(text: str) -> str:
    """Mask every key, and the credentials in every address."""
    return _CREDENTIALS.sub(f"{MASK}@", mask_keys(text))


def error_of(error: Exception) -> dict[str, str]:
    """Return an error for programs as {type, message, remedy}, with keys masked."""
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    return {
        "type": type(error).__name__,
        "message": mask_keys(message),
        "remedy": mask_keys(getattr(error, "remedy", "")),
    }


def change_in_words(change: AnswerChange) -> list[str]:
    """Return a changed answer as lines: the question, the diff, and changed citations."""
    if change.error:
        return [f"{change.question} failed: {change.error}"]
    lines = [f"{change.question} (generation {change.before} to {change.generation})", *change.diff]
    if change.cited:
        lines.append(f"cited now: {', '.join(change.cited)}")
    if change.no_longer_cited:
        lines.append(f"no longer cited: {', '.join(change.no_longer_cited)}")
    return lines
