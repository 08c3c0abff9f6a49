"""`trellis evaluate`: compare systems on a question set, and apply the gate."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from flows.cli.common import COMMON, Common
from flows.cli.options import (
    BudgetTokens,
    BudgetUsd,
    Count,
    CountFrom0,
    Names,
    Record,
    names_of,
)
from flows.cli.running import command
from flows.cli.screen import Screen
from flows.evaluate import EvaluationEnding, report_of, run_evaluation
from flows.evaluate import evaluate as evaluate_flow
from flows.operations.evaluation_page import figure, markdown_page
from flows.operations.public_sets import PreparedSet, PublicSetOptions, left_of, prepare_set
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
from tasks.question_sets.public_sets import public_set

FAILED_ANSWERS = 1


@Parameter(name="*")
@dataclass(frozen=True)
class Comparison:
    """The systems, the questions and the measures of a new evaluation."""

    questions: Annotated[str | None, Parameter(metavar="FILE")] = None
    """Rows {id, question, answers, gold_documents, …}."""
    public_set: Annotated[str | None, Parameter(name="--set", metavar="NAME")] = None
    """A public set instead, whose passages are indexed first: hotpotqa, 2wikimultihopqa, musique,
    cmrc2018, graphrag-bench-medical, graphrag-bench-novel."""
    data: Annotated[Path | None, Parameter(metavar="DIR")] = None
    """The folder with the files of the public set, or its file of questions."""
    system: Annotated[tuple[str, ...], Parameter(metavar="SPEC")] = ()
    """A system; repeat the option for each. It sets mode, effort, structure, k, workspace,
    generation, name or any setting, or answers=FILE (default: mode auto)."""
    measures: Names | None = None
    """Names, separated by commas (default: those that fit the questions)."""
    judge: Annotated[tuple[str, ...] | None, Parameter(metavar="A,B", consume_multiple=(0, 1))] = (
        None
    )
    """Let a model compare the answers of each two systems: overall (default), comprehensiveness,
    diversity, empowerment, directness."""
    repeats: Count = 1
    """How often the judge compares a pair in each order (default 1)."""
    limit: Count | None = None
    """Use only the first N questions."""
    seed: CountFrom0 | None = None
    """Draw the questions of a public set at random; another number draws others."""
    budget_tokens: BudgetTokens = None
    budget_usd: BudgetUsd = None
    record: Record = False

    @property
    def criteria(self) -> list[str]:
        """The criteria of the judge; `--judge` alone means `--judge overall`."""
        return [] if self.judge is None else names_of(",".join(self.judge) or "overall")


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
    """Evaluate, or show earlier evaluations; return 1 if answers failed. Raises EvaluationGate.

    Args:
        page: Write the result as a page: .html or .md.
        gate: Fail with exit code 6 if a measure fell since the last accepted evaluation.
        accept: Later gates compare with this evaluation.
        listed: List the evaluations of this workspace.
        show: Show an evaluation of this workspace instead of a new one.
        table: Show the result in the form of a published table: loong_by_task, lightrag_wins, …
        against: Also show the scores of another evaluation.
        people: Compare the judge's verdicts with those of people in this file.
        remove: Remove an evaluation.
    """
    screen, runtime = common.screen, common.runtime()
    store = runtime.workspace.evaluations
    if listed:
        _list(store.list(), screen)
        return 0
    if remove is not None:
        store.remove(remove)
        screen.result({"removed": remove}, f"Evaluation {remove} is removed", without=("removed",))
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


def _evaluated(
    wanted: Comparison, page: Path | None, gate: Path | None, common: Common
) -> tuple[EvaluationReport, EvaluationResult]:
    """Evaluate, with --record or PREFECT_API_URL as a flow run.

    A gate may fail the flow run; the caller shows the result first and then applies the gate.
    """
    budget = Budget(tokens=wanted.budget_tokens, usd=wanted.budget_usd)
    questions, measures = wanted.questions, names_of(wanted.measures)
    if prepared := _prepared(wanted, budget, common):
        questions, measures = prepared.questions, measures or list(prepared.measures)
        budget = left_of(budget, prepared.usage)
    if questions is None:
        raise UsageError(
            "There are no questions.",
            "Name them with --questions FILE or --set NAME, or look: --list, --show N.",
        )
    store, systems = common.runtime().workspace.evaluations, list(wanted.system or ["auto"])
    options: dict[str, Any] = {
        "measures": measures,
        "workspace": common.workspace,
        "criteria": wanted.criteria,
        "repeats": wanted.repeats,
        "limit": wanted.limit,
        "budget": budget,
    }
    if wanted.record or os.environ.get("PREFECT_API_URL"):
        keep_server()
        for name, path in (("gate", gate), ("page", page)):
            options[name] = None if path is None else str(path)
        run = evaluate_flow(systems, questions, **options)
        try:
            report: EvaluationReport = asyncio.run(run)
        except EvaluationGate:
            report = report_of(store.read(store.list()[-1].number))
    else:
        with common.screen.progress() as progress:
            report = asyncio.run(run_evaluation(systems, questions, **options, progress=progress))
    return report, store.read(report.number)


def _prepared(wanted: Comparison, budget: Budget, common: Common) -> PreparedSet | None:
    """Read and index the public set of `--set`, and tell of it; None without one."""
    if wanted.public_set is None:
        for option, given in (("--data", wanted.data), ("--seed", wanted.seed)):
            if given is not None:
                raise UsageError(f"{option} belongs to a public set.", "Name one: --set NAME.")
        return None
    known = public_set(wanted.public_set)
    if wanted.questions is not None:
        raise UsageError("--questions and --set name two sets.", "Leave one of them out.")
    if wanted.data is None:
        raise UsageError(
            f"--set {known.name} needs the folder that holds it.",
            f"Download it from {known.origin} and name the folder: --data DIR.",
        )
    options = PublicSetOptions(known.name, wanted.data, wanted.limit, wanted.seed)
    with common.screen.progress() as progress:
        prepared = asyncio.run(prepare_set(options, common.runtime(progress), budget))
    index = "indexed before" if prepared.usage is None else "indexed now"
    common.screen.note(
        f"{known.name}: {prepared.asked} questions, {prepared.passages} passages ({index}), from "
        f"{', '.join(prepared.read_from)}"
    )
    return prepared


def _show(report: EvaluationReport, page: str, screen: Screen) -> None:
    screen.markdown(page)
    for check in report.gate:
        screen.line(gate_in_words(check), style="" if check.holds else "bold red")


def _show_table(rows: Mapping[str, Cells], screen: Screen) -> None:
    """Show the table of a paper, a line for each cell that has a value."""
    for name, cells in rows.items():
        screen.title(name)
        values = [(column, figure(value)) for column, value in cells.items() if value is not None]
        screen.facts(values, indent=2)


def _list(evaluations: Sequence[Evaluation], screen: Screen) -> None:
    rows: list[dict[str, object]] = []
    lines = []
    for row in evaluations:
        systems = [system.name for system in row.systems]
        accepted = "  (accepted)" if row.accepted else ""
        asked = f"{row.name}, {len(row.questions)} questions: {', '.join(systems)}"
        lines.append(f"{row.number:>4}  {row.finished}  {asked}{accepted}")
        shown = row.model_dump(include={"number", "finished", "name", "measures", "accepted"})
        rows.append({**shown, "questions": len(row.questions), "systems": systems})
    screen.result(rows, lambda: screen.rows(lines, indent=0))
