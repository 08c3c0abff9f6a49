"""Questions over triples: classified, planned, walked by the cheapest chains and answered with what
they say.
"""

import asyncio
import math
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import networkx as nx
import pytest

from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions
from flows.session import Session, open_session
from prompts.traverse import Hop, PlanStep, TraversalPlan
from storage.columns import ById
from storage.database import Database
from storage.graph import TraversalReader
from storage.graph_records import Entity, Occurrence, Relation
from storage.records import Chunk, content_id
from tasks.retrieve.facts import GraphFacts
from tasks.traverse.answer import Statements, entity_table, path_list, relation_table
from tasks.traverse.plan import (
    CheckedStep,
    Problem,
    StepResult,
    around,
    check,
    shortest_paths,
    traverse,
)
from tests.records import chunk_of
from tests.server.client import Server
from tests.traverse.conftest import Asking
from tests.workspaces import indexed, opened, session_on

LOOKED_UP = {
    "Who are the children of ada_vell?": ("none", {"bruno_vell", "cleo_vell"}),
    "Who is the spouse of ada_vell?": ("none", {"dov_arlen"}),
    "Who are the children of the spouse of ada_vell?": ("partial", {"cleo_vell"}),
}


@pytest.mark.parametrize("question", LOOKED_UP)
async def test_relations_in_the_question_are_looked_up(question: str, asked: Asking) -> None:
    answer = await asked(question)
    said, values = LOOKED_UP[question]
    assert (answer.trace.question_type, answer.fallback, set(answer.values)) == (
        "sp*",
        said,
        values,
    )
    assert all(row.supported is (True if said == "none" else None) for row in answer.grounding)
    assert all(citation.verified for citation in answer.citations)
    assert answer.citations
    assert answer.usage.calls == 0


@pytest.mark.parametrize(
    "question",
    [
        "How many children does ada_vell have?",
        "What is the sex of dov_arlen 's offspring ?",
        "Where was cleo_vell born?",
        "Who is the grandmother of finn_vell?",
        "Who is older than ada_vell?",
    ],
)
async def test_without_a_model_nothing_is_concluded(question: str, asked: Asking) -> None:
    answer = await asked(question)
    assert (answer.trace.question_type, answer.values, answer.fallback) == ("s**", (), "partial")
    assert all(row.supported is None for row in answer.grounding)


async def test_citations_are_the_lines_that_state_the_way(asked: Asking) -> None:
    answer = await asked("Who are the children of the spouse of ada_vell?")
    assert "ada_vell -[spouse]-> dov_arlen" in [citation.quote for citation in answer.citations]
    assert {citation.chunk for citation in answer.citations} <= {
        passage.chunk for passage in answer.passages
    }


async def test_how_two_are_connected_is_told_as_paths(asked: Asking) -> None:
    answer = await asked("How are edda_vell and gus_arlen connected?")
    assert (answer.trace.question_type, answer.values, answer.fallback) == ("s*o", (), "partial")
    first = answer.answer.splitlines()[0]
    assert (
        first == "edda_vell <-[children]- bruno_vell <-[children]- ada_vell -[children]-> cleo_vell"
        " -[children]-> gus_arlen"
    )


async def test_all_about_one_thing_is_what_stands_around_it(asked: Asking) -> None:
    answer = await asked("Tell me about dov_arlen")
    assert answer.trace.question_type == "s**"
    quotes = [citation.quote for citation in answer.citations]
    assert {"ada_vell -[spouse]-> dov_arlen", "salt road -[directed_by]-> dov_arlen"} <= set(quotes)
    assert all("dov_arlen" in quote for quote in quotes)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (
            "How is hermit_oyl connected to ada_vell?",
            "No path: no chain of relations leads from hermit_oyl to ada",
        ),
        ("Who is the spouse of Zed Quorn?", 'Not in the graph: nothing is called "Zed Quorn".'),
        (
            "How are ada_vell and Zed Quorn connected?",
            'Not in the graph: nothing is called "Zed Quorn".',
        ),
    ],
)
async def test_why_there_is_no_answer_is_told(question: str, says: str, asked: Asking) -> None:
    answer = await asked(question)
    assert answer.answer.startswith(says)
    assert (answer.fallback, answer.values, answer.citations) == ("abstained", (), ())


BRIDGE = """# Orla Bridge

The Orla Bridge was designed by Tomas Reyd, an engineer. Tomas Reyd was born in Velin.
Mira Sten lives in Velin, where
she met Tomas Reyd.
"""


async def test_a_graph_read_out_of_texts_is_walked_to_their_sentences(tmp_path: Path) -> None:
    (tmp_path / "bridge.md").write_text(BRIDGE, encoding="utf-8")
    runtime = opened(tmp_path / "ws")
    await build_index([tmp_path / "bridge.md"], IndexOptions(), runtime)
    with open_session(runtime) as session:
        options = AskOptions(mode="traverse")
        about = await answer_question("Tell me about Mira Sten", options, session)
        tied = await answer_question(
            "How is Mira Sten connected to the Orla Bridge?", options, session
        )
    assert [citation.quote for citation in about.citations] == [
        "Mira Sten lives in Velin, where\nshe met Tomas Reyd.",
    ]
    assert (
        tied.answer.splitlines()[0]
        == "Mira Sten -[lives in]-> Velin -[where she met]-> Tomas Reyd <-[designed by]- Orla"
        " Bridge"
    )
    assert all(citation.verified for citation in about.citations + tied.citations)


