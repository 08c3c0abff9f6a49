"""What is a community of entities about? Title, summary, rating, and findings tied to statements (GraphRAG 2.5).

Cheap first: where all statements fit into the findings of a small report they are quoted; a model would only repeat
them.
"""

import math
from collections.abc import Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.language.words import is_han
from prompts.tailoring.step import TailoredStep

MAX_FINDINGS = 6
# What is quoted as a whole instead of reported on by a model: so few statements, or so few entities and findings.
FEW_STATEMENTS = 3
FEW_ENTITIES = 3
# What a model reads of a large community's entities; all that the statements name are among them mostly.
MOST_ENTITIES = 60


class StatementGiven(BaseModel):
    """A sentence of the evidence, with the entities it ties together and their combined degree."""

    number: int
    text: str
    entities: tuple[str, ...]
    degree: int


class FindingWritten(BaseModel):
    """One insight and the statements that show it."""

    summary: str = Field(description="One sentence.")
    explanation: str = Field(description="One to three sentences.")
    statements: list[int] = Field(min_length=1, description="Numbers of the statements that show it.")


class ReportWritten(BaseModel):
    """A report on a community."""

    title: str = Field(description="Short, names the main entities.")
    summary: str = Field(description="Two or three sentences.")
    rating: float = Field(ge=0, le=10, description="How much the group matters to a reader of the documents.")
    rating_reason: str = Field(description="One sentence.")
    findings: list[FindingWritten]


class WriteReport(dspy.Signature):
    """Report on a group of related entities from numbered statements alone, in the statements' language, in at most six
    findings."""

    entities: list[str] = dspy.InputField(
        desc="Name, or name: description where the statements lack it; most connected first."
    )
    statements: list[str] = dspy.InputField(desc="Numbered, most connected first.")
    report: ReportWritten = dspy.OutputField()


class WriteReports(TailoredStep):
    """A community's entities and statements → its report."""

    step = "report"
    role = "report"
    task = WriteReport
    own_language = "the statements' language"

    def sure(self, entities: Sequence[tuple[str, str]], statements: Sequence[StatementGiven]) -> ReportWritten | None:
        """The report that needs no model; None where one is to be asked."""
        if self.is_offline:
            return report_offline(entities, statements)
        return _quoting(entities, statements, statements) if is_small(entities, statements) else None

    async def run(self, entities: Sequence[tuple[str, str]], statements: Sequence[StatementGiven]) -> ReportWritten:
        if self.is_offline:
            return report_offline(entities, statements)
        prediction = await self.acall(
            entities=_introduced(entities[:MOST_ENTITIES], statements),
            statements=[f"[{statement.number}] {statement.text}" for statement in statements],
        )
        report: ReportWritten = prediction.report
        return report


def is_small(entities: Sequence[tuple[str, str]], statements: Sequence[StatementGiven]) -> bool:
    """Whether quoting every statement makes the whole report."""
    return len(statements) <= FEW_STATEMENTS or (len(entities) <= FEW_ENTITIES and len(statements) <= MAX_FINDINGS)


def _introduced(entities: Sequence[tuple[str, str]], statements: Sequence[StatementGiven]) -> list[str]:
    """Names, with the descriptions that the statements do not hold already."""
    said = "\n".join(statement.text for statement in statements)
    return [
        f"{name}: {description}" if description and description not in said else name for name, description in entities
    ]


def report_offline(entities: Sequence[tuple[str, str]], statements: Sequence[StatementGiven]) -> ReportWritten:
    """A report of quoted statements, chosen greedily so that they cover the community's entities."""
    return _quoting(entities, statements, _cover(statements))


def _quoting(
    entities: Sequence[tuple[str, str]], statements: Sequence[StatementGiven], chosen: Sequence[StatementGiven]
) -> ReportWritten:
    names = [name for name, _ in entities]
    chinese = is_han(" ".join(statement.text for statement in chosen[:3]))
    joint = "、" if chinese else ", "
    size, links = len(entities), len(statements)
    reason = f"{size} 个实体，{links} 条陈述" if chinese else f"{size} entities and {links} statements"
    return ReportWritten(
        title=joint.join(names[:3]),
        summary=" ".join(statement.text for statement in chosen[:3]),
        rating=round(min(10.0, 1.5 * math.log2(1 + size)), 1),
        rating_reason=reason,
        findings=[
            FindingWritten(
                summary=joint.join(statement.entities), explanation=statement.text, statements=[statement.number]
            )
            for statement in chosen
        ],
    )


def _cover(statements: Sequence[StatementGiven]) -> list[StatementGiven]:
    """Up to MAX_FINDINGS statements; each adds the most entities not covered yet, degree breaks ties."""
    left, covered, chosen = list(statements), set[str](), list[StatementGiven]()
    while left and len(chosen) < MAX_FINDINGS:
        best = max(left, key=lambda s: (len(set(s.entities) - covered), s.degree, -len(s.text), -s.number))
        if chosen and not set(best.entities) - covered:
            break
        chosen.append(best)
        covered |= set(best.entities)
        left = [statement for statement in left if statement.text != best.text]
    return chosen
