"""Community reports: title, summary, rating, and findings that cite statements (GraphRAG 2.5).

A few statements, which a model could only repeat, are quoted instead.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

import dspy
from pydantic import BaseModel, Field

from prompts.engine.adapter import StepAdapter
from prompts.engine.messages import Doubtful
from prompts.engine.models import Models
from prompts.engine.step import Inputs, Outputs
from prompts.tailored_step import TailoredStep
from prompts.tailoring import Tailoring
from prompts.text.words import is_han

MOST_QUOTED = 6  # statements in a report that no model writes
MOST_FOUND = 5  # findings of a small model
FEW_STATEMENTS = 3  # statements that a model's report could only repeat
_NUMBER = re.compile(r"\[(\d+)\]")


class StatementGiven(BaseModel):
    """A sentence of the evidence, with the entities it ties together and their combined degree."""

    number: int
    text: str
    entities: tuple[str, ...]
    degree: int


class FindingWritten(BaseModel):
    """One insight and the statements that show it."""

    summary: str
    explanation: str
    statements: list[int] = Field(min_length=1)


class ReportWritten(BaseModel):
    """A report on a community."""

    title: str = Field(description="What ties the group together, with its main names.")
    summary: str = Field(description="A paragraph.")
    rating_reason: str
    rating: float = Field(ge=0, le=10)
    findings: list[FindingWritten]


class WriteReport(dspy.Signature):
    """Write a report on a group of closely tied entities from the numbered statements, for readers
    who do not have them.

    Look for what several statements show together: who acts on whom, causes and effects, courses
    of events, rules and exceptions, figures to compare, disagreements. That is worth more than
    single statements repeated.

    findings: five to ten, fewer where the statements give no more. Each is one insight: a summary
    in a sentence, an explanation in a paragraph with names, figures, dates and places as written,
    and the numbers of the statements that it rests on, the most important first; no numbers in the
    text. Findings differ, and together they cover what matters. Give both sides of a
    contradiction. What is doubted, denied or planned stays so. Conclude only what the statements
    carry.

    rating: how much the group matters to the whole collection. 9-10: the collection turns on it;
    7-8: a main thread; 5-6: worth a chapter; 3-4: a detail of something larger; 1-2: incidental;
    0: only names.
    """

    entities: list[str] = dspy.InputField()
    statements: list[str] = dspy.InputField()
    report: ReportWritten = dspy.OutputField()


class FindingListed(BaseModel):
    """One insight, after the statements that show it."""

    statements: list[int] = Field(min_length=1, max_length=4)
    text: str = Field(max_length=300)


class ReportListed(BaseModel):
    """What a small model writes on a community; its title would repeat the headings it reads."""

    findings: list[FindingListed] = Field(min_length=1, max_length=MOST_FOUND)
    summary: str = Field(max_length=400)


class ListReport(dspy.Signature):
    """Write a report on these entities from the numbered statements.

    findings: each one insight in a sentence, with the numbers of the statements that show it.
    summary: two sentences on what matters most about them, without a word about the report.
    """

    entities: list[str] = dspy.InputField()
    statements: list[str] = dspy.InputField()
    report: ReportListed = dspy.OutputField()


class WriteReports(TailoredStep):
    """A community's entities and statements → its report."""

    step = "report"
    role = "report"
    task = WriteReport
    writes_in = "statements"
    output_format = StepAdapter(items=True)

    def sure(
        self, entities: Sequence[tuple[str, str]], statements: Sequence[StatementGiven]
    ) -> ReportWritten | None:
        """The report without a model; None where a model has to write it."""
        if self.is_offline:
            return report_offline(entities, statements)
        few = self.sparing and len(statements) <= FEW_STATEMENTS
        return _quoting(entities, statements, statements) if few else None

    async def run(
        self, entities: Sequence[tuple[str, str]], statements: Sequence[StatementGiven]
    ) -> ReportWritten:
        """The model's report, for where `sure` gives None."""
        report: ReportWritten = await self._asked(entities, statements)
        return report

    async def _asked(
        self, entities: Sequence[tuple[str, str]], statements: Sequence[StatementGiven]
    ) -> Any:
        prediction = await self.acall(
            entities=_introduced(entities, statements),
            statements=[f"[{statement.number}] {statement.text}" for statement in statements],
        )
        return prediction.report

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """Raise Doubtful where a finding cites none of the given statements."""
        known = {
            int(match[1])
            for statement in inputs["statements"]
            if (match := _NUMBER.match(statement))
        }
        findings = outputs["report"].findings
        strays = [
            finding.summary[:60] for finding in findings if not known & set(finding.statements)
        ]
        if strays:
            raise Doubtful(
                f"the finding {strays[0]!r} cites no number of a statement that is given.",
                dict(outputs),
            )


