"""Facts in time: a newer one closes an older one, and what is removed closes nothing."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.__main__ import main
from flows.index import IndexOptions, build_index
from flows.operations.diff import compare
from flows.operations.forget import forget
from flows.service.reading import look_up, schema_view
from flows.session import open_session
from prompts.engine.effort import Effort
from prompts.plan_facts import PlanFacts
from prompts.schema import Schema
from storage.answer_records import Answer
from storage.errors import UsageError
from storage.facts import DatedFact
from tasks.facts.answer import answer_from_facts
from tests.copying import copy_of
from tests.models.running import Place
from tests.query.steps import scripted
from tests.server.client import Server
from tests.service.conftest import client_of, keys_of
from tests.service.test_mcp import called, connection_to
from tests.workspaces import asked, opened, write_rows

SCHEMA = Schema.model_validate(
    {
        "kinds": {
            "firm": {"attributes": {"ships": "number", "names": {"several": True}}},
            "person": "",
        },
        "relations": {"director": {"source": "firm", "target": "person", "single": True}},
    }
)
OLD = {"id": "old", "text": "In 2019 Korb Lines had six ships. Ann Bell led it from 2010 to 2015."}
NEW = {"id": "new", "text": "Since May 2021 Korb Lines has five ships. Its director is Ben Ode."}
ASKED = "How many ships does Korb Lines have?"


def listed(*facts: str) -> str:
    """A model's answer: the firm and two persons, and facts of subject, type, value and time."""
    names = ["E\tKorb Lines\tfirm\t", "E\tAnn Bell\tperson\t", "E\tBen Ode\tperson\t"]
    return "\n".join(
        [*names, *("F\tKorb Lines\t" + fact.replace(" | ", "\t") for fact in facts), "END"]
    )


RULES = [
    {
        "text": "had six ships",
        "says": listed("ships | six ships | 2019", "director | Ann Bell | 2010 | 2015"),
    },
    {
        "text": "has five ships",
        "says": listed("ships | five ships | 2021-05", "director | Ben Ode"),
    },
]
EXTRACTING = [{"kind": "writes", "step": "extract", **rule} for rule in RULES]


def planned_ships(**more: Any) -> dict[str, object]:
    """A plan that looks up the ships of the firm."""
    named = {"column": "name", "comparison": "equal", "value": "Korb Lines"}
    return {"operation": "lookup", "table": 1, "columns": ["ships"], "filters": [named], **more}


def planned(**more: Any) -> dict[str, object]:
    """The rule for a server that plans this."""
    return {"kind": "writes", "step": "plan_facts", "says": json.dumps(planned_ships(**more))}


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory, server_process: Server) -> Path:
    """A folder with the documents, and a workspace in which a scripted model has read them."""
    folder = tmp_path_factory.mktemp("times")
    server_process.reset()
    server_process.misbehave(*EXTRACTING)
    own = Place(folder / "ws", server_process, {"graph_schema": SCHEMA})
    asyncio.run(own.index(write_rows(folder / "docs.jsonl", [OLD, NEW])))
    return folder


@pytest.fixture
def place(indexed: Path, model_server: Server) -> Place:
    """The workspace, to read."""
    model_server.misbehave(*EXTRACTING)
    return Place(indexed / "ws", model_server, {"graph_schema": SCHEMA})


@pytest.fixture
def copied(place: Place, tmp_path: Path) -> Place:
    """A copy of it, to change."""
    return replace(place, workspace=copy_of(place.workspace, tmp_path / "ws"))


def facts_of(place: Place, as_of: str | None = None) -> list[DatedFact]:
    with place.runtime().workspace.read() as generation:
        return generation.facts.facts(as_of)


def ships(place: Place, as_of: str | None = None) -> list[tuple[str, str | None, str | None]]:
    facts = facts_of(place, as_of)
    return [(one.value, one.valid_from, one.valid_to) for one in facts if one.type == "ships"]


