"""Questions over triples are planned, walked along the cheapest chains, and answered with these."""

import asyncio
import math
import random
from collections.abc import AsyncIterator
from pathlib import Path

import networkx as nx
import pytest

from flows.index import IndexOptions, build_index
from flows.session import Session, open_session
from prompts.traverse import Hop, PlanStep
from storage.columns import ById
from storage.database import Database
from storage.graph import TraversalReader
from storage.graph_records import Entity, Occurrence, Relation
from storage.records import Chunk, content_id
from tasks.retrieve.facts import GraphFacts
from tasks.traverse.answer import Statements, entity_table, path_list, relation_table
from tasks.traverse.plan import (
    Outcome,
    Problem,
    StepResult,
    around,
    check,
    shortest_paths,
    traverse,
)
from tests.records import chunk_of
from tests.server.client import Server
from tests.workspaces import asked, indexed, opened, session_on


@pytest.mark.parametrize(
    ("question", "fallback", "values"),
    [
        ("Who are the children of ada_vell?", "none", {"bruno_vell", "cleo_vell"}),
        ("Who is the spouse of ada_vell?", "none", {"dov_arlen"}),
        ("Who are the children of the spouse of ada_vell?", "partial", {"cleo_vell"}),
    ],
)
async def test_relations_in_the_question_are_looked_up(
    question: str, fallback: str, values: set[str], session: Session
) -> None:
    answer = await asked(question, session, mode="traverse")
    assert (answer.fallback, set(answer.values)) == (fallback, values)
    assert answer.trace.question_type == "sp*"
    assert all(row.supported is (fallback == "none" or None) for row in answer.grounding)
    assert answer.citations
    assert all(citation.verified for citation in answer.citations)
    cited = {citation.chunk for citation in answer.citations}
    assert cited <= {passage.chunk for passage in answer.passages}
    assert answer.usage.calls == 0


@pytest.mark.parametrize(
    "question",
    [
        "How many children does ada_vell have?",
        "What is the sex of dov_arlen 's offspring ?",
        "Where was cleo_vell born?",
        "Who is older than ada_vell?",
    ],
)
async def test_without_a_model_nothing_is_concluded(question: str, session: Session) -> None:
    answer = await asked(question, session, mode="traverse")
    assert (answer.trace.question_type, answer.values, answer.fallback) == ("s**", (), "partial")
    assert all(row.supported is None for row in answer.grounding)


async def test_how_two_are_connected_is_answered_by_paths(session: Session) -> None:
    answer = await asked("How are edda_vell and gus_arlen connected?", session, mode="traverse")
    assert (answer.trace.question_type, answer.values, answer.fallback) == ("s*o", (), "partial")
    assert answer.answer.startswith(
        "edda_vell <-[children]- bruno_vell <-[children]- ada_vell -[children]-> cleo_vell"
        " -[children]-> gus_arlen\n"
    )


async def test_all_about_one_thing_is_what_surrounds_it(session: Session) -> None:
    answer = await asked("Tell me about dov_arlen", session, mode="traverse")
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
        (
            "How are ada_vell and Zed Quorn connected?",
            'Not in the graph: nothing is called "Zed Quorn".',
        ),
    ],
)
async def test_why_there_is_no_answer_is_told(question: str, says: str, session: Session) -> None:
    answer = await asked(question, session, mode="traverse")
    assert answer.answer.startswith(says)
    assert (answer.fallback, answer.values, answer.citations) == ("abstained", (), ())


BRIDGE = """# Orla Bridge

The Orla Bridge was designed by Tomas Reyd, an engineer. Tomas Reyd was born in Velin.
Mira Sten lives in Velin, where
she met Tomas Reyd.
"""


