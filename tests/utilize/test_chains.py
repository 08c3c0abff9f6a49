"""Chains of one relation of unknown length, followed over triples of several documents."""

import pytest

from prompts.language.chain_question import chain_plan_of
from prompts.language.question import ask
from prompts.reading.evidence import Evidence
from tasks.evidence import Place, Pool
from tasks.utilize.chains import Followed, follow

TRIPLES = [
    ("Orla Bridge", "owned by", "Sound Roads Ltd"),
    ("Vell Holding", "owns", "Sound Roads Ltd"),
    ("Vell Holding", "parent company", "Arlen Trust"),
    ("Vell Holding", "owns", "Hask Ferries"),
    ("Hask Ferries", "designed", "Skerrow Pier"),
    ("Hask Ferries", "owns", "Skerrow Pier"),
    ("Ada Vell", "reports to", "Bruno Vell"),
    ("Bruno Vell", "reports to", "Cleo Arlen"),
    ("Ring One", "owns", "Ring Two"),
    ("Ring Two", "owns", "Ring One"),
    ("北江食品", "控股股东", "南山集团"),
    ("南山集团", "实际控制人", "李青"),
]
ELEMENTS = [
    Evidence(
        number, f"d{number}", f"d{number}", f"{head} {relation} {tail}.", label=head, attribute=relation, value=tail
    )
    for number, (head, relation, tail) in enumerate(TRIPLES)
]
POOL = Pool(
    tuple(ELEMENTS),
    tuple(
        Place(document=one.document, title=one.title, chunk=f"chk_{one.number}", start=0, end=len(one.text))
        for one in ELEMENTS
    ),
)


def followed(question: str) -> Followed | None:
    plan = chain_plan_of(question)
    return follow(ask(question), plan, POOL) if plan else None


@pytest.mark.parametrize(
    ("question", "values", "evidence"),
    [
        ("Who ultimately owns Orla Bridge?", ("Arlen Trust",), [0, 1, 2]),
        ("Who is the ultimate owner of the Skerrow Pier?", ("Arlen Trust",), [5, 3, 2]),
        ("Describe the ownership chain of Orla Bridge", ("Sound Roads Ltd", "Vell Holding", "Arlen Trust"), [0, 1, 2]),
        ("Which companies does Arlen Trust directly or indirectly own?",
         ("Vell Holding", "Sound Roads Ltd", "Hask Ferries", "Orla Bridge", "Skerrow Pier"), [2, 1, 3, 0, 5]),
        ("Who ultimately manages Ada Vell?", ("Cleo Arlen",), [6, 7]),
        ("Who ultimately owns Ring One?", ("Ring Two",), [9]),
        ("北江食品的最终控制人是谁？", ("李青",), [10, 11]),
        ("李青间接控制了哪些公司？", ("南山集团", "北江食品"), [11, 10]),
    ],
)  # fmt: skip
def test_a_chain_is_followed_to_its_end_and_every_link_cited(
    question: str, values: tuple[str, ...], evidence: list[int]
) -> None:
    found = followed(question)
    assert found is not None
    assert found.reading.values == values
    assert sorted(number for claim in found.reading.claims for number in claim.evidence) == sorted(evidence)
    assert [part.evidence for part in found.subquestions] == [(f"chk_{number}",) for number in evidence]


@pytest.mark.parametrize(
    "question", ["Who owns Orla Bridge?", "Who ultimately owns Quillen Head?", "Who ultimately owns Arlen Trust?"]
)
def test_where_there_is_no_chain_nothing_is_made_up(question: str) -> None:
    assert followed(question) is None


def test_a_single_link_is_no_chain_question() -> None:
    assert chain_plan_of("Who designed Orla Bridge?") is None
