"""Which cell of which document answers for each thing and period? (StructRAG, section 2.4: extract)

A thing is a document, or a row of a table of records. What is not there is said, not left out.
"""

import re
from collections.abc import Sequence

from prompts.language.table_plan import TablePlan
from tasks.utilize.reports import Match, of_documents
from tasks.utilize.rows import of_rows
from tasks.utilize.slots import Gathered
from tasks.utilize.subjects import Subject, named_in, same_name, without_names

_COMPANIES = re.compile(
    r"^(?:compan|firm|entit|business|corporation|report|document|filing|bank|trust|公司|企业|报告|文档|银行|集团)",
    re.I,
)


def gather(plan: TablePlan, question: str, subjects: Sequence[Subject], match: Match) -> Gathered | None:
    """The cells for a plan, or None where neither documents nor rows are the things that it asks about."""
    rows = of_rows(plan, subjects)
    if rows and _rather_rows(plan, subjects):
        return Gathered(plan, tuple(rows))
    chosen = _documents_asked(plan, question, subjects) if _may_be_documents(plan, subjects) else None
    if chosen:
        named, plan = chosen
        slots = of_documents(plan, named, match)
        if any(slot.cells for slot in slots):
            return Gathered(plan, tuple(slots))
    return Gathered(plan, tuple(rows)) if rows else None


def _documents_asked(
    plan: TablePlan, question: str, subjects: Sequence[Subject]
) -> tuple[dict[str, list[Subject]], TablePlan] | None:
    """The documents of each thing by its name, and the plan without names in its attribute."""
    by_thing = {thing: [subject for subject in subjects if subject.is_called(thing)] for thing in plan.things}
    if plan.things and not any(by_thing.values()):
        by_thing = {}
        for subject in named_in(question, subjects):
            by_thing.setdefault(subject.name, []).append(subject)
        if not by_thing:
            return None
        attribute = without_names(plan.attribute, [one for own in by_thing.values() for one in own])
        return by_thing, plan.model_copy(update={"attribute": attribute, "things": tuple(by_thing)})
    if plan.things:
        return by_thing, plan
    for subject in subjects:
        known = next((name for name, own in by_thing.items() if own[0].is_one_with(subject)), subject.name)
        if known in by_thing and not by_thing[known][0].is_one_with(subject):
            known = f"{known} ({subject.document})"  # two documents of one title are not one thing
        by_thing.setdefault(known, []).append(subject)
    return by_thing, plan


def _rather_rows(plan: TablePlan, subjects: Sequence[Subject]) -> bool:
    """Whether a question means rows ("which route") and not the documents; a name in a title is no document's own."""
    if plan.things:
        return not any(same_name(thing, own) for thing in plan.things for one in subjects for own in one.names)
    return bool(plan.noun) and not _COMPANIES.match(plan.noun)


def _may_be_documents(plan: TablePlan, subjects: Sequence[Subject]) -> bool:
    """Whether each document can be one of what is asked about: a company's report, but not "which route"."""
    named = sum(1 for one in subjects if one.names)
    return bool(plan.things) or not plan.noun or _COMPANIES.match(plan.noun) is not None or 2 * named > len(subjects)