async def test_a_graph_from_texts_is_walked_to_their_sentences(tmp_path: Path) -> None:
    (tmp_path / "bridge.md").write_text(BRIDGE, encoding="utf-8")
    runtime = opened(tmp_path / "ws")
    await build_index([tmp_path / "bridge.md"], IndexOptions(), runtime)
    with open_session(runtime) as session:
        about = await asked("Tell me about Mira Sten", session, mode="traverse")
        tied = await asked(
            "How is Mira Sten connected to the Orla Bridge?", session, mode="traverse"
        )
    assert [citation.quote for citation in about.citations] == [
        "Mira Sten lives in Velin, where\nshe met Tomas Reyd.",
    ]
    assert tied.answer.startswith(
        "Mira Sten -[lives in]-> Velin -[where she met]-> Tomas Reyd <-[designed by]- Orla Bridge\n"
    )
    assert all(citation.verified for citation in about.citations + tied.citations)


@pytest.fixture
async def on_model(workspace: Path, model_server: Server) -> AsyncIterator[Session]:
    async with session_on(model_server, workspace) as session:
        yield session


def asked_to_answer(server: Server) -> str:
    """What the step `answer` asked the model, once."""
    (body,) = (str(one["body"]) for one in server.requests() if one["step"] == "answer")
    return body


async def test_an_open_answer_is_written_from_tables_and_paths(
    on_model: Session, model_server: Server
) -> None:
    answer = await asked("How are edda_vell and gus_arlen connected?", on_model, mode="traverse")
    body = asked_to_answer(model_server)
    assert "| entity | kind | relations | description |" in body
    assert "| source | relation | target | evidence |" in body
    assert "edda_vell <-[children]- bruno_vell <-[children]- ada_vell" in body
    assert all(citation.verified for citation in answer.citations)


async def test_the_answers_model_reads_all_that_a_walk_found(
    tmp_path: Path, model_server: Server
) -> None:
    pupils = [f"Pupil {number} of Velin" for number in range(40)]
    rows = [{"s": "Ada Korb", "p": "pupil", "o": pupil} for pupil in pupils]
    workspace = await asyncio.to_thread(indexed, tmp_path, rows)
    async with session_on(model_server, workspace) as session:
        await asked("Who are the pupils of Ada Korb?", session, mode="traverse", effort="low")
    body = asked_to_answer(model_server)
    found = body.partition("Found by the walk")[2].partition("Entities")[0]
    assert all(pupil in found for pupil in pupils)


# --- plans ----------------------------------------------------------------------------------------

CHILDREN = Hop(relation="children")
PARENTS = Hop(relation="children", inverse=True)


def step(
    operator: str, *sources: str, hops: tuple[Hop, ...] = (), to: tuple[str, ...] = ()
) -> PlanStep:
    return PlanStep.model_validate(
        {"operator": operator, "sources": sources, "targets": to, "hops": hops}
    )


def follow(source: str, *hops: Hop) -> PlanStep:
    return step("follow", source, hops=hops or (CHILDREN,))


async def outcomes(session: Session, *steps: PlanStep) -> list[Outcome]:
    graph = session.graph.traversal
    checked = check(steps, graph)
    assert not isinstance(checked, Problem), checked.sentence()
    return await traverse(checked, graph)


def shown(session: Session, outcome: Outcome) -> tuple[str, ...] | None:
    """The values of an outcome, or the names of its entities; None for a Problem."""
    if isinstance(outcome, Problem):
        return None
    return outcome.values or session.graph.traversal.names_of(outcome.entities)


@pytest.mark.parametrize(
    ("steps", "kind", "says"),
    [
        ([follow("ada_vell", Hop(relation="offspring"))], "bad plan", 'no relation "offspring"'),
        ([follow("zed_quorn")], "not in the graph", '"zed_quorn"'),
        ([follow("{1}")], "bad plan", "no earlier step"),
        ([follow("ada_vell"), follow("{2}")], "bad plan", "no earlier step"),
        ([step("follow", "ada_vell")], "bad plan", "names no relation"),
        ([step("connect", "ada_vell")], "bad plan", "nothing to reach"),
        ([step("intersect", "ada_vell")], "bad plan", "two results"),
        ([follow("*")], "bad plan", "from everything"),
    ],
)
def test_what_the_graph_cannot_run_is_refused_with_the_reason(
    steps: list[PlanStep], kind: str, says: str, session: Session
) -> None:
    problem = check(steps, session.graph.traversal)
    assert isinstance(problem, Problem)
    assert (problem.kind, says in problem.reason) == (kind, True)


