"""Reports and descriptions: what they are written from, cited, written once, and which stand after
a change.
"""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from prompts.engine.models import Models
from prompts.report import StatementGiven, WriteReports, report_offline
from prompts.summarize import (
    MOST_JOINED,
    MOST_JOINED_TOKENS,
    DescribeRelations,
    Summarize,
    summarize_offline,
)
from prompts.text.tokens import count_tokens
from storage.graph_records import Community, Entity, Finding, Relation, Report
from tasks.communities import Hierarchy
from tasks.report import (
    ReportContext,
    ReportContextBuilder,
    ReportEvidence,
    report,
    still_valid_reports,
)
from tasks.resolve.assemble import ResolvedGraph
from tasks.summarize import STATEMENTS_TOKENS, KnownDescription, summarize
from tests.query.steps import scripted, sent
from tests.records import evidence_of

GOLDEN = Path(__file__).parent / "golden"
SENTENCES = (
    "Orla Bridge was designed by Tomas Reyd.",
    "Tomas Reyd studied under Ana Korb.",
    "Ana Korb lived in Velin.",
)
FOURTH = "Orla Bridge stands in Velin."
NAMES = ("Orla Bridge", "Tomas Reyd", "Ana Korb", "Velin")
ENDS = (("Orla Bridge", "Tomas Reyd"), ("Tomas Reyd", "Ana Korb"), ("Ana Korb", "Velin"))


SMALL = evidence_of([(*ends, said) for ends, said in zip(ENDS, SENTENCES, strict=True)])
# With a fourth statement, so that quoting alone makes no report.
LARGER = evidence_of(
    [
        *((*ends, said) for ends, said in zip(ENDS, SENTENCES, strict=True)),
        ("Orla Bridge", "Velin", FOURTH),
    ]
)
WHOLE = Community(id="com_0", level=0, parent=None, members=tuple(sorted(NAMES)))
ALONE = Community(id="com_2", level=0, parent=None, members=("Velin",))


async def test_a_single_entity_has_no_report() -> None:
    found = (await report([WHOLE, ALONE], SMALL, WriteReports(Models.offline()), {})).reports
    assert [one.community for one in found] == ["com_0"]


async def test_a_small_community_costs_no_call_and_all_its_statements_are_quoted() -> None:
    writer = scripted(WriteReports)
    (found,) = (await report([WHOLE], SMALL, writer, {})).reports
    assert sorted(finding.explanation for finding in found.findings) == sorted(SENTENCES)
    assert sent(writer) == []


def test_a_report_offline_reads_like_the_golden_one() -> None:
    given = [
        StatementGiven(number=n, text=said, entities=ends, degree=3)
        for n, (said, ends) in enumerate(zip(SENTENCES, ENDS, strict=True), 1)
    ]
    written = report_offline([(name, "") for name in NAMES], given).model_dump_json(indent=2) + "\n"
    assert written == (GOLDEN / "report_offline.json").read_text(encoding="utf-8")


async def test_a_finding_keeps_every_place_that_it_cites_and_is_dropped_where_it_made_them_up() -> (
    None
):
    def finding(number: int, *numbers: int) -> dict[str, object]:
        return {
            "summary": f"s{number}",
            "explanation": f"A paragraph {number}. " * 9,
            "statements": list(numbers),
        }

    findings = [finding(0, 4, 2, 1, 99), finding(99, 77), *[finding(n, 3) for n in range(1, 10)]]
    written = {
        "title": "T",
        "summary": "S",
        "findings": findings,
        "rating_reason": "r",
        "rating": 5,
    }
    writer = scripted(WriteReports, written, written)  # it is told once, and repeats it
    (found,) = (await report([WHOLE], LARGER, writer, {})).reports
    assert [one.summary for one in found.findings] == [f"s{number}" for number in range(10)]
    assert found.findings[0].explanation == "A paragraph 0. " * 9
    said = [
        LARGER.chunks[0].text[place.start - 50 : place.end - 50]
        for place in found.findings[0].places
    ]
    assert len(said) == len(set(said)) == 3
    assert set(said) <= {*SENTENCES, FOURTH}


async def test_a_relation_that_a_model_described_is_cited_with_all_its_places() -> None:
    evidence = LARGER
    first = replace(evidence.relations[0], description="Reyd, taught by Korb, made the bridge.")
    again = evidence.places[1]._replace(item=first.id)
    evidence = replace(
        evidence, relations=(first, *evidence.relations[1:]), places=(*evidence.places, again)
    )
    context = ReportContextBuilder(evidence, [WHOLE], 3000).context(WHOLE, "offline")
    (places,) = [
        places
        for given, places in zip(context.given, context.places, strict=True)
        if given.text == first.description
    ]
    assert [place.start for place in places] == [evidence.places[0].start, again.start]


GROUPS = {"a": 5, "b": 4, "c": 3}
BRIDGES = (("a0", "b0"), ("b1", "c1"))


