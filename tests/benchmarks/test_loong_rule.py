"""The rule by which an answer over financial reports is exactly right."""

import pytest

from benchmarks.loong_rule import LEVELS, is_right
from storage.evaluation_records import EvaluationQuestion

NAMES = ("ORREL FOODS INC", "VELL GLASS CORP \\DE\\")


def financial(level: int, gold: str) -> EvaluationQuestion:
    return EvaluationQuestion(
        id="q", question="?", kind=LEVELS[level - 1], answers=(gold,), names=NAMES
    )


@pytest.mark.parametrize(
    ("level", "gold", "values", "said", "right"),
    [
        (1, "$ (0.63)", ["(0.63)"], "", True),
        (1, "$ (0.63)", ["0.63"], "", False),
        (1, "$17,835 in thousands", ["17,835"], "", True),
        (1, "VELL GLASS CORP \\DE\\", ["Vell Glass Corporation"], "", True),
        (2, "ORREL FOODS INC", ["VELL GLASS CORP"], "", False),
        (2, "ORREL FOODS INC", ["ORREL FOODS INC", "VELL GLASS CORP"], "", False),
        (2, "['4,002.00', '82,130.68元']", ["4,002.00", "82,130.68"], "", True),
        (2, "['4,002.00', '82,130.68元']", ["82,130.68", "4,002.00"], "", False),
        (1, "$17,835 in thousands", [], "In 2023 it was $17,835 [1].\nBefore: $9,000", True),
        (1, "$17,835 in thousands", [], "It was $17,835, before $9,000.", False),
        (1, "$17,835 in thousands", [], "From the documents:\n> $17,835 [1]", False),
        (2, "ORREL FOODS INC", [], "Orrel Foods, Inc. has the most [2].", True),
        (2, "ORREL FOODS INC", [], "Not Vell Glass Corp but Orrel Foods.", False),
        (
            3,
            "{'high': ['ORREL FOODS INC'], 'low': []}",
            [],
            '{"high": ["Orrel Foods, Inc."]}\nmore',
            True,
        ),
        (3, "{'high': ['ORREL FOODS INC']}", [], '{"low": ["ORREL FOODS INC"]}', False),
        (
            4,
            "It increased from $5,000 in 2022 to $7,000 in 2023.",
            [],
            "It increased from 5,000 to 7,000.",
            True,
        ),
        (
            4,
            "It increased from $5,000 in 2022 to $7,000 in 2023.",
            [],
            "It decreased from 7,000 to 5,000.",
            False,
        ),
        (
            4,
            "2021年为1336.80亿元，2022年增至1742.05亿元。",
            [],
            "从133,680,278,000.00元增加到174,204,810,000.00元",
            True,
        ),
    ],
)
def test_an_answer_is_right_by_its_figures_names_and_classes(
    level: int, gold: str, values: list[str], said: str, right: bool
) -> None:
    assert is_right(financial(level, gold), tuple(values), said) is right
