"""A follow-up stands on its own: by rules in English and Chinese, and end to end with what the question leaves open."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.rewriting import is_clean, is_complete, read_conversations
from flows.__main__ import main
from flows.question import AskOptions, retrieve_passages
from flows.session import Session, open_session
from prompts.offline.rewrite import rewrite_offline, stand_alone
from storage.answer_records import Ambiguity
from tests.workspaces import asked, indexed, opened

DESIGNED = ("Who designed the Kestrel Bridge?", "The Kestrel Bridge was designed by Ilse Marrand in 1998.")
FOUNDED = ("Who founded Gullstone Brewery?", "Gullstone Brewery was founded by Otto Brandt and Carl Voss.")
CARRIED = ("How many passengers did Orrelin Sound Ferries carry in 2023?", "12,000")
COMPARED = ("Which is older, Norrick or Velin?", "Velin.")
LONG = ("月河大桥有多长？", "1280米。")
LED = ("海岸水文研究所现在由谁领导？", "许美兰。")


@pytest.mark.parametrize(
    ("history", "question", "expected"),
    [
        (DESIGNED, "How long is it?", "How long is Kestrel Bridge?"),
        (DESIGNED, "Did she also design the Maltings Bridge?", "Did Ilse Marrand also design the Maltings Bridge?"),
        (
            ("Tell me about Mara Lind.",),
            "Who taught her and when did she die?",
            "Who taught Mara Lind and when did Mara Lind die?",
        ),
        (DESIGNED, "When?", "Who designed the Kestrel Bridge, and when?"),
        (DESIGNED, "Who was the builder?", "Who was the builder of Kestrel Bridge?"),
        (DESIGNED, "Thanks. What about Tobias Wren?", "Who designed the Kestrel Bridge, Tobias Wren?"),
        (FOUNDED, "Where were they born?", "Where were Otto Brandt and Carl Voss born?"),
        (CARRIED, "And in March 2021?", "How many passengers did Orrelin Sound Ferries carry in March 2021?"),
        ((*CARRIED, "And in 2022?", "9,000"), "And Sound Lines?", "How many passengers did Sound Lines carry in 2022?"),
        ((*DESIGNED, "And the Maltings Bridge?"), "When was it opened?", "When was Maltings Bridge opened?"),
        ((DESIGNED[0], "And the Ambel Crossing?"), "And the Orla Bridge?", "Who designed the Orla Bridge?"),
        (("Why did the Hale Foundry close in 1921?",), "Who owns the site today?", "Who owns Hale Foundry today?"),
        (COMPARED, "When was the former built?", "When was Norrick built?"),
        (LONG, "谁设计了它？", "谁设计了月河大桥？"),
        (LONG, "还有云岭大桥呢？", "云岭大桥有多长？"),
        (LED, "该研究所成立于哪一年？", "海岸水文研究所成立于哪一年？"),
        (LED, "上一任呢？", "海岸水文研究所的上一任是什么？"),
        (("西山机场和东港哪个更大？", "东港更大。"), "后者在哪里？", "东港在哪里？"),
        (("刘海生在哪里出生？", "宁远市。"), "这座城市有多少居民？", "宁远市有多少居民？"),
        (("红日歌舞团由张明和李华创立。",), "他们是在哪里认识的？", "张明和李华是在哪里认识的？"),
    ],
)
def test_a_follow_up_stands_on_its_own(history: tuple[str, ...], question: str, expected: str) -> None:
    assert stand_alone(question, history).text == expected


@pytest.mark.parametrize(
    "question",
    [
        "Which rivers flow through the Kestrel Valley?",
        "Which bridge is the longest and when was it built?",
        "Is it true that the Maltings Bridge is closed?",
        'Who sang "Let It Be" first?',
        "Which film has the director who is older than the other, Airheads or Return To Cabin?",
        "What is the southern tip of the continent where most of the globe gets its coffee?",
        "There was a country with three kings. Who conquered that country in the ninth century?",
        "What are the steps of the procedure that the shift lead follows?",
        "第一个使用括弧语言的是什么语言？",
        "赵文山和他的老师是怎样认识的？",
    ],
)
def test_what_stands_on_its_own_is_left_as_it_is(question: str) -> None:
    assert stand_alone(question, DESIGNED).text == question
    assert stand_alone(question, ()).missing == []


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Who designed it?", "it"),
        ("How large is that town?", "that town"),
        ("Who built the latter?", "the latter"),
        ("它有多长？", "它"),
        ("那2022年呢？", "那2022年呢？"),
        ("Who designed the Orla Bridge?", None),
        ("月河大桥有多长？", None),
        ("How do I reset the pump if it fails?", None),
    ],
)
def test_what_stands_for_nothing_known_is_told_and_nothing_else(question: str, text: str | None) -> None:
    found = rewrite_offline(question)
    assert (found.question, found.ambiguities) == (question, {text: ()} if text else {})


def test_a_pronoun_that_fits_two_takes_the_first_and_tells_both() -> None:
    found = rewrite_offline("Where was he born?", FOUNDED)
    assert found.question == "Where was Otto Brandt born?"
    assert found.ambiguities == {"he": ("Otto Brandt", "Carl Voss")}


@pytest.mark.parametrize(
    ("question", "further"),
    [
        ("Who designed the Orla Bridge?", []),
        ("Which is longer, the Orla Bridge or the Maltings Bridge?", ["Orla Bridge", "Maltings Bridge"]),
        (
            "Who designed the Orla Bridge and when did it open?",
            ["Who designed the Orla Bridge?", "When did Orla Bridge open?"],
        ),
        ("Who designed the Orla Bridge and why?", []),
        ("月河大桥是谁设计的，什么时候建成？", ["月河大桥是谁设计的？", "月河大桥什么时候建成？"]),
    ],
)
def test_each_aspect_has_its_query(question: str, further: list[str]) -> None:
    assert rewrite_offline(question).queries == [question, *further]


def test_the_measured_conversations_stay_resolved() -> None:
    rows = read_conversations()
    found = {row.id: rewrite_offline(row.question, row.history).question for row in rows}
    right = [row for row in rows if is_complete(found[row.id], row.expected) and is_clean(found[row.id], row.expected)]
    assert len(rows) == 40
    assert len(right) >= 37


TEXTS = {
    "Mercury (planet)": "Mercury is the smallest planet. Mercury orbits the Sun in 88 days. Mercury has no moon.",
    "Mercury (element)": "Mercury is a metal. Mercury melts at minus 39 degrees. Mercury was used in thermometers.",
    "Orla Bridge": "The Orla Bridge was designed by Tomas Reyd. The Orla Bridge opened in 1931 and is 412 metres long.",
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


@pytest.mark.parametrize(
    ("question", "taken", "other"),
    [
        ("How many days does Mercury take to orbit the Sun?", "Mercury (planet)", "Mercury (element)"),
        ("At how many degrees does Mercury melt?", "Mercury (element)", "Mercury (planet)"),
    ],
)
async def test_a_name_of_several_things_is_told_with_the_one_that_was_answered(
    question: str, taken: str, other: str, session: Session
) -> None:
    answer = await asked(question, session)
    assert taken in {citation.document for citation in answer.citations}
    (found,) = answer.trace.ambiguity
    assert (found.text, set(found.readings)) == ("Mercury", {taken, other})


@pytest.mark.parametrize(
    "question",
    ["Who designed the Orla Bridge?", "How many days does Mercury (planet) take to orbit the Sun?", "水星有几颗卫星？"],
)
async def test_a_name_of_one_thing_is_not_ambiguous(question: str, session: Session) -> None:
    assert (await asked(question, session)).trace.ambiguity == ()


async def test_what_stands_for_nothing_has_no_reading(session: Session) -> None:
    answer = await asked("Who designed it?", session)
    assert answer.trace.ambiguity == (Ambiguity(text="it"),)
    resolved = await asked("Who designed it?", session, history=("How long is the Orla Bridge?", "412 metres."))
    assert resolved.trace.ambiguity == ()
    assert "Tomas Reyd" in resolved.answer


async def test_a_conversation_of_half_questions_is_answered_to_its_end(session: Session) -> None:
    history = ["How long is the Orla Bridge?", "412 metres.", "Who designed it?", "Tomas Reyd."]
    answer = await asked("And where was he born?", session, history=tuple(history))
    assert answer.trace.rewritten == "Where was Tomas Reyd born?"
    assert "Velin" in answer.answer
    assert answer.question == "And where was he born?"
    found = await retrieve_passages("And where was he born?", AskOptions(history=tuple(history), k=1), session)
    assert [passage.document for passage in found.passages] == ["Tomas Reyd"]


async def test_both_parts_of_a_question_are_searched_for(session: Session) -> None:
    answer = await asked("Who designed the Orla Bridge and where was Tomas Reyd born?", session)
    assert answer.trace.queries[1:] == ("Who designed the Orla Bridge?", "Where was Tomas Reyd born?")
    assert tuple(one.query for one in answer.trace.trigger) == answer.trace.queries


def test_the_command_tells_on_one_line(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "At how many degrees does Mercury melt?", "--workspace", str(workspace)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("ambiguous")]
    assert lines == ['ambiguous: "Mercury" was read as Mercury (element), not as Mercury (planet)']
    assert main(["ask", "Who designed it?", "--workspace", str(workspace), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["trace"]["ambiguity"] == [{"text": "it", "readings": [], "taken": ""}]
