"""HTML, Word, PowerPoint and Excel files as text, down to the figures of a spreadsheet."""

import io
import zipfile
from datetime import date, datetime, time
from pathlib import Path

import openpyxl
import pptx
import pytest

from storage.records import Document
from tasks.load.sources import compose, read_sources
from tasks.load.workbook import displayed
from tasks.tables.relations import relations_of

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"


def read(path: Path) -> Document:
    loaded = read_sources([path])
    assert not loaded.skipped
    return compose(loaded.parts)[0]


def reason(path: Path) -> str:
    return read_sources([path]).skipped[0].reason


def test_html_reads_as_text_with_headings_lists_and_tables(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text(
        "<html><head><title>Port "
        " guide</title><style>p{}</style></head><body><nav>Menu</nav><h1>Top</h1>"
        "<p>A <b>bold</b> a_b <a "
        "href='http://x'>link</a>.<script>alert(1)</script></p><ul><li>one</li><li>two</li></ul>"
        "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>",
        encoding="utf-8",
    )
    document = read(path)
    assert document.title == "Port guide"
    assert (
        document.text
        == "# Top\n\nA bold a_b link.\n\n- one\n- two\n\n| A | B |\n| --- | --- |\n| 1 | 2 |"
    )


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (
            (
                "<form><h1>Fees</h1><p>Ten "
                "crowns.</p><label>Search</label><input><button>Go</button></form>"
            ),
            "# Fees\n\nTen crowns.\n\nSearch",
        ),
        ("<p><label>Licence number</label> <span>HX-7781</span></p>", "Licence number HX-7781"),
        (
            (
                "<header>Head</header><main>Main</main><aside>Aside</aside><details><summary>Fee</summary>Ten</details>"
                "<address>Skerrow</address><footer>Foot</footer>"
            ),
            "Head\n\nMain\n\nAside\n\nFee\n\nTen\n\nSkerrow\n\nFoot",
        ),
        (
            (
                "<table><tr><th>pier<th>year<th>fee</tr><tr><td "
                "rowspan=2>North<td>2021<td>7</tr><tr><td>2022<td>8</tr></table>"
            ),
            (
                "| pier | year | fee |\n| --- | --- | --- |\n| North | 2021 | 7 |\n| North | 2022 "
                "| 8 |"
            ),
        ),
        (
            (
                "<table><tr><th rowspan=2>pier<th "
                "colspan=2>fee</tr><tr><th>2021<th>2022</tr><tr><td>North<td>7<td>8</tr></table>"
            ),
            "| pier | fee / 2021 | fee / 2022 |\n| --- | --- | --- |\n| North | 7 | 8 |",
        ),
        # one header row, rows of the foot last, a rule below the header alone
        (
            (
                "<table><caption>Fees</caption><thead><tr><th rowspan=2>port<th colspan=2>fee</tr>"
                "<tr><th>summer<th>winter</tr></thead><tfoot><tr><td>all<td>325<td>245</tr></tfoot>"
                "<tbody><tr><td>Velin<td>120<td>80</tr></tbody><tbody><tr><td>Orla<td>205<td>165</tr></tbody></table>"
            ),
            (
                "Fees\n\n| port | fee / summer | fee / winter |\n| --- | --- | --- |\n| Velin | 120"
                " | 80 |\n| Orla | 205 | 165 |\n| all | 325 | 245 |"
            ),
        ),
        (
            (
                "<table><tr><th colspan=2>Fees of "
                "2023</tr><tr><th>port<th>fee</tr><tr><td>Velin<td>7</tr></table>"
            ),
            "Fees of 2023\n\n| port | fee |\n| --- | --- |\n| Velin | 7 |",
        ),
        (
            (
                "<table><tbody><tr><td>port<td>fee</tr></tbody><tbody><tr><td>Velin<td>7</tr></tbody>"
                "<tfoot><tr><td>all<td>7</tr></tfoot></table>"
            ),
            "| port | fee |\n| --- | --- |\n| Velin | 7 |\n| all | 7 |",
        ),
        (
            (
                "<table><tr><th rowspan=2>port<td colspan=2>fee</tr><tr><td>summer<td>winter</tr>"
                "<tr><td>Velin<td>7<td>8</tr></table>"
            ),
            "| port | fee / summer | fee / winter |\n| --- | --- | --- |\n| Velin | 7 | 8 |",
        ),
        (
            "<table><tr><td>Left<td><table><tr><td>a<td>b</tr></table></tr></table>",
            "Left\n\n| a | b |\n| --- | --- |",
        ),
        # what only its place shows
        (
            (
                "<p>3.2&times;10<sup>6</sup> l, 10<sup>&minus;3</sup> g, 12 km<sup>2</sup>, "
                "x<sup>n+1</sup></p>"
            ),
            "3.2×10^6 l, 10^−3 g, 12 km^2, x^(n+1)",
        ),
        (
            (
                "<p>Sold in 1931<sup>4</sup> and 1932<sup><a "
                "href=#n>[5]</a></sup>.</p><p><sup>4</sup> See the deed.</p>"
            ),
            "Sold in 1931^4 and 1932[5].\n\n^4 See the deed.",
        ),
        (
            "<p>The 21<sup>st</sup> Orla<sup>TM</sup> of H<sub>2</sub>O</p>",
            "The 21st OrlaTM of H2O",
        ),
        ("<math><mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup></math>", "E=mc^2"),
        (
            "<p><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby>を読む</p>",
            "漢字を読む",
        ),
        (
            (
                "<table><tr><td>a<td "
                "rowspan=3>b</tr><tr><td>c</tr></table><table><tr><td>d</tr><tr><td>e</tr></table>"
            ),
            "| a | b |\n| --- | --- |\n| c | b |\n\n| d |\n| --- |\n| e |",
        ),
    ],
)
def test_html_keeps_what_a_page_says_in_its_place(markup: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(f"<body>{markup}</body>", encoding="utf-8")
    assert read(tmp_path / "a.html").text == text


def test_docx_headings_tables_and_title(tmp_path: Path) -> None:
    sample = CORPUS / "reports" / "kestrel-survey-2024.docx"
    document = read(sample)
    assert document.text.startswith(
        "# Kestrel Bridge: principal survey, final report\n\nMarrand & Oke, Consulting"
    )
    assert "| West hangers H1 to H9 | section loss up to 11% | 8% | replace |" in document.text
    with zipfile.ZipFile(sample) as given, zipfile.ZipFile(tmp_path / "a.docx", "w") as made:
        for name in given.namelist():
            made.writestr(
                name,
                given.read(name).replace(b"<dc:title>Kestrel Bridge", b"<dc:title>Harbour report"),
            )
    assert read(tmp_path / "a.docx").title == "Harbour report: principal survey, final report"


def test_pptx_slides_are_pages(tmp_path: Path) -> None:
    slides = pptx.Presentation()
    for title in ("Plan", "Costs"):
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = f"Body of {title}"
    path = tmp_path / "a.pptx"
    slides.save(str(path))
    document = read(path)
    assert document.text == "# Plan\nBody of Plan\n\n# Costs\nBody of Costs"
    assert document.page_of(document.text.index("Body of Costs")) == 2
    assert document.title == "Plan"


def test_a_workbook_keeps_what_it_displays_down_to_the_cell(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    names = ["Port", "Code", "Traffic", "Share", "Loss", "Since", "Sum"]
    for row in (names, ["Nordlicht", 7, 1308463, 0.125, -415.5, date(2024, 3, 31), 2]):
        sheet.append(row)
    formats = {
        "B2": "000",
        "C2": '"$"#,##0',
        "D2": "0.0%",
        "E2": "#,##0.00_);(#,##0.00)",
        "F2": "mmm yyyy",
    }
    for place, number_format in formats.items():
        sheet[place].number_format = number_format
    book.save(tmp_path / "ports.xlsx")
    document = read(tmp_path / "ports.xlsx")
    assert document.text.splitlines() == [
        " | ".join(names),
        (
            "Port: Nordlicht | Code: 007 | Traffic: $1,308,463 | Share: 12.5% | Loss: -415.50 | "
            "Since: 2024-03-31 | Sum: 2"
        ),
    ]
    [table] = relations_of([document])
    cells = {name: cell for name, cell in zip(table.columns, table.rows[0], strict=True) if cell}
    assert [cells[name].raw for name in ("Traffic", "Loss", "Code")] == [
        "$1,308,463",
        "-415.50",
        "007",
    ]
    figures = [
        amount.number for name in ("Traffic", "Loss", "Share") if (amount := cells[name].amount)
    ]
    assert figures == [1_308_463.0, -415.5, 12.5]


@pytest.mark.parametrize(
    ("value", "number_format", "expected"),
    [
        (-1234.5, '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)', "-$1,234.50"),
        (-0.4, "0", "0"),
        (1308463, '#,##0.0,,"M"', "1308463"),
        (1234.5, "[$€-407] #,##0.00", "€ 1,234.50"),
        (3, '"Q"0', "Q3"),
        (0.1 + 0.2, "General", "0.3"),
        (True, "General", "TRUE"),
        ("#DIV/0!", "0", "#DIV/0!"),
        (datetime(2024, 3, 31), "mmm-yy", "2024-03-31"),  # noqa: DTZ001 - sheets know no time zones
        (datetime(2024, 3, 31, 14, 5), "m/d/yy h:mm", "2024-03-31 14:05:00"),  # noqa: DTZ001
        (time(9, 5), "h:mm AM/PM", "09:05:00"),
    ],
)
def test_a_cell_is_displayed_by_its_format(
    value: object, number_format: str, expected: str
) -> None:
    assert displayed(value, number_format) == expected


def test_an_encrypted_or_broken_office_file_says_so(tmp_path: Path) -> None:
    locked = tmp_path / "locked.docx"
    locked.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"))
    assert reason(locked).startswith("encrypted")
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w") as archive:
        archive.writestr("a", "x")
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(bomb.getvalue())
    assert reason(broken).startswith("broken .xlsx file")


@pytest.mark.parametrize(
    ("first", "title"),
    [
        ("Ilse Marrand married the painter Quirin Vance in 1972.", "Some notes"),
        ("许美兰是该所的所长。", "Some notes"),
        ("Nordlicht Ltd.", "Nordlicht Ltd."),
        ("What the harbour costs", "What the harbour costs"),
    ],
)
def test_a_first_line_that_says_something_is_no_title(
    first: str, title: str, tmp_path: Path
) -> None:
    path = tmp_path / "some-notes.txt"
    path.write_text(f"{first}\nThe rest of it.", encoding="utf-8")
    assert read(path).title == title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Kestrel\n\nA ferry.\n\n## Timetable\n", "Kestrel"),
        ("Kestrel `v2`\n============\n\nA ferry.\n\n## Timetable\n", "Kestrel v2"),
        (
            (
                '<p align="center">\n<img src="a.png">\n</p>\n\n[![built](b.svg)](b)\n\n## '
                "Kestrel\n\n# One\n\n# Two\n"
            ),
            "Kestrel",
        ),
        (
            (
                "It sails from Velin to Orla and back in every season.\n\n# kestrel_data\n\n## "
                "Timetable\n"
            ),
            "kestrel_data",
        ),
        # A sign that belongs to the name stays; signs after a blank close the heading.
        ("# C#\n\nA language.\n", "C#"),
        ("## F# and C#\n\nTwo languages.\n", "F# and C#"),
        ("# Room A#\n", "Room A#"),
        ("# #1 of the list\n\nA song.\n", "#1 of the list"),
        ("## Closed heading ##\n\nText.\n", "Closed heading"),
        ("# C# ##\n\nA language.\n", "C#"),
        ("Room A #\n========\n\nText.\n", "Room A #"),
        # What names a part of the text does not name it.
        (
            "It sails from Velin to Orla and back in every season.\n\n## Timetable\n\n# Prices\n",
            "Some notes",
        ),
        (
            "It sails from Velin to Orla and back in every season.\n\n# Timetable\n\n# Prices\n",
            "Some notes",
        ),
        ("The Kestrel\n\nIt sails from Velin.\n\n## Timetable\n", "The Kestrel"),
        ("From: Ada Korb\nTo: Bert Reyd\n\n# Timetable\n\n# Prices\n", "Some notes"),
    ],
)
def test_the_title_of_a_page_names_it_whole(text: str, title: str, tmp_path: Path) -> None:
    path = tmp_path / "some-notes.md"
    path.write_text(text, encoding="utf-8")
    assert read(path).title == title
