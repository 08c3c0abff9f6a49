"""What a report is written from: every edge that fits, sub-reports where it does not (GraphRAG, section 2.5)."""

from itertools import combinations

from prompts.engine.models import Models
from prompts.report import WriteReports
from storage.graph_records import Community, Entity, Finding, Occurrence, Relation, Report
from storage.records import Chunk
from tasks.report import ReportContext, ReportContextBuilder, ReportEvidence, report

GROUPS = {"a": 5, "b": 4, "c": 3}
BRIDGES = (("a0", "b0"), ("b1", "c1"))


def evidence_of(words: int = 8) -> ReportEvidence:
    """Three groups in which everyone knows everyone, two edges between them; a sentence of so many words an edge."""
    names = [f"{group}{n}" for group, size in GROUPS.items() for n in range(size)]
    pairs = [pair for group, size in GROUPS.items() for pair in combinations([f"{group}{n}" for n in range(size)], 2)]
    pairs += BRIDGES
    sentences = [f"{one} knows {other}" + " indeed" * (words - 3) + "." for one, other in pairs]
    text = " ".join(sentences)
    chunk = Chunk(
        id="chk", document="d", ordinal=0, start=0, end=len(text), text=text, tokens=9, language="en", title="T"
    )
    relations = tuple(
        Relation(id=f"rel_{n:02}", source=one, target=other, predicate="knows", description=said)
        for n, ((one, other), said) in enumerate(zip(pairs, sentences, strict=True))
    )
    places = tuple(
        Occurrence(item=f"rel_{n:02}", chunk="chk", start=text.index(said), end=text.index(said) + len(said))
        for n, said in enumerate(sentences)
    )
    entities = tuple(
        Entity(
            id=name,
            name=name.upper(),
            kind="thing",
            degree=sum(name in pair for pair in pairs),
            description=f"{name} is one of many",
        )
        for name in names
    )
    return ReportEvidence(entities=entities, relations=relations, places=places, chunks=(chunk,))


WHOLE = Community(
    id="whole", level=0, parent=None, members=tuple(f"{g}{n}" for g, size in GROUPS.items() for n in range(size))
)
PARTS = [
    Community(id=group, level=1, parent="whole", members=tuple(f"{group}{n}" for n in range(size)))
    for group, size in GROUPS.items()
]


def reports_of(desk: ReportContextBuilder) -> None:
    for part in PARTS:
        finding = Finding(summary="s", explanation=f"All of {part.id} know each other.", document="d", start=0, end=5)
        desk.reports[part.id] = Report(
            community=part.id, level=1, title=f"Group {part.id}", summary="They are close.", rating=1, rating_reason="",
            findings=(finding,), inputs="",
        )  # fmt: skip


def said(context: ReportContext) -> list[str]:
    return [given.text for given in context.given]


def test_every_edge_of_a_community_that_fits_is_in_its_context() -> None:
    """GraphRAG 3 keeps at most one edge of each node."""
    evidence = evidence_of()
    context = ReportContextBuilder(evidence, [WHOLE, *PARTS], 10_000).whole(WHOLE, "m")
    assert context is not None
    assert sorted(said(context)) == sorted(relation.description for relation in evidence.relations)
    assert {name for name, _ in context.members} == {entity.name for entity in evidence.entities}
    degrees = [given.degree for given in context.given]
    assert degrees == sorted(degrees, reverse=True)


def test_sub_reports_stand_in_one_by_one_the_longest_first_until_it_fits() -> None:
    desk = ReportContextBuilder(evidence_of(), [WHOLE, *PARTS], 400)
    assert desk.whole(WHOLE, "m") is None
    reports_of(desk)
    one = desk.shortened(WHOLE, "m")
    assert one.replaced == ("a",)
    assert one.tokens <= 400
    assert ("Group a", "They are close.") in one.members
    assert "All of a know each other." in said(one)
    assert not any("a1 knows a2" in text for text in said(one))
    assert any("a0 knows b0" in text for text in said(one)), "what ties two communities stays"
    assert any("b1 knows b2" in text for text in said(one)), "the others keep their element summaries"
    less = ReportContextBuilder(evidence_of(), [WHOLE, *PARTS], 200)
    reports_of(less)
    two = less.shortened(WHOLE, "m")
    assert two.replaced == ("a", "b")
    assert two.tokens <= 200


def test_what_nothing_makes_fit_is_cut_at_the_end_of_the_order() -> None:
    (leaf, *_), evidence = PARTS, evidence_of(words=30)
    desk = ReportContextBuilder(evidence, [WHOLE, *PARTS], 150)
    context = desk.shortened(leaf, "m")
    assert 0 < len(context.sources) < 10
    assert context.tokens <= 150
    assert {name for given in context.given for name in given.entities} == {name for name, _ in context.members}


async def test_a_finding_taken_from_a_sub_report_keeps_its_place_in_the_source() -> None:
    evidence = evidence_of()
    made = await report([WHOLE, *PARTS], evidence, WriteReports(Models.offline()), {}, limit=200)
    by_id = {one.community: one for one in made.reports}
    assert set(by_id) == {"whole", "a", "b", "c"}
    text = evidence.chunks[0].text
    assert by_id["whole"].findings
    assert all(text[f.start : f.end] == f.explanation for f in by_id["whole"].findings)


async def test_a_changed_sub_report_changes_the_report_above_and_no_other() -> None:
    evidence, writer = evidence_of(), WriteReports(Models.offline())
    first = await report([WHOLE, *PARTS], evidence, writer, {}, limit=300)
    changed = tuple(
        one.model_copy(update={"description": "c0 knows c1 no more."}) if one.source == "c0" else one
        for one in evidence.relations
    )
    second = await report([WHOLE, *PARTS], evidence.model_copy(update={"relations": changed}), writer, {}, limit=300)
    before, after = ({one.community: one.inputs for one in made.reports} for made in (first, second))
    assert {name for name in before if before[name] != after[name]} == {"whole", "c"}