def grouped_evidence(words: int = 8) -> ReportEvidence:
    """Three groups in which everyone knows everyone, two edges between them; a sentence of so many
    words an edge.
    """
    pairs = [
        pair
        for group, size in GROUPS.items()
        for pair in combinations([f"{group}{n}" for n in range(size)], 2)
    ]
    pairs += BRIDGES
    stated = [
        (one, other, f"{one} knows {other}" + " indeed" * (words - 3) + ".") for one, other in pairs
    ]
    return evidence_of(stated, described=True)


ALL_GROUPS = Community(
    id="whole",
    level=0,
    parent=None,
    members=tuple(f"{g}{n}" for g, size in GROUPS.items() for n in range(size)),
)
PARTS = [
    Community(id=group, level=1, parent="whole", members=tuple(f"{group}{n}" for n in range(size)))
    for group, size in GROUPS.items()
]


def reports_of(desk: ReportContextBuilder) -> None:
    for part in PARTS:
        finding = Finding(
            summary="s",
            explanation=f"All of {part.id} know each other.",
            document="d",
            start=0,
            end=5,
        )
        desk.reports[part.id] = Report(
            community=part.id,
            level=1,
            title=f"Group {part.id}",
            summary="They are close.",
            rating=1,
            rating_reason="",
            findings=(finding,),
            inputs="",
        )


def said(context: ReportContext) -> list[str]:
    return [given.text for given in context.given]


def test_every_edge_of_a_community_that_fits_is_in_its_context() -> None:
    """GraphRAG 3 keeps at most one edge of each node."""
    evidence = grouped_evidence()
    context = ReportContextBuilder(evidence, [ALL_GROUPS, *PARTS], 10_000).context(ALL_GROUPS, "m")
    assert sorted(said(context)) == sorted(relation.description for relation in evidence.relations)
    assert {name for name, _ in context.members} == {entity.name for entity in evidence.entities}
    degrees = [given.degree for given in context.given]
    assert degrees == sorted(degrees, reverse=True)


def test_sub_reports_stand_in_one_by_one_the_longest_first_until_it_fits() -> None:
    desk = ReportContextBuilder(grouped_evidence(), [ALL_GROUPS, *PARTS], 400)
    reports_of(desk)
    one = desk.context(ALL_GROUPS, "m")
    assert sum(count_tokens(said(one))) <= 400
    assert [name for name, _ in one.members if name.startswith("Group")] == ["Group a"]
    assert "All of a know each other." in said(one)
    assert not any("a1 knows a2" in text for text in said(one))
    assert any("a0 knows b0" in text for text in said(one)), "what ties two communities stays"
    assert any("b1 knows b2" in text for text in said(one)), (
        "the others keep their element summaries"
    )
    less = ReportContextBuilder(grouped_evidence(), [ALL_GROUPS, *PARTS], 200)
    reports_of(less)
    two = less.context(ALL_GROUPS, "m")
    assert [name for name, _ in two.members if name.startswith("Group")] == ["Group a", "Group b"]
    assert sum(count_tokens(said(two))) <= 200


async def test_a_changed_sub_report_changes_the_report_above_and_no_other() -> None:
    evidence, writer = grouped_evidence(), WriteReports(Models.offline())
    first = await report([ALL_GROUPS, *PARTS], evidence, writer, {}, limit=300)
    changed = tuple(
        replace(one, description="c0 knows c1 no more.") if one.source == "c0" else one
        for one in evidence.relations
    )
    second = await report(
        [ALL_GROUPS, *PARTS], replace(evidence, relations=changed), writer, {}, limit=300
    )
    before, after = (
        {one.community: one.inputs for one in made.reports} for made in (first, second)
    )
    assert {name for name in before if before[name] != after[name]} == {"whole", "c"}


PEOPLE = tuple(f"e{number:02}" for number in range(20))
BEFORE = Community(id="was", level=0, parent=None, members=PEOPLE)
AFTER = Community(id="is", level=0, parent=None, members=(*PEOPLE, "new"))
REPORT = Report(
    community="was",
    level=0,
    title="t",
    summary="s",
    rating=1.0,
    rating_reason="r",
    findings=(),
    inputs="inp_1",
)


def still_valid(
    report: Report = REPORT,
    lost: set[str] | None = None,
    touched: set[str] | None = None,
    after: Community = AFTER,
    limit: float = 0.1,
) -> list[Report]:
    hierarchy = Hierarchy(communities=(after,), before=(BEFORE,), was={"is": "was"})
    return still_valid_reports(hierarchy, [report], lost or set(), touched or {"new"}, limit)


def test_a_report_stands_where_little_was_added_and_says_how_much_until_it_adds_up() -> None:
    (report,) = still_valid()
    assert report.community == "is"
    assert report.stale == pytest.approx(1 / 21)
    (again,) = still_valid(report.model_copy(update={"community": "was"}))
    assert again.stale == pytest.approx(2 / 21)
    assert still_valid(again.model_copy(update={"community": "was"})) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"lost": {"e03"}},
        {"after": replace(AFTER, members=AFTER.members[1:])},
        {"touched": {"new", "e01", "e02"}},
        {"limit": 0.0},
        {"report": REPORT.model_copy(update={"inputs": ""})},
    ],
    ids=[
        "something of a member has gone",
        "a member has left",
        "much was added",
        "nothing may be added",
        "no model could write it",
    ],
)
def test_else_it_is_written_anew(changed: dict[str, object]) -> None:
    assert still_valid(**changed) == []  # type: ignore[arg-type]


