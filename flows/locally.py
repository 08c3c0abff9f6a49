"""How is a question answered from what lies around the things that it names? (GraphRAG, section 2.6: local search)

entities near the question ─ their relations, claims, passages and reports, each within its share of tokens
"""

from collections.abc import Sequence
from dataclasses import replace

from flows.asking_view import View
from flows.by_levels import by_levels
from flows.contexts import Context
from prompts.engine.calls import rough_tokens
from prompts.engine.models import Models
from prompts.reading.evidence import Evidence
from storage.records import Claim, Report, ReportRead
from tasks.evidence import Place, Pool
from tasks.partial import shown_of, text_of
from tasks.structurize.step import Structured

CLAIM_TOKENS = 250
REPORT_TOKENS = 500


async def local(view: View, queries: Sequence[str], models: Models) -> Context:
    """What the lower level of the graph gives, with the claims on the things named and findings of their reports.

    Where documents are restricted, claims are those that they state, and findings are their own sentences.
    """
    found = await by_levels(view, queries, models)
    named = list(
        dict.fromkeys(view.session.index.entities[link.entity].id for link in view.session.index.link(view.question))
    )
    if not named:
        return found
    pool, claims = _claims(view, named, found.structured.pool)
    reports = _reports(view, named)
    pool, findings = _findings(view, reports, pool)
    structured = found.structured
    if structured.type != "chunk" or claims or findings:
        elements = (*structured.elements, *claims, *findings)
        described = (*structured.descriptions, f"{len(claims)} claims and {len(findings)} findings")
        structured = Structured(structured.type, elements, described, pool, structured.built)
    read = tuple(ReportRead(community=one.community, level=one.level, title=one.title) for one in reports)
    return replace(found, structured=structured, reports=read)


def _claims(view: View, named: Sequence[str], pool: Pool) -> tuple[Pool, list[Evidence]]:
    """The claims about the things named, those nearest to the question first, as far as their share goes."""
    entities = view.session.facts.entities
    shown = []
    for claim in view.session.generation.graph.claims(named):
        piece = _claimed(view, claim, entities[claim.subject].name)
        if piece is not None:
            shown.append(piece)
    ranked = sorted(shown, key=lambda one: (-view.relevance.judge(one[0]).coverage, one[1].document, one[1].start))
    return _added(pool, ranked, CLAIM_TOKENS)


def _claimed(view: View, claim: Claim, subject: str) -> tuple[Evidence, Place] | None:
    """A claim with the place that states it; None where the question may not look there."""
    chunk = view.chunk(claim.chunk)
    only = view.options.documents
    if only is not None and chunk.document not in only:
        return None
    text = chunk.text[claim.start - chunk.start : claim.end - chunk.start]
    kind = f"{claim.kind} ({claim.status})"
    place = Place(document=chunk.document, title=chunk.title, chunk=chunk.id, start=claim.start, end=claim.end)
    piece = Evidence(0, chunk.document, chunk.title, text, chunk.heading, label=subject, attribute=kind, value=text)
    return piece, place


def _reports(view: View, named: Sequence[str]) -> list[Report]:
    """The reports of the communities that the things named are in, the narrowest first."""
    known = view.session.reports.reports
    around = view.session.generation.communities.around(named)
    return sorted((known[one.id] for one in around if one.id in known), key=lambda one: (-one.level, one.community))


def _findings(view: View, reports: Sequence[Report], pool: Pool) -> tuple[Pool, list[Evidence]]:
    """The findings of reports, as far as their share goes, under the titles of the reports."""
    library = view.library({finding.document for report in reports for finding in report.findings})
    offered = shown_of(reports, library, {}, quotes_only=view.options.documents is not None)
    shown = [
        (
            replace(piece, label=report.title, attribute="finding", value=text_of(piece)),
            offered.pool.places[piece.number],
        )
        for report in offered.offered.values()
        for _, piece in report.findings
    ]
    ranked = sorted(shown, key=lambda one: (-view.relevance.judge(one[0]).coverage, one[1].document, one[1].start))
    return _added(pool, ranked, REPORT_TOKENS)


def _added(pool: Pool, shown: Sequence[tuple[Evidence, Place]], most: int) -> tuple[Pool, list[Evidence]]:
    """The pool with the first of these that fit into so many tokens, and those."""
    kept, places, known = list[Evidence](), list[Place](), set[tuple[str, int, int]]()
    for piece, place in shown:
        key = (place.document, place.start, place.end)
        if key in known:
            continue
        most -= rough_tokens(piece.text)
        if most < 0:
            break
        known.add(key)
        kept.append(replace(piece, number=len(pool.places) + len(places)))
        places.append(place)
    plain = tuple(replace(piece, label="", attribute="", value="") for piece in kept)
    return Pool((*pool.evidence, *plain), (*pool.places, *places)), kept
