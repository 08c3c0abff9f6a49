"""How is an index run recorded? As the Prefect flow `index`: a named run with steps, a summary and an end in words."""

from collections.abc import Sequence

from flows.history import index_run
from flows.indexing import IndexOptions
from flows.recording import acreate_markdown_artifact, acreate_table_artifact, done, failed, flow, flow_run, plain
from flows.runtime import open_runtime, usage_rows
from flows.settings import load_settings
from flows.usage import ledger
from prompts.engine.errors import EngineError
from storage.errors import TrellisError
from storage.meta import UsageRow
from storage.records import IndexReport

SHOWN_SKIPPED = 50


def _run_name() -> str:
    given = flow_run.parameters
    source = given.get("source") or []
    sources = [source] if isinstance(source, str) else [str(one) for one in source]
    more = f" and {len(sources) - 3} more" if len(sources) > 3 else ""
    into = f" into {given['workspace']}" if given.get("workspace") else ""
    return f"index {', '.join(sources[:3])}{more}{into}"


@flow(name="index", flow_run_name=_run_name, persist_result=False)
async def index(
    source: list[str] | str, workspace: str | None = None, full: bool = False, allow_removals: bool = False
) -> IndexReport:
    """Bring a workspace up to date with its sources and publish the next generation.

    Only the sources named are synchronised. Where nothing has changed, nothing is published. Whatever goes wrong, the
    current generation stays as it was.

    Args:
        source: Files, folders or glob patterns: one, or a list of them.
        workspace: The folder of state; without it the one of the settings (./.trellis).
        full: Extract everything again instead of what has changed.
        allow_removals: Go on where more than 30% of the documents would be removed.
    """
    sources = [source] if isinstance(source, str) else source
    try:
        runtime = open_runtime(load_settings({"workspace": workspace}))
        report = await index_run(sources, IndexOptions(full=full, allow_removals=allow_removals), runtime)
    except (TrellisError, EngineError) as error:
        return failed(error, IndexReport)
    await _show(report, sources, usage_rows(runtime.models.meter))
    return done(in_words(report), report)


def in_words(report: IndexReport) -> str:
    """The outcome as one sentence."""
    counts = report.documents
    if not report.published:
        return f"Nothing has changed: generation {report.generation} stays, with {counts.unchanged} documents."
    changes = ", ".join(f"{number} {name}" for name, number in counts.model_dump().items() if number) or "none changed"
    return (
        f"Published generation {report.generation} ({changes}; {report.chunks} chunks, {report.entities} entities, "
        f"{report.relations} relations) in {report.seconds:.1f} s."
    )


async def _show(report: IndexReport, sources: list[str], used: Sequence[UsageRow]) -> None:
    """The summary and the table of figures in the UI."""
    lines = [f"# Generation {report.generation}", in_words(report), f"Sources: {plain(', '.join(sources))}"]
    if report.dead_letters:
        lines.append(f"{report.dead_letters} items failed and are kept as dead letters.")
    if report.skipped:
        lines.append(f"## Skipped ({len(report.skipped)})")
        lines.append("\n".join(f"- {plain(one.path)}: {plain(one.reason)}" for one in report.skipped[:SHOWN_SKIPPED]))
    lines.append(ledger(used))
    await acreate_markdown_artifact(key="index-summary", markdown="\n\n".join(lines), description=in_words(report))
    figures = report.model_dump(exclude={"documents", "skipped", "usage", "published"})
    rows = [{"what": f"documents {name}", "count": number} for name, number in report.documents.model_dump().items()]
    rows += [{"what": name.replace("_", " "), "count": value} for name, value in figures.items()]
    await acreate_table_artifact(key="index-figures", table=rows, description="What the run found and made")
