"""Rewriting and filtering: what a model asks and how it labels is taken whole; without one every
passage goes on.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from prompts.answer import Direct, NumberedText
from prompts.engine.effort import LIMITS, Effort
from prompts.engine.errors import AnswerMalformed
from prompts.engine.models import Models
from prompts.filter import Filter, FilterRequest
from prompts.offline.keywords import keywords_offline
from prompts.rewrite import MAX_KEYS, MAX_QUERIES, Keywords, Rewrite
from storage.answer_records import Passage
from tasks.answer import answer_directly
from tasks.filter import filter_passages
from tasks.rewrite import find_keys, rewrite
from tests.query.steps import scripted, sent, spared

HISTORY = (
    "Who designed the Kestrel Bridge?",
    "The Kestrel Bridge was designed by Ilse Marrand in 1998.",
)
LONG = (
    "In our archive "
    + "there is a very long story about a bridge and its many people " * 5
    + "who designed it?"
)


@pytest.mark.parametrize(
    ("question", "history", "written"),
    [
        ("Where was she born?", HISTORY, "Where was the engineer Ilse Marrand born?"),
        (
            "when did the IRA pass?",
            ("US climate laws",),
            "When was the Inflation Reduction Act of 2022 passed?",
        ),
        (
            "Who shot JFK?",
            ("Tell me about 1963.",),
            "Who shot President John F. Kennedy in Dallas?",
        ),
        ("Where was she born in 1961?", HISTORY, "Where was Ilse Marrand born?"),
        (
            "Where did she meet Otto?",
            HISTORY,
            "Where did Ilse Marrand meet her later husband, Otto Brandt?",
        ),
        ("Where was she born?", HISTORY, "伊尔丝·马兰德在哪里出生？"),
        ("Where was she born?", HISTORY, "Where was she born?"),
        ("它有多长？", ("介绍一下月河大桥。",), "月河大桥（全称月河高速公路大桥）的总长是多少米？"),
        ("WHO 是什么？", ("卫生组织",), "世界卫生组织（World Health Organization）是什么？"),
    ],
)
async def test_what_a_model_asks_is_taken_whole(
    question: str, history: Sequence[str], written: str
) -> None:
    made = scripted(
        Rewrite,
        {"reasoning": "so it is meant", "question": written, "queries": ["三", "a b", written]},
    )
    found = await rewrite(question, history, made)
    assert (found.question, found.queries) == (written, [written, "三", "a b"])


@pytest.mark.parametrize(
    ("question", "history"),
    [
        ('Who wrote the song  "Orla", and when?', ()),
        ("What does this print?\n\n    for n in range(3):\n        print(n)", ()),
        ("这首诗是谁写的？\n  山高月小\n  水落石出", ()),
        ('Who wrote the song  "Orla", and when?', HISTORY),
    ],
)
async def test_without_a_model_lines_and_spaces_stay(question: str, history: Sequence[str]) -> None:
    found = await rewrite(f" {question}\n", history, Rewrite(Models.offline()))
    assert found.question == question
    assert found.queries[0] == " ".join(question.split())


async def test_ambiguities_of_a_model_stand_and_the_rules_add_none() -> None:
    told = [
        {"text": "she", "readings": ["Ilse Marrand", "her sister"]},
        {"text": "the second building", "readings": ["the town hall"]},
    ]
    answer = {"question": "Where did Ilse Marrand live last year?", "ambiguities": told}
    found = await rewrite("Where did she live last year?", HISTORY, scripted(Rewrite, answer))
    assert [(one.text, one.readings) for one in found.ambiguities] == [
        (one["text"], one["readings"]) for one in told
    ]


async def test_queries_are_few_and_distinct() -> None:
    answer = {"question": "Q?", "queries": ["one", " ", "two", "two", "three", "four", "five"]}
    found = await scripted(Rewrite, answer).run("And she?", HISTORY)
    assert found.queries == ["one", "two", "three", "four"][:MAX_QUERIES]


async def test_a_rewriting_without_a_question_is_asked_for_again() -> None:
    with pytest.raises(AnswerMalformed, match=r"rewriting\.question"):
        await scripted(Rewrite, *[{"question": " ", "queries": []}] * 2).run("And she?", HISTORY)


@pytest.mark.parametrize(
    ("question", "history", "asked"),
    [
        ("Who designed the Orla Bridge?", (), {"high"}),
        ("Who designed it?", (), {"high"}),
        (LONG, (), {"medium", "high"}),
        ("Which rivers flow through the Kestrel Valley?", HISTORY, {"low", "medium", "high"}),
        ("那她呢？", HISTORY, {"low", "medium", "high"}),
    ],
)
@pytest.mark.parametrize("effort", ["low", "medium", "high"])
async def test_a_model_is_asked_by_effort(
    question: str, history: Sequence[str], asked: set[str], effort: Effort
) -> None:
    made = scripted(Rewrite, {"question": "Q?", "queries": []}, effort=effort)
    found = await made.run(question, history)
    assert len(sent(made)) == (effort in asked)
    assert ("rewrite" in spared(made)) is (effort not in asked)
    assert found.question == ("Q?" if effort in asked else question)


async def test_a_long_history_is_shown_from_its_end() -> None:
    made = scripted(Rewrite, {"question": "Q?", "queries": []})
    await made.run("Where was she born?", [*["A long answer. " * 200] * 400, *HISTORY])
    (asked,) = sent(made)
    assert "designed by Ilse Marrand in 1998" in asked
    assert len(asked) < 5 * LIMITS["medium"].rate


KEYED = "Who taught the designer of the Orla Bridge?"


@pytest.mark.parametrize(
    ("question", "high", "low"),
    [
        (
            KEYED,
            ["teacher and pupil", "training of engineers"],
            ["Orla Bridge", "Orla Railway Bridge"],
        ),
        (KEYED, [], ["the bridge at Orla, opened in 1931"]),
        ("人工智能如何影响现代教育？", ["技术对教学的影响"], ["AI", "人工智能"]),
        ("Is it bad for the lungs?", ["effects on breathing", "影响"], []),
    ],
)
async def test_keys_in_other_words_are_taken_whole(
    question: str, high: list[str], low: list[str]
) -> None:
    found = await find_keys(question, scripted(Keywords, {"high": high, "low": low}))
    assert (found.high, found.low) == (high, low)


async def test_keys_are_distinct_and_bounded() -> None:
    low = ["A", "A", "x" * 200, *"BCDEFGHIJ"]
    found = await find_keys(
        KEYED, scripted(Keywords, {"high": [" design \n of bridges "], "low": low})
    )
    assert (found.low, found.high) == ([*"ABCDEFGHIJ"][:MAX_KEYS], ["design of bridges"])


@pytest.mark.parametrize(("effort", "asked"), [("low", 0), ("medium", 1), ("high", 1)])
async def test_keys_are_asked_for_by_effort(effort: Effort, asked: int) -> None:
    made = scripted(Keywords, {"high": ["teacher"], "low": []}, effort=effort)
    found = await find_keys(KEYED, made)
    assert (len(sent(made)), "keywords" in spared(made)) == (asked, not asked)
    assert (found.low, found.high) == (([], ["teacher"]) if asked else keywords_offline(KEYED))


@pytest.mark.parametrize(
    ("question", "low", "high"),
    [
        (KEYED, ["Orla Bridge"], ["taught", "designer"]),
        ('What did "the long walk" cost in 1987?', ["the long walk", "1987"], ["cost"]),
        ("How do tides change small harbours?", [], ["tides", "change", "small", "harbours"]),
        ("《长路》的作者是谁？", ["长路"], ["作者"]),
        ("人工智能如何影响现代教育？", ["人工智能"], ["影响", "教育"]),
    ],
)
def test_by_rules_names_are_low_and_the_other_words_high(
    question: str, low: list[str], high: list[str]
) -> None:
    assert keywords_offline(question) == (low, high)


QUESTION = "What harm does salt do to wells?"


@pytest.mark.parametrize(
    ("written", "text", "values", "fallback"),
    [
        (
            {"reasoning": "6+4", "answer": "Ten:\n\n- six\n- four", "values": ["10", "10"]},
            "Ten:\n\n- six\n- four",
            ("10",),
            "ungrounded",
        ),
        ({"answer": "大约十个。"}, "大约十个。", (), "ungrounded"),
        ({"answer": " "}, "The model does not know.", (), "abstained"),
    ],
)
async def test_an_answer_from_memory_stands_word_for_word(
    written: dict[str, object], text: str, values: tuple[str, ...], fallback: str
) -> None:
    found = await answer_directly(QUESTION, scripted(Direct, written))
    assert (found.text, found.values, found.fallback) == (text, values, fallback)


TUNNEL = "How long is the Tarn tunnel?"
TEXTS = {
    "tarn": "The bore measures 3.1 km.",
    "lake": "Hikers need three hours.",
    "old": "The Tarn tunnel, 2.4 km.",
}
PASSAGES = [
    Passage(document=name, title=name, chunk=f"c_{name}", score=1, text=text)
    for name, text in TEXTS.items()
]


def request(all_read: bool = False) -> FilterRequest:
    passages = [NumberedText(n, one.title, one.text) for n, one in enumerate(PASSAGES, 1)]
    return FilterRequest(TUNNEL, passages, all_read=all_read)


def judged(*labels: str) -> dict[str, object]:
    rows = [
        {
            "passage": n,
            "explanation": f"because {n}",
            "label": label,
            "against": 1 if label == "contradiction" else None,
        }
        for n, label in enumerate(labels, 1)
    ]
    return {"judgements": rows}


@pytest.mark.parametrize(
    ("labels", "kept", "tier"),
    [
        (("entailment", "neutral", "neutral"), ["c_tarn"], "entailed"),
        (("neutral", "entailment", "entailment"), ["c_lake", "c_old"], "entailed"),
        (("neutral", "neutral", "contradiction"), ["c_tarn", "c_lake", "c_old"], "neutral"),
        (("entailment", "neutral", "contradiction"), ["c_tarn", "c_old"], "entailed"),
        (("contradiction", "neutral", "neutral"), ["c_lake", "c_old"], "neutral"),
        (("contradiction", "contradiction", "contradiction"), [], "none"),
    ],
)
async def test_a_model_s_labels_decide(labels: tuple[str, ...], kept: list[str], tier: str) -> None:
    found = await filter_passages(request(), PASSAGES, scripted(Filter, judged(*labels)))
    assert (list(found.chunks), found.counts.tier) == (kept, tier)


async def test_a_contradiction_names_both_sides() -> None:
    found = await filter_passages(
        request(), PASSAGES, scripted(Filter, judged("entailment", "neutral", "contradiction"))
    )
    (one,) = found.counts.conflicts
    assert (one.document, one.against_document, one.explanation) == ("old", "tarn", "because 3")


async def test_a_passage_that_is_left_out_is_neutral_and_a_number_of_nothing_is_none() -> None:
    rows = judged("entailment")
    rows["judgements"] = [
        *rows["judgements"],
        {"passage": 9, "explanation": "?", "label": "entailment", "against": None},
    ]  # type: ignore[misc]
    found = await filter_passages(request(), PASSAGES, scripted(Filter, rows))
    assert (found.counts.entailment, found.counts.neutral) == (1, 2)


async def test_whole_passages_go_in_as_many_calls_as_they_need() -> None:
    step = scripted(Filter, judged("entailment"), judged("entailment"), judged("entailment"))
    step.models = replace(step.models, policy=type(step.policy).of("medium", given={"filter": 12}))
    await filter_passages(request(), PASSAGES, step)
    asked = sent(step)
    assert len(asked) == 3
    assert all(any(text in content for content in asked) for text in TEXTS.values())


async def test_where_the_answer_reads_everything_the_call_is_spared_but_not_at_high_effort() -> (
    None
):
    medium = scripted(Filter)
    found = await filter_passages(request(all_read=True), PASSAGES, medium)
    assert list(found.chunks) == ["c_tarn", "c_lake", "c_old"]
    assert "filter" in spared(medium)
    high = scripted(Filter, judged("neutral", "entailment", "neutral"), effort="high")
    assert list((await filter_passages(request(all_read=True), PASSAGES, high)).chunks) == [
        "c_lake"
    ]


async def test_without_a_model_no_passage_is_judged_and_all_go_on() -> None:
    found = await filter_passages(request(), PASSAGES, Filter(Models.offline()))
    assert (len(found.chunks), found.counts.tier) == (3, "all")
    assert [one.label for one in found.counts.judged] == ["neutral"] * 3
