"""Is a question understood: its form, what it expects, and is it nested?"""

import pytest

from prompts.text.question import is_nested, parse_question

FORMS = [
    ("Who designed the Orla Bridge?", "fact", "person"),
    ("Why was the Orla Bridge closed?", "fact", "text"),
    ("How much did the Orla Bridge cost?", "fact", "money"),
    ("In what year was the Orla Bridge opened?", "fact", "date"),
    ("Which bridges did Tomas Reyd design?", "list", "name"),
    ("Did Tomas Reyd design the Orla Bridge?", "yesno", "yesno"),
    ("Which bridge is the longest?", "compare", "name"),
    ("Between Ana Korb and Tomas Reyd, who was born first?", "compare", "name"),
    ("Was Ana Korb or Tomas Reyd born first?", "compare", "name"),
    ("How are Ana Korb and Tomas Reyd connected?", "connect", "text"),
    ("What do Ana Korb and Tomas Reyd have in common?", "connect", "text"),
    ("How do I grease the bearings?", "howto", "text"),
    ("Summarise the annual report.", "summary", "text"),
    ("What are the main themes of the documents?", "global", "text"),
    ("Tell me about Ana Korb.", "about", "text"),
    ("谁设计了奥拉桥?", "fact", "person"),
    ("奥拉桥是何时通车的?", "fact", "date"),
    ("修建奥拉桥花费是多少?", "fact", "money"),
    ("雷德是否设计了奥拉桥?", "yesno", "yesno"),
    ("奥拉桥和石桥哪座更长?", "compare", "name"),
    ("雷德和科尔布有什么关系?", "connect", "text"),
    ("如何更换轴承?", "howto", "text"),
    ("总结一下年度报告", "summary", "text"),
    ("介绍一下奥拉桥", "about", "text"),
]


@pytest.mark.parametrize(("question", "form", "expects"), FORMS, ids=[row[0] for row in FORMS])
def test_a_question_has_a_form_and_an_expected_kind(question: str, form: str, expects: str) -> None:
    parsed = parse_question(question)
    assert (parsed.form, parsed.expects) == (form, expects)


@pytest.mark.parametrize(
    ("question", "nested"),
    [
        ("Where was the engineer born who designed the Orla Bridge?", True),
        ("Who is the mother of the director of Northern Gale?", True),
        ("Where was Ana Korb's mother born?", True),
        ("Who is the director of Northern Gale?", False),
        ("Who designed the Orla Bridge?", False),
        ("What is the capital of the Orla province?", False),
    ],
)
def test_a_question_about_what_must_be_found_first_is_nested(question: str, nested: bool) -> None:
    assert is_nested(parse_question(question)) is nested