async def test_a_newer_fact_closes_the_older_one(place: Place) -> None:
    assert ships(place) == [
        ("five ships", "2021-05-01", None),
        ("six ships", "2019-01-01", "2021-04-30"),
    ]
    assert [value for value, *_ in ships(place, "2020-12-31")] == ["six ships"]
    assert [value for value, *_ in ships(place, "2021-05-31")] == ["five ships"]
    assert ships(place, "2018-12-31") == []
    with place.runtime().workspace.read() as generation:
        (view,) = look_up("Korb Lines", generation).entities
    newer, older = (fact for fact in view.facts if fact.type == "ships")
    assert (older.closed_by, newer.closed_by, newer.quote) == (newer.id, "", "five ships")
    directors = {fact.object: fact.period for fact in view.facts if fact.type == "director"}
    assert directors == {"Ann Bell": "from 2010-01-01 until 2015-12-31", "Ben Ode": ""}


def test_the_command_shows_types_and_counts(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schema", "--workspace", str(place.workspace)]) == 0
    shown = capsys.readouterr().out
    assert "firm: 1 entity" in shown
    assert "ships (number): 2" in shown
    assert "director (from firm to person, one at a time): 2" in shown
    assert main(["graph", "Korb Lines", "--workspace", str(place.workspace)]) == 0
    assert "ships = six ships (from 2019-01-01 until 2021-04-30, old)" in capsys.readouterr().out


async def test_the_service_and_its_tool_tell_the_same_schema(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")
    with place.runtime().workspace.read() as generation:
        view = schema_view(generation).model_dump(mode="json")
    assert [(kind["name"], kind["entities"]) for kind in view["kinds"]] == [
        ("firm", 1),
        ("person", 2),
    ]
    (key, other), rows = keys_of("ask", "ask")
    with client_of(place.workspace, key, keys=rows[:1]) as client:
        assert client.get("/api/v1/schema").json() == view
        client.headers["authorization"] = f"Bearer {other}"
        assert client.get("/api/v1/schema").status_code == 401
    async with connection_to(place.workspace) as connected:
        assert await called(connected, "schema") == view


async def test_what_is_removed_closes_nothing(place: Place, copied: Place) -> None:
    whole = place.graph()
    await forget(["new"], copied.runtime())
    assert ships(copied) == [("six ships", "2019-01-01", None)]
    assert {row["chunk"] for row in copied.graph()["fact_mentions"]} == {
        row["chunk"] for row in whole["facts"] if row["document"] == "old"
    }
    with copied.runtime().workspace.read() as generation:
        assert "five" not in json.dumps(schema_view(generation).model_dump())


async def test_small_runs_give_what_one_run_gives(place: Place, tmp_path: Path) -> None:
    small = replace(place, workspace=tmp_path / "small")
    source = write_rows(tmp_path / "docs.jsonl", [NEW])
    await small.index(source)
    await small.index(write_rows(source, [OLD, NEW]))
    kept = ("fact_mentions", "facts", "left_out_facts")
    grown, whole = small.graph(), place.graph()
    assert [grown[kind] for kind in kept] == [whole[kind] for kind in kept]
    difference = compare(small.runtime().workspace, 1, 2)
    assert [thing.label for thing in difference.facts.added] == [
        "Korb Lines: director = Ann Bell",
        "Korb Lines: ships = six ships",
    ]
    assert difference.facts.unchanged == 2


async def test_another_schema_makes_the_facts_anew(indexed: Path, copied: Place) -> None:
    kinds = {"firm": {"attributes": {"names": "text"}}, "person": ""}
    other = Schema.model_validate({"kinds": kinds})
    report = await copied.index(indexed / "docs.jsonl", graph_schema=other)
    assert facts_of(copied) == []
    assert {row.path for row in report.skipped} == {"schema: director", "schema: ships"}
    with copied.runtime().workspace.read() as generation:
        view = schema_view(generation)
    assert [(kind.name, kind.entities) for kind in view.kinds] == [("firm", 1), ("person", 2)]
    assert sum(row.facts for row in view.left_out) == 4


# --- the mode -------------------------------------------------------------------------------------


async def answered(
    place: Place, rule: dict[str, object], mode: str = "facts", **options: Any
) -> Answer:
    """The answer of a mode, planned by this rule and written without a model."""
    place.server.misbehave(rule)
    role = {"model": "openai/m", "base_url": place.server.base_url, "api_key": "k"}
    roles = {"decompose": role, "route": role}
    runtime = opened(place.workspace, roles=roles, answer_cache=False)
    with open_session(runtime) as session:
        return await asked(ASKED, session, mode=mode, **options)


@pytest.mark.parametrize(
    ("more", "documents", "value"),
    [
        ({}, None, "five ships"),
        ({"as_of": "2020"}, None, "six ships"),
        ({}, ("old",), "six ships"),
    ],
)
async def test_the_mode_answers_by_the_time_of_facts(
    more: dict[str, Any], documents: tuple[str, ...] | None, value: str, place: Place
) -> None:
    answer = await answered(place, planned(**more), documents=documents)
    assert (answer.values, answer.fallback, answer.trace.structure) == ((value,), "none", "table")
    (citation,) = answer.citations
    assert citation.verified
    assert value in citation.quote
    assert answer.trace.subquestions[0].question.startswith("lookup of ships in firm")


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (planned(columns=["masts"]), "a firm has no column 'masts'; it has ships"),
        (planned(table=7), "there is no table"),
        (planned(as_of="whenever"), "'whenever' is no date"),
        (planned(operation="none"), "the model made no plan"),
    ],
)
async def test_a_plan_that_does_not_fit_says_why(
    rule: dict[str, object], reason: str, place: Place
) -> None:
    answer = await answered(place, rule)
    assert (answer.fallback, answer.citations) == ("abstained", ())
    assert reason in answer.answer