PAIR = {"bruno_vell", "cleo_vell"}


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (
            [follow("ada_vell"), follow("{1}"), step("count", "{2}")],
            [PAIR, {"edda_vell", "finn_vell", "gus_arlen"}, {"3"}],
        ),
        # A difference from nothing is the first result.
        (
            [follow("ada_vell"), follow("hermit_oyl"), step("difference", "{1}", "{2}")],
            [PAIR, None, PAIR],
        ),
        # A way may go against its relations.
        ([follow("gus_arlen", PARENTS, PARENTS)], [{"ada_vell", "dov_arlen"}]),
    ],
)
async def test_steps_run_in_order_and_hand_on_what_they_found(
    steps: list[PlanStep], found: list[set[str] | None], session: Session
) -> None:
    names = [shown(session, outcome) for outcome in await outcomes(session, *steps)]
    assert [own if own is None else set(own) for own in names] == found


async def test_things_are_sorted_by_a_date(session: Session) -> None:
    born = (Hop(relation="date_of_birth"),)
    (found,) = await outcomes(session, step("sort", "ada_vell", "dov_arlen", hops=born))
    assert shown(session, found) == ("dov_arlen", "ada_vell")


async def test_paths_may_be_bound_to_relations(session: Session) -> None:
    by_children, by_religion = await outcomes(
        session,
        *(
            step("connect", "ada_vell", to=("dov_arlen",), hops=(Hop(relation=relation),))
            for relation in ("children", "religion")
        ),
    )
    assert isinstance(by_children, StepResult)
    walked = {relation.predicate for chain in by_children.chains for relation in chain}
    assert walked == {"children"}
    assert isinstance(by_religion, Problem)
    assert by_religion.kind == "no path"


# --- walking --------------------------------------------------------------------------------------


def facts_of(*triples: tuple[str, str, str]) -> tuple[GraphFacts, Chunk]:
    lines = [f"{s} -[{p}]-> {o}" for s, p, o in triples]
    text = "\n".join(lines)
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
    ends = [end for s, _, o in triples for end in (s, o)]
    entities = [
        Entity(id=name, name=name, kind="thing", degree=ends.count(name))
        for name in sorted(set(ends))
    ]
    return GraphFacts(ById(entities), relations, places), chunk_of(text, id="chk", kind="triples")


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
    )
    assert [one.target for one in around(facts, "a")] == ["many", "few"]
    assert len(around(facts, "a", most=1)) == 1


def test_what_was_walked_is_shown_in_three_formats() -> None:
    facts, chunk = facts_of(("a|b", "knows", "c"), ("d", "owns", "c"))
    stated = Statements(facts, lambda _: chunk)
    chain = shortest_paths(facts, ["a|b"], ["d"])[0]
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


def test_entities_of_the_same_name_come_by_id() -> None:
    entities = [Entity(id=f"ent_{n}", name="Agni", kind=f"kind {n}") for n in range(9)]
    facts = GraphFacts(ById(entities), [], [])
    table = entity_table(facts, [entity.id for entity in entities], 1_000)
    assert table.splitlines()[2:] == [f"| Agni | kind {n} | 0 |  |" for n in range(9)]


def test_numbers_dates_and_counts_are_ranked_in_sql(tmp_path: Path) -> None:
    tables = TraversalReader(Database.create(tmp_path / "g.duckdb"))
    dates = [("a", "12 May 1950"), ("b", "1950"), ("c", "June 3, 1950"), ("d", "unknown")]
    assert [one.item for one in tables.ranked(dates, "min")] == ["b", "a", "c"]
    figures = [("a", "1,308,463 km"), ("b", "99.5"), ("c", "-4")]
    assert [one.item for one in tables.ranked(figures, "max")] == ["a", "b", "c"]
    pairs = [("a", "x"), ("a", "x"), ("b", "x"), ("b", "y")]
    counted = [(one.item, one.number) for one in tables.counted(pairs, "max")]
    assert counted == [("b", 2.0), ("a", 1.0)]
