"""Does a question fall into the parts that can be asked one by one, and stay whole where it is one?"""

import pytest

from prompts.offline.parts import parts_in

SEVERAL = {
    "Which depot burned most diesel, and how do we switch a depot to electric buses?": [
        "Which depot burned most diesel?",
        "How do we switch a depot to electric buses?",
    ],
    "Who founded the mill, and if the dam leaks, what should the miller do?": [
        "Who founded the mill?",
        "If the dam leaks, what should the miller do?",
    ],
    "哪条线路最忙？另外，乘客晕倒时司机应该做什么？": [
        "哪条线路最忙？",
        "乘客晕倒时司机应该做什么？",
    ],
}
ONE = (
    "",
    "Who designed the Orla Bridge?",
    "What is the length and width of the Orla Bridge?",
    "Which had the highest income in 2023: the ferry company, Gullstone Brewery or the Maritime Museum?",
    "Which company is larger, and by how much?",
    "主库没有响应时，值班工程师应该先做什么、再做什么？",
)


@pytest.mark.parametrize("question", [*SEVERAL, *ONE])
def test_parts_are_told_apart_in_order_and_one_question_stays_whole(question: str) -> None:
    assert parts_in(question) == SEVERAL.get(question, [question])
