"""Recognition: statements of the graph near to a question, and what those kept lead to."""

from collections.abc import Sequence
from typing import Any

import pytest

from prompts.recognize import Recognize, RecognizeStatements
from prompts.text.question import parse_question
from prompts.text.relevance import Relevance
from storage.columns import ById
from storage.graph_records import Occurrence, Relation
from tasks.recognize import OF_A_PASSAGE, GraphStatement, seeds_of, statements_at, statements_near
from tasks.retrieve.facts import GraphFacts
from tasks.retrieve.search import NO_SEEDS, SearchIndex, retrieve
from tests.retrieve.passages import index_of

TEXTS = {
    "Orla Bridge": "Orla Bridge was designed by Ada Korb and painted by Ned Cobb. It is red.",
    "Ada Korb": "Ada Korb was taught by Ida Sund. Ada Korb met Ned Cobb in Velin.",
    "Ida Sund": "Ida Sund lived at Marl Quay.",
    "奥拉桥": "奥拉桥由安娜设计。安娜住在马尔。",
}
KINDS = dict.fromkeys(("Orla Bridge", "Ada Korb", "Ned Cobb", "Ida Sund", "Marl Quay"), "thing")
STATED = [
    ("Orla Bridge", "Orla Bridge", "Ada Korb", "Orla Bridge was designed by Ada Korb and"),
    ("Orla Bridge", "Orla Bridge", "Ned Cobb", "Orla Bridge was designed by Ada Korb and"),
    ("Ada Korb", "Ada Korb", "Ida Sund", "Ada Korb was taught by Ida Sund."),
    ("Ada Korb", "Ada Korb", "Ned Cobb", "Ada Korb met Ned Cobb in Velin."),
    ("Ida Sund", "Ida Sund", "Marl Quay", "Ida Sund lived at Marl Quay."),
]
QUESTION = "Where did the teacher of the designer of Orla Bridge live?"


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    return index_of(TEXTS, KINDS)


@pytest.fixture(scope="module")
def facts(index: SearchIndex) -> GraphFacts:
    name_of = {entity.name: entity.id for entity in index.entities}
    relations, places = [], []
    for n, (document, source, target, said) in enumerate(STATED):
        relations.append(Relation(f"rel_{n}", name_of[source], name_of[target], "is with"))
        start = TEXTS[document].index(said)
        places.append(Occurrence(f"rel_{n}", f"chk_{document}", start, start + len(said)))
    return GraphFacts(ById(index.entities), relations, places)


def near(
    index: SearchIndex, facts: GraphFacts, chunks: Sequence[str], alike: Sequence[str] = ()
) -> list[GraphStatement]:
    relevance = Relevance(parse_question(QUESTION), {})
    places = [facts.places(relation)[0] for relation in alike]
    return statements_near(relevance, chunks, index, facts, places)


def test_relations_of_a_sentence_are_one_statement(index: SearchIndex, facts: GraphFacts) -> None:
    (only,) = statements_at(facts.stated_by("chk_Orla Bridge"), index, facts)
    names = {index.by_id[entity].name for entity in only.entities}
    assert names == {"Orla Bridge", "Ada Korb", "Ned Cobb"}
    assert TEXTS["Orla Bridge"][only.start : only.end] == only.text
    assert only.line == f"Orla Bridge: {only.text}"


def test_what_shares_more_of_the_question_comes_first(
    index: SearchIndex, facts: GraphFacts
) -> None:
    found = near(index, facts, ["chk_Ida Sund", "chk_Ada Korb", "chk_Orla Bridge"])
    assert found[0].document == "Orla Bridge"
    assert len(found) == 4


def test_relations_alike_by_vector_come_before(index: SearchIndex, facts: GraphFacts) -> None:
    found = near(index, facts, ["chk_Orla Bridge", "chk_Ida Sund"], alike=["rel_4", "rel_3"])
    assert [one.document for one in found] == ["Ida Sund", "Ada Korb", "Orla Bridge"]


def test_a_passage_shows_only_some_statements(index: SearchIndex, facts: GraphFacts) -> None:
    found = near(index, facts, [f"chk_{name}" for name in TEXTS])
    by_document = [one.document for one in found]
    assert max(map(by_document.count, by_document)) <= OF_A_PASSAGE


def test_no_statement_kept_starts_nothing(index: SearchIndex) -> None:
    assert seeds_of([], index) == NO_SEEDS


async def test_a_kept_statement_brings_its_passage_forward(
    index: SearchIndex, facts: GraphFacts
) -> None:
    async def first(searched: SearchIndex) -> list[str]:
        return [row.document for row in await retrieve(searched, [QUESTION], [{}], 2)]

    (kept,) = statements_at(facts.places("rel_4"), index, facts)
    assert "Ida Sund" not in await first(index)
    assert "Ida Sund" in await first(index.seeded(seeds_of([kept], index)))
    assert "Ida Sund" not in await first(index)  # the index itself is as before


@pytest.mark.parametrize(
    ("written", "numbers"),
    [
        ('{"statements": [2, 1]}', [2, 1]),
        ('{"statements": []}', []),
    ],
)
def test_numbers_are_read(written: str, numbers: list[int]) -> None:
    read: Any = Recognize.output_format.parse(RecognizeStatements, written)["recognized"]
    assert read.statements == numbers


async def test_without_a_model_nothing_is_recognized() -> None:
    assert await Recognize().run(QUESTION, ["Orla Bridge: Orla Bridge is red."]) == []
