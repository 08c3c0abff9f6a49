"""`trellis evaluate` and `watch`: systems compared on a question set, the gate, and questions that are asked again."""

import asyncio
import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from flows.cli.index import cost_in_words
from flows.cli.screen import Screen, runtime_of
from flows.evaluate import JUDGED, EvaluationEnding, evaluate_plan, forecast_evaluation, plan_of, rated_or, report_of
from flows.operations.evaluation_page import evaluation_in_words, figure, judge_in_words
from flows.operations.watch import ask_watched, watch
from flows.runtime import Runtime, with_budget
from flows.usage import change_in_words
from storage.errors import EvaluationGate, UsageError, did_you_mean
from storage.evaluation_records import (
    Evaluation,
    EvaluationForecast,
    EvaluationReport,
    EvaluationResult,
    MeanScore,
    WatchedQuestion,
)
from storage.evaluations import EvaluationStore
from storage.records import by_key
from storage.run_records import Budget
from tasks.evaluate.gate import in_words as gate_in_words
from tasks.evaluate.tables import Cells, published_table

FAILED_ANSWERS = 1


def evaluate(options: Namespace, screen: Screen) -> int:
    """Evaluate, or look at what was evaluated before; 1 where answers failed. Raises EvaluationGate."""
    runtime = runtime_of(options)
    store = runtime.workspace.evaluations
    if options.list:
        _list(store.list(), screen)
        return 0
    if options.remove is not None:
        store.remove(options.remove)
        screen.result({"removed": options.remove}, f"Evaluation {options.remove} is removed", without=("removed",))
        return 0
    return _result(options, runtime, screen)


def _result(options: Namespace, runtime: Runtime, screen: Screen) -> int:
    store = runtime.workspace.evaluations
    page, gate, people = (Path(name) if name else None for name in (options.page, options.gate, options.people))
    ending = EvaluationEnding(page, gate, options.accept, options.against, people)
    ending.check()
    before = report_of(store.read(options.against)).scores if options.against is not None else ()
    if options.show is not None:
        result = store.read(options.show)
        report = report_of(result)
    elif options.questions is None:
        raise UsageError("There are no questions.", "Name them with --questions FILE, or look: --list, --show N.")
    else:
        evaluated = _evaluated(options, store, screen)
        if evaluated is None:
            return 0
        report, result = evaluated
    report = ending.write(report, result, runtime)
    if options.table is not None:
        rows = published_table(options.table, result)
        screen.result(rows, lambda: _show_table(rows, screen))
    else:
        screen.result(report, lambda: _show(report, before, screen))
    ending.hold(report, runtime)
    if options.accept:
        screen.note(f"Evaluation {report.number} is accepted: gates compare with it.")
    return FAILED_ANSWERS if report.errors else 0


def _evaluated(
    options: Namespace, store: EvaluationStore, screen: Screen
) -> tuple[EvaluationReport, EvaluationResult] | None:
    """What was asked for; None where it was only forecast."""
    budget = Budget(tokens=options.budget_tokens, usd=options.budget_usd)
    names = _listed(options.measures)
    if not options.dry_run and (options.record or os.environ.get("PREFECT_API_URL")):
        from flows.evaluate import evaluate as evaluate_flow
        from flows.orchestration.local_server import keep_server

        keep_server()
        run = evaluate_flow(
            options.system or ["auto"], options.questions, measures=names, workspace=options.workspace,
            criteria=_listed(options.judge), repeats=options.repeats, data=options.data, limit=options.limit,
            budget=budget, gate=options.gate, page=options.page,
        )  # fmt: skip
        try:
            report = asyncio.run(run)
        except EvaluationGate:  # the run has failed by it; what it found is shown before the command does
            report = report_of(store.read(store.list()[-1].number))
        return report, store.read(report.number)
    with screen.progress() as progress:
        runtime = with_budget(runtime_of(options, progress), budget, JUDGED)
        return asyncio.run(_run(options, names, runtime, screen))


def _listed(names: str | None) -> list[str]:
    return [name.strip() for name in (names or "").split(",") if name.strip()]


async def _run(
    options: Namespace, names: Sequence[str], runtime: Runtime, screen: Screen
) -> tuple[EvaluationReport, EvaluationResult] | None:
    plan = await plan_of(
        options.system or (), rated_or(options.questions, runtime), names, limit=options.limit, data=options.data,
        criteria=_listed(options.judge), repeats=options.repeats,
    )  # fmt: skip
    if options.dry_run:
        forecast = await forecast_evaluation(plan, runtime)
        screen.result(forecast, lambda: _show_forecast(forecast, screen))
        return None
    return await evaluate_plan(plan, runtime)


