"""Counting and comparing questions over the typed facts of the sample corpus, with right plans."""

import asyncio
from pathlib import Path
from typing import Any

from flows.index import IndexOptions, build_index
from storage.run_records import IndexReport
from tests.facts.corpus import SCHEMA, SOURCES, rules
from tests.server.client import Server
from tests.workspaces import opened

TODAY = "2024-06-01"
TABLES = [None, *SCHEMA.kinds]  # numbered from 1
OSA, OSF, CHI = "Orrelin Sound Authority", "Orrelin Sound Ferries", "Coastal Hydrology Institute"
WREN, MARRAND = "Tobias Wren (engineer)", "Ilse Marrand"


def indexed_facts(folder: Path, server: Server) -> IndexReport:
    """Index the sample corpus, of which a scripted model lists the facts, into this workspace."""
    server.reset()
    server.misbehave(*rules())
    role = {"model": "openai/m", "base_url": server.base_url, "api_key": "k"}
    runtime = opened(
        folder, roles={"extract": role}, graph_schema=SCHEMA, chunk_tokens=3000, community_size=500
    )
    report: IndexReport = asyncio.run(build_index(SOURCES, IndexOptions(), runtime))
    server.misbehave()
    return report


def plan(kind: str, operation: str, *columns: str, **more: Any) -> dict[str, Any]:
    """A plan over the table of a kind; keywords with `__` are filters (`length__more="0.5 km"`)."""
    filters = [
        {
            "column": name.partition("__")[0].replace("_", " "),
            "comparison": comparison,
            "value": value,
        }
        for name, given in more.items()
        if (comparison := name.partition("__")[2])
        for value in (given if isinstance(given, list) else [given])
    ]
    rest = {name: value for name, value in more.items() if "__" not in name}
    return {
        "operation": operation,
        "table": TABLES.index(kind),
        "columns": columns,
        "filters": [*filters, *rest.pop("filters", [])],
        **rest,
    }


def where(column: str, value: str, comparison: str = "equal") -> dict[str, str]:
    return {"column": column, "comparison": comparison, "value": value}


def of(name: str, first: str, second: str, operation: str = "divided_by") -> dict[str, str]:
    """A column that is made of two."""
    return {"name": name, "first": first, "operation": operation, "second": second}


