"""An answer as text: sections for the terminal and for the page of a recorded question."""

from collections.abc import Sequence
from typing import NamedTuple

from flows.usage import forecast_in_words, in_short, ledger, plain
from storage.answer_records import Ambiguity, Answer, Citation, DegradedStep, Trace
from storage.run_records import UsageRow

SUPPORT = {
    "none": "supported by the sources",
    "partial": "partly supported by the sources",
    "ungrounded": "from the model alone: no source supports it",
    "abstained": "the documents do not say",
}
EXCERPTS = {
    "partial": "excerpts, not an answer: no model has read them",
    "abstained": "nothing was found about this",
}
UNCOMPARED = "cites sources; whether they support it cannot be told by words"
BOUND_BY_PROGRAM = "the model named no source: these are the sentences that say the same"
MOST_FLAGGED = 3


class Section(NamedTuple):
    """Lines under a title; `style` is one of rich's, for terminals."""

    lines: Sequence[str]
    title: str = ""
    style: str = ""


def source_place(citation: Citation) -> str:
    """Return the marker, title and document of a source."""
    marker = citation.marker if citation.marker.startswith("[") else f"[{citation.marker}]"
    page = f", p. {citation.page}" if citation.page else ""
    place = f"{citation.document}{page}"
    return f"{marker} {citation.title} ({place})" if citation.title else f"{marker} {place}"


def source_line(citation: Citation) -> str:
    """Return one line with the place of a source and its quote."""
    return f'{source_place(citation)}: "{" ".join(citation.quote.split())}"'


def in_place_of(row: DegradedStep) -> str:
    """Say why a step's model gave no usable answer, and what was done instead."""
    times = f" ({row.times} times)" if row.times > 1 else ""
    return f"no usable answer of the model{times}, so {row.instead}: {row.reason}"


def support_in_words(answer: Answer) -> str:
    """Return the label of an answer in words."""
    if answer.is_uncompared:
        return UNCOMPARED
    return (EXCERPTS if answer.trace.answered_by == "excerpts" else SUPPORT)[answer.fallback]


def answer_in_words(answer: Answer) -> str:
    """Return one line on how the question ended."""
    return f"{support_in_words(answer)} · {answer.usage.seconds:.2f} s"


def answer_sections(answer: Answer, with_structure: bool) -> list[Section]:
    """Return the sections below an answer: sources, reports, doubts, and how it was found."""
    trace, cited = answer.trace, answer.citations
    sections = [Section([source_line(row) for row in cited], "")]
    if any(row.bound_by == "program" for row in cited):
        sections.append(Section([BOUND_BY_PROGRAM], style="yellow"))
    read = [row for row in trace.reports if row.points]
    titles = [f"{row.community} {row.title} (level {row.level})" for row in read]
    sections.append(Section(titles, "from the reports"))
    shown = trace.structures if with_structure else ()
    sections += [Section(row.text.splitlines(), row.description) for row in shown]
    unsupported = [row for row in answer.grounding if row.supported is False][:MOST_FLAGGED]
    flagged = [" ".join(answer.answer[row.start : row.end].split()) for row in unsupported]
    doubts = [f"no source supports: {sentence}" for sentence in flagged]
    doubts += [_ambiguity(ambiguity) for ambiguity in trace.ambiguity]
    doubts += [f"{row.step}: {in_place_of(row)}" for row in trace.degraded]
    sections.append(Section(doubts, style="yellow"))
    found = [
        answer_in_words(answer),
        *_mode(trace),
        *_recognized(trace),
        *_tests(trace),
        in_short(answer.usage),
    ]
    sections.append(Section([line for line in found if line], style="dim"))
    return [section for section in sections if section.lines]


def answer_page(answer: Answer, used: Sequence[UsageRow]) -> str:
    """Return the page of a recorded question in Markdown, in which no text becomes markup."""
    parts = [f"# {plain(answer.question)}", plain(answer.answer)]
    for section in answer_sections(answer, with_structure=True):
        parts += [f"## {plain(section.title)}"] if section.title else []
        parts += ["\n".join(f"- {plain(line)}" for line in section.lines)]
    trace = answer.trace.model_dump_json(indent=1, exclude_defaults=True, exclude={"structures"})
    shown = "\n".join(f"    {line}" for line in trace.splitlines())
    return "\n\n".join([*parts, "## How the answer was found", shown, ledger(used)])


def _mode(trace: Trace) -> list[str]:
    if trace.decision is None:
        return []
    others = "".join(f"; {mode.mode} gave nothing" for mode in trace.decision.tried)
    return [f"mode {trace.mode}: {trace.decision.reason}{others}"]


def _recognized(trace: Trace) -> list[str]:
    if trace.recognition is None:
        return []
    shown, kept = trace.recognition.shown, len(trace.recognition.kept)
    return [f"{kept} of {shown} statements of the graph led the search"]


def _tests(trace: Trace) -> list[str]:
    if trace.relevance is None:
        return []
    made = trace.relevance
    return [
        f"{made.tests:,} of {made.budget:,} relevance tests, {made.relevant:,} passages relevant; "
        f"forecast: {forecast_in_words(made.forecast)}"
    ]


def _ambiguity(ambiguity: Ambiguity) -> str:
    if not ambiguity.readings:
        return f'ambiguous: "{ambiguity.text}" stands for nothing that was named'
    others = "; ".join(text for text in ambiguity.readings if text != ambiguity.taken)
    return f'ambiguous: "{ambiguity.text}" was read as {ambiguity.taken}, not as {others}'
