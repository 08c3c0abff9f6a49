"""PDF files: lines, raised digits, tables, columns, forms and pages."""

from pathlib import Path

import pytest

from storage.records import Document
from tasks.load.sources import compose, read_sources
from tests.hostile.made import pdf_of, pdf_stream

ANNOTATION = "<< /Type /Annot /Subtype /{} /Rect [72 {} 272 {}] /F 4 >>"
FIELDS = [
    ANNOTATION.format("Widget /FT /Tx /T (keeper) /V (Ada Frimm)", 600, 620),
    ANNOTATION.format("Widget /FT /Tx /T (b[0]) /TU (Berth) /V (12)", 570, 590),
    ANNOTATION.format("Widget /FT /Tx /T (empty)", 540, 560),
    ANNOTATION.format("FreeText /Contents (Typed onto it.)", 500, 520),
]


def shown(*lines: str) -> str:
    """Lines in Helvetica, one below the other; an empty string leaves a gap."""
    return "BT /F1 12 Tf 72 720 Td " + " ".join(f"({line}) Tj 0 -14 Td" for line in lines) + " ET"


def placed(*texts: tuple[float, float, str], size: float = 12) -> str:
    """Texts, each at its own place."""
    return "".join(f"BT /F1 {size} Tf {x} {y} Td ({text}) Tj ET " for x, y, text in texts)


def table(rows: list[list[str]]) -> str:
    """Rows of cells, 120 points wide and 18 high."""
    return placed(
        *(
            (72 + 120 * column, 720 - 18 * line, cell)
            for line, row in enumerate(rows)
            for column, cell in enumerate(row)
        )
    )


def pdf(path: Path, *pages: str, title: str = "", trailer: str = "", fields: str = "") -> Path:
    """A PDF with these contents of pages; the first page has the form's fields."""
    objects = [
        "<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [4 0 R 5 0 R 6 0 R] >> >>",
        "",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        *FIELDS,
    ]
    kids: list[str] = []
    for content in pages:
        objects.append(pdf_stream(content))
        annotations = "" if kids else fields
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R "
            f"{annotations} /Resources << /Font << /F1 3 0 R >> >> >>"
        )
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    objects.append(f"<< /Title ({title}) >>")
    path.write_bytes(pdf_of(objects, f"/Info {len(objects)} 0 R {trailer}"))
    return path


def read(path: Path) -> Document:
    loaded = read_sources([path])
    assert not loaded.skipped
    return compose(loaded.parts)[0]


def text(folder: Path, *pages: str) -> str:
    return read(pdf(folder / "a.pdf", *pages)).text


def pages_of(document: Document, *words: str) -> list[int | None]:
    return [document.page_of(document.text.index(word)) for word in words]


def test_lines_become_paragraphs_without_running_heads(tmp_path: Path) -> None:
    pages = [
        shown(
            "Harbour Guide",
            "",
            f"On page {word} the long-distance ferry leaves for the transpor-",
            "tation centre at noon.",
            "",
            str(number),
        )
        for number, word in enumerate(("one", "two", "three", "four"), 1)
    ]
    document = read(pdf(tmp_path / "a.pdf", *pages, title="The Guide"))
    assert document.title == "The Guide"
    assert (
        document.text.split("\n\n")[1]
        == "On page two the long-distance ferry leaves for the transportation centre at noon."
    )
    assert "Harbour Guide" not in document.text
    assert pages_of(document, "one", "three", "four") == [1, 3, 4]


def test_years_at_the_top_of_pages_are_no_page_numbers(tmp_path: Path) -> None:
    amounts = {2021: "Ten", 2022: "Twenty", 2023: "Thirty"}
    pages = [
        shown(f"Sales in {year}", "", f"{amount} crowns.", "", f"The Guide 1{year % 10}")
        for year, amount in amounts.items()
    ]
    said = text(tmp_path, *pages)
    assert all(f"Sales in {year}" in said for year in amounts)
    assert "The Guide" not in said


LOCKED = (
    f"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <{'12' * 32}> /U <{'34' * 32}> >> "
    "/ID [<00> <00>]"
)


@pytest.mark.parametrize(
    ("pages", "trailer", "reason"),
    [
        ([shown()], "", "no text"),
        ([shown("Secret")], LOCKED, "encrypted (a password is needed)"),
        ([], "", "has no pages"),
    ],
)
def test_a_pdf_that_cannot_be_read_says_why(
    pages: list[str], trailer: str, reason: str, tmp_path: Path
) -> None:
    loaded = read_sources([pdf(tmp_path / "a.pdf", *pages, trailer=trailer)])
    assert [one.reason for one in loaded.skipped] == [reason]


