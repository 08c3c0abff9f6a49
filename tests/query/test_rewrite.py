"""Rewriting, keys and the filter: what a model writes is taken; without one all goes on."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from prompts.answer import Direct
from prompts.engine.effort import LIMITS, Effort
from prompts.engine.errors import AnswerMalformed
from prompts.engine.models import Models
from prompts.filter import Filter
from prompts.offline.keywords import keywords_offline
from prompts.rewrite import MAX_KEYS, MAX_QUERIES, Keywords, Rewrite
from storage.answer_records import Passage
from tasks.answer import answer_directly
from tasks.filter import FilterResult, filter_passages, filter_request
from tasks.rewrite import find_keys, rewrite
from tests.query.steps import scripted, sent, spared

EFFORTS: tuple[Effort, ...] = ("low", "medium", "high")
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
        ("Where was she born?", HISTORY, "伊尔丝·马兰德在哪里出生？"),
        ("它有多长？", ("介绍一下月河大桥。",), "月河大桥（全称月河高速公路大桥）的总长是多少米？"),
    ],
)
async def test_what_a_model_asks_is_taken_whole(
    question: str, history: Sequence[str], written: str
) -> None:
    answer = {"question": written, "queries": ["三", "a b", written]}
    found = await rewrite(question, history, scripted(Rewrite, answer))
    assert (found.question, found.queries) == (written, [written, "三", "a b"])


@pytest.mark.parametrize(
    ("question", "history"),
    [
        ("What does this print?\n\n    for n in range(3):\n        print(n)", ()),
        ("这首诗是谁写的？\n  山高月小\n  水落石出", ()),
        ('Who wrote the song  "Orla", and when?', HISTORY),
    ],
)
async def test_without_a_model_lines_and_blanks_are_kept(
    question: str, history: Sequence[str]
) -> None:
    found = await rewrite(f" {question}\n", history, Rewrite(Models.offline()))
    assert found.question == question
    assert found.queries[0] == " ".join(question.split())


async def test_the_ambiguities_of_a_model_are_kept() -> None:
    told = [
        {"text": "she", "readings": ["Ilse Marrand", "her sister"]},
        {"text": "the second building", "readings": ["the town hall"]},
    ]
    answer = {"question": "Where did Ilse Marrand live last year?", "ambiguities": told}
    found = await rewrite("Where did she live last year?", HISTORY, scripted(Rewrite, answer))
    assert [one.model_dump() for one in found.ambiguities] == told


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
        ("Who designed it?", (), {"high"}),
        (LONG, (), {"medium", "high"}),
        ("Which rivers flow through the Kestrel Valley?", HISTORY, set(EFFORTS)),
    ],
)
@pytest.mark.parametrize("effort", EFFORTS)
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


# --- keys -----------------------------------------------------------------------------------------

KEYED = "Who taught the designer of the Orla Bridge?"


@pytest.mark.parametrize(
    ("question", "high", "low"),
    [
        (KEYED, ["teacher and pupil", "training of engineers"], ["Orla Railway Bridge"]),
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
    answer = {"high": [" design \n of bridges "], "low": ["A", "A", "x" * 200, *"BCDEFGHIJ"]}
    found = await find_keys(KEYED, scripted(Keywords, answer))
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
        ("人工智能如何影响现代教育？", ["人工智能"], ["影响", "教育"]),
    ],
)
def test_by_rules_names_are_low_and_the_other_words_high(
    question: str, low: list[str], high: list[str]
) -> None:
    assert keywords_offline(question) == (low, high)


@pytest.mark.parametrize(
    ("written", "text", "values", "fallback"),
    [
        (
            {"answer": "Ten:\n\n- six\n- four", "values": ["10", "10"]},
            "Ten:\n\n- six\n- four",
            ("10",),
            "ungrounded",
        ),
        ({"answer": "大约十个。"}, "大约十个。", (), "ungrounded"),
        ({"answer": " "}, "The model does not know.", (), "abstained"),
    ],
)
async def test_an_answer_from_memory_is_kept_word_for_word(
    written: dict[str, object], text: str, values: tuple[str, ...], fallback: str
) -> None:
    found = await answer_directly("What harm does salt do to wells?", scripted(Direct, written))
    assert (found.text, found.values, found.fallback) == (text, values, fallback)


# --- the filter -----------------------------------------------------------------------------------

TEXTS = {
    "tarn": "The bore measures 3.1 km.",
    "lake": "Hikers need three hours.",
    "old": "The Tarn tunnel, 2.4 km.",
}
PASSAGES = [
    Passage(document=name, title=name, chunk=name, score=1, text=text)
    for name, text in TEXTS.items()
]
ALL = tuple(TEXTS)


async def filtered(step: Filter, all_read: bool = False) -> FilterResult:
    request = filter_request("How long is the Tarn tunnel?", PASSAGES, all_read)
    return await filter_passages(request, PASSAGES, step)


def judged(*labels: str, numbers: Sequence[int] = (1, 2, 3)) -> dict[str, object]:
    rows = [
        {
            "passage": number,
            "explanation": f"because {number}",
            "label": label,
            "against": 1 if label == "contradiction" else None,
        }
        for number, label in zip(numbers, labels, strict=False)
    ]
    return {"judgements": rows}


@pytest.mark.parametrize(
    ("labels", "kept", "tier"),
    [
        (("entailment", "neutral", "neutral"), ("tarn",), "entailed"),
        (("neutral", "entailment", "entailment"), ("lake", "old"), "entailed"),
        (("neutral", "neutral", "contradiction"), ALL, "neutral"),
        (("entailment", "neutral", "contradiction"), ("tarn", "old"), "entailed"),
        (("contradiction", "neutral", "neutral"), ("lake", "old"), "neutral"),
        (("contradiction", "contradiction", "contradiction"), (), "none"),
    ],
)
async def test_a_model_s_labels_decide(
    labels: tuple[str, ...], kept: tuple[str, ...], tier: str
) -> None:
    found = await filtered(scripted(Filter, judged(*labels)))
    assert (found.chunks, found.counts.tier) == (kept, tier)


async def test_a_contradiction_names_both_sides() -> None:
    found = await filtered(scripted(Filter, judged("entailment", "neutral", "contradiction")))
    (one,) = found.counts.conflicts
    assert (one.document, one.against_document, one.explanation) == ("old", "tarn", "because 3")


async def test_a_passage_without_a_judgement_is_neutral() -> None:
    unknown = judged("entailment", "entailment", numbers=(1, 9))
    found = await filtered(scripted(Filter, unknown))
    assert (found.counts.entailment, found.counts.neutral) == (1, 2)


async def test_whole_passages_go_in_as_many_calls_as_they_need() -> None:
    step = scripted(Filter, *[judged("entailment")] * 3)
    step.models = replace(step.models, policy=type(step.policy).of("medium", given={"filter": 12}))
    await filtered(step)
    asked = sent(step)
    assert len(asked) == 3
    assert all(any(text in content for content in asked) for text in TEXTS.values())


async def test_if_all_is_read_only_high_effort_asks_the_filter() -> None:
    medium = scripted(Filter)
    assert (await filtered(medium, all_read=True)).chunks == ALL
    assert "filter" in spared(medium)
    high = scripted(Filter, judged("neutral", "entailment", "neutral"), effort="high")
    assert (await filtered(high, all_read=True)).chunks == ("lake",)


async def test_without_a_model_no_passage_is_judged_and_all_go_on() -> None:
    found = await filtered(Filter(Models.offline()))
    assert (found.chunks, found.counts.tier) == (ALL, "all")
    assert [one.label for one in found.counts.judged] == ["neutral"] * 3
