"""The page of an index run: what changed, what it cost, what failed, and what the graph is about."""

from collections.abc import Mapping, Sequence
from typing import Literal

from flows.indexing.earlier_prompts import in_words as kept_in_words
from flows.orchestration.artifacts import markdown_table, plain, short
from flows.runtime import Runtime
from flows.usage import ledger
from storage.errors import NoGeneration
from storage.meta import UsageRow
from storage.records import DeadLetter, IndexReport, Record, Report

SHOWN_DOCUMENTS = 50
SHOWN_LETTERS = 20
SHOWN_SKIPPED = 50
SHOWN_COMMUNITIES = 10
SHOWN_REPORTS = 50

Change = Literal["added", "changed", "removed"]


class Theme(Record):
    """A community that has a report, and how many entities it holds."""

    report: Report
    members: int


class RunOutcome(Record):
    """What an index run left to look at. `themes` are the largest of the top level, largest first."""

    report: IndexReport
    sources: tuple[str, ...]
    changes: tuple[tuple[Change, str], ...] = ()
    letters: tuple[DeadLetter, ...] = ()
    themes: tuple[Theme, ...] = ()


def documents_now(runtime: Runtime) -> dict[str, str]:
    """The documents of the current generation by id, each with the hash of what it says; none where none is indexed."""
    try:
        with runtime.workspace.read() as generation:
            return generation.documents.hashes()
    except NoGeneration:
        return {}


def outcome_of(report: IndexReport, sources: Sequence[str], before: Mapping[str, str], runtime: Runtime) -> RunOutcome:
    """Read from the generation that the run left; `before` are the documents that were there when it began."""
    with runtime.workspace.read(report.generation) as generation:
        letters = tuple(generation.extractions.dead_letters()) if report.dead_letters else ()
        if not report.published:
            return RunOutcome(report=report, sources=tuple(sources), letters=letters)
        sizes = {community.id: len(community.members) for community in generation.communities.communities(0)}
        reports = generation.communities.reports(0)
        after = generation.documents.hashes()
    themes = sorted(
        (Theme(report=one, members=sizes[one.community]) for one in reports),
        key=lambda theme: (-theme.members, -theme.report.rating, theme.report.community),
    )
    return RunOutcome(
        report=report, sources=tuple(sources), changes=changes(before, after), letters=letters,
        themes=tuple(themes[:SHOWN_REPORTS]),
    )  # fmt: skip


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[tuple[Change, str], ...]:
    """What became of the documents: removed ones first, then changed, then added ones, by id."""
    removed: list[tuple[Change, str]] = [("removed", name) for name in sorted(before.keys() - after.keys())]
    changed: list[tuple[Change, str]] = [
        ("changed", name) for name in sorted(before.keys() & after.keys()) if before[name] != after[name]
    ]
    return (*removed, *changed, *(("added", name) for name in sorted(after.keys() - before.keys())))


def in_words(report: IndexReport) -> str:
    """The outcome as one sentence."""
    counts = report.documents
    if not report.published:
        return f"Nothing has changed: generation {report.generation} stays, with {counts.unchanged} documents."
    found = ", ".join(f"{number} {name}" for name, number in counts.model_dump().items() if number) or "none changed"
    return (
        f"Published generation {report.generation} ({found}; {report.chunks} chunks, {report.entities} entities, "
        f"{report.relations} relations) in {report.seconds:.1f} s."
    )


def summary(outcome: RunOutcome, used: Sequence[UsageRow], reports_at: str | None = None) -> str:
    """The page in Markdown; `reports_at` is the address of the page with the reports."""
    report = outcome.report
    parts = [
        f"# Generation {report.generation}",
        in_words(report),
        *([kept_in_words(report.kept_prompts)] if report.kept_prompts else []),
        f"Sources: {plain(', '.join(outcome.sources))}",
        *_changes(outcome.changes),
        *_letters(outcome.letters),
        *_skipped(report),
        *_themes(outcome.themes, reports_at),
        ledger(used),
    ]
    return "\n\n".join(parts)


def reports_page(themes: Sequence[Theme]) -> str:
    """The reports in full, each statement with the place that shows it."""
    parts = ["# Reports of the largest communities"]
    for theme in themes:
        report = theme.report
        parts += [
            f"## {plain(report.title)}",
            f"{theme.members} entities; rated {report.rating:.1f}: {plain(report.rating_reason)}",
            plain(report.summary),
            "\n".join(
                f"- {plain(found.summary)} ({plain(found.document)}, {found.start} to {found.end})"
                for found in report.findings
            ),
            f"`trellis reports {report.community}`",
        ]
    return "\n\n".join(part for part in parts if part)


def _changes(made: Sequence[tuple[Change, str]]) -> list[str]:
    if not made:
        return []
    rows = [(change, plain(name)) for change, name in made[:SHOWN_DOCUMENTS]]
    return ["## Documents", markdown_table(("change", "document"), rows), *_more(len(made), SHOWN_DOCUMENTS)]


def _letters(letters: Sequence[DeadLetter]) -> list[str]:
    if not letters:
        return []
    rows = [
        (plain(one.item), plain(one.step), plain(short(one.error, 300)), plain(short(one.remedy, 300)))
        for one in letters[:SHOWN_LETTERS]
    ]
    head = f"## Dead letters ({len(letters)})"
    said = "These failed and are kept; `trellis dead-letter --retry` tries them again."
    return [head, said, markdown_table(("item", "step", "reason", "remedy"), rows), *_more(len(letters), SHOWN_LETTERS)]


def _skipped(report: IndexReport) -> list[str]:
    if not report.skipped:
        return []
    lines = "\n".join(f"- {plain(one.path)}: {plain(one.reason)}" for one in report.skipped[:SHOWN_SKIPPED])
    return [f"## Skipped ({len(report.skipped)})", lines, *_more(len(report.skipped), SHOWN_SKIPPED)]


def _themes(themes: Sequence[Theme], reports_at: str | None) -> list[str]:
    if not themes:
        return []
    rows = [
        (plain(short(theme.report.title, 120)), str(theme.members), f"{theme.report.rating:.1f}")
        for theme in themes[:SHOWN_COMMUNITIES]
    ]
    link = [f"[Their reports]({reports_at})"] if reports_at else []
    return ["## Largest communities", markdown_table(("title", "entities", "rated"), rows), *link]


def _more(count: int, shown: int) -> list[str]:
    return [f"and {count - shown} more"] if count > shown else []