@pytest.mark.parametrize(
    ("before", "raised", "after", "said"),
    [
        ("It holds 10", "6", " litres.", "It holds 10^6 litres."),
        ("3 x 10", "-12", " m", "3 x 10^-12 m"),
        ("Sold in 1931", "2", ".", "Sold in 1931^2."),
        ("", "2", " The buyer was Korb.", "^2 The buyer was Korb."),
        ("The 21", "st", " pier", "The 21st pier"),
    ],
)
def test_raised_digits_stay_raised(
    before: str, raised: str, after: str, said: str, tmp_path: Path
) -> None:
    words = f"({before}) Tj 5 Ts /F1 7 Tf ({raised}) Tj 0 Ts /F1 12 Tf ({after}) Tj"
    assert text(tmp_path, f"BT /F1 12 Tf 72 720 Td {words} ET") == said


def test_lowered_digits_are_plain(tmp_path: Path) -> None:
    words = "(H) Tj -3 Ts /F1 7 Tf (2) Tj 0 Ts /F1 12 Tf (O is wet.) Tj"
    assert text(tmp_path, f"BT /F1 12 Tf 72 720 Td {words} ET") == "H2O is wet."


HEADER = ["Pier", "Keeper", "Fee"]
ROWS = [["North", "Ada Korb", "12"], ["South", "Bert Reyd", "9"], ["East", "Ilse Vance", "31"]]
SAID = [f"Pier: {pier} | Keeper: {keeper} | Fee: {fee}" for pier, keeper, fee in ROWS]


def test_each_row_of_a_table_names_its_columns(tmp_path: Path) -> None:
    above, below = "The piers of the coast", "All the piers of the coast were inspected in 2019."
    page = placed((72, 760, above)) + table([HEADER, *ROWS]) + placed((72, 600, below))
    assert text(tmp_path, page).splitlines() == [above, "", "Pier | Keeper | Fee", *SAID, "", below]


def test_a_table_keeps_its_names_on_the_next_page(tmp_path: Path) -> None:
    pages = [table([HEADER, *ROWS]), table([["West", "Quirin", "4"], ["Mid", "Oke", "5"]])]
    document = read(pdf(tmp_path / "a.pdf", *pages))
    assert document.text.splitlines()[4:] == [
        "",
        "Pier: West | Keeper: Quirin | Fee: 4",
        "Pier: Mid | Keeper: Oke | Fee: 5",
    ]
    assert pages_of(document, "East", "West", "Mid") == [1, 2, 2]


def test_a_wrapped_cell_is_one_cell(tmp_path: Path) -> None:
    rows = {
        720: ("Pier", "Remark", "Fee"),
        696: ("North", "Repaired after the storm of", "12"),
        684: ("", "the long winter", ""),
        660: ("South", "Open", "9"),
        636: ("East", "Open", "31"),
    }
    cells = [
        (x, y, cell)
        for y, row in rows.items()
        for x, cell in zip((72, 160, 400), row, strict=True)
        if cell
    ]
    late = next(cell for cell in cells if cell[2] == "12")  # Drawn after the wrapped cell.
    cells.remove(late)
    cells.insert(cells.index((160, 684, "the long winter")) + 1, late)
    said = text(tmp_path, placed(*cells, size=10))
    assert "Pier: North | Remark: Repaired after the storm of the long winter | Fee: 12" in said


def test_columns_drawn_line_by_line_are_read_one_by_one(tmp_path: Path) -> None:
    left = "The northern weir was|designed by Ada Korb in|1902. It was rebuilt in|1950 by millers."
    right = (
        "The southern weir was|built by Bert Reyd in the|year 1931. It holds three|cubic metres."
    )
    columns = [(72, left.split("|")), (320, right.split("|"))]
    lines = [(x, 720 - 16 * line, words[line]) for line in range(4) for x, words in columns]
    said = text(tmp_path, placed(*lines))
    assert " ".join(said.split()) == f"{left}|{right}".replace("|", " ")


def test_a_list_and_wide_gaps_are_no_table(tmp_path: Path) -> None:
    steps = [f"Close the gate number {n} of the lock." for n in range(1, 5)]
    items = [
        (x, 720 - 16 * n, words)
        for n, step in enumerate(steps, 1)
        for x, words in ((72, f"{n}."), (110, step))
    ]
    assert text(tmp_path, placed(*items)).splitlines() == [
        f"{n}. {step}" for n, step in enumerate(steps, 1)
    ]
    wide = [(72, 700, "The gate"), (160, 700, "of the lock"), (72, 684, "was closed at")]
    assert "|" not in text(tmp_path, placed(*wide, (190, 684, "noon.")))


def test_values_of_a_form_are_read_on_their_page(tmp_path: Path) -> None:
    pages = [shown("A request."), shown("More of it.")]
    fields = "/Annots [4 0 R 5 0 R 6 0 R 7 0 R]"
    document = read(pdf(tmp_path / "a.pdf", *pages, fields=fields))
    assert pages_of(document, "Ada Frimm", "12", "More") == [1, 1, 2]
