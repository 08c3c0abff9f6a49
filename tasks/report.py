"""Community reports: one cited report a community (GraphRAG 2.5), and which of them a small change leaves valid.

A community that a level took over unchanged from the one above has that one's report; single entities have none. A
report whose inputs did not change is taken over from the last generation.

Where anything that a community knew has gone or changed, its report is written anew. Where something was only added, it
stands until what was added is more than a set share of the community: else one new document would rewrite the reports
of all the levels above it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from prompts.engine.errors import ModelRefused
from prompts.report import ReportWritten, WriteReports, report_offline
from storage.graph_records import Community, Finding, Report
from storage.records import DeadLetter, Record
from tasks.batching import gather_or_cancel
from tasks.partition import Followed
from tasks.report_context import Context, Desk, Evidence, Source
from tasks.step import PATIENT, step

__all__ = ["Evidence", "report"]

# As inputs of a report that a model should have written: no later run takes it over.
_NOT_AS_ASKED = ""
REPORT_TOKENS = 3_000
# Hears that so many of so many are done.
Told = Callable[[int, int], None]


def _finish(community: Community, written: ReportWritten, sources: Sequence[Source], inputs: str) -> Report:
    """Bind each finding to all places of the statements that it cites; a number that was not given is dropped, and a
    finding left without any with it: it rests on nothing."""
    by_number = {source.given.number: source for source in sources}
    findings = []
    for finding in written.findings:
        cited = [by_number[number] for number in finding.statements if number in by_number]
        places = list(dict.fromkeys(place for source in cited for place in source.places))
        if places:
            first, *more = places
            findings.append(
                Finding(
                    summary=finding.summary,
                    explanation=finding.explanation,
                    document=first.document,
                    start=first.start,
                    end=first.end,
                    more=tuple(more),
                )
            )
    return Report(
        community=community.id,
        level=community.level,
        title=written.title,
        summary=written.summary,
        rating=written.rating,
        rating_reason=written.rating_reason,
        findings=tuple(findings),
        inputs=inputs,
    )


class Reported(Record):
    """Reports in the order of their communities; a dead letter for each that a model refused to write."""

    reports: tuple[Report, ...]
    dead_letters: tuple[DeadLetter, ...]


def _nobody(_done: int, _total: int) -> None:
    """Nobody asks how far it is."""


@step("report", PATIENT)
async def report(
    communities: Sequence[Community],
    evidence: Evidence,
    writer: WriteReports,
    known: Mapping[str, Report],
    limit: int = REPORT_TOKENS,
    told: Told = _nobody,
) -> Reported:
    """Reports of all communities that differ from their parent and have a statement; `known`: by input hashes.
    Reports that the evidence holds are not written again.

    What is written from fits into `limit` tokens. All that fit as they are go out at once; the others wait for the
    reports of the level below; `told` hears after each round how many of how many are there. Where a model gives no
    usable answer the statements are quoted instead, until the next run asks again.
    """
    desk = Desk(evidence, communities, limit)
    writing = _Writing(desk, writer, known)
    large: dict[int, list[Community]] = defaultdict(list)
    small: list[tuple[Community, Context]] = []
    desk.reports.update({one.community: one for one in evidence.reports})
    for community in of_their_own(communities):
        if community.id in desk.reports:
            continue
        context = desk.whole(community, writer.author)
        if context is None:
            large[community.level].append(community)
        else:
            small.append((community, context))
    await writing.write(small)
    done, total = len(small), len(small) + sum(map(len, large.values()))
    told(done, total)
    for level in sorted(large, reverse=True):
        await writing.write([(community, desk.shortened(community, writer.author)) for community in large[level]])
        done += len(large[level])
        told(done, total)
    return Reported(
        reports=tuple(desk.reports[one.id] for one in communities if one.id in desk.reports),
        dead_letters=tuple(writing.dead_letters),
    )


def of_their_own(communities: Sequence[Community]) -> list[Community]:
    """Those of several entities that differ from the community above."""
    members = {community.id: community.members for community in communities}
    return [one for one in communities if len(one.members) > 1 and members.get(one.parent or "") != one.members]


class _Writing:
    """Reports on their way: taken over, quoted, or asked of a model side by side."""

    def __init__(self, desk: Desk, writer: WriteReports, known: Mapping[str, Report]) -> None:
        self.desk = desk
        self.writer = writer
        self.known = known
        self.dead_letters: list[DeadLetter] = []

    async def write(self, contexts: Sequence[tuple[Community, Context]]) -> None:
        """Put the reports of these communities on the desk."""
        asked: list[tuple[Community, Context]] = []
        for community, context in contexts:
            if not context.sources:
                continue
            if context.inputs in self.known:
                kept = {"community": community.id, "level": community.level, "stale": 0.0}
                self.desk.reports[community.id] = self.known[context.inputs].model_copy(update=kept)
            elif (written := self.writer.sure(context.members, context.given)) is not None:
                self.desk.reports[community.id] = _finish(community, written, context.sources, context.inputs)
            else:
                asked.append((community, context))
        # A task for each call, not for each community: a graph has ten times as many.
        for made, letter in await gather_or_cancel(self._ask(community, context) for community, context in asked):
            self.desk.reports[made.community] = made
            if letter is not None:
                self.dead_letters.append(letter)

    async def _ask(self, community: Community, context: Context) -> tuple[Report, DeadLetter | None]:
        try:
            written = await self.writer.run(context.members, context.given)
        except ModelRefused as error:
            quoted = report_offline(context.members, context.given)
            letter = DeadLetter(item=community.id, step="report", error=error.message, remedy=error.remedy)
            return _finish(community, quoted, context.sources, _NOT_AS_ASKED), letter
        return _finish(community, written, context.sources, context.inputs), None


def still_valid_reports(
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
