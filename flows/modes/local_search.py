"""Local search: what lies around the entities that a question names (GraphRAG 2.6).

entities near the question → their relations, claims, passages and reports, each within a share of
the tokens
"""

from collections.abc import Sequence
from dataclasses import replace

from flows.modes.dual_level_search import dual_level_search, passages_at_levels
from flows.modes.query_mode import QueryMode
from flows.question import ModeResult, Resources
from prompts.engine.messages import rough_tokens
from prompts.text.evidence import Evidence
from storage.answer_records import ReportRead
from storage.graph_records import Report
from tasks.answer import AnswerContext, Note
from tasks.citations import Source, number_of, piece_source, source_of
from tasks.read_reports.points import report_texts

# Shares of an answer's evidence.
CLAIM_SHARE, REPORT_SHARE = 0.08, 0.15

Statement = tuple[str, Source]


async def local_search(resources: Resources) -> ModeResult:
    """Add to the lower level of the graph the claims about the entities named, and findings of
    their reports.

    Where documents are restricted, claims and findings are those that these documents state.
    """
    question, graph, reports = resources.question, resources.graph, resources.reports
    result = await dual_level_search(resources)
    named = list(dict.fromkeys(graph.index.entities[link.entity].id for link in question.links))
    if not named:
        return result
    around = reports.around(named)
    sources, notes = list(result.context.sources), list(result.context.notes)
    for label, statements, share in (
        ("Claims", _claims(named, resources), CLAIM_SHARE),
        ("Findings of community reports", _findings(around, resources), REPORT_SHARE),
    ):
        if lines := _lines(statements, sources, share, resources):
            notes.append(Note(label, "\n".join(lines)))
    read = tuple(
        ReportRead(community=report.community, level=report.level, title=report.title)
        for report in around
    )
    return replace(result, context=AnswerContext(sources, notes), reports=read)


def _claims(named: Sequence[str], resources: Resources) -> list[Statement]:
    """Return the claims about the entities, each with the place that states it."""
    graph, only = resources.graph, resources.question.only
    statements = []
    for claim in graph.claims(named):
        chunk = resources.search.chunk(claim.chunk)
        if only is None or chunk.document in only:
            source = source_of(chunk, claim.start, claim.end)
            text = " ".join((claim.description or source.text).split())
            name = graph.facts.entities[claim.subject].name
            statements.append((f"{name}, {claim.kind} ({claim.status}): {text}", source))
    return statements


def _findings(around: Sequence[Report], resources: Resources) -> list[Statement]:
    """Return the findings of reports, each after its report's title."""
    only = resources.question.only
    library = resources.reports.library(around, only)
    texts = report_texts(around, library, {}, quotes_only=only is not None)
    return [
        (f"{report.title}: {text}".strip(": "), piece_source(piece))
        for report in texts.offered.values()
        for text, piece in report.findings
    ]


def _lines(
    statements: Sequence[Statement], sources: list[Source], share: float, resources: Resources
) -> list[str]:
    """Return statements as lines with the numbers of their sources, nearest to the question first,
    within a share of the answer's tokens.

    A statement outside the sources adds its own to them, or is left out where the limit of
    passages does not admit it.
    """
    search, relevance = resources.search, resources.question.relevance

    def near(statement: Statement) -> tuple[float, str, int]:
        text, source = statement
        piece = Evidence(0, source.document, source.title, f"{text} {source.text}")
        return -relevance.coverage(piece), source.document, source.start

    lines, most = [], round(share * search.most)
    for text, source in sorted(statements, key=near):
        number = number_of(sources, source.document, source.start, source.end)
        if number is None and not search.admits(sources, source):
            continue
        most -= rough_tokens(text) + (rough_tokens(source.text) if number is None else 0)
        if most < 0:
            break
        if number is None:
            sources.append(source)
            number = len(sources)
        lines.append(f"- {text} [{number}]")
    return list(dict.fromkeys(lines))


LOCAL = QueryMode("local", local_search, retrieve=passages_at_levels)
