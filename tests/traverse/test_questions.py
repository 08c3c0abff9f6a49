"""Each type of question gets the plan that it needs, and what cannot be answered says why: worked examples."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions
from flows.session import Session, open_session
from storage.answer_records import QuestionType
from tests.server.client import Server
from tests.traverse.conftest import Asking
from tests.workspaces import opened, session_on

EXAMPLES: list[tuple[str, QuestionType, set[str]]] = [
    # (s,p,*): one relation, several, against their direction, by a synonym, by the words around the name
    ("Who are the children of ada_vell?", "sp*", {"bruno_vell", "cleo_vell"}),
    ("what is the gender of bruno_vell 's kid ?", "sp*", set()),
    ("what is the sex of dov_arlen 's offspring ?", "sp*", {"female"}),
    ("Where was cleo_vell born?", "sp*", {"hallen"}),
    ("How did bruno_vell die?", "sp*", {"drowning"}),
    ("Who is the grandmother of finn_vell?", "sp*", {"ada_vell"}),
    ("What does dov_arlen 's wife do for a living?", "sp*", {"glazier"}),
    ("Who are the parents of cleo_vell?", "sp*", {"ada_vell", "dov_arlen"}),
    ("Which films did dov_arlen direct?", "sp*", {"the glass harp", "salt road"}),
    ("Which actors starred in the films that dov_arlen directed?", "sp*", {"cleo_vell"}),
    ("ada_vell的配偶的职业是什么？", "sp*", {"glazier"}),
    # counting
    ("How many children does ada_vell have?", "sp*", {"2"}),
    ("How many grandchildren does ada_vell have?", "sp*", {"3"}),
    # (s,p,o): what two share, whether it is so
    ("Which children do ada_vell and dov_arlen share?", "spo", {"cleo_vell"}),
    ("Do ada_vell and dov_arlen have the same profession?", "spo", {"Yes"}),
    ("Is dov_arlen the husband of ada_vell?", "spo", {"Yes"}),
    ("Is bruno_vell male?", "spo", {"Yes"}),
    ("Who is the child of ada_vell and dov_arlen?", "spo", {"cleo_vell"}),
    ("Who directed the glass harp and salt road?", "spo", {"dov_arlen"}),
]


@pytest.mark.parametrize(("question", "kind", "values"), EXAMPLES, ids=[question for question, _, _ in EXAMPLES])
async def test_a_question_is_answered_by_walking(
    question: str, kind: QuestionType, values: set[str], asked: Asking
) -> None:
    answer = await asked(question)
    assert (answer.trace.mode, answer.trace.question_type, set(answer.values)) == ("traverse", kind, values)
    assert answer.fallback == ("none" if values else "abstained")
    assert bool(answer.citations) == bool(values)
    assert all(citation.verified for citation in answer.citations)
    assert answer.usage.calls == 0


async def test_citations_are_the_lines_that_state_the_way(asked: Asking) -> None:
    answer = await asked("what is the cause of death of ada_vell 's son ?")
    assert [citation.quote for citation in answer.citations] == [
        "ada_vell -[children]-> bruno_vell",
        "bruno_vell -[cause_of_death]-> drowning",
    ]
    assert {citation.chunk for citation in answer.citations} <= {passage.chunk for passage in answer.passages}


async def test_how_two_are_connected_is_told_as_paths(asked: Asking) -> None:
    answer = await asked("How are edda_vell and gus_arlen connected?")
    assert (answer.trace.question_type, answer.values, answer.fallback) == ("s*o", (), "none")
    first = answer.answer.splitlines()[0]
    assert first == (
        "edda_vell <-[children]- bruno_vell <-[children]- ada_vell -[children]-> cleo_vell -[children]-> gus_arlen"
    )


async def test_all_about_one_thing_is_what_stands_around_it(asked: Asking) -> None:
    answer = await asked("Tell me about dov_arlen")
    assert answer.trace.question_type == "s**"
    quotes = [citation.quote for citation in answer.citations]
    assert {"ada_vell -[spouse]-> dov_arlen", "salt road -[directed_by]-> dov_arlen"} <= set(quotes)
    assert all("dov_arlen" in quote for quote in quotes)


async def test_a_nested_question_finds_first_whom_it_asks_about(asked: Asking) -> None:
    about = await asked("Tell me about dov_arlen's children")
    tied = await asked("How is finn_vell connected to the children of dov_arlen?")
    assert (about.trace.question_type, tied.trace.question_type) == ("nested", "nested")
    assert [part.answer for part in about.trace.subquestions] == ["cleo_vell.", "cleo_vell."]
    assert "cleo_vell -[place_of_birth]-> hallen" in {citation.quote for citation in about.citations}
    assert tied.answer.splitlines()[0].startswith("finn_vell <-[children]- bruno_vell")
    assert tied.trace.subquestions[1].question == "connect finn_vell to {1}"


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("How is hermit_oyl connected to ada_vell?", "No path: no chain of relations leads from hermit_oyl to ada"),
        ("What is the religion of bruno_vell?", "No path: the graph states no `religion` of bruno_vell."),
        ("Is hermit_oyl the husband of ada_vell?", "No path: no chain of relations"),
        ("Who is older, ada_vell or dov_arlen?", 'Bad plan: without a model, no steps are found for "older".'),
        ("Which children of ada_vell are not children of dov_arlen?", 'Bad plan: without a model, no steps'),
        ("Who is the spouse of zed_quorn?", 'Not in the graph: nothing is called "zed_quorn".'),
        ("How are ada_vell and Zed Quorn connected?", 'Not in the graph: nothing is called "Zed Quorn".'),
        ("What is the colour of ada_vell?", 'Bad plan: the graph has no relation "colour". Nearest: '),
        ("What is the cause of birth of bruno_vell?", "No path: "),
    ],
)  # fmt: skip
async def test_the_three_reasons_for_no_answer_are_told_apart(question: str, says: str, asked: Asking) -> None:
    answer = await asked(question)
    assert answer.answer.startswith(says)
    assert (answer.fallback, answer.values, answer.citations) == ("abstained", (), ())


async def test_a_misspelt_name_is_found(asked: Asking) -> None:
    assert (await asked("Who is the spouse of ada_vel ?")).values == ("dov_arlen",)


BRIDGE = """# Orla Bridge

