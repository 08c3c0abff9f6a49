"""Counting, sorting and comparing over the CSV tables of the sample corpus."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from prompts.engine.models import Models
from prompts.language.question import ask
from prompts.utilize import PlanTable
from storage.records import Document
from tasks.load.tables import read_table, render
from tasks.utilize.step import utilize

DATA = Path(__file__).parents[2] / "examples" / "corpus" / "data"
NAMES = ("bridges.csv", "ferry-traffic-2023.csv")


@pytest.fixture(scope="module")
def tables() -> dict[str, Document]:
    """The tables as the loader stores them."""
    texts = {name: render([cells for _, cells in read_table((DATA / name).read_text("utf-8"), None)]) for name in NAMES}
    return {
        name: Document(id=f"data/{name}", title=name.partition(".")[0], text=text, language="en", parts=())
        for name, text in texts.items()
    }


@pytest.mark.parametrize(
    ("question", "values", "citations"),
    [
        ("How many passengers did Port Hask - Skerrow Island carry in 2023?", ["879,800"], 4),
        ("How many vehicles did the route Saltmere - Quillen Head carry in 2023 Q3?", ["12,230"], 1),
        ("Which route carried the most passengers in 2023?", ["Port Hask - Skerrow Island"], 16),
        ("Which route had the fewest cancelled sailings in 2023?", ["Port Hask - Saltmere"], 16),
        ("Rank the routes by passengers", ["879,800", "536,200", "280,010", "150,200"], 16),
        ("What is the difference in passengers between Port Hask - Saltmere and Saltmere - Quillen Head?", ["256,190"],
         8),
        ("Which two bridges are the longest?", ["Teal Causeway", "Ambel Crossing"], 12),
        ("Which bridge had the highest maintenance cost in 2023?", ["Kestrel Bridge"], 12),
        ("How many bridges have a length over 300 m?", ["5"], 12),
        ("What is the total maintenance cost of the bridges?", ["11,820,975.50"], 12),
        ("What is the length of the Kestrel Bridge?", ["412.5"], 1),
    ],
)  # fmt: skip
async def test_a_question_over_rows_is_answered_by_sql(
    question: str, values: list[str], citations: int, tables: dict[str, Document]
) -> None:
    documents = {one.id: one for one in tables.values()}

    def read(names: Sequence[str]) -> dict[str, Document]:
        return {name: documents[name] for name in names}

    found = await utilize(ask(question), list(documents), read, lambda name, _: name, PlanTable(Models.offline()))
    assert found is not None
    assert list(found.reading.values) == values
    assert len(found.pool.evidence) == citations
    for piece, place in zip(found.pool.evidence, found.pool.places, strict=True):
        assert documents[place.document].text[place.start : place.end] == piece.text
