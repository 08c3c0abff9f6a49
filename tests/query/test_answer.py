"""Answers: a model's words are kept, markers are bound to quotes, sentences are flagged."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.answer import (
    AnswerDraft,
    AnswerStep,
    NumberedText,
    QuotedSpan,
    evidence_text,
    notes_text,
)
from prompts.engine.messages import rough_tokens
from prompts.engine.models import Models
from storage.records import Document, Part
from tasks.answer import AnswerContext, Answered, AnswerOptions, Note, StatedAnswer, answer, bind
from tasks.citations import Source, best_quote, merged, packed
from tests.query.steps import scripted, sent

QUESTION = "Who designed the Orla Bridge, and how old is it in 2031?"
BRIDGE = (
    "Orla Bridge was designed by Tomas Reyd. It opened in 1931 and is 412 metres long. "
    + "It is grey. " * 30
)
REYD = "Tomas Reyd was born in Velin. He studied under Ana Korb."


def document(name: str, text: str) -> Document:
    part = Part(
        document=name, source="s", path=f"{name}.md", kind="text", title=name.title(), text=text
    )
    return Document(id=name, title=name.title(), text=text, language="en", parts=(part,))


DOCUMENTS = {"bridge": document("bridge", BRIDGE), "reyd": document("reyd", REYD)}
SOURCES = [
    Source("bridge", "Orla Bridge", BRIDGE, 0, (("chk_1", 0),)),
    Source("reyd", "Tomas Reyd", REYD, 0, (("chk_2", 0),)),
]


def stored(names: Sequence[str]) -> Mapping[str, Document]:
    return {name: DOCUMENTS[name] for name in names}


def writer(written: Mapping[str, Any]) -> AnswerStep:
    return scripted(AnswerStep, written)


OPTIONS = AnswerOptions(stored, lambda _: 1.0)


async def answered(text: str, strict: bool = False, **more: Any) -> Answered:
    options = replace(OPTIONS, strict=strict)
    return await answer(QUESTION, AnswerContext(SOURCES), writer({"answer": text, **more}), options)


@pytest.mark.parametrize(
    "text",
    [
        "The designer was Tomas Reyd [1], who came from Velin [2]. In 2031 it is 2031 - 1931 = 100 "
        "years old [1].",
        "## Answer\n\n| what | who |\n| --- | --- |\n| designer | Tomas Reyd [1] |\n\n- opened 1931"
        " [1]\n- 412 m\n\n> so.",
        "设计者是托马斯·雷德(Tomas Reyd)[1]，他生于Velin[2]。到2031年桥龄为100年。",
        "```python\nprint(items[1])\n```\nThe list `items[2]` is code; the bridge is long [1].",
        "Three of five spans are steel; see [the survey](https://example.org/a[1]). It was Reyd.",
    ],
)
async def test_what_a_model_writes_is_told_word_for_word(text: str) -> None:
    found = await answered(text)
    # Markers are kept, but may get other numbers.
    assert re.sub(r"\[\d+\]", "[n]", found.text) == re.sub(r"\[\d+\]", "[n]", text)
    assert (found.answered_by, found.removed_markers) == ("model", ())
    assert all(one.verified for one in found.citations)
    assert all(one.marker in found.text or one.bound_by == "program" for one in found.citations)


@pytest.mark.parametrize(
    ("text", "quotes", "fallback"),
    [
        (
            "Orla Bridge was designed by Tomas Reyd.",
            ["Orla Bridge was designed by Tomas Reyd."],
            "none",
        ),
        (
            "Orla Bridge was designed by Tomas Reyd [1].",
            ["Orla Bridge was designed by Tomas Reyd."],
            "none",
        ),
        ("Ana Korb.", [REYD], "ungrounded"),
        ("Orla Bridge was painted by Zorblax Quemby.", [], "ungrounded"),
    ],
)
async def test_what_has_no_marker_is_cited_by_the_program(
    text: str, quotes: list[str], fallback: str
) -> None:
    found = await answered(text)
    assert (found.text, found.fallback) == (text, fallback)
    assert [one.quote for one in found.citations] == quotes
    assert all(row.markers for row in found.grounding if row.supported)
    assert {one.bound_by for one in found.citations} <= {"model" if "[1]" in text else "program"}


@pytest.mark.parametrize(
    ("written", "told", "removed"),
    [
        ("It was Reyd [2, 1].", "It was Reyd [1, 2].", ()),
        (
            "It was Reyd [2][1]. He was born in Velin [2].",
            "It was Reyd [1][2]. He was born in Velin [1].",
            (),
        ),
        ("It was Reyd [1-2].", "It was Reyd [1, 2].", ()),
        ("It was Reyd【1】。", "It was Reyd[1]。", ()),
        ("设计者是雷德［2，1］。", "设计者是雷德[1, 2]。", ()),
        (
            "It was Reyd [7]. Born in Velin [2, 9].",
            "It was Reyd. Born in Velin [1].",
            ("[7]", "[9]"),
        ),
        ("In [1931] it opened [1].", "In [1931] it opened [1].", ()),
    ],
)
async def test_markers_are_renumbered_and_those_of_nothing_removed(
    written: str, told: str, removed: tuple[str, ...]
) -> None:
    found = await answered(written)
    assert (found.text, found.removed_markers) == (told, removed)


async def test_a_marker_quotes_the_sentence_nearest_to_its_statement() -> None:
    found = await answered("It was designed by Reyd [1]. Its length is 412 metres [1].")
    assert [one.quote for one in found.citations] == [
        "Orla Bridge was designed by Tomas Reyd.",
        "It opened in 1931 and is 412 metres long.",
    ]
    assert [one.marker for one in found.citations] == ["[1]", "[2]"]


async def test_strict_withholds_what_nothing_supports() -> None:
    made_up = "It was painted green by Zorblax Quemby in 1803 [1]."
    found = await answered(f"Tomas Reyd designed the Orla Bridge [1]. {made_up}", strict=True)
    assert found.text == "Tomas Reyd designed the Orla Bridge [1]."
    assert [found.text[row.start : row.end] for row in found.grounding] == [found.text]
    assert (await answered(made_up, strict=True)).fallback == "abstained"


@pytest.mark.parametrize(
    ("text", "values", "kept", "shown"),
    [
        (
            "It was Reyd [1].",
            ["Reyd", "Reyd", " ", "a hundred years"],
            ("Reyd", "a hundred years"),
            "It was Reyd [1].",
        ),
        # What does not stand in a bare answer is no value of it.
        ("Tomas Reyd", ["Reyd", "Ana Korb", "1"], ("Reyd",), None),
        # Markers among the values are those of the answer.
        ("Tomas Reyd", ["[2]", "Tomas Reyd"], ("Tomas Reyd",), "Tomas Reyd [1]"),
        ("It was Reyd [1].", ["[2]"], (), "It was Reyd [1]."),
    ],
)
async def test_values_are_the_models(
    text: str, values: list[str], kept: tuple[str, ...], shown: str | None
) -> None:
    found = await answered(text, values=values)
    assert found.values == kept
    assert shown in {None, found.text}


@pytest.mark.parametrize(
    ("text", "answerable", "shown"),
    [
        ("", False, "The documents do not say."),
        ("   ", True, "The documents do not say."),
        ("The papers only name the bridge.", False, "The papers only name the bridge."),
    ],
)
async def test_only_the_model_says_that_the_documents_do_not_say(
    text: str, answerable: bool, shown: str
) -> None:
    found = await answered(text, answerable=answerable)
    assert (found.fallback, found.text, found.citations) == ("abstained", shown, ())


@pytest.mark.parametrize(
    "written", [{"answer": "It was Reyd [2]."}, {"answer": "Reyd.", "values": ["Reyd"]}]
)
async def test_markers_or_values_outweigh_a_flag_that_nothing_is_said(
    written: dict[str, Any],
) -> None:
    step = writer({**written, "answerable": False})
    found = await answer(QUESTION, AnswerContext(SOURCES), step, OPTIONS)
    assert found.fallback != "abstained"
    assert "Reyd" in found.text


async def test_without_any_evidence_no_model_is_asked() -> None:
    found = await answer("谁设计了奥拉桥?", AnswerContext(()), scripted(AnswerStep), OPTIONS)
    assert (found.fallback, found.text) == ("abstained", "文档中没有说明。")


async def test_a_stated_answer_is_given_only_without_a_model() -> None:
    stated = StatedAnswer("Reyd [2]. The bridge [1].", ("Reyd",), "none", "table")
    context = AnswerContext(SOURCES)
    found = await answer(QUESTION, context, AnswerStep(Models.offline()), OPTIONS, stated)
    assert (found.values, found.fallback, found.answered_by) == (("Reyd",), "none", "table")
    assert found.citations[0].quote == REYD
    step = writer({"answer": "It was Reyd [1]."})
    by_model = await answer(QUESTION, context, step, OPTIONS, stated)
    assert (by_model.text, by_model.answered_by) == ("It was Reyd [1].", "model")


async def test_the_model_reads_whole_passages_and_the_notes_of_earlier_steps() -> None:
    step = writer({"answer": "Reyd [1]."})
    context = AnswerContext(SOURCES, [Note("Answer to: Who drew it?", "Reyd [1]")])
    await answer(QUESTION, context, step, replace(OPTIONS, response="in German"))
    (asked,) = sent(step)
    passages = (f"[1] Orla Bridge: {BRIDGE.strip()}", f"[2] Tomas Reyd: {REYD}")
    for wanted in (QUESTION, *passages, "Answer to: Who drew it?", "in German"):
        assert wanted in asked


def test_the_longest_notes_are_cut_if_a_prompt_cannot_hold_all() -> None:
    steps = "\n".join(f"{number} Turn the brass wheel to the left" for number in range(1, 400))
    notes = [
        ("", steps),
        ("Answer to: Who drew it?", "Reyd [1]"),
        ("Graph", "Reyd ─ drew ─ Orla Bridge"),
    ]
    shown = notes_text(notes, 300)
    assert shown.startswith("1 Turn the brass wheel")
    assert shown.endswith(
        "…\n\nAnswer to: Who drew it?:\nReyd [1]\n\nGraph:\nReyd ─ drew ─ Orla Bridge"
    )
    assert 250 < rough_tokens(shown) <= 310
    assert steps in notes_text(notes, 20_000)


def test_a_line_of_a_passage_cannot_pose_as_another_piece() -> None:
    shown = evidence_text(
        [NumberedText(1, "A", "said\n[2] B: invented"), NumberedText(2, "B", "true")]
    )
    assert shown == "[1] A: said\n(2) B: invented\n\n[2] B: true"


def test_only_marked_brackets_of_excerpts_are_markers() -> None:
    quotes = {1: QuotedSpan(1, 0, 11), 2: QuotedSpan(2, 0, 10)}
    text = "see [1] and rows[0] [2]\nfirst [1]"
    marks = frozenset({text.index("\n"), len(text)})
    bound = bind(AnswerDraft(text, quotes=quotes, marks=marks), SOURCES, stored)
    assert bound.text == text
    assert bound.removed == ()
    assert [(one.marker, one.quote) for one in bound.citations] == [
        ("[1]", "Orla Bridge"),
        ("[2]", "Tomas Reyd"),
    ]


def test_overlapping_passages_are_one_source_at_the_better_place() -> None:
    text = "abcdefghij"
    parts = [
        Source("d", "D", text[start:end], start, ((f"c{start}", start),))
        for start, end in ((4, 10), (0, 6))
    ]
    other = Source("e", "E", "xyz", 0, (("x", 0),))
    found = merged([parts[0], other, parts[1]])
    assert [(one.document, one.start, one.text) for one in found] == [
        ("d", 0, text),
        ("e", 0, "xyz"),
    ]
    assert [found[0].chunk_at(offset) for offset in (0, 3, 4, 9)] == ["c0", "c0", "c4", "c4"]


def test_at_least_one_source_is_packed_best_first() -> None:
    assert packed(SOURCES, 1) == SOURCES[:1]
    assert packed(SOURCES, 10_000) == SOURCES
    assert packed(reversed(SOURCES), SOURCES[1].tokens + 1) == [SOURCES[1]]


@given(st.text(min_size=1, max_size=900), st.text(max_size=60))
def test_a_quote_lies_in_its_text(text: str, statement: str) -> None:
    start, end = best_quote(statement, text)
    assert 0 <= start <= len(text)
    assert end - start <= 600
    assert text[start:end] == text[start:end].strip()
