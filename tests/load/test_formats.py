"""HTML and office files as text, and the titles of documents."""

import zipfile
from pathlib import Path

import pptx
import pytest

from storage.records import Document
from tasks.load.sources import compose, read_sources

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"


def read(path: Path) -> Document:
    loaded = read_sources([path])
    assert not loaded.skipped
    return compose(loaded.parts)[0]


def page(folder: Path, markup: str) -> Document:
    (folder / "a.html").write_text(markup, encoding="utf-8")
    return read(folder / "a.html")


def test_html_is_read_with_headings_lists_and_tables(tmp_path: Path) -> None:
    document = page(
        tmp_path,
        "<html><head><title>Port guide</title><style>p{}</style></head><body><nav>Menu</nav>"
        "<h1>Top</h1><p>A <b>bold</b> a_b <a href='http://x'>link</a>.<script>alert(1)</script></p>"
        "<ul><li>one</li><li>two</li></ul>"
        "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>",
    )
    assert document.title == "Port guide"
    table = "| A | B |\n| --- | --- |\n| 1 | 2 |"
    assert document.text == f"# Top\n\nA bold a_b link.\n\n- one\n- two\n\n{table}"


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (
            "<form><h1>Fees</h1><p>Ten.</p><label>Search</label><input><button>Go</button></form>",
            "# Fees\n\nTen.\n\nSearch",
        ),
        (
            "<header>Head</header><main>Main</main><aside>Aside</aside><details><summary>Fee"
            "</summary>Ten</details><address>Skerrow</address><footer>Foot</footer>",
            "Head\n\nMain\n\nAside\n\nFee\n\nTen\n\nSkerrow\n\nFoot",
        ),
        # Text that only its place distinguishes.
        (
            "<p>3.2&times;10<sup>6</sup> l, 10<sup>&minus;3</sup> g, x<sup>n+1</sup></p>",
            "3.2×10^6 l, 10^−3 g, x^(n+1)",
        ),
        (
            "<p>In 1931<sup>4</sup>, 1932<sup><a href=#n>[5]</a></sup>.<p><sup>4</sup> See.",
            "In 1931^4, 1932[5].\n\n^4 See.",
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
    ],
)
def test_html_keeps_what_a_page_says_in_its_place(markup: str, text: str, tmp_path: Path) -> None:
    assert page(tmp_path, f"<body>{markup}</body>").text == text


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        (
            "<tr><th>pier<th>fee</tr><tr><td rowspan=2>North<td>7</tr><tr><td>8</tr>",
            ["| pier | fee |", "| North | 7 |", "| North | 8 |"],
        ),
        (
            "<tr><th rowspan=2>pier<th colspan=2>fee</tr><tr><th>2021<th>2022</tr>"
            "<tr><td>North<td>7<td>8</tr>",
            ["| pier | fee / 2021 | fee / 2022 |", "| North | 7 | 8 |"],
        ),
        (
            "<caption>Fees</caption><thead><tr><th rowspan=2>port<th colspan=2>fee</tr>"
            "<tr><th>summer<th>winter</tr></thead><tfoot><tr><td>all<td>325<td>245</tr></tfoot>"
            "<tbody><tr><td>Velin<td>120<td>80</tr></tbody><tbody><tr><td>Orla<td>5<td>6</tr></tbody>",
            [
                "Fees",
                "",
                "| port | fee / summer | fee / winter |",
                "| Velin | 120 | 80 |",
                "| Orla | 5 | 6 |",
                "| all | 325 | 245 |",
            ],
        ),
        (
            "<tr><th colspan=2>Fees of 2023</tr><tr><th>port<th>fee</tr><tr><td>Velin<td>7</tr>",
            ["Fees of 2023", "", "| port | fee |", "| Velin | 7 |"],
        ),
        (
            "<tr><th rowspan=2>port<td colspan=2>fee</tr><tr><td>summer<td>winter</tr>"
            "<tr><td>Velin<td>7<td>8</tr>",
            ["| port | fee / summer | fee / winter |", "| Velin | 7 | 8 |"],
        ),
        (
            "<tr><td>Left<td><table><tr><td>a<td>b</tr></table></tr>",
            ["Left", "", "| a | b |"],
        ),
        ("<tr><td>a<td rowspan=3>b</tr><tr><td>c</tr>", ["| a | b |", "| c | b |"]),
    ],
)
def test_a_table_has_one_header_and_no_spanning_cells(
    rows: str, lines: list[str], tmp_path: Path
) -> None:
    text = page(tmp_path, f"<body><table>{rows}</table></body>").text
    assert [line for line in text.splitlines() if not line.startswith("| ---")] == lines


