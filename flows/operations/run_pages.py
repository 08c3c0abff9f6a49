"""The pages of index runs and of recorded questions, in Markdown: all that a reader may want to see
of one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, urlsplit

from flows.indexing.source_changes import in_words as kept_in_words
from flows.runtime import Runtime
from flows.usage import change_in_words, in_place_of, ledger, plain, short
from storage.answer_records import Answer, AnsweredBy, Trace, TriggerDecision
from storage.graph_records import Report
from storage.records import DeadLetter, Document
from storage.run_records import CommunityQuality, IndexReport, UsageRow

SHOWN_ROWS = 50
SHOWN_REPORTS = 10
SHOWN_STRUCTURES = 6

# For a reader who has not seen such pages before.
GENERATION = "A generation is one published state of the index; questions are answered from the newest."
RETRY = "These failed and are kept; `trellis dead-letter --retry` tries them again."
WATCHED = "What was answered before (-) and is now (+), and the documents that are cited now or no longer."
COMMUNITIES = "Names that belong together, each group with a report; questions about the whole are answered from these."
IN_ORDER = "In the order in which it went; the steps have the names of this run's tasks."
FOR_THE_ANSWER = "What the passages say, in the form that suits the question."
ANSWERED_BY: dict[AnsweredBy, str] = {
    "model": "written by a model",
    "excerpts": "the best sentences of the sources",
    "traversal": "told from a walk over the graph",
    "table": "computed from tables",
}
# Fields of a document that may hold the address of the page that it is.
ADDRESS_FIELDS = ("url", "link", "source_url")


def _section(title: str, rows: Iterable[tuple[str, str]], note: str) -> list[str]:
    """Write a list under a heading and a note, each entry a label and a text, the first of them;
    nothing where it is empty. No table: Prefect's pages show the beginning of a long cell only.
    """
    every = list(rows)
    if not every:
        return []
    lines = [f"- **{plain(short(name, 100))}**: {plain(short(text, 300))}" for name, text in every[:SHOWN_ROWS]]
    more = [f"and {len(every) - SHOWN_ROWS} more"] if len(every) > SHOWN_ROWS else []
    return [f"## {title}", note, "\n".join(lines), *more]


# --- an index run ----------------------------------------------------------------------------------------------------


def read_run(report: IndexReport, runtime: Runtime) -> tuple[list[DeadLetter], list[tuple[Report, int]]]:
    """What failed, and the reports of the largest communities with the number of their entities, in
    the generation that a run left.
    """
    with runtime.workspace.read(report.generation) as generation:
        letters = generation.extractions.dead_letters() if report.dead_letters else []
        if not report.published:
            return letters, []
        sizes = {community.id: len(community.members) for community in generation.communities.communities(0)}
        themes = [(report, sizes[report.community]) for report in generation.communities.reports(0)]
    themes.sort(key=lambda theme: (-theme[1], -theme[0].rating, theme[0].community))
    return letters, themes[:SHOWN_REPORTS]


def index_in_words(report: IndexReport) -> str:
    """The outcome as one sentence."""
    counts = report.documents
    if not report.published:
        return f"Nothing has changed: generation {report.generation} stays, with {counts.unchanged} documents."
    changed = ", ".join(f"{number} {name}" for name, number in counts.model_dump().items() if number)
    return (
        f"Published generation {report.generation} ({changed or 'none changed'}; {report.chunks} chunks, "
        f"{report.entities} entities, {report.relations} relations) in {report.seconds:.1f} s."
    )


def quality_in_words(quality: CommunityQuality) -> str:
    """How well the communities part the graph, as one sentence."""
    return (
        f"Communities by {quality.algorithm}: {quality.coarsest} on the coarsest of {quality.levels} levels, with "
        f"modularity {quality.modularity:.3f}, conductance {quality.conductance:.3f}, coverage {quality.coverage:.3f}."
    )


def index_page(
    report: IndexReport,
    sources: Sequence[str],
    failed: Sequence[DeadLetter],
    largest: Sequence[tuple[Report, int]],
    used: Sequence[UsageRow],
) -> str:
    """The page in Markdown."""
    letters = [(f"{row.item}, {row.step}", f"{row.error} {row.remedy}") for row in failed]
    skipped = [(row.path, row.reason) for row in report.skipped]
    watched = [
        (row.question, " · ".join(change_in_words(row)[0 if row.error else 1 :])) for row in report.changed_answers
    ]
    themes = [
        (theme.title, f"{members} names, rated {theme.rating:.1f} of 10. {theme.summary}") for theme, members in largest
    ]
    parts = [
        f"# Index, generation {report.generation}",
        index_in_words(report),
        GENERATION,
        *([kept_in_words(report.kept_prompts)] if report.kept_prompts else []),
        f"Sources: {plain(', '.join(sources))}",
        *([quality_in_words(report.community_quality)] if report.community_quality else []),
        *_section(f"Watched questions that changed ({len(report.changed_answers)})", watched, WATCHED),
        *_section(f"Dead letters ({len(letters)})", letters, RETRY),
        *_section(f"Skipped ({len(skipped)})", skipped, "This was not read, and why."),
        *_section("Largest communities", themes, COMMUNITIES),
        ledger(used),
    ]
    return "\n\n".join(parts)


# --- a question ------------------------------------------------------------------------------------------------------


def answer_in_words(answer: Answer) -> str:
    """How the question ended, as one sentence."""
    cited = len({citation.document for citation in answer.citations})
    sources = "1 document" if cited == 1 else f"{cited} documents"
    ended = f" (generation {answer.generation}, {answer.usage.seconds:.2f} s)."
    if answer.trace.answered_by == "excerpts":
        found = f"Excerpts from {sources}, not an answer: no model has read them"
        return (found if answer.citations else "Nothing was found that speaks of this") + ended
    ends = {
        "none": f"Answered from {sources}",
        "partial": f"Answered in part, from {sources}",
        "ungrounded": f"Answered with citations of {sources}, which words cannot be compared with"
        if answer.is_uncompared
        else "Answered by the model alone: no document supports it",
        "abstained": "Not answered: the documents do not say",
    }
    return f"{ends[answer.fallback]}{ended}"


def address_of(document: Document) -> str:
    """Where a document can be read: the web address that it names itself, else the path of its
    file; empty where it has neither.
    """
    for name in ADDRESS_FIELDS:
        address = str(document.metadata.get(name, ""))
        if urlsplit(address).scheme in {"http", "https"}:
            return quote(address, safe="/:?&=#%+,;@~")
    path = Path(re.sub(r":\d+$", "", document.parts[0].path))
    return str(path.absolute()) if path.is_file() else ""


def answer_page(answer: Answer, used: Sequence[UsageRow], addresses: Mapping[str, str]) -> str:
    """The page in Markdown; `addresses` say where a document can be read, by its id.

    A path is text to copy: browsers open no file from a page of a server.
    """
    flagged = [f"- {plain(answer.answer[row.start : row.end])}" for row in answer.grounding if row.supported is False]
    sources = []
    for citation in answer.citations:
        page = f", p. {citation.page}" if citation.page else ""
        title, address = plain(citation.title), addresses.get(citation.document, "")
        is_path = Path(address).is_absolute()
        shown = f"[{title}]({address})" if address and not is_path else title
        sources += [
            f"{plain(citation.marker)} {shown} ({plain(citation.document)}{page})",
            f"> {plain(citation.quote)}",
            *([_verbatim(address)] if is_path else []),
        ]
    parts = [
        f"# {plain(answer.question)}",
        plain(answer.answer),
        answer_in_words(answer),
        *(["\n".join(["No source supports:", "", *flagged])] if flagged else []),
        *(["## Sources", *sources] if sources else []),
        *_section("How the answer was found", _way(answer.trace), IN_ORDER),
        *_structure(answer.trace),
        ledger(used),
    ]
    return "\n\n".join(parts)


def _verbatim(path: str) -> str:
    """A path as it is to be copied; one that would not stay within its marks as plain text."""
    return plain(path) if "`" in path or "\n" in path else f"`{path}`"


def _structure(trace: Trace) -> list[str]:
    """What each document gave to the structure, in its form."""
    structures = [structure for structure in trace.structures if structure.elements][:SHOWN_STRUCTURES]
    parts = [f"## The {trace.structure}", FOR_THE_ANSWER] if structures else []
    for structure in structures:
        parts += [f"{plain(structure.title)} ({plain(structure.document)})"]
        parts += ["\n".join(f"    {line}" for line in structure.text.splitlines())]
    return parts


def _way(trace: Trace) -> list[tuple[str, str]]:
    """The steps that a question went through, by the names of their tasks, and what came of each."""
    route, counts, decision = trace.route, trace.filter, trace.decision
    why = f"(confidence {decision.confidence:.2f}): {decision.reason}" if decision else "as asked for"
    judged = f"{counts.entailment} support an answer, {counts.neutral} do not matter, {counts.contradiction} contradict"
    sure = f"confidence {route.confidence:.2f}, margin {route.margin:.2f}"
    used = [f"; used: {trace.structure}"] if trace.structure != route.type else []
    return [
        ("rewrite", f"searched for: {'; '.join(trace.queries)}"),
        *(("rewrite", f"{row.text} was read as {row.taken or 'nothing known'}") for row in trace.ambiguity),
        ("choose", f"mode {trace.mode} {why}"),
        *((row.mode, f"tried, and gave no answer: {row.said}") for row in (decision.tried if decision else ())),
        *(("trigger-check", _recalled(row)) for row in trace.trigger),
        ("filter", f"passages: {judged}"),
        *(("filter", f"{row.document}: {row.explanation}") for row in counts.conflicts),
        ("route", "".join([f"evidence as {route.type} ({sure}): {route.reason}", *used])),
        *(("report", f"{row.title} (level {row.level}): {row.points} points") for row in trace.reports if row.points),
        *((f"part {number}", f"{row.question} → {row.answer}") for number, row in enumerate(trace.subquestions, 1)),
        ("answer", f"{ANSWERED_BY[trace.answered_by]}, effort {trace.effort}"),
        *(("answer", f"no call for {row.step}: {row.reason}") for row in trace.spared),
        *((row.step, in_place_of(row)) for row in trace.degraded),
        *(("answer", f"the marker {marker} named no source") for marker in trace.removed_markers),
    ]


def _recalled(decision: TriggerDecision) -> str:
    used = "used" if decision.use_memory else "not used"
    return f"memory knows {decision.pop} of the {decision.threshold} sources that it needs: {used} ({decision.query})"