@pytest.fixture
async def on_model(workspace: Path, model_server: Server) -> AsyncIterator[Session]:
    async with session_on(model_server, workspace) as session:
        yield session


async def test_an_open_answer_is_written_from_tables_and_paths(
    on_model: Session, model_server: Server
) -> None:
    answer = await answer_question(
        "How are edda_vell and gus_arlen connected?", AskOptions(mode="traverse"), on_model
    )
    bodies = [str(request["body"]) for request in model_server.requests()]
    body = next(one for one in bodies if "Step: answer" in one)
    assert "| entity | kind | relations | description |" in body
    assert "| source | relation | target | evidence |" in body
    assert "edda_vell <-[children]- bruno_vell <-[children]- ada_vell" in body
    assert all(citation.verified for citation in answer.citations)


async def test_the_answer_s_model_reads_all_that_a_walk_found(
    tmp_path: Path, model_server: Server
) -> None:
    rows = [
        {"s": "Ada Korb", "p": "pupil", "o": f"Pupil {number} of Velin"} for number in range(40)
    ]
    workspace = await asyncio.to_thread(indexed, tmp_path, rows)
    async with session_on(model_server, workspace) as session:
        await answer_question(
            "Who are the pupils of Ada Korb?", AskOptions(mode="traverse", effort="low"), session
        )
    (body,) = (
        str(request["body"]) for request in model_server.requests() if request["step"] == "answer"
    )
    found = body.partition("Found by the walk")[2].partition("Entities")[0]
    assert all(row["o"] in found for row in rows)


CHILDREN = Hop(relation="children")


def follow(*sources: str, hops: tuple[Hop, ...] = (CHILDREN,)) -> PlanStep:
    return PlanStep(operator="follow", sources=sources, hops=hops)


def plan(*steps: PlanStep) -> TraversalPlan:
    return TraversalPlan(steps=steps)


def checked(session: Session, *steps: PlanStep) -> tuple[CheckedStep, ...]:
    found = check(plan(*steps), session.graph.traversal)
    assert not isinstance(found, Problem), found.sentence()
    return found


async def names(session: Session, *steps: PlanStep) -> list[set[str] | str]:
    """What each step finds: names or values, or the sentence of its Problem."""
    outcomes = await traverse(checked(session, *steps), session.graph.traversal)
    graph = session.graph.traversal
    return [
        (
            set(one.values or graph.names_of(one.entities))
            if isinstance(one, StepResult)
            else one.sentence()
        )
        for one in outcomes
    ]


@pytest.mark.parametrize(
    ("steps", "kind", "says"),
    [
        (
            (follow("ada_vell", hops=(Hop(relation="offspring"),)),),
            "bad plan",
            'no relation "offspring"',
        ),
        ((follow("zed_quorn"),), "not in the graph", '"zed_quorn"'),
        ((follow("{1}"),), "bad plan", "no earlier step"),
        ((follow("ada_vell"), follow("{2}")), "bad plan", "no earlier step"),
        ((follow("ada_vell", hops=()),), "bad plan", "names no relation"),
        ((PlanStep(operator="connect", sources=("ada_vell",)),), "bad plan", "nothing to reach"),
        ((PlanStep(operator="intersect", sources=("ada_vell",)),), "bad plan", "two results"),
        ((follow("*"),), "bad plan", "from everything"),
    ],
)
def test_what_the_graph_cannot_run_is_refused_with_the_reason(
    steps: tuple[PlanStep, ...], kind: str, says: str, session: Session
) -> None:
    problem = check(plan(*steps), session.graph.traversal)
    assert isinstance(problem, Problem)
    assert (problem.kind, says in problem.reason) == (kind, True)


UP = Hop(relation="children", inverse=True)
PAIR = {"bruno_vell", "cleo_vell"}


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (
            (follow("ada_vell"), follow("{1}"), PlanStep(operator="count", sources=("{2}",))),
            [PAIR, {"edda_vell", "finn_vell", "gus_arlen"}, {"3"}],
        ),
        # nothing to take away leaves the first
        (
            (
                follow("ada_vell"),
                follow("hermit_oyl"),
                PlanStep(operator="difference", sources=("{1}", "{2}")),
            ),
            [PAIR, None, PAIR],
        ),
        # a way may go against its relations
        ((follow("gus_arlen", hops=(UP, UP)),), [{"ada_vell", "dov_arlen"}]),
    ],
)
async def test_steps_run_in_order_and_hand_on_what_they_found(
    steps: tuple[PlanStep, ...], found: list[set[str] | None], session: Session
) -> None:
    given = await names(session, *steps)
    assert [one if isinstance(one, set) else None for one in given] == found