@pytest.mark.parametrize(
    ("rule", "effort", "modes"),
    [
        (planned(), "medium", ["facts"]),
        (planned(), "high", ["facts"]),
        (planned(operation="none"), "medium", ["struct", "facts"]),
        (planned(), "low", ["struct"]),
    ],
)
async def test_auto_computes_where_a_model_calls_for_facts(
    rule: dict[str, object], effort: Effort, modes: list[str], place: Place
) -> None:
    answer = await answered(place, rule, mode="auto", effort=effort)
    decision = answer.trace.decision
    assert decision is not None
    assert [answer.trace.mode, *(one.mode for one in decision.tried)] == modes
    assert (answer.values == ("five ships",)) == (modes == ["facts"])


async def test_auto_without_a_planner_never_computes(place: Place) -> None:
    role = {"model": "openai/m", "base_url": place.server.base_url, "api_key": "k"}
    for roles in ({}, {"route": role}):
        with open_session(opened(place.workspace, roles=roles)) as session:
            answer = await asked(ASKED, session)
        assert (answer.trace.mode, answer.fallback) == ("struct", "partial")


async def test_without_a_planner_the_mode_says_so(place: Place) -> None:
    with open_session(opened(place.workspace)) as session:
        answer = await asked(ASKED, session, mode="facts")
    assert (answer.fallback, "no model plans" in answer.answer) == ("abstained", True)


async def test_imported_triples_answer_and_contradict(tmp_path: Path) -> None:
    rows = [
        {"s": "Korb Lines", "p": "ships", "o": ships, "document": name}
        for name, ships in (("b", "5"), ("a", "6"), ("c", "6"))
    ]
    source = write_rows(tmp_path / "t.jsonl", rows)
    runtime = opened(tmp_path / "ws", graph_schema=SCHEMA)
    await build_index([source], IndexOptions(), runtime)
    planner = scripted(PlanFacts, planned_ships())
    with open_session(runtime) as session:
        typed = session.graph.typed(None)
        answer = await answer_from_facts(ASKED, typed, planner, "2024-06-01")
    assert answer.result.values == ("6",), "what most documents state"
    assert [note.text for note in answer.notes][-1] == (
        "Korb Lines: ships is stated as 6 and 5; the first is used"
    )
    assert [source.text for source in answer.sources] == ["Korb Lines -[ships]-> 6"]


async def test_an_index_without_a_schema_has_no_facts(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "docs.jsonl", [OLD])
    runtime = opened(tmp_path / "ws")
    await build_index([source], IndexOptions(), runtime)
    with (
        open_session(runtime) as session,
        pytest.raises(UsageError, match="made without a schema"),
    ):
        await asked(ASKED, session, mode="facts")
