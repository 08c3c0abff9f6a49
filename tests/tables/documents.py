"""Tables of every form as documents, for the tests of questions over them."""

from pathlib import Path

from storage.records import Document
from tasks.load.rows import read_table, table_lines

DATA = Path(__file__).parents[2] / "examples" / "corpus" / "data"
ZH = """| 名称 | 河流 | 长度（米） | 建成年份 | 造价（万元） |
|---|---|---|---|---|
| 北湖大桥 | 清江 | 412 | 1998 | 1,250 |
| 南门桥 | 清江 | 96.5 | 1965 | 80 |
| 石门大桥 | 沱河 | 1,280 | 2011 | 9,600 |
| 柳叶桥 | 沱河 | 58 | 1937 | 12.5 |
"""
PORTS = """# Ports of the coast

| Port | Country | Traffic | Share | Ships |
|---|---|---|---|---|
| Hask | Orrelin | 3.5 million | 12.5% | 1,308 |
| Ister | Orrelin | 800,000 | 40 % | 77 |
| Vell | Arlen | $1.2 million | 7.25% | — |
"""
STATEMENT = """{name}

Condensed Balance Sheets
(in {scale})
                                March 31,      December 31,
                                   2024            2023
Current assets:
Cash and cash equivalents     $      1,308    $      2,204
Accounts receivable                    (63  )           12
Total assets                  $      {assets}    $      6,204
"""
BRANCHES = {
    "north": "branch | quarter | visitors\nbranch: Ambel | quarter: 2023 Q1 | visitors: 120\n"
    "branch: Ovane | quarter: 2023 Q1 | visitors: 80",
    "south": "branch | quarter | visitors\nbranch: Quillen | quarter: 2023 Q1 | visitors: 300",
}


def document(name: str, text: str, title: str = "", language: str = "en") -> Document:
    return Document(id=name, title=title or name, text=text, language=language, parts=())


def samples() -> list[Document]:
    """The CSV tables of the sample corpus as the loader stores them."""
    names = ("bridges.csv", "ferry-traffic-2023.csv")
    texts = {
        name: "\n".join(table_lines([cells for _, cells in read_table((DATA / name).read_text("utf-8"), None)]))
        for name in names
    }
    return [document(f"data/{name}", text, name.partition(".")[0]) for name, text in texts.items()]


def chinese() -> list[Document]:
    return [document("zh.md", ZH, "桥梁", "zh")]


def ports() -> list[Document]:
    return [document("ports.md", PORTS, "Ports")]


def statements() -> list[Document]:
    """Balance sheets of three companies, one of them in millions."""
    given = (
        ("Orrel Foods", "thousands", "5,308"),
        ("Vell Glass", "millions", "4,100"),
        ("Hask Ferries", "thousands", "977"),
    )
    return [document(name, STATEMENT.format(name=name, scale=scale, assets=assets)) for name, scale, assets in given]


def branches() -> list[Document]:
    return [document(name, text) for name, text in BRANCHES.items()]
