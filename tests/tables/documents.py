"""Documents with tables as the loader makes them."""

from pathlib import Path

from storage.records import Document, Part, Table
from tasks.load.tables import markdown_tables, read_table, write_table

DATA = Path(__file__).parents[2] / "examples" / "corpus" / "data"
ZH = """| 名称 | 河流 | 长度（米） | 建成年份 | 造价（万元） |
|---|---|---|---|---|
| 北湖大桥 | 清江 | 412 | 1998 | 1,250 |
| 南门桥 | 清江 | 96.5 | 1965 | 80 |
| 石门大桥 | 沱河 | 1,280 | 2011 | 9,600 |
| 柳叶桥 | 沱河 | 58 | 1937 | 12.5 |
"""
PORTS = """# Ports of the coast

| Port | Country | Traffic | Share | Ships | Since |
|---|---|---|---|---|---|
| Hask | Orrelin | 3.5 million | 12.5% | 1,308 | 2001-04-30 |
| Ister | Orrelin | 800,000 | 40 % | 77 | 1998-11-02 |
| Vell | Arlen | $1.2 million | 7.25% | — | 2010-01-15 |
"""
TICKETS = (
    ("T-1", "open"),
    ("T-2", "closed"),
    ("T-3", "open"),
    ("T-4", "waiting"),
    ("T-5", "closed"),
)


def document(name: str, text: str, tables: tuple[Table, ...] = ()) -> Document:
    made = tables or markdown_tables(text)
    part = Part(
        document=name, source="s", path=name, kind="text", title=name, text=text, tables=made
    )
    return Document(id=name, title=name, text=text, language="en", parts=(part,))


def from_csv(name: str, text: str) -> Document:
    written = write_table([cells for _, cells in read_table(text, None)])
    return document(name, "\n".join(written.lines), tuple(written.tables))


def samples() -> list[Document]:
    """The CSV tables of the sample corpus as the loader stores them."""
    return [
        from_csv(name, (DATA / f"{name}.csv").read_text("utf-8"))
        for name in ("bridges", "ferry-traffic-2023")
    ]


def chinese() -> list[Document]:
    return [document("桥梁", ZH)]


def ports() -> list[Document]:
    return [document("Ports", PORTS)]


def branches() -> list[Document]:
    """One form in two documents."""
    head = "branch,quarter,visitors\n"
    north = from_csv("north", head + "Ambel,2023 Q1,120\nOvane,2023 Q1,80\n")
    return [north, from_csv("south", head + "Quillen,2023 Q1,300\n")]


def tickets() -> Document:
    rows = "\n".join(f"| {name} | {state} |" for name, state in TICKETS)
    return document("tickets.md", f"# Tickets\n\n| Ticket | State |\n|---|---|\n{rows}\n")


def harbours(count: int) -> Document:
    """A table of `count` rows, each deeper than the one before."""
    rows = "".join(f"| Harbour {number} | {number} |\n" for number in range(1, count + 1))
    return document("h", f"# Depths\n\n| port | depth |\n|---|---|\n{rows}")
