"""Defects of other systems as questions, end to end, offline and on a model.

StructRAG: the catalogue crashes, failed documents leave the count, figures lose their format.
PolyG: a failed classifier is an apology, only two entities are used. ERM4: the trigger is never
called, the filter reads the original.
"""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from flows.index import IndexOptions, build_index
from flows.session import Session, open_session
from storage.answer_records import Effort
from tests.server.client import Server
from tests.workspaces import asked, indexed, opened, session_on

COST = "$1,308,463.50"
SURVEY = f"""# Findings

The hangers of the Kestrel Bridge are corroded. Chloride was found in the deck.

# Recommendations

The survey recommends a limit of 7.5 tonnes on the Kestrel Bridge.
Repairs of the Kestrel Bridge will cost {COST} in
2025. Ilse Marrand wrote the survey.
"""
TEXTS = {
    "survey": ("Survey of the Kestrel Bridge", SURVEY),
    "report": (
        "Report on the Kestrel Bridge",
        "The board closed the Kestrel Bridge to lorries. It carries many cars.",
    ),
    "poem": ("A poem", "The sea is wide and the Kestrel Bridge is old."),
    "ilse": (
        "Ilse Marrand",
        "Ilse Marrand was born in Norrick. Ilse Marrand inspected the Maltings Bridge in 1999.",
    ),
}
TIES = (
    ("ada", "parent of", "bruno"),
    ("ada", "parent of", "cleo"),
    ("bruno", "parent of", "edda"),
    ("cleo", "parent of", "gus"),
    ("cleo", "married", "dov"),
    ("hermit", "keeps", "bees"),
)
SUMMARY = "Summarise the survey of the Kestrel Bridge."
PRICE = "What will the repairs of the Kestrel Bridge cost?"
NUMBERED = re.compile(r"^\s*\d+(?:\.\d+)* \S", re.M)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four texts and some triples, indexed offline."""
    rows = [
        *({"id": key, "title": title, "text": text} for key, (title, text) in TEXTS.items()),
        *(dict(zip("spo", tie, strict=True)) for tie in TIES),
    ]
    return indexed(tmp_path_factory.mktemp("peers"), rows)


@pytest.fixture(scope="module")
def offline(workspace: Path) -> Iterator[Session]:
    with open_session(opened(workspace)) as session:
        yield session


@pytest.fixture
async def on_model(workspace: Path, model_server: Server) -> AsyncIterator[Session]:
    async with session_on(model_server, workspace) as session:
        yield session


async def test_a_summary_is_answered_from_a_numbered_catalogue(on_model: Session) -> None:
    answer = await asked(SUMMARY, on_model, structure="catalogue")
    assert answer.trace.structure == "catalogue"
    survey = next(one for one in answer.trace.structures if one.document == "survey")
    assert survey.text.startswith("1 ")
    assert all(NUMBERED.match(line) for line in survey.text.splitlines())
    assert all(citation.verified for citation in answer.citations)


async def test_a_structure_that_a_model_cannot_write_is_told(
    on_model: Session, model_server: Server
) -> None:
    model_server.misbehave({"kind": "malformed", "step": "structurize"})
    answer = await asked("Give an overview of the Kestrel Bridge.", on_model, structure="catalogue")
    (row,) = answer.trace.degraded
    assert (row.step, answer.trace.structure, answer.trace.answered_by) == (
        "structurize",
        "chunk",
        "model",
    )
    assert "for the step 'structurize'" in row.reason
    assert answer.citations


async def test_figures_keep_their_format(offline: Session, on_model: Session) -> None:
    for session in (offline, on_model):
        answer = await asked(PRICE, session, structure="table")
        assert COST in answer.answer
        assert "1308463" not in answer.model_dump_json()


async def test_all_that_a_question_names_is_connected(offline: Session) -> None:
    answer = await asked("How are edda, gus and dov connected?", offline, mode="traverse")
    assert [one.question for one in answer.trace.subquestions] == ["connect edda to gus, dov"]
    cited = " ".join(citation.quote for citation in answer.citations)
    assert "cleo -[parent of]-> gus" in cited
    assert "cleo -[married]-> dov" in cited


@pytest.mark.parametrize(("effort", "read"), [("medium", False), ("high", True)])
async def test_high_effort_reads_the_neighbours_of_the_best_passages(
    effort: Effort, read: bool, model_server: Server, tmp_path: Path
) -> None:
    months = [
        f"In month {number} the ferry of Ostrel carried {number * 7} carts. " * 3
        for number in range(1, 40)
    ]
    months[20] = "The ferryman Toma Brisk drowned in the spring flood. " * 3
    ledger = tmp_path / "ledger.txt"
    ledger.write_text("\n\n".join(months), encoding="utf-8")
    cut = {"chunk_tokens": 40, "chunk_overlap": 0}
    await build_index([ledger], IndexOptions(), opened(tmp_path / "ws", **cut))
    async with session_on(model_server, tmp_path / "ws") as session:
        for k in (None, 1):
            question = "Who was Toma Brisk, the ferryman?"
            await asked(question, session, effort=effort, mode="naive", k=k)
    prompts = [
        str(request["body"]) for request in model_server.requests() if request["step"] == "answer"
    ]
    assert all("Toma Brisk drowned" in prompt for prompt in prompts)
    # One passage is one passage: its neighbours would be more than the user wants.
    assert ["month 20 the ferry" in prompt for prompt in prompts] == [read, False]


async def test_the_filter_judges_the_rewritten_question(
    on_model: Session, model_server: Server
) -> None:
    history = ("Who wrote the survey?", "The survey was written by Ilse Marrand.")
    answer = await asked("What did she inspect in 1999?", on_model, history=history, effort="high")
    assert answer.trace.rewritten == "What did Ilse Marrand inspect in 1999?"
    judged = [
        str(request["body"]) for request in model_server.requests() if request["step"] == "filter"
    ]
    assert judged
    assert all("Ilse Marrand inspect in 1999" in body and "did she" not in body for body in judged)
