"""Which reports does a small change make wrong, and which only a little incomplete?

Where anything that a community knew has gone or changed, its report is written anew. Where something was only added, it
stands until what was added is more than a set share of the community: else one new document would rewrite the reports
of all the levels above it.
"""

from collections.abc import Collection, Mapping, Sequence

from storage.records import Community, Report
from tasks.partition import Followed
from tasks.report import of_their_own


def standing(
    communities: Sequence[Community],
    reports: Mapping[str, Report],
    followed: Followed,
    lost: Collection[str],
    gained: Collection[str],
    limit: float,
) -> list[Report]:
    """The reports that stand, as reports of the communities that these have become.

    `reports`: the earlier ones, by the community that each had; `followed` tells which one a new community
    was.
    `lost` are entities of which something has gone or changed, `gained` those that something was added to; `limit` is
    the share of a community's members that may have gained something before its report is written anew.
    """
    found = []
    for one in of_their_own(communities):
        report = reports.get(followed.was.get(one.id, one.id))
        if (
            report is None
            or not report.inputs
            or one.id in followed.left
            or any(member in lost for member in one.members)
        ):
            continue
        stale = report.stale + sum(member in gained for member in one.members) / len(one.members)
        if stale <= limit:
            found.append(report.model_copy(update={"community": one.id, "level": one.level, "stale": stale}))
    return found