def graph_of(**evidence: tuple[str, ...]) -> ResolvedGraph:
    entities = tuple(Entity(id=name, name=name, kind="thing") for name in sorted(evidence))
    return ResolvedGraph(
        entities=entities,
        aliases=(),
        entity_occurrences=(),
        relations=(),
        relation_occurrences=(),
        evidence=evidence,
    )


def test_the_sentence_that_defines_comes_first() -> None:
    said = (
        "Ada met the Orla Bridge crew.",
        "Orla Bridge opened in 1931.",
        "# Orla Bridge is an arch bridge.",
    )
    assert summarize_offline("Orla Bridge", said) == f"{said[2]} {said[1]} {said[0]}"
    assert summarize_offline("奥拉桥", ("人们喜欢奥拉桥。", "奥拉桥是一座拱桥。")).startswith(
        "奥拉桥是"
    )


async def test_a_model_is_asked_only_where_there_is_something_to_summarise() -> None:
    summarizer = scripted(Summarize, "All.", "Long.")
    many = tuple(f"Statement {number}." for number in range(MOST_JOINED + 1))
    long = ("First " + "word " * MOST_JOINED_TOKENS, "Second.")
    graph = graph_of(a=("One.",), b=("Two.", "b is three."), c=many, d=long, e=())
    found = (await summarize(graph, summarizer)).graph.entities
    assert [entity.description for entity in found] == [
        "One.",
        "b is three. Two.",
        "All.",
        "Long.",
        "",
    ]
    assert len(sent(summarizer)) == 2


async def test_more_statements_than_fit_are_summarised_in_groups_and_the_summaries_again() -> None:
    summarizer = scripted(Summarize, *(f"Part {n}." for n in range(20)))
    said = tuple(f"Statement {n} says " + "so much more " * 100 for n in range(30))
    (found,) = (await summarize(graph_of(a=said), summarizer)).graph.entities
    *parts, last = asked = sent(summarizer)
    assert 1 < len(parts) < 20
    assert all(count <= 1.1 * STATEMENTS_TOKENS for count in count_tokens(asked))
    assert all(sum(f"Statement {n} says" in text for text in parts) == 1 for n in range(30))
    assert all(f"Part {n}." in last for n in range(len(parts)))
    assert found.description == f"Part {len(parts)}."


# --- relations ------------------------------------------------------------------------------------

LONG = "a long statement " * 40


def tied(*statements: tuple[str, ...], keys: tuple[str, ...] = ()) -> ResolvedGraph:
    """One relation for each group of statements."""
    relations = tuple(
        Relation(
            id=f"rel_{n}",
            source="a",
            target="b",
            predicate=f"p{n}",
            description=min(said, key=len),
            keys=keys,
        )
        for n, said in enumerate(statements)
    )
    several = {f"rel_{n}": said for n, said in enumerate(statements) if len(said) > 1}
    return replace(graph_of(a=("A.",), b=("B.",)), relations=relations, statements=several)


def relating(*answers: list[dict[str, object]]) -> DescribeRelations:
    return scripted(DescribeRelations, *({"relations": answer} for answer in answers))


def described(number: int, text: str, *keys: str) -> dict[str, object]:
    return {"relation": number, "description": text, "keys": list(keys)}


async def test_relations_with_much_to_say_are_described_together_with_their_keys() -> None:
    relater = relating(
        [described(1, "In other words, B.", "k"), described(0, "In other words, A.", "x", "y")]
    )
    graph = tied(
        (f"One. {LONG}", "Two."),
        ("Only this.",),
        (f"Three. {LONG}", "Four."),
        ("Short.", "Brief."),
        keys=("e",),
    )
    found = (await summarize(graph, Summarize(Models.offline()), relater)).graph.relations
    assert len(sent(relater)) == 1
    assert [one.description for one in found] == [
        "In other words, A.",
        "Only this.",
        "In other words, B.",
        "Short. Brief.",
    ]
    assert [one.keys for one in found] == [("x", "y"), ("e",), ("k",), ("e",)]


async def test_a_relation_is_described_again_when_prompt_or_statements_change() -> None:
    relater = relating([described(0, "As told.", "k")], [described(0, "Anew.", "k")])
    graph = tied((f"One. {LONG}", "Two."))
    first = await summarize(graph, Summarize(Models.offline()), relater)
    known = {"rel_0": KnownDescription(inputs=first.inputs["rel_0"], text="As told.", keys=("k",))}
    again = await summarize(graph, Summarize(Models.offline()), relater, known)
    assert (again.graph, again.inputs) == (first.graph, first.inputs)
    assert len(sent(relater)) == 1
    more = tied((f"One. {LONG}", "Two.", "Three."))
    assert (await summarize(more, Summarize(Models.offline()), relater, known)).graph.relations[
        0
    ].description == "Anew."
