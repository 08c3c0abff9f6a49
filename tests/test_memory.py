"""Memory answers a question like an earlier one, never another one or after a change."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime
from flows.session import open_session
from storage.answer_records import Answer, TriggerDecision
from storage.memory import MemoryEntry
from tasks.memory import Recall
from tasks.question_similarity import (
    ComparedQuestion,
    keys,
    may_ask_the_same,
    same_words,
    taken_apart,
)
from tasks.traverse.entity_names import NamedEntity
from tests.workspaces import opened, write_rows

TELLERS = ("almanac", "gazette", "ledger")
ORLA, LIKE = "Who designed the Orla Bridge?", "Who was the designer of the Orla Bridge?"
ROWS = (
    *(
        {
            "id": name,
            "title": f"The {name}",
            "text": f"Orla Bridge was designed by Tomas Reyd, says the {name}.",
        }
        for name in TELLERS
    ),
    {
        "id": "stone",
        "title": "Stone Bridge",
        "text": "Stone Bridge was designed by Ana Korb.",
    },
    {
        "id": "toll",
        "title": "Toll",
        "text": "The toll of Orla Bridge was 3 crowns in 1990. The toll was 5 crowns in 2000.",
    },
    {"id": "桥", "title": "临川大桥", "text": "临川大桥由工程师周慕白设计,2003年通车。"},
    {"id": "江", "title": "临江大桥", "text": "临江大桥由工程师何绍文设计,1998年通车。"},
)


def write(folder: Path, *more: dict[str, str], without: str = "") -> Path:
    """Write the rows, one of them left out, and some more; the last row of an id counts."""
    rows = {str(row["id"]): row for row in (*ROWS, *more) if row["id"] != without}
    return write_rows(folder / "rows.jsonl", rows.values())


@pytest.fixture
async def runtime(tmp_path: Path) -> Runtime:
    found = opened(tmp_path / "workspace")
    await build_index([write(tmp_path)], IndexOptions(), found)
    return found


async def asked(question: str, runtime: Runtime, options: AskOptions | None = None) -> Answer:
    with open_session(runtime) as session:
        return await answer_question(question, options or AskOptions(), session)


def served(answer: Answer) -> bool:
    return answer.trace.trigger[0].use_memory


async def test_a_like_question_is_answered_from_memory(runtime: Runtime, tmp_path: Path) -> None:
    first = await asked(ORLA, runtime)
    assert not served(first)
    assert [decision.query for decision in first.trace.trigger] == list(first.trace.queries)
    second = await asked(LIKE, runtime)
    assert served(second)
    assert second.trace.trigger[0].pop >= len(TELLERS)
    assert "Tomas Reyd" in second.answer
    assert all(citation.verified for citation in second.citations)
    assert set(TELLERS) <= {passage.document for passage in second.passages}
    for settings, used in (({"theta": 99}, False), ({"memory": "off"}, False)):
        assert served(await asked(LIKE, opened(tmp_path / "workspace", **settings))) is used


async def test_words_are_compared_where_no_embedder_reads(runtime: Runtime) -> None:
    await asked("临川大桥是谁设计的?", runtime)
    again = await asked("设计临川大桥的人是谁?", runtime)
    assert (served(again), "周慕白" in again.answer) == (True, True)


@pytest.mark.parametrize(
    ("first", "other", "said"),
    [
        (ORLA, "Who designed the Stone Bridge?", "Ana Korb"),
        (
            "What was the toll of Orla Bridge in 1990?",
            "What was the toll of Orla Bridge in 2000?",
            "crowns",
        ),
        ("临川大桥是谁设计的?", "临江大桥是谁设计的?", "何绍文"),
    ],
)
async def test_a_question_that_differs_in_one_point_is_searched(
    first: str, other: str, said: str, runtime: Runtime
) -> None:
    assert (await asked(first, runtime)).citations
    answer = await asked(other, runtime)
    assert not served(answer)
    assert said in answer.answer


async def test_changed_or_removed_evidence_is_not_served(runtime: Runtime, tmp_path: Path) -> None:
    await asked(ORLA, runtime)
    changed = {"id": "ledger", "title": "The ledger", "text": "Orla Bridge was built by Ivo Lamm."}
    await build_index([write(tmp_path, changed)], IndexOptions(), runtime)
    assert not served(await asked(ORLA, runtime)), "a part of the evidence is not all of it"
    assert served(await asked(LIKE, runtime)), "what was asked since then"
    await build_index([write(tmp_path, without="almanac")], IndexOptions(), runtime)
    assert not served(await asked(LIKE, runtime))


async def test_only_news_about_the_same_is_searched(runtime: Runtime, tmp_path: Path) -> None:
    await asked(ORLA, runtime)
    elsewhere = {"id": "ferry", "title": "Velin Ferry", "text": "Velin Ferry was run by Ivo Lamm."}
    await build_index([write(tmp_path, elsewhere)], IndexOptions(), runtime)
    assert served(await asked(LIKE, runtime))
    news = {"id": "news", "title": "News", "text": "Orla Bridge was designed by Ivo Lamm too."}
    await build_index([write(tmp_path, elsewhere, news)], IndexOptions(), runtime)
    again = await asked(LIKE, runtime)
    assert not served(again)
    assert "news" in {passage.document for passage in again.passages}


def planted(runtime: Runtime, documents: Sequence[str], title: str = ORLA) -> None:
    """Fill memory with the first passage of each of these documents under a title."""
    with open_session(runtime) as session:
        places = [session.index.documents[name][0] for name in documents]
        chunks = tuple(session.index.chunks[place].id for place in places)
        entry = MemoryEntry(
            source=documents[0],
            title=title,
            content="",
            evidence=chunks,
            documents=tuple(documents),
            generation=1,
            ranked=chunks,
            support="partial",
        )
        runtime.workspace.database.memory.put([entry], keys(session.question_features.asked(title)))


async def test_remembered_passages_are_filtered_too(runtime: Runtime) -> None:
    planted(runtime, ["江", "almanac"])
    answer = await asked(LIKE, runtime)
    assert served(answer)
    assert {citation.document for citation in answer.citations} == {"almanac"}
    counts = answer.trace.filter
    assert (counts.tier, counts.neutral) == ("all", 2)


async def test_the_documents_are_searched_where_memory_fails(runtime: Runtime) -> None:
    planted(runtime, ["江"])
    answer = await asked(LIKE, runtime)
    assert (answer.trace.trigger[0].pop, served(answer)) == (1, False)
    assert "Tomas Reyd" in answer.answer


async def test_a_restricted_question_does_not_use_memory(runtime: Runtime) -> None:
    only = AskOptions(documents=("ledger",))
    await asked(ORLA, runtime, only)
    assert not runtime.workspace.database.memory.entries()
    await asked(ORLA, runtime)
    restricted = await asked(LIKE, runtime, only)
    assert not served(restricted)
    assert {passage.document for passage in restricted.passages} == {"ledger"}


async def test_the_popularity_counts_sources_not_entries(runtime: Runtime, tmp_path: Path) -> None:
    for source in ("almanac", "gazette"):
        for title in (ORLA, LIKE):
            planted(runtime, [source], title)
    for theta, used in ((2, True), (3, False)):
        answer = await asked(ORLA, opened(tmp_path / "workspace", theta=theta))
        assert (answer.trace.trigger[0].pop, served(answer)) == (2, used)


@pytest.mark.parametrize(
    ("known", "used"),
    [
        ((True, False), True),
        ((False, True), True),
        ((False, True, False), False),
        ((False,), False),
    ],
)
def test_each_query_is_decided_by_itself(known: tuple[bool, ...], used: bool) -> None:
    """Memory must know the question, or all of its rewritings."""
    decisions = tuple(
        TriggerDecision(query="q", pop=use, threshold=1, tau=0.9, use_memory=use) for use in known
    )
    assert Recall(decisions=decisions, chunks=("chk_1",)).used is used


NAMES = ("Ada Moss", "Ada Voss", "Kell Dam", "Kell_Dam")


def apart(text: str) -> ComparedQuestion:
    """Take a question apart in which NAMES are known."""
    found = [
        NamedEntity(name, text.index(name), text.index(name) + len(name), (name,))
        for name in NAMES
        if name in text
    ]
    return taken_apart(text, sorted(found, key=lambda name: name.start))


SAME = (
    ("Who built Kell Dam?", "Kell Dam was built by whom?"),
    ("Who designed Kell Dam?", "Who was the designer of Kell Dam?"),
    ("How many visited Kell Dam in 2019?", "In 2019, how many visited Kell Dam?"),
    ("松林桥是谁设计的?", "设计松林桥的人是谁?"),
)
# They differ in names, figures, their order, or what is asked for; cosine does not show it.
OTHER = (
    ("Where was Ada Moss born?", "Where was Ada Voss born?"),
    ("Did Ada Moss teach Ada Voss?", "Did Ada Voss teach Ada Moss?"),
    ("How many visited Kell Dam in 2019?", "How many visited Kell Dam in 2020?"),
    ("Who won the third race at Kell Dam?", "Who won the fourth race at Kell Dam?"),
    ("Where did Ada Moss die?", "When did Ada Moss die?"),
    ("Who is the teacher of Ada Moss's child?", "Who is the child of Ada Moss's teacher?"),
    ("Which ships may enter Kell Dam?", "Which ships may not enter Kell Dam?"),
    ("Who ruled before Ada Moss?", "Who ruled after Ada Moss?"),
    ("2019年松林桥有多少游客?", "2020年松林桥有多少游客?"),
    ("松林桥是谁设计的?", "Who designed the bridge?"),
)


@pytest.mark.parametrize(("one", "two"), [*SAME, *OTHER])
def test_names_figures_and_order_tell_questions_apart(one: str, two: str) -> None:
    for left, right in ((one, two), (two, one)):
        assert may_ask_the_same(apart(left), apart(right)) is ((one, two) in SAME)


def test_unread_questions_are_the_same_by_their_words() -> None:
    asked = apart("松林桥是谁设计的?")
    assert same_words(asked, apart("设计松林桥的人是谁?"))
    for other in ("松杉桥是谁设计的?", "松林桥是谁拆除的?"):
        assert not same_words(asked, apart(other))


def test_questions_that_ask_the_same_share_a_key() -> None:
    assert keys(apart("Who built Kell Dam?")) == keys(apart("Kell Dam was built by whom?"))
    assert set(keys(apart("Ada Moss?"))).isdisjoint(keys(apart("Ada Voss?")))
    assert set(keys(apart("谁设计了松林桥?"))) & set(keys(apart("松林桥的设计者是谁?")))
    assert keys(apart("?!")) == ()
