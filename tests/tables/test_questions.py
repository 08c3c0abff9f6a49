"""Questions over tables without a model: what is asked in natural words, what comes out, and what has no plan."""

from collections.abc import Callable, Sequence

import pytest

from prompts.engine.models import Models
from prompts.plan_table import PlanTable
from storage.answer_records import TableResult
from storage.records import Document
from tasks.tables.answer import answer_from_tables
from tests.tables.documents import branches, chinese, ports, samples, statements


async def answered(question: str, documents: Sequence[Document]) -> TableResult | None:
    found = await answer_from_tables(question, documents, PlanTable(Models.offline()))
    texts = {one.id: one.text for one in documents}
    for cell in found.cells if found else ():
        assert texts[cell.document][cell.start : cell.end] == cell.raw
    return found


ASKED: dict[Callable[[], list[Document]], dict[str, list[str]]] = {
    samples: {
        # look-ups
        "What is the length of the Kestrel Bridge?": ["412.5"],
        "Who designed the Kestrel Bridge?": ["Tobias Wren"],
        "When was the Lanner Viaduct opened?": ["1931"],
        # lists and counts
        "Which bridges cross the River Ovane?": ["Lanner Viaduct", "Gannet Bridge", "Ovane Road Bridge"],
        "Which bridges are between 100 and 200 m long?": [
            "Old Saltmere Bridge", "Sluice Lane Bridge", "Maltings Bridge",
        ],
        "How many bridges have a length over 300 m?": ["5"],
        "how many bridges does the town of saltmere own": ["3"],
        # sums and averages
        "What is the total maintenance cost of the bridges?": ["11,820,975.50"],
        "How many passengers did Port Hask - Skerrow Island carry in 2023?": ["879,800"],
        "What is the average number of passengers per quarter on Saltmere - Quillen Head?": ["70,002.5"],
        # differences, extremes, order
        "What is the difference in passengers between Port Hask - Saltmere and Saltmere - Quillen Head?": ["256,190"],
        "How much longer is the Teal Causeway than the Ambel Crossing?": ["866.0"],
        "Which bridge is older, Pilot's Bridge or Old Saltmere Bridge?": ["Old Saltmere Bridge"],
        "Which two bridges are the longest?": ["Teal Causeway", "Ambel Crossing"],
        "In which quarter were the most sailings cancelled?": ["2023 Q4"],
        "Which designer designed the most bridges?": ["Tobias Wren", "Ilse Marrand"],
        "top 3 bridges by maintenance": ["Kestrel Bridge", "Ambel Crossing", "Teal Causeway"],
    },
    chinese: {
        "北湖大桥有多长？": ["412"],
        "最老的桥是哪座？": ["柳叶桥"],
        "清江上的桥有几座？": ["2"],
        "长度超过300米的桥有哪些？": ["北湖大桥", "石门大桥"],
        "所有桥的造价总和是多少？": ["10,942.5"],
        "桥的平均长度是多少？": ["461.625"],
        "北湖大桥和南门桥的长度相差多少？": ["315.5"],
    },
    ports: {
        # scales and units count, and figures stay as written
        "Which port has the most traffic?": ["Hask"],
        "Which ports have a traffic over 1 million?": ["Hask", "Vell"],
        "Which ports have a share of at least 12.5%?": ["Hask", "Ister"],
        "What is the traffic of Vell?": ["$1.2 million"],
        "What is the total number of ships?": ["1,385"],
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("documents", "question", "values"),
    [(documents, *row) for documents, rows in ASKED.items() for row in rows.items()],
)
async def test_a_question_over_rows_is_answered_by_its_cells(
    documents: Callable[[], list[Document]], question: str, values: list[str]
) -> None:
    result = await answered(question, documents())
    assert result is not None
    assert list(result.values) == values
    assert result.sentence.endswith("。" if documents is chinese else ".")


async def test_tables_of_one_form_are_one_table() -> None:
    found = await answered("How many visitors in total?", branches())
    assert found is not None
    assert found.values == ("500",)
    assert {cell.document for cell in found.cells} == {"north", "south"}
    assert "| 80 |" in found.table


async def test_documents_are_compared_by_what_their_statements_say_of_the_newest_date() -> None:
    found = await answered("Which company has the highest total assets?", statements())
    assert found is not None
    assert found.values == ("Vell Glass",), "4,100 millions are more than 5,308 thousands"
    assert found.sentence == "Highest March 31, 2024: Vell Glass: 4,100 (in millions)."
    assert [cell.raw for cell in found.cells] == ["4,100", "5,308", "977"]
    found = await answered("What are the total assets of Hask Ferries?", statements())
    assert found is not None
    assert found.values == ("977",)


@pytest.mark.parametrize(
    "question",
    [
        "Why was the Kestrel Bridge closed?",
        "What is the height of the Kestrel Bridge?",
        "How many bridges did the storm destroy?",
        "Who designed the oldest bridge?",
        "How do I cross the Kestrel Bridge?",
        "What's a Kestrel Bridge?",
        "Did Marrand design the Maltings Bridge?",
    ],
)
async def test_where_a_word_is_left_over_there_is_no_plan(question: str) -> None:
    assert await answered(question, samples()) is None


async def test_documents_without_tables_have_no_plan() -> None:
    [text] = [one.model_copy(update={"text": "The bridge is 412 m long."}) for one in ports()]
    assert await answered("How long is the bridge?", [text]) is None
