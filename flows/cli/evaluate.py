"""`trellis evaluate`: systems compared on a question set, and the gate."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.cli.index import cost_in_words
from flows.cli.options import BudgetTokens, BudgetUsd, Count, Names, Record, names_of
from flows.cli.screen import COMMON, Common, Screen
from flows.evaluate import (
    JUDGED,
    EvaluationEnding,
    evaluate_plan,
    forecast_evaluation,
    plan_of,
    rated_or,
    report_of,
)
from flows.evaluate import evaluate as evaluate_flow
from flows.operations.evaluation_page import figure, markdown_page
from flows.orchestration.local_server import keep_server
from flows.runtime import Runtime, with_budget
from storage.errors import EvaluationGate, UsageError
from storage.evaluation_records import (
    Evaluation,
    EvaluationForecast,
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
    judge: Annotated[tuple[str, ...] | None, Parameter(metavar="A,B", consume_multiple=(0, 1))] = None
    """Compare every two systems' answers by a model: overall (default), comprehensiveness,
    diversity, empowerment, directness."""
    repeats: Count = 1
    """How often the judge looks at a pair in each order (default 1)."""
    limit: Count | None = None
    """Only the first questions."""
    dry_run: bool = False
    """Ask five questions of each system, and forecast what the rest takes."""
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
    elif (evaluated := _evaluated(comparison, page, gate, common)) is not None:
        report, result = evaluated
    else:
        return 0
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


def _evaluated(wanted: Comparison, page: Path | None, gate: Path | None, common: Common) -> Evaluated | None:
    """Evaluate now; None where it was only forecast."""
    if wanted.questions is None:
        raise UsageError("There are no questions.", "Name them with --questions FILE, or look: --list, --show N.")
    if not wanted.dry_run and (wanted.record or os.environ.get("PREFECT_API_URL")):
        return _recorded(wanted, wanted.questions, page, gate, common)
    with common.screen.progress() as progress:
        runtime = with_budget(common.runtime(progress), wanted.budget, JUDGED)
        return asyncio.run(_compared(wanted, wanted.questions, runtime, common.screen))


async def _compared(wanted: Comparison, questions: str, runtime: Runtime, screen: Screen) -> Evaluated | None:
    plan = await plan_of(
        wanted.system,
        rated_or(questions, runtime),
        names_of(wanted.measures),
        limit=wanted.limit,
        criteria=wanted.criteria,
        repeats=wanted.repeats,
    )
    if not wanted.dry_run:
        return await evaluate_plan(plan, runtime)
    forecast = await forecast_evaluation(plan, runtime)
    screen.result(forecast, lambda: _show_forecast(forecast, screen))
    return None


def _recorded(wanted: Comparison, questions: str, page: Path | None, gate: Path | None, common: Common) -> Evaluated:
    """Evaluate as a flow run. A gate fails the run; what it found is shown before that is told."""
    keep_server()
    run = evaluate_flow(
        list(wanted.system or ["auto"]),
        questions,
        measures=names_of(wanted.measures),
        workspace=common.workspace,
        criteria=wanted.criteria,
        repeats=wanted.repeats,
        limit=wanted.limit,
        budget=wanted.budget,
        gate=None if gate is None else str(gate),
        page=None if page is None else str(page),
    )
    store = common.runtime().workspace.evaluations
    try:
        number = asyncio.run(run).number
    except EvaluationGate:
        number = store.list()[-1].number
    result = store.read(number)
    return report_of(result), result


def _show_forecast(forecast: EvaluationForecast, screen: Screen) -> None:
    asked = f"by {forecast.sample} questions of each system; their answers are kept"
    screen.line(f"What the rest takes, {asked}", "bold")
    rows = [(row.system, f"{row.questions} questions: {cost_in_words(row)}") for row in forecast.systems]
    if forecast.judging.calls:
        rows.append(("judging", cost_in_words(forecast.judging)))
    rows.append(("in sum", cost_in_words(forecast)))
    rows.append(("by their spread, up to", cost_in_words(forecast.most)))
    screen.facts(rows, indent=2)


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