class WriteReportsBriefly(WriteReports):
    """`WriteReports` for a small model: a bounded report, the statements before each sentence.

    Its title is its main names, and it is rated by its size. Qwen2.5 with 1.5 billion parameters
    wrote nothing that the statements lack in this form, in less than half the time
    (docs/experiments.md).
    """

    task = ListReport
    output_format = StepAdapter(items=True, bounded=True)

    async def run(
        self, entities: Sequence[tuple[str, str]], statements: Sequence[StatementGiven]
    ) -> ReportWritten:
        """The model's report; a finding is headed by the names that its first statement ties."""
        listed: ReportListed = await self._asked(entities, statements)
        tied = {statement.number: statement.entities for statement in statements}
        names = [name for name, _ in entities]
        findings = [
            FindingWritten(
                summary=_joined(next(filter(None, map(tied.get, finding.statements)), names[:3])),
                explanation=finding.text,
                statements=finding.statements,
            )
            for finding in listed.findings
        ]
        rating, reason = _rated(len(entities), statements)
        return ReportWritten(
            title=_titled(entities),
            summary=listed.summary,
            rating=rating,
            rating_reason=reason,
            findings=findings,
        )


def report_writer(models: Models, tailoring: Tailoring, sparing: bool) -> WriteReports:
    """The step that writes reports, in the form that the models can keep."""
    small = models.policy.profile == "small"
    return (WriteReportsBriefly if small else WriteReports)(models, tailoring, sparing)


def _introduced(
    entities: Sequence[tuple[str, str]], statements: Sequence[StatementGiven]
) -> list[str]:
    """Names, with descriptions that are not part of the statements."""
    text = "\n".join(statement.text for statement in statements)
    return [
        f"{name}: {description}" if description and description not in text else name
        for name, description in entities
    ]


def report_offline(
    entities: Sequence[tuple[str, str]], statements: Sequence[StatementGiven]
) -> ReportWritten:
    """A report of quoted statements that cover the community's entities, chosen greedily."""
    return _quoting(entities, statements, _cover(statements))


def _quoting(
    entities: Sequence[tuple[str, str]],
    statements: Sequence[StatementGiven],
    chosen: Sequence[StatementGiven],
) -> ReportWritten:
    rating, reason = _rated(len(entities), statements)
    return ReportWritten(
        title=_titled(entities),
        summary=" ".join(statement.text for statement in chosen[:3]),
        rating=rating,
        rating_reason=reason,
        findings=[
            FindingWritten(
                summary=_joined(statement.entities),
                explanation=statement.text,
                statements=[statement.number],
            )
            for statement in chosen
        ],
    )


def _rated(size: int, statements: Sequence[StatementGiven]) -> tuple[float, str]:
    """The rating of a group of so many entities by its size, and the reason in words."""
    links = len(statements)
    chinese = is_han(" ".join(statement.text for statement in statements[:3]))
    reason = (
        f"{size} 个实体，{links} 条陈述" if chinese else f"{size} entities and {links} statements"
    )
    return round(min(10.0, 1.5 * math.log2(1 + size)), 1), reason


def _titled(entities: Sequence[tuple[str, str]]) -> str:
    """The names of the first three entities."""
    return _joined([name for name, _ in entities[:3]])


def _joined(names: Sequence[str]) -> str:
    return ("、" if is_han(" ".join(names)) else ", ").join(names)


def _cover(statements: Sequence[StatementGiven]) -> list[StatementGiven]:
    """Up to MOST_QUOTED statements; each adds the most new entities, degree breaks ties."""
    left, covered, chosen = list(statements), set[str](), list[StatementGiven]()
    while left and len(chosen) < MOST_QUOTED:
        best = max(
            left, key=lambda s: (len(set(s.entities) - covered), s.degree, -len(s.text), -s.number)
        )
        if chosen and not set(best.entities) - covered:
            break
        chosen.append(best)
        covered |= set(best.entities)
        left = [statement for statement in left if statement.text != best.text]
    return chosen