def test_a_word_file_has_headings_tables_and_a_title(tmp_path: Path) -> None:
    sample = CORPUS / "reports" / "kestrel-survey-2024.docx"
    document = read(sample)
    assert document.text.startswith(
        "# Kestrel Bridge: principal survey, final report\n\nMarrand & Oke, Consulting"
    )
    assert "| West hangers H1 to H9 | section loss up to 11% | 8% | replace |" in document.text
    named = (b"<dc:title>Kestrel Bridge", b"<dc:title>Harbour report")
    with zipfile.ZipFile(sample) as given, zipfile.ZipFile(tmp_path / "a.docx", "w") as made:
        for name in given.namelist():
            made.writestr(name, given.read(name).replace(*named))
    assert read(tmp_path / "a.docx").title == "Harbour report: principal survey, final report"


def test_slides_are_pages(tmp_path: Path) -> None:
    slides = pptx.Presentation()
    for title in ("Plan", "Costs"):
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = f"Body of {title}"
    slides.save(str(tmp_path / "a.pptx"))
    document = read(tmp_path / "a.pptx")
    assert document.text == "# Plan\nBody of Plan\n\n# Costs\nBody of Costs"
    assert document.page_of(document.text.index("Body of Costs")) == 2
    assert document.title == "Plan"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (
            "locked.docx",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            "encrypted",
        ),
        ("broken.xlsx", b"PK\x05\x06" + bytes(18), "broken .xlsx file"),
    ],
)
def test_an_unreadable_office_file_says_why(
    name: str, content: bytes, reason: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    [skipped] = read_sources([tmp_path]).skipped
    assert skipped.reason.startswith(reason)


OPENING = "It sails from Velin to Orla and back in every season."


@pytest.mark.parametrize(
    ("text", "title"),
    [
        # The heading that a text opens with, or its only one of the first level.
        ("# Kestrel\n\nA ferry.\n\n## Timetable\n", "Kestrel"),
        ("Kestrel `v2`\n============\n\nA ferry.\n\n## Timetable\n", "Kestrel v2"),
        (
            "<p>\n<img src='a'>\n</p>\n\n[![b](b.svg)](b)\n\n## Kestrel\n\n# One\n\n# Two\n",
            "Kestrel",
        ),
        (f"{OPENING}\n\n# kestrel_data\n\n## Timetable\n", "kestrel_data"),
        # A sign that belongs to the name stays; signs after a space close the heading.
        ("## F# and C#\n\nTwo languages.\n", "F# and C#"),
        ("# #1 of the list\n\nA song.\n", "#1 of the list"),
        ("# C# ##\n\nA language.\n", "C#"),
        ("Room A #\n========\n\nText.\n", "Room A #"),
        # A heading further down names a part of the text.
        (f"{OPENING}\n\n## Timetable\n\n# Prices\n", "Some notes"),
        (f"{OPENING}\n\n# Timetable\n\n# Prices\n", "Some notes"),
        ("From: Ada Korb\nTo: Bert Reyd\n\n# Timetable\n\n# Prices\n", "Some notes"),
        # A short first line that is not a sentence.
        ("The Kestrel\n\nIt sails from Velin.\n\n## Timetable\n", "The Kestrel"),
        ("Nordlicht Ltd.\nThe rest of it.", "Nordlicht Ltd."),
        ("Ilse Marrand married the painter Quirin Vance in 1972.\nThe rest.", "Some notes"),
        ("许美兰是该所的所长。\nThe rest of it.", "Some notes"),
    ],
)
def test_a_document_is_titled_by_what_names_it_whole(text: str, title: str, tmp_path: Path) -> None:
    path = tmp_path / "some-notes.md"
    path.write_text(text, encoding="utf-8")
    assert read(path).title == title
