"""The workbench: sorting, ranges, totals and courses by SQL over a question's figures."""

from storage.workbench import Bounds, CellRow, workbench

CELLS = [
    CellRow(cell=0, thing="Orla", number=5.0),
    CellRow(cell=1, thing="Vell", number=-2.0),
    CellRow(cell=2, thing="Hask", number=3.0),
    CellRow(cell=3, thing="Hask", number=4.0),
    CellRow(cell=4, thing="Ister'; DROP TABLE cells; --", number=7.0),
]


def test_cells_of_one_thing_and_period_are_added_and_equal_ones_keep_their_order() -> None:
    with workbench(CELLS) as bench:
        rows = bench.ordered("descending")
        assert [(row.thing, row.number, row.cells) for row in rows] == [
            ("Hask", 7.0, (2, 3)),
            ("Ister'; DROP TABLE cells; --", 7.0, (4,)),
            ("Orla", 5.0, (0,)),
            ("Vell", -2.0, (1,)),
        ]
        assert [row.thing for row in bench.ordered("ascending", most=2)] == ["Vell", "Orla"]
        totals = bench.totals()
        assert (totals.count, totals.total, totals.mean) == (4, 17.0, 4.25)


def test_a_figure_is_in_the_first_range_that_holds_it() -> None:
    bands = [
        Bounds(low=5.0, high=None, low_in=False, high_in=False),
        Bounds(low=0.0, high=5.0, low_in=False, high_in=True),
    ]
    with workbench(CELLS) as bench:
        assert [(place, row.thing[:5]) for place, row in bench.banded(bands)] == [
            (0, "Hask"), (0, "Ister"), (1, "Orla"), (None, "Vell"),
        ]  # fmt: skip
        assert [row.thing for row in bench.within(bands[1])] == ["Orla"]


def test_a_course_has_changes_and_shares_of_each_thing_by_itself() -> None:
    figures = [("a", 0, 10.0), ("a", 1, 15.0), ("a", 2, -3.0), ("b", 0, 0.0), ("b", 1, 1.0)]
    cells = [
        CellRow(cell=number, thing=thing, slot=slot, number=figure)
        for number, (thing, slot, figure) in enumerate(figures)
    ]
    with workbench(cells) as bench:
        assert [(step.row.thing, step.change, step.growth) for step in bench.steps()] == [
            ("a", None, None), ("a", 5.0, 0.5), ("a", -18.0, -1.2), ("b", None, None), ("b", 1.0, None),
        ]  # fmt: skip


def test_benches_do_not_see_each_other_and_an_empty_one_has_nothing() -> None:
    with workbench(CELLS) as first, workbench([]) as second:
        assert second.ordered("descending") == []
        assert second.totals().count == 0
        assert first.totals().count == 4
