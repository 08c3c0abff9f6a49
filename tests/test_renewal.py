"""When does a report stand although its community has changed?"""

import pytest

from storage.graph_records import Community, Report
from tasks.communities import Followed
from tasks.report import still_valid_reports

PEOPLE = tuple(f"e{number:02}" for number in range(20))
BEFORE = Community(id="was", level=0, parent=None, members=PEOPLE)
AFTER = Community(id="is", level=0, parent=None, members=(*PEOPLE, "new"))
REPORT = Report(
    community="was", level=0, title="t", summary="s", rating=1.0, rating_reason="r", findings=(), inputs="inp_1"
)


def kept(
    report: Report = REPORT,
    lost: set[str] | None = None,
    gained: set[str] | None = None,
    left: tuple[str, ...] = (),
    limit: float = 0.1,
) -> list[Report]:
    followed = Followed(communities=(AFTER,), outdated=("was",), was={"is": "was"}, left=left, parents={"was": "is"})
    return still_valid_reports([AFTER], {"was": report}, followed, lost or set(), gained or {"new"}, limit)


def test_a_report_stands_where_little_was_added_and_says_how_much() -> None:
    (report,) = kept()
    assert report.community == "is"
    assert report.stale == pytest.approx(1 / 21)


def test_what_is_added_again_and_again_adds_up() -> None:
    (report,) = kept(kept()[0].model_copy(update={"community": "was"}))
    assert report.stale == pytest.approx(2 / 21)
    assert kept(report, limit=0.1) == []


@pytest.mark.parametrize(
    "changed",
    [{"lost": {"e03"}}, {"left": ("is",)}, {"gained": {"new", "e01", "e02"}}, {"limit": 0.0}],
    ids=["something of a member has gone", "a member has left", "much was added", "nothing may be added"],
)
def test_else_it_is_written_anew(changed: dict[str, object]) -> None:
    assert kept(**changed) == []  # type: ignore[arg-type]


def test_what_a_model_could_not_write_is_tried_again() -> None:
    assert kept(REPORT.model_copy(update={"inputs": ""})) == []
