"""Reports and descriptions: what they are written from, and which stand after a change."""

from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path

import pytest

from prompts.engine.effort import Policy, Profile
from prompts.engine.models import Models
from prompts.report import (
    StatementGiven,
    WriteReports,
    WriteReportsBriefly,
    report_offline,
    report_writer,
)
from prompts.summarize import (
    MOST_JOINED,
    MOST_JOINED_TOKENS,
    DescribeRelations,
    Summarize,
    summarize_offline,
)
from prompts.tailoring import UNTAILORED
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
STATED = (
    ("Orla Bridge", "Tomas Reyd", "Orla Bridge was designed by Tomas Reyd."),
    ("Tomas Reyd", "Ana Korb", "Tomas Reyd studied under Ana Korb."),
    ("Ana Korb", "Velin", "Ana Korb lived in Velin."),
)
NAMES = ("Orla Bridge", "Tomas Reyd", "Ana Korb", "Velin")
SMALL = evidence_of(STATED)
# With a fourth statement, so that quoting alone makes no report.
LARGER = evidence_of([*STATED, ("Orla Bridge", "Velin", "Orla Bridge stands in Velin.")])


def community(name: str, *members: str, level: int = 0, parent: str | None = None) -> Community:
    return Community(id=name, level=level, parent=parent, members=members)


WHOLE = community("com_0", *sorted(NAMES))
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


async def test_a_single_entity_has_no_report() -> None:
    writer = WriteReports(Models.offline())
    found = (await report([WHOLE, community("com_2", "Velin")], SMALL, writer, {})).reports
    assert [one.community for one in found] == ["com_0"]


async def test_a_small_community_is_quoted_without_a_call() -> None:
    writer = scripted(WriteReports)
    (found,) = (await report([WHOLE], SMALL, writer, {})).reports
    quoted = sorted(finding.explanation for finding in found.findings)
    assert quoted == sorted(sentence for *_, sentence in STATED)
    assert sent(writer) == []


def test_a_report_offline_reads_like_the_golden_one() -> None:
    given = [
        StatementGiven(number=number, text=sentence, entities=tuple(ends), degree=3)
        for number, (*ends, sentence) in enumerate(STATED, 1)
    ]
    written = report_offline([(name, "") for name in NAMES], given).model_dump_json(indent=2) + "\n"
    assert written == (GOLDEN / "report_offline.json").read_text(encoding="utf-8")


async def test_a_small_model_writes_sentences_of_their_statements() -> None:
    found = [{"statements": [2, 1], "text": "Reyd learnt from Korb."}]
    writer = scripted(WriteReportsBriefly, {"summary": "S", "findings": found})
    (made,) = (await report([WHOLE], LARGER, writer, {})).reports
    (finding,) = made.findings
    assert finding.explanation == "Reyd learnt from Korb."
    assert set(made.title.split(", ")) <= set(NAMES), "its main names"
    assert set(finding.summary.split(", ")) <= set(NAMES), "the names that the statement ties"
    assert len(finding.places) == 2
    assert made.rating_reason == "4 entities and 4 statements"


@pytest.mark.parametrize(
    ("profile", "kind"), [("small", WriteReportsBriefly), ("large", WriteReports)]
)
def test_the_profile_chooses_the_form_of_a_report(
    profile: Profile, kind: type[WriteReports]
) -> None:
    models = Models({}, policy=Policy.of("medium", profile=profile))
    assert type(report_writer(models, UNTAILORED, True)) is kind


