"""Local search: what lies around the things that a question names (GraphRAG 2.6).

entities near the question ─ their relations, claims, passages and reports, each within its share of
tokens
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from flows.modes.dual_level_search import dual_level_search, passages_at_levels
from flows.modes.query_mode import QueryMode
from flows.question import ModeResult, PassageSearch, Resources
from flows.session import GraphReader, ReportReader
from prompts.engine.calls import rough_tokens
from prompts.text.evidence import Evidence
from prompts.text.relevance import Relevance
from storage.answer_records import ReportRead
from storage.graph_records import Report
from tasks.answer import AnswerContext, Note
from tasks.citations import Source, number_of, piece_source, source_of
from tasks.read_reports.points import report_texts

# Shares of an answer's evidence.
CLAIM_SHARE, REPORT_SHARE = 0.08, 0.15


async def local_search(resources: Resources) -> ModeResult:
    """Find what the lower level of the graph gives, with the claims on the things named and
    findings of their reports.

    Where documents are restricted, claims are those that they state, and findings are their own
    sentences.
    """
    question, search, graph = resources.question, resources.search, resources.graph
    reports = resources.reports
    result = await dual_level_search(resources)
    named = list(dict.fromkeys(graph.index.entities[link.entity].id for link in question.links))
    if not named:
        return result
    sources, most, relevance = list(result.context.sources), search.most, question.relevance
    admits = search.admits
    claims = _lines(
        _claims(named, question.only, search, graph),
        sources,
        round(CLAIM_SHARE * most),
        relevance,
        admits,
    )
    around = reports.around(named)
    findings = _lines(
        _findings(around, question.only, reports),
        sources,
        round(REPORT_SHARE * most),
        relevance,
        admits,
    )
    notes = [*result.context.notes]
    notes += [Note("Claims", "\n".join(claims))] if claims else []
    notes += [Note("Findings of community reports", "\n".join(findings))] if findings else []
    read = tuple(
        ReportRead(community=report.community, level=report.level, title=report.title)
        for report in around
    )
    return replace(result, context=AnswerContext(sources, notes), reports=read)


def _claims(
    named: Sequence[str], only: Sequence[str] | None, search: PassageSearch, graph: GraphReader
) -> list[tuple[str, Source]]:
    """The claims about the things named, each with the place that states it."""
    entities, claims = graph.facts.entities, []
    for claim in graph.claims(named):
        chunk = search.chunk(claim.chunk)
        if only is None or chunk.document in only:
            source = source_of(chunk, claim.start, claim.end)
            text = " ".join((claim.description or source.text).split())
            claims.append(
                (f"{entities[claim.subject].name}, {claim.kind} ({claim.status}): {text}", source)
            )
    return claims


def _findings(
    around: Sequence[Report], only: Sequence[str] | None, reports: ReportReader
) -> list[tuple[str, Source]]:
    """The findings of reports under the titles of the reports."""
    offered = report_texts(around, reports.library(around, only), {}, quotes_only=only is not None)
    return [
        (f"{report.title}: {text}".strip(": "), piece_source(piece))
        for report in offered.offered.values()
        for text, piece in report.findings
    ]


def _lines(
    statements: Sequence[tuple[str, Source]],
    sources: list[Source],
    most: int,
    relevance: Relevance,
    admits: Callable[[Sequence[Source], Source], bool],
) -> list[str]:
    """The statements as lines, nearest to the question first, until `most` tokens are used, each
    with the number of its source; a statement that lies in none of the sources adds its own to
    them, or is left out where they do not admit it.
    """

    def near(statement: tuple[str, Source]) -> tuple[float, str, int]:
        piece = Evidence(
            0, statement[1].document, statement[1].title, f"{statement[0]} {statement[1].text}"
        )
        return -relevance.coverage(piece), statement[1].document, statement[1].start

    lines = []
    for text, source in sorted(statements, key=near):
        number = number_of(sources, source.document, source.start, source.end)
        if number is None and not admits(sources, source):
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