def _show_forecast(forecast: EvaluationForecast, screen: Screen) -> None:
    screen.line(f"What the rest takes, by {forecast.sample} questions of each system; their answers are kept", "bold")
    rows = [(row.system, f"{row.questions} questions: {cost_in_words(row)}") for row in forecast.systems]
    if forecast.judging.calls:
        rows.append(("judging", cost_in_words(forecast.judging)))
    rows += [("in sum", cost_in_words(forecast)), ("by their spread, up to", cost_in_words(forecast.most))]
    screen.facts(rows, indent=2)


def _show(report: EvaluationReport, before: Sequence[MeanScore], screen: Screen) -> None:
    """The table of scores, what they took, and what the gate says, for people."""
    screen.line(evaluation_in_words(report), style="bold green")
    earlier = {(row.measure, row.system): row.value for row in before}
    for measure in dict.fromkeys(row.measure for row in report.scores):
        screen.line(measure, style="bold")
        rows = [row for row in report.scores if row.measure == measure]
        was = {row.system: earlier.get((measure, row.system)) for row in rows}
        screen.facts(
            [
                (
                    row.system,
                    f"{figure(row.value):>6}  ({figure(row.low)} to {figure(row.high)})"
                    + ("" if was[row.system] is None else f"  before {figure(was[row.system])}"),
                )
                for row in rows
            ],
            indent=2,
        )
    for by, wins in by_key((row.by, row) for row in report.wins if row.by != report.measure).items():
        screen.line(f"wins by {by}, of the judge's verdicts", style="bold")
        screen.facts([(f"{row.first} against {row.second}", f"{row.won} : {row.lost}") for row in wins], indent=2)
    if report.judge:
        screen.line(judge_in_words(report))
    for row in report.errors[:5]:
        screen.line(f"{row.system}, {row.question}: {row.error}", style="yellow")
    for check in report.gate:
        screen.line(gate_in_words(check), style="" if check.holds else "bold red")


def _show_table(rows: Mapping[str, Cells], screen: Screen) -> None:
    """A table of a paper: a line for each cell that has a value."""
    for name, cells in rows.items():
        screen.line(name, style="bold")
        screen.facts([(column, figure(value)) for column, value in cells.items() if value is not None], indent=2)


def _list(evaluations: Sequence[Evaluation], screen: Screen) -> None:
    """The finished evaluations, oldest first."""
    rows = [
        {
            "number": row.number, "finished": row.finished, "name": row.name, "questions": len(row.questions),
            "systems": [system.name for system in row.systems], "measures": row.measures, "accepted": row.accepted,
        }
        for row in evaluations
    ]  # fmt: skip
    lines = [
        f"{row['number']:>4}  {row['finished']}  {row['name']}, {row['questions']} questions: "
        f"{', '.join(map(str, row['systems']))}{'  (accepted)' if row['accepted'] else ''}"  # type: ignore[call-overload]
        for row in rows
    ]
    screen.result(rows, lambda: screen.rows(lines, None, indent=0))


# --- watched questions -----------------------------------------------------------------------------------------------

_USAGE = "trellis watch | watch add QUESTION | watch remove ID | watch run"


def watched(options: Namespace, screen: Screen) -> None:
    """List the watched questions, add or remove one, or ask them now."""
    runtime = runtime_of(options)
    match options.words:
        case []:
            rows = runtime.workspace.database.watched.list()
            screen.result(rows, lambda: _show_watched(rows, screen))
        case ["add", *words] if words:
            kept = watch(" ".join(words), options.mode, runtime)
            if runtime.workspace.current() is not None:  # so that the next publication has an answer to compare with
                asyncio.run(ask_watched(runtime, kept.id))
            shown = kept.model_dump(include={"id", "question", "mode"})
            screen.result(shown, f"Watched: {kept.id} {kept.question}", without=shown)
        case ["remove", name]:
            runtime.workspace.database.watched.remove(name)
            screen.result({"removed": name}, f"{name} is not watched any more", without=("removed",))
        case ["run"]:
            changes = asyncio.run(ask_watched(runtime))
            lines = [line for change in changes for line in change_in_words(change)] or ["No answer has changed."]
            screen.result(changes, lambda: screen.rows(lines, None, indent=0))
        case _:
            near = did_you_mean(options.words[0], ("add", "remove", "run"))
            raise UsageError("That is nothing that `trellis watch` does.", f"{near}Use: {_USAGE}.")


def _show_watched(rows: Sequence[WatchedQuestion], screen: Screen) -> None:
    """Each with its last answer, and how it last changed."""
    for row in rows:
        screen.line(f"{row.id}  {row.question}", style="bold")
        answer = "not asked yet" if row.answer is None else f"generation {row.answer.generation}: {row.answer.answer}"
        screen.line(answer, indent=2)
        if row.change is not None:
            screen.rows(change_in_words(row.change)[0 if row.change.error else 1 :], None, indent=2, style="yellow")
    if not rows:
        screen.line("No question is watched. Add one: trellis watch add QUESTION")
