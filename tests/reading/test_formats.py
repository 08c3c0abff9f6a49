"""Is an answer given in the form that the question wants, and is the question read without the request?"""

import json

import pytest

from prompts.language.asked import Format
from prompts.language.question import ask
from prompts.reading.formats import shaped

REQUESTS: list[tuple[str, str, Format]] = [
    ("How long is the Orla Bridge? Answer as JSON.", "How long is the Orla Bridge?", "json"),
    ("Return the answer in JSON format: how long is the Orla Bridge?", "How long is the Orla Bridge?", "json"),
    ("How long is the Orla Bridge, as JSON?", "How long is the Orla Bridge?", "json"),
    ("How long is the Orla Bridge? Only the number.", "How long is the Orla Bridge?", "number"),
    ("How long is the Orla Bridge? Reply with just the number", "How long is the Orla Bridge?", "number"),
    ("Which bridges did Reyd design? Give them as a bulleted list.", "Which bridges did Reyd design?", "list"),
    ("Who designed the Orla Bridge? Answer in one sentence.", "Who designed the Orla Bridge?", "sentence"),
    ("奥拉桥有多长?请以JSON格式回答。", "奥拉桥有多长?", "json"),
    ("奥拉桥有多长?只回答数字", "奥拉桥有多长?", "number"),
    ("雷德设计了哪些桥?请用列表回答。", "雷德设计了哪些桥?", "list"),
    ("谁设计了奥拉桥?用一句话回答。", "谁设计了奥拉桥?", "sentence"),
    ("Which files are kept as JSON?", "Which files are kept as JSON?", ""),
    ("Which bridges stand as a list in the annex of the report?",
     "Which bridges stand as a list in the annex of the report?", ""),
]  # fmt: skip


@pytest.mark.parametrize(("question", "text", "form"), REQUESTS, ids=[row[0] for row in REQUESTS])
def test_a_request_for_a_form_is_taken_off_the_question(question: str, text: str, form: Format) -> None:
    taken = ask(question)
    assert (taken.text, taken.format) == (text, form)


TEXT, LINES = "412 metres.\nIt is 412 metres long. [1]", ["It is 412 metres long. [1]"]


def test_json_can_be_read_and_has_values_and_citations() -> None:
    values, lines = ['the "long" one', "奥拉桥"], ['He said "no"\tand left. [1]', "So did she. [2]"]
    read = json.loads(shaped("json", "\n".join(lines), values, lines, ["[1]", "[2]"]))
    assert read == {"answer": " ".join(lines), "values": values, "citations": ["[1]", "[2]"]}


def test_a_list_has_one_line_for_each_value() -> None:
    assert shaped("list", TEXT, ["Orla Bridge", "Gull Bridge"], LINES, ["[1]", "[2]"]).splitlines() == [
        "- Orla Bridge [1][2]", "- Gull Bridge [1][2]",
    ]  # fmt: skip
    assert shaped("list", TEXT, [], LINES, ["[1]"]) == "- It is 412 metres long. [1]"


@pytest.mark.parametrize(
    ("value", "number"),
    [("$1,308,463", "1,308,463"), ("412 metres", "412"), ("-3.5 °C", "-3.5"), ("十二座", "十二"), ("七", "七")],
)
def test_the_bare_number_keeps_its_writing(value: str, number: str) -> None:
    assert shaped("number", TEXT, [value], LINES, ["[1]"]) == number


def test_without_a_figure_nothing_is_made_up() -> None:
    assert shaped("number", TEXT, ["long"], LINES, ["[1]"]) == TEXT


def test_one_sentence_is_the_first_and_ends_as_one() -> None:
    assert shaped("sentence", TEXT, ["412 metres"], [*LINES, "Another. [2]"], ["[1]", "[2]"]) == LINES[0]
    assert shaped("sentence", "", [], ["它长412米 [1]"], ["[1]"]) == "它长412米。 [1]"
