"""Are questions answered whose answer takes several look-ups, and is it said how far the documents carry?"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.asking import AskOptions, answer_question
from flows.indexing import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import load_settings

TEXTS = {
    "Northern Gale": "Northern Gale is a 1952 drama film directed by Ana Korb.",
    "Quiet Harbour": "Quiet Harbour is a 1961 comedy film directed by Tomas Reyd.",
    "Lost Lantern": "Lost Lantern is a 1970 film directed by Una Stahl.",
    "Ana Korb": "Ana Korb (born 1 March 1911) was a film director. She was born in Velin.",
    "Tomas Reyd": "Tomas Reyd (born 4 May 1890) was a film director. He was born in Port Sarn.",
    "Ivo Lamm": "Ivo Lamm (born 1930) is a baker.",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("films")
    rows = [{"id": title, "title": title, "text": text} for title, text in TEXTS.items()]
    source = Path(folder, "rows.jsonl")
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    runtime = open_runtime(load_settings({"workspace": str(folder / "workspace"), "embedding": "none"}))
    asyncio.run(build_index([str(source)], IndexOptions(), runtime))
    with open_session(runtime) as opened:
        yield opened


async def test_what_is_compared_is_found_first(session: Session) -> None:
    question = "Which film has the director born later, Northern Gale or Quiet Harbour?"
    answer = await answer_question(question, AskOptions(), session)
    assert answer.values == ("Northern Gale",)
    assert [part.answer for part in answer.trace.subquestions] == [
        "Ana Korb",
        "1 March 1911",
        "Tomas Reyd",
        "4 May 1890",
    ]
    assert {citation.document for citation in answer.citations} == set(TEXTS) - {"Lost Lantern", "Ivo Lamm"}
    assert answer.trace.question_type == "nested"


async def test_a_chain_is_followed_link_by_link(session: Session) -> None:
    answer = await answer_question("Where was the director of Quiet Harbour born?", AskOptions(), session)
    assert answer.values == ("Port Sarn",)
    assert [part.question for part in answer.trace.subquestions] == [
        "Who is the director of Quiet Harbour?",
        "Where was Tomas Reyd born?",
    ]
    assert {citation.document for citation in answer.citations} == {"Quiet Harbour", "Tomas Reyd"}


async def test_a_broken_chain_never_counts_as_supported(session: Session) -> None:
    answer = await answer_question("Where was the director of Lost Lantern born?", AskOptions(), session)
    assert answer.fallback in {"partial", "abstained"}
    assert answer.values == ()


async def test_both_are_looked_up(session: Session) -> None:
    yes = await answer_question("Are Ana Korb and Tomas Reyd both film directors?", AskOptions(), session)
    no = await answer_question("Are Ana Korb and Ivo Lamm both film directors?", AskOptions(), session)
    assert (yes.values, yes.fallback, no.values, no.fallback) == (("yes",), "none", ("no",), "partial")
    assert {citation.document for citation in no.citations} == {"Ana Korb", "Ivo Lamm"}


async def test_which_band_needs_no_comma(session: Session) -> None:
    answer = await answer_question(
        "Which film was released first Northern Gale or Quiet Harbour ?", AskOptions(), session
    )
    assert answer.values == ("Northern Gale",)
    assert answer.trace.structure == "table"