The Orla Bridge was designed by Tomas Reyd, an engineer. Tomas Reyd was born in Velin. Mira Sten lives in Velin, where
she met Tomas Reyd.
"""


async def test_a_graph_read_out_of_texts_is_walked_to_their_sentences(tmp_path: Path) -> None:
    (tmp_path / "bridge.md").write_text(BRIDGE, encoding="utf-8")
    runtime = opened(tmp_path / "ws")
    await build_index([tmp_path / "bridge.md"], IndexOptions(), runtime)
    with open_session(runtime) as session:
        options = AskOptions(mode="traverse")
        born = await answer_question("Where was the designer of the Orla Bridge born?", options, session)
        tied = await answer_question("How is Mira Sten connected to the Orla Bridge?", options, session)
    assert born.values == ("Velin",)
    assert [citation.quote for citation in born.citations] == [
        "The Orla Bridge was designed by Tomas Reyd, an engineer.",
        "Tomas Reyd was born in Velin.",
    ]
    assert tied.answer.splitlines()[0] == (
        "Mira Sten -[lives in]-> Velin -[where she met]-> Tomas Reyd <-[designed by]- Orla Bridge"
    )
    assert all(citation.verified for citation in born.citations + tied.citations)


@pytest.fixture
async def on_model(workspace: Path, model_server: Server) -> AsyncIterator[Session]:
    async with session_on(model_server, workspace) as session:
        yield session


async def test_an_open_answer_is_written_from_tables_and_paths(on_model: Session, model_server: Server) -> None:
    answer = await answer_question("How are edda_vell and gus_arlen connected?", AskOptions(mode="traverse"), on_model)
    bodies = [str(request["body"]) for request in model_server.requests()]
    body = next(one for one in bodies if "Step: answer" in one)
    assert "| entity | kind | relations | description |" in body
    assert "| source | relation | target | evidence |" in body
    assert "edda_vell <-[children]- bruno_vell <-[children]- ada_vell" in body
    assert all(citation.verified for citation in answer.citations)
