"""Delimited tables: which sign divides their cells, and where their header stands."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.load.sources import read_sources
from tasks.load.tables import read_table, write_table


def lines(text: str) -> list[str]:
    return write_table([cells for _, cells in read_table(text, None)]).lines


@pytest.mark.parametrize(
    "above",
    [
        "",
        "sep=;\n",
        '"sep=;"\n',
        "Ferries of the Sound\n",
        "Ferries, 2023\nprinted on 3 May, at noon\n\n",
        "# made by a, b, c\n",
        "Ferries\tof\n",
        "".join(f"Line {number} of the licence\n" for number in range(20)),
    ],
)
def test_a_table_begins_below_what_stands_above_it(above: str) -> None:
    read = lines(f"{above}Pier;Keeper;Fee\nNorth;Korb, Ada;3,5\nSouth;Reyd, Bert;4,25\n")
    assert read[-2:] == [
        "Pier: North | Keeper: Korb, Ada | Fee: 3,5",
        "Pier: South | Keeper: Reyd, Bert | Fee: 4,25",
    ]
    titles = [" ".join(line.split()) for line in above.splitlines() if line and "sep=" not in line]
    assert read[:-3] == titles


GROUPED = "Pier: North | {0} / Boats: 9 | {0} / Fee: 3 | {1} / Boats: 8 | {1} / Fee: 4"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("a;b\n1,5;2,5\n3,5;4,5\n", "a: 1,5 | b: 2,5"),
        ("Day;Remark\n03.04.2024;calm, cold\n", "Day: 03.04.2024 | Remark: calm, cold"),
        ("Code,Means\na | b,either\na || b,the first\n", "Code: a | b | Means: either"),
        ("Pier|Fee\nNorth|3,5\n", "Pier: North | Fee: 3,5"),
        ("Name; whole,Pier\nKorb; Ada,North\n", "Name; whole: Korb; Ada | Pier: North"),
        ('Pier, Keeper, Fee\nNorth, "Korb, Ada", 3\n', "Pier: North | Keeper: Korb, Ada | Fee: 3"),
        ("Piers, 2023\nPier,Fee\nNorth,3\nSouth,4\n", "Pier: North | Fee: 3"),
        ("Area,Sound,\nBy,Office,\n,,\nDay,Low,High\n3 May,3,9\n", "Day: 3 May | Low: 3 | High: 9"),
        ("Book,Author,Author\nTides,Ann,Bob\n", "Book: Tides | Author: Ann | Author 2: Bob"),
        ("Pier,Fee\nNorth,3,4,5\nSouth\n", "Pier: North | Fee: 3 | 4 | 5"),
        ("#x,y\n1,2\n3,4\n", "x: 1 | y: 2"),
        ('Pipe,Size\n"5 inch,12\n6 inch,13\n', 'Pipe: "5 inch | Size: 12'),
        (
            'Who,Said\nKorb,"\\"no, never\\", twice"\nReyd,"x"\n',
            'Who: Korb | Said: "no, never", twice',
        ),
        ("Pier,Fee\n\nNorth,3\n\nSouth,4\n", "Pier: North | Fee: 3"),
        (
            ",Summer,,Winter,\nPier,Boats,Fee,Boats,Fee\nNorth,9,3,8,4\n",
            GROUPED.format("Summer", "Winter"),
        ),
        (
            "Pier;2021;;2022;\n;Boats;Fee;Boats;Fee\nNorth;9;3;8;4\n",
            GROUPED.format("2021", "2022"),
        ),
        ("Pier,Fee\nNorth,3\n\nKeeper,Age\nKorb,34\n", "Keeper: Korb | Age: 34"),
        ("Pier,Keeper,Fee\nA,Korb,3\n\nB,Reyd,\nC,Vance,5\n", "Pier: B | Keeper: Reyd"),
        ("Pier,Fee\nNorth,3\nSource: the office, 2023\n", "Source: the office, 2023"),
    ],
)
def test_a_cell_stands_under_its_own_column(text: str, row: str) -> None:
    assert row in lines(text)


@pytest.mark.parametrize(
    "text",
    [
        "Remark\nThe pier is long, old and wet.\nClosed, see below.\nFine.\nGrey, high, cold.",
        "Keeper\nKorb, Ada\nReyd, Bert\nVance, Quirin",
        "Amount\n1,234\n5,678\n12,345",
    ],
)
def test_one_column_with_commas_stays_one_column(text: str) -> None:
    assert lines(text) == text.splitlines()


def test_a_tsv_without_tabs_is_cut_by_what_it_has(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("Pier;Fee\nNorth;3\nSouth;4\n", encoding="utf-8")
    (part,) = read_sources([tmp_path]).parts
    assert part.text.splitlines()[1] == "Pier: North | Fee: 3"


PIECES = st.sampled_from(["a", "12", "1,5", ", ", ";", ",", "\t", "|", '"', "\n", "# ", "x y"])


@given(st.lists(PIECES, max_size=40).map("".join))
@settings(deadline=None)
def test_no_word_of_a_table_is_lost(text: str) -> None:
    lost = Counter(re.findall(r"\w", text)) - Counter(re.findall(r"\w", "\n".join(lines(text))))
    assert not lost
