"""What a question asks for: things, attributes and periods, without a model."""

import pytest

from storage.structures import Schema
from tasks.structurize.schema import schema_of

Case = tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]

ENGLISH: list[Case] = [
    ("What is the revenue of Nordlicht Ltd in 2023?", ("revenue",), ("Nordlicht Ltd",), ("2023",)),
    ("What was Nordlicht's operating profit?", ("operating profit",), ("Nordlicht",), ()),
    ("Which company has the highest 'Total Assets'?", ("Total Assets",), (), ()),
    ("Which company has the highest long-term debt?", ("long-term debt",), (), ()),
    ("Which company reported a net loss of $1,234?", ("net loss",), (), ()),
    ("Which port has an annual traffic of 3,000 vessels?", ("annual traffic",), (), ()),
    ("How many employees does Nordlicht have?", ("employees",), (), ()),
    (
        "What is the trend of inventories for Nordlicht Ltd from 2021 to 2023 according to its annual reports?",
        ("inventories",),
        ("Nordlicht Ltd",),
        ("2021", "2022", "2023"),
    ),
    ("How did Nordlicht's gross margin change from 2022 to 2023?", ("gross margin",), ("Nordlicht",), ("2022", "2023")),
    ("What are Acme's total assets and total liabilities?", ("total assets", "total liabilities"), ("Acme",), ()),
    ("What are Acme's cash and cash equivalents?", ("cash and cash equivalents",), ("Acme",), ()),
    (
        "Please categorize the companies above by 'Fixed Assets' into: high (over 10), low (below 10).",
        ("Fixed Assets",),
        (),
        (),
    ),
]
CHINESE: list[Case] = [
    ("北湖港务2024年第一季度的营业收入是多少？", ("营业收入",), ("北湖港务",), ("2024-Q1",)),
    ("北湖港务的应付账款是多少？", ("应付账款",), ("北湖港务",), ()),
    ("哪家公司的营业收入最高？", ("营业收入",), (), ()),
    ("请回答 '存货' 最高的公司是哪一个？", ("存货",), (), ()),
    ("从2021年到2023年，北湖港务的固定资产是如何变化的？", ("固定资产",), ("北湖港务",), ("2021", "2022", "2023")),
    ("北湖港务在2021年至2022年一季度的存货数额分别是多少？", ("存货",), ("北湖港务",), ("2021-Q1", "2022-Q1")),
    ("根据北湖港务2023年的年报，所有者权益合计呈现什么趋势？", ("所有者权益合计",), ("北湖港务",), ("2023",)),
    ("请对上述公司按照“其他应收款”进行划分，同类别的划分到一个集合。", ("其他应收款",), (), ()),
]


@pytest.mark.parametrize(("question", "attributes", "things", "periods"), ENGLISH + CHINESE)
def test_a_question_names_what_it_needs(
    question: str, attributes: tuple[str, ...], things: tuple[str, ...], periods: tuple[str, ...]
) -> None:
    assert schema_of(question) == Schema(things=things, attributes=attributes, periods=periods)


def test_the_name_of_a_known_thing_is_no_part_of_an_attribute() -> None:
    """Chinese writes no space between the two; the names of the documents' subjects part them."""
    for attribute in ("偿还债务支付的现金", "以公允价值计量的金融资产"):
        schema = schema_of(f"北湖港务{attribute}是多少？", names=["北湖港务", "南湖股份"])
        assert (schema.things, schema.attributes) == (("北湖港务",), (attribute,))


@pytest.mark.parametrize("question", ["Hello there", "你好", "", "Who designed the bridge?"])
def test_a_question_about_no_attribute_gives_none(question: str) -> None:
    assert schema_of(question).attributes == ()
