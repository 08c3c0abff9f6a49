"""Is every citation bound to its place, checked against what is said, and told in the form asked for? End to end."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import dspy
import pytest
from dspy.utils import DummyLM

from flows.asking import AskOptions, answer_question
from flows.indexing import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import load_settings
from prompts.answer import AnswerStep
from prompts.engine.models import Models
from prompts.language.asked import Ask
from prompts.language.question import ask
from prompts.reading.claims import Claim, Reading
from prompts.reading.excerpt import LONGEST
from prompts.reading.relevance import Relevance
from storage.records import Chunk, Document
from tasks.answer import Reach, answer, bind
from tasks.evidence import Pool, pool_of
from tasks.structurize.step import Structured

ASIDE = "which the province had wanted for many years and for which the whole town had saved and sung, "
TEXTS = {
    "Orla Bridge": f"The Orla Bridge, {ASIDE * 2}was designed by Tomas Reyd. It is 412 metres long.",
    "Tomas Reyd": "Tomas Reyd (born 4 May 1890) was an engineer from Velin.",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("cited")
    source = Path(folder, "rows.jsonl")
    rows = [json.dumps({"id": title, "title": title, "text": text}) for title, text in TEXTS.items()]
    source.write_text("\n".join(rows), encoding="utf-8")
    runtime = open_runtime(load_settings({"workspace": str(folder / "workspace"), "embedding": "none"}))
    asyncio.run(build_index([str(source)], IndexOptions(), runtime))
    with open_session(runtime) as opened:
        yield opened


async def test_a_long_sentence_is_quoted_where_it_says_so(session: Session) -> None:
    answer = await answer_question("Who designed the Orla Bridge?", AskOptions(), session)
    first = answer.citations[0]
    assert answer.values == ("Tomas Reyd",)
    assert "Tomas Reyd" in first.quote
    assert len(first.quote) <= LONGEST
    assert TEXTS[first.document][first.start : first.end] == first.quote
    assert first.verified


async def test_the_form_asked_for_is_given_and_changes_nothing_else(session: Session) -> None:
    plain = await answer_question("How long is the Orla Bridge?", AskOptions(), session)
    asked = "How long is the Orla Bridge? Answer as JSON."
    as_json = await answer_question(asked, AskOptions(), session)
    read = json.loads(as_json.answer)
    assert (read["values"], read["citations"]) == (list(plain.values), [one.marker for one in plain.citations])
    assert (as_json.values, as_json.citations) == (plain.values, plain.citations)
    number = await answer_question("How long is the Orla Bridge? Only the number.", AskOptions(), session)
    assert (number.answer, number.values) == ("412", plain.values)


async def test_an_abstention_is_said_in_words_whatever_the_form(session: Session) -> None:
    answer = await answer_question("Who painted the Gull Tower? Answer as JSON.", AskOptions(), session)
    assert (answer.fallback, answer.answer) == ("abstained", "The documents do not say.")


def pool_and_documents() -> tuple[Pool, dict[str, Document]]:
    """The evidence of the two pages, and the pages."""
    chunks = [
        Chunk(id=f"chk_{title}", document=title, title=title, ordinal=0, start=0, end=len(text), text=text,
              language="en", tokens=9)
        for title, text in TEXTS.items()
    ]  # fmt: skip
    documents = {
        title: Document(id=title, title=title, text=text, language="en", parts=()) for title, text in TEXTS.items()
    }
    return pool_of(chunks), documents


@pytest.mark.parametrize(
    ("said", "cited", "verified"),
    [
        ("Tomas Reyd was an engineer from Velin.", "Tomas Reyd", True),
        ("Tomas Reyd was born on 4 May 1980.", "Tomas Reyd", False),  # a changed figure
        ("The Orla Bridge is 412 metres long.", "Tomas Reyd", False),  # the wrong passage
    ],
)
def test_a_citation_is_verified_when_it_stands_there_and_supports(said: str, cited: str, verified: bool) -> None:
    pool, documents = pool_and_documents()
    number = next(piece.number for piece in pool.evidence if piece.document == cited)
    reading = Reading(claims=(Claim(said, (number,)),))
    _, (citation,) = bind(reading, pool, (), lambda names: documents, ask("Who was Tomas Reyd?"))
    assert citation.verified is verified
    assert documents[cited].text[citation.start : citation.end] == citation.quote


WRITTEN = [
    # (what the model writes of the bridge's length, its values) → (what is said, values, fallback)
    ("It is 412 metres long [1].", ["412 metres"], "It is 412 metres long", ("412 metres",), "none"),
    ("The Orla Bridge is 412 metres long [2].", ["412"], "The Orla Bridge is 412 metres long", ("412",), "none"),
    ("It is 421 metres long [1]. It was designed by Tomas Reyd [0].", ["421 metres"], "It was designed by Tomas Reyd",
     (), "partial"),
    ("It is 412 metres long [9]. It was designed by Tomas Reyd [0].", ["412 metres"],
     "It is 412 metres long", ("412 metres",), "partial"),
    ("It is 412 metres long.", ["412 metres"], "The documents do not say.", (), "abstained"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "values", "said", "kept", "fallback"), WRITTEN,
    ids=["as it is", "the wrong passage", "a changed figure", "a number not offered", "nothing cited"],
)  # fmt: skip
async def test_what_a_model_cites_is_checked_before_it_is_told(
    written: str, values: list[str], said: str, kept: tuple[str, ...], fallback: str
) -> None:
    pool, documents = pool_and_documents()
    asked = ask("How long is the Orla Bridge, and who designed it?")
    step = AnswerStep(Models.offline())
    reply = {"written": {"answer": written, "values": values, "answerable": True}}
    step.lm = DummyLM([reply], adapter=dspy.JSONAdapter())

    async def no_more(part: Ask, pool: Pool) -> tuple[Pool, Relevance]:
        raise AssertionError(f"a question without links needs no further evidence: {part.text}")

    structured = Structured("chunk", (), (), pool)
    told = await answer([asked.text], structured, Relevance(asked, {}), step, Reach(no_more, lambda names: documents))
    assert said in told.text.splitlines()[0]
    assert (told.reading.values, told.reading.support) == (kept, fallback)
    assert all(citation.verified for citation in told.citations)
    assert all(number not in told.text for number in ("421", "[9]"))
    if fallback == "none":
        assert "412 metres" in told.citations[0].quote