async def test_what_is_shared_and_sorted_is_counted_in_the_database(session: Session) -> None:
    born = (Hop(relation="date_of_birth"),)
    outcomes = await traverse(
        checked(session, PlanStep(operator="sort", sources=("ada_vell", "dov_arlen"), hops=born)),
        session.graph.traversal,
    )
    assert isinstance(outcomes[0], StepResult)
    assert session.graph.traversal.names_of(outcomes[0].entities) == ("dov_arlen", "ada_vell")


async def test_paths_may_be_bound_to_relations(session: Session) -> None:
    def between(*relations: str) -> PlanStep:
        hops = tuple(Hop(relation=relation) for relation in relations)
        return PlanStep(
            operator="connect", sources=("ada_vell",), targets=("dov_arlen",), hops=hops
        )

    found = await traverse(
        checked(session, between("children"), between("religion")), session.graph.traversal
    )
    assert isinstance(found[0], StepResult)
    assert {relation.predicate for chain in found[0].chains for relation in chain} == {"children"}
    assert isinstance(found[1], Problem)
    assert found[1].kind == "no path"


def facts_of(*triples: tuple[str, str, str]) -> tuple[GraphFacts, Chunk]:
    lines = [f"{s} -[{p}]-> {o}" for s, p, o in triples]
    text = "\n".join(lines)
    chunk = chunk_of(text, id="chk", kind="triples")
    relations = [
        Relation(id=content_id("rel", s, p, o), source=s, target=o, predicate=p)
        for s, p, o in triples
    ]
    places = [
        Occurrence(
            item=relation.id, chunk="chk", start=text.index(line), end=text.index(line) + len(line)
        )
        for relation, line in zip(relations, lines, strict=True)
    ]
    names = sorted({end for s, _, o in triples for end in (s, o)})
    degree = {name: sum(name in (s, o) for s, _, o in triples) for name in names}
    entities = [Entity(id=n, name=n, kind="thing", degree=degree[n]) for n in names]
    return GraphFacts(ById(entities), relations, places), chunk


def nodes(path: Sequence[Relation], start: str) -> list[str]:
    found = [start]
    for relation in path:
        found.append(relation.target if relation.source == found[-1] else relation.source)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_cheapest_chains_are_those_that_trying_all_finds(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 -- a graph to try, no secret
    names = [f"n{place}" for place in range(9)]
    pairs = {(one, two) for one in names for two in names if one != two and chance.random() < 0.25}
    facts, _ = facts_of(*((one, "r", two) for one, two in sorted(pairs)))
    graph = nx.Graph()
    for one, two in pairs:
        degrees = (facts.entities[one].degree, facts.entities[two].degree)
        graph.add_edge(one, two, cost=1 + sum(map(math.log1p, degrees)) / 2)
    every = nx.all_simple_paths(graph, "n0", "n8") if {"n0", "n8"} <= set(graph) else []
    wanted = sorted(nx.path_weight(graph, nodes, "cost") for nodes in every)[:4]
    assert [cost for cost, _ in facts.ways.cheapest("n0", "n8", 4)] == pytest.approx(wanted)


def test_neighbours_come_by_their_degree() -> None:
    facts, _ = facts_of(
        ("a", "r", "few"),
        ("a", "r", "many"),
        ("many", "r", "x"),
        ("many", "r", "y"),
        ("x", "r", "w"),
    )
    assert [one.target for one in around(facts, "a")] == ["many", "few"]
    assert len(around(facts, "a", most=1)) == 1


def test_what_was_walked_is_shown_in_three_formats() -> None:
    facts, chunk = facts_of(("a|b", "knows", "c"), ("d", "owns", "c"))
    stated = Statements(facts, lambda _: chunk)
    chain = tuple(shortest_paths(facts, ["a|b"], ["d"])[0])
    assert list(path_list(stated, [chain])) == ["a|b -[knows]-> c <-[owns]- d [1][2]"]
    assert relation_table(stated, chain, 1_000).splitlines()[2:] == [
        "| a\\|b | knows | c | [1] |",
        "| d | owns | c | [2] |",
    ]
    assert entity_table(facts, ["d", "c"], 1_000).splitlines()[2:] == [
        "| c | thing | 2 |  |",
        "| d | thing | 1 |  |",
    ]
    assert [place.start for place in stated.pool()] == [0, len("a|b -[knows]-> c\n")]


def test_numbers_dates_and_counts_are_ranked_in_sql(tmp_path: Path) -> None:
    tables = TraversalReader(Database.create(tmp_path / "g.duckdb"))
    dates = [("a", "12 May 1950"), ("b", "1950"), ("c", "June 3, 1950"), ("d", "unknown")]
    assert [one.item for one in tables.ranked(dates, "min")] == ["b", "a", "c"]
    figures = [("a", "1,308,463 km"), ("b", "99.5"), ("c", "-4")]
    assert [one.item for one in tables.ranked(figures, "max")] == ["a", "b", "c"]
    pairs = [("a", "x"), ("a", "x"), ("b", "x"), ("b", "y")]
    assert [(one.item, one.number) for one in tables.counted(pairs, "max")] == [
        ("b", 2.0),
        ("a", 1.0),
    ]
