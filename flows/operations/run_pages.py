"""The page of an index run, in Markdown."""

from collections.abc import Iterable, Sequence

from flows.indexing.source_changes import in_words as kept_in_words
from flows.runtime import Runtime
from flows.usage import change_in_words, ledger, plain, short
from storage.graph_records import Report
from storage.records import DeadLetter
from storage.run_records import CommunityQuality, IndexReport, UsageRow

SHOWN_ROWS = 50
SHOWN_REPORTS = 10


def read_run(
    report: IndexReport, runtime: Runtime
) -> tuple[list[DeadLetter], list[tuple[Report, int]]]:
    """Read the dead letters of a run, and the reports of its largest communities with their sizes
    in entities.
    """
    with runtime.workspace.read(report.generation) as generation:
        letters = generation.extractions.dead_letters() if report.dead_letters else []
        if not report.published:
            return letters, []
        sizes = {row.id: len(row.members) for row in generation.communities.communities(0)}
        themes = [(row, sizes[row.community]) for row in generation.communities.reports(0)]
    themes.sort(key=lambda theme: (-theme[1], -theme[0].rating, theme[0].community))
    return letters, themes[:SHOWN_REPORTS]


def index_in_words(report: IndexReport) -> str:
    """Return how a run ended, as a sentence."""
    counts = report.documents
    if not report.published:
        stays = f"generation {report.generation} stays, with {counts.unchanged} documents"
        return f"Nothing has changed: {stays}."
    changed = ", ".join(f"{n} {name}" for name, n in counts.model_dump().items() if n)
    return (
        f"Published generation {report.generation} ({changed or 'none changed'}; {report.chunks} "
        f"chunks, {report.entities} entities, {report.relations} relations) in "
        f"{report.seconds:.1f} s."
    )


def _quality_in_words(quality: CommunityQuality) -> str:
    return (
        f"Communities by {quality.algorithm}: {quality.coarsest} on the coarsest of "
        f"{quality.levels} levels, with modularity {quality.modularity:.3f}, conductance "
        f"{quality.conductance:.3f}, coverage {quality.coverage:.3f}."
    )


def index_page(
    report: IndexReport,
    sources: Sequence[str],
    failed: Sequence[DeadLetter],
    largest: Sequence[tuple[Report, int]],
    used: Sequence[UsageRow],
) -> str:
    """Write the page of a run; `failed` and `largest` are what `read_run` returns."""
    letters = [(f"{row.item}, {row.step}", f"{row.error} {row.remedy}") for row in failed]
    watched = [(row.question, " · ".join(change_in_words(row))) for row in report.changed_answers]
    themes = [
        (row.title, f"{members} names, rated {row.rating:.1f} of 10. {row.summary}")
        for row, members in largest
    ]
    parts = [
        f"# Index, generation {report.generation}",
        index_in_words(report),
        f"Sources: {plain(', '.join(sources))}",
        kept_in_words(report.kept_prompts) if report.kept_prompts else "",
        _quality_in_words(report.community_quality) if report.community_quality else "",
        _section(f"Watched questions that changed ({len(watched)})", watched),
        _section(f"Dead letters ({len(letters)}): `trellis dead-letter --retry`", letters),
        _section("Skipped", [(row.path, row.reason) for row in report.skipped]),
        _section("Largest communities", themes),
        ledger(used),
    ]
    return "\n\n".join(part for part in parts if part)


def _section(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Write a list under a heading, or nothing where it is empty.

    Not a table: Prefect's pages cut long cells.
    """
    lines = [f"- **{plain(short(name, 100))}**: {plain(short(text, 300))}" for name, text in rows]
    more = [f"- and {len(lines) - SHOWN_ROWS} more"] if len(lines) > SHOWN_ROWS else []
    return "\n".join([f"## {title}", "", *lines[:SHOWN_ROWS], *more]) if lines else ""
