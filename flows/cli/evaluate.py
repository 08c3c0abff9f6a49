"""`trellis evaluate`: systems compared on a question set, and the gate."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.cli.common import COMMON, Common
from flows.cli.options import BudgetTokens, BudgetUsd, Count, Names, Record, names_of
from flows.cli.running import command
from flows.cli.screen import Screen
from flows.evaluate import EvaluationEnding, report_of, run_evaluation
from flows.evaluate import evaluate as evaluate_flow
from flows.operations.evaluation_page import figure, markdown_page
from flows.orchestration.local_server import keep_server
from storage.errors import EvaluationGate, UsageError
from storage.evaluation_records import (
    Evaluation,
    EvaluationReport,
    EvaluationResult,
)
from storage.run_records import Budget
from tasks.evaluate.gate import in_words as gate_in_words
from tasks.evaluate.tables import Cells, published_table

FAILED_ANSWERS = 1


@Parameter(name="*")
@dataclass(frozen=True)
class Comparison:
    """What is compared on what, and by which measures."""

    questions: Annotated[str | None, Parameter(metavar="FILE")] = None
    """Rows {id, question, answers, gold_documents, …}."""
    system: Annotated[tuple[str, ...], Parameter(metavar="SPEC")] = ()
    """Once for each: mode, effort, structure, k, workspace, generation, any setting, or
    answers=FILE; and a name (default: mode auto)."""
    measures: Names | None = None
    """Names, apart by commas (default: those that fit the questions)."""
    judge: Annotated[tuple[str, ...] | None, Parameter(metavar="A,B", consume_multiple=(0, 1))] = (
        None
    )
    """Compare every two systems' answers by a model: overall (default), comprehensiveness,
    diversity, empowerment, directness."""
    repeats: Count = 1
    """How often the judge looks at a pair in each order (default 1)."""
    limit: Count | None = None
    """Only the first questions."""
    budget_tokens: BudgetTokens = None
    budget_usd: BudgetUsd = None
    record: Record = False

    @property
    def criteria(self) -> list[str]:
        """What the judge compares by; `--judge` alone is `--judge overall`."""
        return [] if self.judge is None else names_of(",".join(self.judge) or "overall")

    @property
    def budget(self) -> Budget:
        """What it may take."""
        return Budget(tokens=self.budget_tokens, usd=self.budget_usd)


COMPARISON = Comparison()


@command
def evaluate(
    *,
    comparison: Comparison = COMPARISON,
    page: Path | None = None,
    gate: Path | None = None,
    accept: bool = False,
    listed: Annotated[bool, Parameter(name="--list")] = False,
    show: Count | None = None,
    table: str | None = None,
    against: Count | None = None,
    people: Path | None = None,
    remove: Count | None = None,
    common: Common = COMMON,
) -> int:
    """Evaluate, or look at what was evaluated; 1 where answers failed. Raises EvaluationGate.

    Args:
        page: Write the result as a page: .html or .md.
        gate: Fail with 6 where a measure fell against the last accepted evaluation.
        accept: Gates compare with this evaluation from now on.
        listed: The evaluations of this workspace.
        show: An evaluation of this workspace, instead of a new one.
        table: The result in a published table's form: loong_by_task, lightrag_wins, …
        against: Another one to show the scores of beside.
        people: People's verdicts, to hold the judge's against.
        remove: Remove one.
    """
    screen, runtime = common.screen, common.runtime()
    store = runtime.workspace.evaluations
    if listed:
        _list(store.list(), screen)
        return 0
    if remove is not None:
        store.remove(remove)
        title = f"Evaluation {remove} is removed"
        screen.result({"removed": remove}, title, without=("removed",))
        return 0
    ending = EvaluationEnding(page, gate, accept, against, people)
    ending.check()
    before = report_of(store.read(against)).scores if against is not None else ()
    if show is not None:
        result = store.read(show)
        report = report_of(result)
    else:
        report, result = _evaluated(comparison, page, gate, common)
    report = ending.write(report, result, runtime)
    if table is not None:
        rows = published_table(table, result)
        screen.result(rows, lambda: _show_table(rows, screen))
    else:
        page_of_it = markdown_page(report, result, before)
        screen.result(report, lambda: _show(report, page_of_it, screen))
    ending.hold(report, runtime)
    if accept:
        screen.note(f"Evaluation {report.number} is accepted: gates compare with it.")
    return FAILED_ANSWERS if report.errors else 0


Evaluated = tuple[EvaluationReport, EvaluationResult]


def _evaluated(
    wanted: Comparison, page: Path | None, gate: Path | None, common: Common
) -> Evaluated:
    """Evaluate now, as a flow run where that is wanted.

    A gate fails a flow run; what it found is shown before that is told.
    """
    if wanted.questions is None:
        raise UsageError(
            "There are no questions.", "Name them with --questions FILE, or look: --list, --show N."
        )
    store, systems = common.runtime().workspace.evaluations, list(wanted.system or ["auto"])
    measures, criteria = names_of(wanted.measures), wanted.criteria
    if wanted.record or os.environ.get("PREFECT_API_URL"):
        keep_server()
        run = evaluate_flow(
            systems,
            wanted.questions,
            measures=measures,
            workspace=common.workspace,
            criteria=criteria,
            repeats=wanted.repeats,
            limit=wanted.limit,
            budget=wanted.budget,
            gate=None if gate is None else str(gate),
            page=None if page is None else str(page),
        )
        try:
            report: EvaluationReport = asyncio.run(run)
        except EvaluationGate:
            report = report_of(store.read(store.list()[-1].number))
    else:
        with common.screen.progress() as progress:
            report = asyncio.run(
                run_evaluation(
                    systems,
                    wanted.questions,
                    measures,
                    workspace=common.workspace,
                    criteria=criteria,
                    repeats=wanted.repeats,
                    limit=wanted.limit,
                    budget=wanted.budget,
                    progress=progress,
                )
            )
    return report, store.read(report.number)


def _show(report: EvaluationReport, page: str, screen: Screen) -> None:
    """Show the page of an evaluation, and what the gate says."""
    screen.markdown(page)
    for check in report.gate:
        screen.line(gate_in_words(check), style="" if check.holds else "bold red")


def _show_table(rows: Mapping[str, Cells], screen: Screen) -> None:
    """Show a paper's table: a line for each cell that has a value."""
    for name, cells in rows.items():
        screen.title(name)
        values = [(column, figure(value)) for column, value in cells.items() if value is not None]
        screen.facts(values, indent=2)


def _list(evaluations: Sequence[Evaluation], screen: Screen) -> None:
    """List the finished evaluations, oldest first."""
    rows: list[dict[str, object]] = []
    lines = []
    for row in evaluations:
        systems = [system.name for system in row.systems]
        accepted = "  (accepted)" if row.accepted else ""
        asked = f"{row.name}, {len(row.questions)} questions: {', '.join(systems)}"
        lines.append(f"{row.number:>4}  {row.finished}  {asked}{accepted}")
        rows.append(
            {
                "number": row.number,
                "finished": row.finished,
                "name": row.name,
                "questions": len(row.questions),
                "systems": systems,
                "measures": row.measures,
                "accepted": row.accepted,
            }
        )
    screen.result(rows, lambda: screen.rows(lines, indent=0))
