"""PDF files: lines, raised digits, tables, columns, forms and the pages of all of them."""

from pathlib import Path

import pytest

from storage.records import Document
from tasks.load.sources import compose, read_sources


def shown(lines: list[str]) -> str:
    """Lines in Helvetica, one below the other, an empty string leaving a gap."""
    return "BT /F1 12 Tf 72 720 Td " + " ".join(f"({line}) Tj 0 -14 Td" for line in lines) + " ET"


def placed(*texts: tuple[float, float, str], size: float = 12) -> str:
    """Texts, each at its own place."""
    return "".join(f"BT /F1 {size} Tf {x} {y} Td ({text}) Tj ET " for x, y, text in texts)


def table(rows: list[list[str]], top: float = 720, step: float = 18) -> str:
    """Rows of cells, 120 points wide."""
    return placed(
        *(
            (72 + 120 * column, top - step * line, cell)
            for line, row in enumerate(rows)
            for column, cell in enumerate(row)
        )
    )


def stream(content: str) -> str:
    return f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"


def pdf(
    path: Path, pages: list[str], title: str = "", locked: bool = False, fields: str = ""
) -> Path:
    """A PDF of these contents of pages; the first page has the form's fields."""
    objects = [
        "<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R 7 0 R 8 0 R] >> >>",
        "",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
        stream(""),
        (
            "<< /Type /Annot /Subtype /Widget /FT /Tx /T (keeper) /V (Ada Frimm) /Rect [72 600 272 "
            "620] /F 4 >>"
        ),
        (
            "<< /Type /Annot /Subtype /Widget /FT /Tx /T (b[0]) /TU (Berth) /V (12) /Rect [72 570 "
            "272 590] /F 4 >>"
        ),
        "<< /Type /Annot /Subtype /Widget /FT /Tx /T (empty) /Rect [72 540 272 560] /F 4 >>",
        (
            "<< /Type /Annot /Subtype /FreeText /Contents (Typed onto it.) /Rect [72 500 272 520] "
            "/F 4 >>"
        ),
    ]
    kids: list[str] = []
    for content in pages:
        objects.append(stream(content))
        annotations = fields if not kids else ""
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R "
            f"{annotations} /Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>"
        )
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    objects.append(f"<< /Title ({title}) >>")
    key = (
        f"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <{'12' * 32}> /U <{'34' * 32}> >> /ID "
        "[<00> <00>]"
    )
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    start = len(data)
    data += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    data += "".join(f"{place:010d} 00000 n \n" for place in places).encode()
    trailer = (
        f"<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R "
        f"{key if locked else ''} >>"
    )
    path.write_bytes(data + f"trailer\n{trailer}\nstartxref\n{start}\n%%EOF".encode())
    return path


def read(path: Path) -> Document:
    loaded = read_sources([path])
    assert not loaded.skipped
    return compose(loaded.parts)[0]


def text(path: Path, *pages: str) -> str:
    return read(pdf(path / "a.pdf", list(pages))).text


def reason(path: Path) -> str:
    return read_sources([path]).skipped[0].reason


def test_pdf_pages_paragraphs_hyphens_and_running_heads(tmp_path: Path) -> None:
    pages = [
        [
            "Harbour Guide",
            "",
            f"On page {word} the long-distance ferry leaves for the transpor-",
            "tation centre at noon.",
            "",
            f"{n}",
        ]
        for n, word in enumerate(("one", "two", "three", "four"), 1)
    ]
    document = read(pdf(tmp_path / "a.pdf", list(map(shown, pages)), title="The Guide"))
    assert document.title == "The Guide"
    assert (
        document.text.split("\n\n")[1]
        == "On page two the long-distance ferry leaves for the transportation centre at noon."
    )
    assert "Harbour Guide" not in document.text
    assert [document.page_of(document.text.index(word)) for word in ("one", "three", "four")] == [
        1,
        3,
        4,
    ]


def test_years_at_the_top_of_pages_are_no_page_numbers(tmp_path: Path) -> None:
    amounts = {2021: "Ten", 2022: "Twenty", 2023: "Thirty"}
    pages = [
        [f"Sales in {year}", "", f"{amount} crowns.", "", f"The Guide 1{year % 10}"]
        for year, amount in amounts.items()
    ]
    text = read(pdf(tmp_path / "a.pdf", list(map(shown, pages)))).text
    assert [f"Sales in {year}" in text for year in amounts] == [True, True, True]
    assert "The Guide" not in text


def test_a_pdf_without_text_and_an_encrypted_one_say_so(tmp_path: Path) -> None:
    assert reason(pdf(tmp_path / "scan.pdf", [shown([])])).startswith("no text")
    locked = pdf(tmp_path / "locked.pdf", [shown(["Secret"])], locked=True)
    assert reason(locked) == "encrypted (a password is needed)"


