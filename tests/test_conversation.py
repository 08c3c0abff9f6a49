"""What a conversation adds to a question without a model, and how ambiguous names are read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.__main__ import main
from flows.query import retrieve_passages
from flows.question import AskOptions
from flows.session import Session, open_session
from prompts.rewrite import with_previous_question
from tests.workspaces import asked, indexed, opened

DESIGNED = (
    "Who designed the Kestrel Bridge?",
    "The Kestrel Bridge was designed by Ilse Marrand in 1998.",
)


@pytest.mark.parametrize(
    ("history", "question", "searched"),
    [
        (DESIGNED, "Where was she born?", f"{DESIGNED[0]} Where was she born?"),
        (DESIGNED, "And the Maltings Bridge?", "And the Maltings Bridge?"),
        (DESIGNED, "Where was Tobias Wren born?", "Where was Tobias Wren born?"),
        ((*DESIGNED, "Where was she born?", "In Hask."), "and when?", f"{DESIGNED[0]} and when?"),
        (
            ("Tell me about Mara Lind.",),
            "who taught her?",
            "Tell me about Mara Lind. who taught her?",
        ),
        (("LightRAG怎么检索？", "用图。"), "它的局限是什么?", "LightRAG怎么检索？ 它的局限是什么?"),
        ((), "Where was she born?", "Where was she born?"),
    ],
)
def test_a_question_without_names_joins_the_one_before(
    history: tuple[str, ...], question: str, searched: str
) -> None:
    assert with_previous_question(question, history) == searched


TEXTS = {
    "Mercury (planet)": "Mercury is the smallest planet. Mercury orbits the Sun in 88 days.",
    "Mercury (element)": "Mercury is a metal. Mercury melts at minus 39 degrees.",
    "Orla Bridge": "The Orla Bridge was designed by Tomas Reyd. The Orla Bridge opened in 1931.",
    "Tomas Reyd": "Tomas Reyd was born in Velin. Tomas Reyd studied under Ana Korb.",
    "水星": "水星没有卫星。",
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [{"id": title, "title": title, "text": text} for title, text in TEXTS.items()]
    return indexed(tmp_path_factory.mktemp("open"), rows)


@pytest.fixture(scope="module")
def session(workspace: Path) -> Iterator[Session]:
    with open_session(opened(workspace)) as session:
        yield session


PLANET, ELEMENT = "Mercury (planet)", "Mercury (element)"


@pytest.mark.parametrize(
    ("question", "taken"),
    [
        ("How many days does Mercury take to orbit the Sun?", PLANET),
        ("At how many degrees does Mercury melt?", ELEMENT),
    ],
)
async def test_a_name_of_several_things_is_told_with_the_one_that_was_answered(
    question: str, taken: str, session: Session
) -> None:
    answer = await asked(question, session)
    assert taken in {citation.document for citation in answer.citations}
    (found,) = answer.trace.ambiguity
    assert (found.text, set(found.readings)) == ("Mercury", {PLANET, ELEMENT})


@pytest.mark.parametrize(
    "question",
    [
        "Who designed the Orla Bridge?",
        "How many days does Mercury (planet) take to orbit the Sun?",
        "水星有几颗卫星？",
    ],
)
async def test_a_name_of_one_thing_is_not_ambiguous(question: str, session: Session) -> None:
    assert (await asked(question, session)).trace.ambiguity == ()


async def test_no_pronoun_is_tied_to_a_name(session: Session) -> None:
    history = ("When was the Orla Bridge opened?", "In 1931.")
    answer = await asked("Who designed it?", session, history=history)
    assert answer.trace.rewritten == "When was the Orla Bridge opened? Who designed it?"
    assert "designed by Tomas Reyd" in answer.answer
    assert answer.fallback == "partial"
    found = await retrieve_passages("Who designed it?", AskOptions(history=history, k=1), session)
    assert [passage.document for passage in found.passages] == ["Orla Bridge"]


async def test_two_questions_in_one_stay_one(session: Session) -> None:
    question = "Who designed the Orla Bridge and where was Tomas Reyd born?"
    answer = await asked(question, session)
    assert answer.trace.queries == (question,)
    assert all(said in answer.answer for said in ("designed by Tomas Reyd", "born in Velin"))


def test_the_command_names_both_readings(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = "At how many degrees does Mercury melt?"
    assert main(["ask", question, "--workspace", str(workspace)]) == 0
    line = 'ambiguous: "Mercury" was read as Mercury (element), not as Mercury (planet)'
    assert line in capsys.readouterr().out.splitlines()