async def test_a_finding_keeps_its_places_and_is_dropped_without_any() -> None:
    def finding(number: int, *statements: int) -> dict[str, object]:
        return {
            "summary": f"s{number}",
            "explanation": f"A paragraph {number}. " * 9,
            "statements": list(statements),
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
    places = found.findings[0].places
    said = [LARGER.chunks[0].text[place.start - 50 : place.end - 50] for place in places]
    assert len(said) == len(set(said)) == 3
    assert set(said) <= {"Orla Bridge stands in Velin.", *(sentence for *_, sentence in STATED)}


def test_a_description_of_a_model_is_cited_with_all_its_places() -> None:
    first = replace(LARGER.relations[0], description="Reyd, taught by Korb, made the bridge.")
    again = LARGER.places[1]._replace(item=first.id)
    evidence = replace(
        LARGER, relations=(first, *LARGER.relations[1:]), places=(*LARGER.places, again)
    )
    context = ReportContextBuilder(evidence, [WHOLE], 3000).context(WHOLE, "offline")
    place = next(at for at, given in enumerate(context.given) if given.text == first.description)
    starts = [span.start for span in context.places[place]]
    assert starts == [LARGER.places[0].start, again.start]


SIZES = {"a": 5, "b": 4, "c": 3}
GROUPS = {group: [f"{group}{n}" for n in range(size)] for group, size in SIZES.items()}
PARTS = [community(group, *own, level=1, parent="whole") for group, own in GROUPS.items()]
ALL_GROUPS = community("whole", *chain.from_iterable(GROUPS.values()))


def grouped_evidence() -> ReportEvidence:
    """Three groups in which everyone knows everyone, and two edges between them."""
    pairs = [pair for own in GROUPS.values() for pair in combinations(own, 2)]
    pairs += [("a0", "b0"), ("b1", "c1")]
    stated = [(one, other, f"{one} knows {other}{' indeed' * 5}.") for one, other in pairs]
    return evidence_of(stated, described=True)


def context_of_groups(limit: int) -> ReportContext:
    """The context of all groups, where each has a report."""
    builder = ReportContextBuilder(grouped_evidence(), [ALL_GROUPS, *PARTS], limit)
    for part in PARTS:
        finding = Finding(
            summary="s",
            explanation=f"All of {part.id} know each other.",
            document="d",
            start=0,
            end=5,
        )
        builder.reports[part.id] = REPORT.model_copy(
            update={
                "community": part.id,
                "title": f"Group {part.id}",
                "summary": "They are close.",
                "findings": (finding,),
            }
        )
    return builder.context(ALL_GROUPS, "m")


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
    for limit, groups in ((400, ["Group a"]), (200, ["Group a", "Group b"])):
        context = context_of_groups(limit)
        assert sum(count_tokens(said(context))) <= limit
        assert [name for name, _ in context.members if name.startswith("Group")] == groups
    texts = said(context_of_groups(400))
    assert "All of a know each other." in texts
    assert not any("a1 knows a2" in text for text in texts)
    # The edges between communities, and the elements of the others, are kept.
    assert any("a0 knows b0" in text for text in texts)
    assert any("b1 knows b2" in text for text in texts)


async def test_a_changed_sub_report_changes_only_the_report_above() -> None:
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


# --- after a change -------------------------------------------------------------------------------

PEOPLE = [f"e{number:02}" for number in range(20)]
BEFORE = community("was", *PEOPLE)
AFTER = community("is", *PEOPLE, "new")


def still_valid(
    report: Report = REPORT,
    lost: set[str] | None = None,
    touched: set[str] | None = None,
    after: Community = AFTER,
    limit: float = 0.1,
) -> list[Report]:
    hierarchy = Hierarchy(communities=(after,), before=(BEFORE,), was={"is": "was"})
    return still_valid_reports(hierarchy, [report], lost or set(), touched or {"new"}, limit)


def test_a_report_stands_until_what_was_added_adds_up() -> None:
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
def test_otherwise_it_is_written_again(changed: dict[str, object]) -> None:
    assert still_valid(**changed) == []  # type: ignore[arg-type]


# --- descriptions ---------------------------------------------------------------------------------


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


async def test_a_model_is_asked_only_if_there_is_much_to_summarise() -> None:
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


LONG = "a long statement " * 40


def tied(*statements: tuple[str, ...]) -> ResolvedGraph:
    """One relation for each group of statements."""
    relations = tuple(
        Relation(
            id=f"rel_{n}",
            source="a",
            target="b",
            predicate=f"p{n}",
            description=min(said, key=len),
            keys=("e",),
        )
        for n, said in enumerate(statements)
    )
    several = {f"rel_{n}": said for n, said in enumerate(statements) if len(said) > 1}
    return replace(graph_of(a=("A.",), b=("B.",)), relations=relations, statements=several)


def described(number: int, text: str, *keys: str) -> dict[str, object]:
    return {"relation": number, "description": text, "keys": list(keys)}


async def test_relations_with_much_to_say_are_described_together_with_their_keys() -> None:
    both = [described(1, "In other words, B.", "k"), described(0, "In other words, A.", "x", "y")]
    relater = scripted(DescribeRelations, {"relations": both})
    graph = tied(
        (f"One. {LONG}", "Two."), ("Only this.",), (f"Three. {LONG}", "Four."), ("Short.", "Brief.")
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


async def test_a_relation_is_described_again_if_its_statements_change() -> None:
    answers = ({"relations": [described(0, text, "k")]} for text in ("As told.", "Anew."))
    relater = scripted(DescribeRelations, *answers)
    graph = tied((f"One. {LONG}", "Two."))
    first = await summarize(graph, Summarize(Models.offline()), relater)
    known = {"rel_0": KnownDescription(inputs=first.inputs["rel_0"], text="As told.", keys=("k",))}
    again = await summarize(graph, Summarize(Models.offline()), relater, known)
    assert (again.graph, again.inputs) == (first.graph, first.inputs)
    assert len(sent(relater)) == 1
    more = tied((f"One. {LONG}", "Two.", "Three."))
    changed = await summarize(more, Summarize(Models.offline()), relater, known)
    assert changed.graph.relations[0].description == "Anew."