HEADER = ["Pier", "Keeper", "Fee"]
ROWS = [["North", "Ada Korb", "12"], ["South", "Bert Reyd", "9"], ["East", "Ilse Vance", "31"]]
SAID = [f"Pier: {pier} | Keeper: {keeper} | Fee: {fee}" for pier, keeper, fee in ROWS]


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (
            "(It holds 10) Tj 5 Ts /F1 7 Tf (6) Tj 0 Ts /F1 12 Tf ( litres.) Tj",
            "It holds 10^6 litres.",
        ),
        ("(3 x 10) Tj 5 Ts /F1 7 Tf (-12) Tj 0 Ts /F1 12 Tf ( m) Tj", "3 x 10^-12 m"),
        ("(Sold in 1931) Tj 5 Ts /F1 7 Tf (2) Tj 0 Ts /F1 12 Tf (.) Tj", "Sold in 1931^2."),
        ("5 Ts /F1 7 Tf (2) Tj 0 Ts /F1 12 Tf ( The buyer was Korb.) Tj", "^2 The buyer was Korb."),
        ("(H) Tj -3 Ts /F1 7 Tf (2) Tj 0 Ts /F1 12 Tf (O is wet.) Tj", "H2O is wet."),
        ("(The 21) Tj 5 Ts /F1 7 Tf (st) Tj 0 Ts /F1 12 Tf ( pier) Tj", "The 21st pier"),
    ],
)
def test_raised_digits_stay_raised(raised: str, said: str, tmp_path: Path) -> None:
    assert text(tmp_path, f"BT /F1 12 Tf 72 720 Td {raised} ET") == said


def test_each_row_of_a_table_is_a_line_with_its_column_names(tmp_path: Path) -> None:
    page = placed((72, 760, "The piers of the coast")) + table([HEADER, *ROWS])
    after = placed(
        (72, 600, "The last inspection of all the piers of the coast was in the year 2019.")
    )
    said = text(tmp_path, page + after)
    assert said.splitlines() == [
        "The piers of the coast",
        "",
        "Pier | Keeper | Fee",
        *SAID,
        "",
        "The last inspection of all the piers of the coast was in the year 2019.",
    ]


def test_a_table_goes_on_over_pages_with_its_names(tmp_path: Path) -> None:
    pages = [table([HEADER, *ROWS]), table([["West", "Quirin", "4"], ["Mid", "Oke", "5"]])]
    document = read(pdf(tmp_path / "a.pdf", pages))
    assert document.text.splitlines()[4:] == [
        "",
        "Pier: West | Keeper: Quirin | Fee: 4",
        "Pier: Mid | Keeper: Oke | Fee: 5",
    ]
    assert [document.page_of(document.text.index(pier)) for pier in ("East", "West", "Mid")] == [
        1,
        2,
        2,
    ]


def test_a_wrapped_cell_is_one_cell(tmp_path: Path) -> None:
    rows = placed(
        (72, 720, "Pier"),
        (160, 720, "Remark"),
        (400, 720, "Fee"),
        (72, 696, "North"),
        (160, 696, "Repaired after the storm of"),
        (160, 684, "the long winter"),
        (400, 696, "12"),
        (72, 660, "South"),
        (160, 660, "Open"),
        (400, 660, "9"),
        (72, 636, "East"),
        (160, 636, "Open"),
        (400, 636, "31"),
        size=10,
    )
    assert "Pier: North | Remark: Repaired after the storm of the long winter | Fee: 12" in text(
        tmp_path, rows
    )


def test_columns_drawn_line_by_line_are_read_one_by_one(tmp_path: Path) -> None:
    left = [
        "The northern weir was",
        "designed by Ada Korb in",
        "1902. It was rebuilt in",
        "1950 by the millers.",
    ]
    right = [
        "The southern weir was",
        "built by Bert Reyd in the",
        "year 1931. It holds three",
        "cubic metres of water.",
    ]
    lines = [
        (x, 720 - 16 * line, words)
        for line, both in enumerate(zip(left, right, strict=True))
        for x, words in zip((72, 320), both, strict=True)
    ]
    assert " ".join(text(tmp_path, placed(*lines)).split()) == " ".join(left + right)


def test_a_list_and_wide_blanks_are_no_table(tmp_path: Path) -> None:
    numbers = [(72.0, 720.0 - 16 * n, f"{n}.") for n in range(1, 5)]
    steps = [
        (110.0, 720.0 - 16 * n, f"Close the gate number {n} of the lock.") for n in range(1, 5)
    ]
    items = [item for pair in zip(numbers, steps, strict=True) for item in pair]
    assert text(tmp_path, placed(*items)).splitlines() == [
        f"{n}. Close the gate number {n} of the lock." for n in range(1, 5)
    ]
    wide = placed(
        (72, 700, "The gate"),
        (160, 700, "of the lock"),
        (72, 684, "was closed at"),
        (190, 684, "noon."),
    )
    assert "|" not in text(tmp_path, wide)


def test_what_is_filled_into_a_form_is_read_on_its_page(tmp_path: Path) -> None:
    fields = "/Annots [6 0 R 7 0 R 8 0 R 9 0 R]"
    document = read(
        pdf(tmp_path / "a.pdf", [shown(["A request."]), shown(["More of it."])], fields=fields)
    )
    assert [
        document.page_of(document.text.index(words)) for words in ("Ada Frimm", "12", "More")
    ] == [1, 1, 2]


def test_a_pdf_without_pages_says_so(tmp_path: Path) -> None:
    assert reason(pdf(tmp_path / "locked.pdf", [shown(["Secret"])], locked=True)).startswith(
        "encrypted"
    )
    assert reason(pdf(tmp_path / "none.pdf", [])) == "has no pages"