BY_WREN, BY_MARRAND = where("designed by", WREN), where("designed by", MARRAND)
# Question, plan, values, and words that a cited statement must hold.
QUESTIONS: list[tuple[str, dict[str, Any], list[str], str]] = [
    ("How many bridges are there?", plan("bridge", "count"), ["12"], "Teal Causeway"),
    (
        "How many bridges did Ilse Marrand design?",
        plan("bridge", "count", filters=[BY_MARRAND]),
        ["3"],
        "designer: Ilse Marrand",
    ),
    (
        "How many bridges does the Authority own?",
        plan("bridge", "count", owned_by__equal=OSA),
        ["7"],
        f"owner: {OSA}",
    ),
    (
        "Which bridge is the longest?",
        plan("bridge", "max", "length"),
        ["Teal Causeway"],
        "length_m: 2150.0",
    ),
    (
        "Which bridge is the oldest?",
        plan("bridge", "min", "opened"),
        ["Old Saltmere Bridge"],
        "opened: 1878",
    ),
    (
        "Which are the three newest bridges?",
        plan("bridge", "max", "opened", limit=3),
        ["Maltings Bridge", "Ambel Crossing", "Dunmarrow Footbridge"],
        "opened: 2016",
    ),
    (
        "Which bridges are longer than half a kilometre?",
        plan("bridge", "list", length__more="0.5 km"),
        ["Ambel Crossing", "Lanner Viaduct", "Teal Causeway"],
        "length_m: 640.2",
    ),
    (
        "How many bridges were opened between 1930 and 1960?",
        plan("bridge", "count", opened__at_least="1930", opened__at_most="1960"),
        ["4"],
        "opened: 1931",
    ),
    (
        "How many people designed a bridge of more than 100 m?",
        plan("person", "count", filters=[where("designed > length", "100 m", "more")]),
        ["5"],
        "length_m: 102.9",
    ),
    (
        "How long are Tobias Wren's bridges together?",
        plan("bridge", "sum", "length", filters=[BY_WREN]),
        ["1,149.1 m"],
        "length_m: 96.4",
    ),
    (
        "How long are Ilse Marrand's bridges on average?",
        plan("bridge", "average", "length", filters=[BY_MARRAND]),
        ["496.833 m"],
        "length_m: 74.8",
    ),
    (
        "What does the maintenance of the Authority's bridges cost?",
        plan("bridge", "sum", "maintenance", owned_by__equal=OSA),
        ["10,339,050.5 crowns"],
        "3,874,620.50",
    ),
    (
        "How much longer is the Ambel Crossing than the Kestrel Bridge?",
        plan("bridge", "difference", "length", name__equal=["Ambel Crossing", "Kestrel Bridge"]),
        ["871.5 m"],
        "length_m: 412.5",
    ),
    (
        "How many times as long as the Kestrel Bridge is the Teal Causeway?",
        plan("bridge", "ratio", "length", name__equal=["Teal Causeway", "Kestrel Bridge"]),
        ["5.212"],
        "length_m: 2150.0",
    ),
    (
        "How many years lie between the Kestrel Bridge and the Quillen Swing Bridge?",
        plan(
            "bridge", "difference", "opened", name__equal=["Kestrel Bridge", "Quillen Swing Bridge"]
        ),
        ["14 years"],
        "opened: 1952",
    ),
    (
        "Who designed the most bridges?",
        plan("bridge", "max", "name", group_by="designed by", aggregate="count"),
        [MARRAND, WREN],
        "designer: Tobias Wren",
    ),
    (
        "Which water do most bridges cross?",
        plan("bridge", "max", "name", group_by="crosses", aggregate="count"),
        ["River Ambel"],
        "crosses: River Ambel",
    ),
    (
        "How many bridges carry trains?",
        plan("bridge", "count", carries_trains__equal="yes"),
        ["1"],
        "steel railway trestle",
    ),
    (
        "How many designers are there?",
        plan("bridge", "count", group_by="designed by"),
        ["6"],
        "designer: Harald Brandvik",
    ),
    (
        "How long is the Maltings Bridge?",
        plan("bridge", "lookup", "length", name__equal="Maltings Bridge"),
        ["131.7 m"],
        "length_m: 131.7",
    ),
    (
        "Which is longer, the Gannet Bridge or the Ovane Road Bridge?",
        plan("bridge", "compare", "length", name__equal=["Gannet Bridge", "Ovane Road Bridge"]),
        ["Ovane Road Bridge"],
        "length_m: 318.0",
    ),
    (
        "How many bridges were designed by people born in Quillen Head?",
        plan("bridge", "count", filters=[where("designed by > born in", "Quillen Head")]),
        ["3"],
        "Wren was born in Quillen Head",
    ),
    (
        "When was the designer of the Kestrel Bridge born?",
        plan("bridge", "lookup", "designed by > born", name__equal="Kestrel Bridge"),
        ["2 March 1899"],
        "Tobias Wren (2 March 1899",
    ),
    (
        "How old did Tobias Wren become?",
        plan("person", "difference", "died", "born", name__equal=WREN),
        ["74 years"],
        "17 October 1973",
    ),
    (
        "How many ships did Orrelin Sound Ferries have in 2019?",
        plan("organisation", "lookup", "ships", name__equal=OSF, as_of="2019"),
        ["6艘"],
        "公司共有6艘船",
    ),
    (
        "How many ships does Orrelin Sound Ferries have?",
        plan("organisation", "lookup", "ships", name__equal=OSF),
        ["five vessels"],
        "the company operated five vessels",
    ),
    (
        "Who directed the institute as of 2010?",
        plan("organisation", "lookup", "director", name__equal=CHI, as_of="2010"),
        ["Gregor Anselm"],
        "2004年至2018年的所长",
    ),
    (
        "How many directors has the institute had?",
        plan("person", "count", directs__equal=CHI, as_of="ever"),
        ["2"],
        "2018年起",
    ),
    (
        "How many ships did Orrelin Sound Ferries operate in 2020?",
        plan("ship", "count", operated_by__equal=OSF, as_of="2020"),
        ["5"],
        "海燕号(MV Petrel)",
    ),
    (
        "How many people were born in towns of over 5,000 inhabitants?",
        plan("person", "count", filters=[where("born in > inhabitants", "5,000", "more")]),
        ["1"],
        "Dunmarrow (9,870) lies upstream",
    ),
    (
        "Which bridge costs most a metre?",
        plan("bridge", "max", "cost", computed=[of("cost", "maintenance", "length")]),
        ["Kestrel Bridge"],
        "3,874,620.50",
    ),
    (
        "Which bridges cost more than 5,000 crowns a metre?",
        plan("bridge", "list", cost__more="5,000", computed=[of("cost", "maintenance", "length")]),
        ["Kestrel Bridge", "Pilot's Bridge", "Quillen Swing Bridge"],
        "length_m: 58.3",
    ),
    (
        "How much do Tobias Wren's bridges cost a metre on average?",
        plan(
            "bridge",
            "average",
            "cost",
            filters=[BY_WREN],
            computed=[of("cost", "maintenance", "length")],
        ),
        ["5,971.99 crowns/m"],
        "655,180.00",
    ),
    (
        "How old was the designer when the Kestrel Bridge was opened?",
        plan(
            "bridge",
            "lookup",
            "age",
            name__equal="Kestrel Bridge",
            computed=[of("age", "opened", "designed by > born", "minus")],
        ),
        ["39 years"],
        "Tobias Wren (2 March 1899",
    ),
    (
        "五个镇一共有多少居民？",
        plan("town", "sum", "inhabitants"),
        ["84,970 inhabitants"],
        "Port Hask (48,200 inhabitants)",
    ),
]
