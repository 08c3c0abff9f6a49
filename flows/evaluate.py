"""Evaluation: systems answer the questions of a set, and measures say which is better.

load questions → answer (all systems concurrently) → score → judge → compare → publish

`evaluate` is the Prefect flow, whose runs Prefect records; `run_evaluation` does the same work
without Prefect. Answers are stored as they come: an interrupted evaluation goes on where it was.
"""

import tasks.prefect_environment  # noqa: F401 -- before Prefect

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations, count
from pathlib import Path
from typing import Annotated, TypeVar

from prefect import flow
from pydantic import Field

from flows.operations.evaluation_page import evaluation_in_words, html_page, markdown_page
from flows.operations.systems import OpenSystem, open_systems, system_of
from flows.orchestration.artifacts import put_page
from flows.orchestration.recording import ends_in_words, recorded
from flows.orchestration.run_folder import RESULT, keep
from flows.runtime import ASKING, Progress, Runtime, open_runtime, silent, with_budget
from flows.settings import load_settings
from prompts.engine.errors import BudgetSpent, EngineError
from prompts.engine.key_masking import mask_keys
from prompts.engine.models import Role
from prompts.judge import CRITERIA, Grade, Judge
from storage.errors import BudgetReached, EvaluationGate, TrellisError, UsageError, did_you_mean
from storage.evaluation_records import (
    EvaluatedAnswer,
    EvaluatedSystem,
    Evaluation,
    EvaluationQuestion,
    EvaluationReport,
    EvaluationResult,
    Score,
    Verdict,
)
from storage.records import content_id, utc_now
from storage.run_records import NO_BUDGET, Budget
from tasks.batches import gather_or_cancel
from tasks.evaluate.compare import (
    Values,
    costs,
    differences,
    mean_scores,
    most_different,
    values_of,
    wins_by_judge,
    wins_by_measure,
)
from tasks.evaluate.gate import check_gate, in_words, read_gate
from tasks.evaluate.judge import (
    judged_pairs,
    judged_points,
    read_people,
    reliability,
    require_judge,
)
from tasks.evaluate.measures import (
    MEASURES,
    Measure,
    measures_named,
    needs_met,
    rubrics_of,
)
from tasks.question_sets.load import load_questions
from tasks.step import step

T = TypeVar("T")
Questions = str | Path | Sequence[EvaluationQuestion]
logger = logging.getLogger(__name__)

FEEDBACK = "feedback"  # the name of the questions that users have rated
AT_ONCE = 16  # questions of all systems together
MOST_DIFFERENT = 10  # questions in a report
JUDGED: tuple[Role, ...] = (*ASKING, "judge")
# The measures of an evaluation that names none, if its questions hold what they need.
USUAL = (
    "exact_match",
    "f1",
    "answer_in_text",
    "values_f1",
    "recall@8",
    "all_gold@8",
    "citation_recall",
    "citation_precision",
    "grounding_share",
    "abstention",
    "seconds",
    "calls",
    "tokens",
    "cost_usd",
)


@flow(flow_run_name="evaluate on {questions}", persist_result=False)
@ends_in_words(evaluation_in_words)
async def evaluate(  # noqa: PLR0913, PLR0917 -- the fields of the form in Prefect's page
    systems: list[str],
    questions: Annotated[str, Field(min_length=1)],
    measures: list[str] | None = None,
    criteria: list[str] | None = None,
    repeats: Annotated[int, Field(ge=1)] = 1,
    workspace: str | None = None,
    limit: Annotated[int, Field(ge=1)] | None = None,
    budget: Budget = NO_BUDGET,
    page: str | None = None,
    gate: str | None = None,
    accept: bool = False,
) -> EvaluationReport:
    """Compare systems on a question set by measures; the result is stored in the workspace.

    Started again with the same arguments, an interrupted run goes on and asks nothing twice.

    Args:
        systems: Each as on the command line: mode=mix,effort=high,name=deep, or
            answers=FILE.jsonl,name=theirs.
        questions: A JSONL file of rows {id, question, answers, values, gold_documents, …}.
        measures: Their names (default: the usual ones that fit the questions).
        criteria: What the role judge compares every two systems by: comprehensiveness, diversity,
            overall and others.
        repeats: How often the judge looks at a pair in each order.
        workspace: The folder of state (default: the one in the settings, or ./.trellis).
        limit: Only the first questions.
        budget: Stop before models use more tokens or cost more US dollars; answers are kept.
        page: A file ending in .html or .md for the result.
        gate: A TOML file of measures that must not fall below the last accepted evaluation; else
            the run fails.
        accept: Gates compare with this evaluation from now on, unless it failed its gate.
    """
    ending = EvaluationEnding(Path(page) if page else None, Path(gate) if gate else None, accept)
    ending.check()
    settings = load_settings({"workspace": workspace})
    async with recorded(settings) as progress:
        runtime = with_budget(open_runtime(settings, progress.tell), budget, JUDGED)
        plan = await plan_of(
            systems,
            rated_or(questions, runtime),
            measures or (),
            limit=limit,
            criteria=criteria or (),
            repeats=repeats,
        )
        report, result = await evaluate_plan(plan, runtime)
    report = ending.write(report, result, runtime)
    logger.info(evaluation_in_words(report))
    keep(settings.workspace, RESULT, report.model_dump_json())
    summary = [evaluation_in_words(report)]
    await put_page("evaluation", markdown_page(report, result), summary, settings.workspace)
    ending.hold(report, runtime)
    return report


@dataclass(frozen=True)
class EvaluationPlan:
    """What is evaluated: the systems, the questions and their name, and the measures.

    A judge compares the answers of every two systems by the `criteria`, `repeats` times in each
    order.
    """

    systems: tuple[EvaluatedSystem, ...]
    questions: tuple[EvaluationQuestion, ...]
    measures: tuple[Measure, ...]
    name: str = ""
    criteria: tuple[str, ...] = ()
    repeats: int = 1


async def run_evaluation(  # noqa: PLR0913 -- the arguments of the public contract, most by name
    systems: Sequence[EvaluatedSystem | str],
    questions: Questions,
    measures: Sequence[str] = (),
    *,
    criteria: Sequence[str] = (),
    repeats: int = 1,
    workspace: str | Path | None = None,
    limit: int | None = None,
    budget: Budget = NO_BUDGET,
    ending: "EvaluationEnding | None" = None,
    progress: Progress = silent,
) -> EvaluationReport:
    """Evaluate systems (records or texts) on questions (records, or a file of them).

    Without `measures` the usual ones that fit the questions are used. With `criteria` a judge
    compares every two systems. `limit` takes the first questions. `ending` writes the page, checks
    the gate and accepts the result, which is stored in the workspace. Raises UsageError,
    SettingsError, NoGeneration, BudgetReached, EvaluationGate.
    """
    ending = ending or EvaluationEnding()
    ending.check()
    settings = load_settings({"workspace": workspace})
    runtime = with_budget(open_runtime(settings, progress), budget, JUDGED)
    asked = rated_or(questions, runtime)
    plan = await plan_of(systems, asked, measures, limit=limit, criteria=criteria, repeats=repeats)
    report, result = await evaluate_plan(plan, runtime)
    report = ending.write(report, result, runtime)
    ending.hold(report, runtime)
    return report


@dataclass(frozen=True)
class EvaluationEnding:
    """What happens to a finished evaluation.

    Its `page` is written (.html or .md), next to the scores of evaluation `against`; the judge is
    compared with the verdicts of `people` in a file; the rules in the file `gate` are checked; if
    they hold, `accept` makes it what later gates compare with.
    """

    page: Path | None = None
    gate: Path | None = None
    accept: bool = False
    against: int | None = None
    people: Path | None = None

    def check(self) -> None:
        """Refuse what cannot be done, before any model is asked. Raises UsageError."""
        if self.page is not None and self.page.suffix not in {".html", ".md"}:
            raise UsageError(f"{self.page} is no page.", "End its name in .html or .md.")
        if self.gate is not None:
            read_gate(self.gate)
        if self.people is not None:
            read_people(self.people)

    def write(
        self, report: EvaluationReport, result: EvaluationResult, runtime: Runtime
    ) -> EvaluationReport:
        """Write the page, and add the checks of the gate and the judge to the report.

        Raises UsageError without an accepted evaluation or a common verdict of people and judge.
        """
        store = runtime.workspace.evaluations
        if self.people is not None:
            judge = reliability(result.verdicts, read_people(self.people))
            if not judge.people:
                raise UsageError(
                    f"{self.people} has no verdict on what the judge compared.",
                    "Judge the same pairs.",
                )
            report = report.model_copy(update={"judge": judge.model_dump()})
        if self.page is not None:
            before = report_of(store.read(self.against)).scores if self.against is not None else ()
            page = html_page if self.page.suffix == ".html" else markdown_page
            self.page.write_text(page(report, result, before), encoding="utf-8")
        if self.gate is None:
            return report
        others = [row for row in store.list() if row.number != report.number]
        accepted = [store.read(row.number) for row in others if row.accepted]
        checks = check_gate(read_gate(self.gate), result, accepted)
        return report.model_copy(update={"gate": checks})

    def hold(self, report: EvaluationReport, runtime: Runtime) -> None:
        """Raise EvaluationGate if a measure fell; otherwise accept the evaluation if wanted."""
        if falls := [in_words(check) for check in report.gate if not check.holds]:
            raise EvaluationGate(falls)
        if self.accept:
            runtime.workspace.evaluations.accept(report.number)


def rated_or(questions: Questions, runtime: Runtime) -> Questions:
    """Return the questions, which `feedback` takes from users' ratings. Raises UsageError."""
    if questions != FEEDBACK:
        return questions
    rated = [row.as_question for row in runtime.workspace.database.feedback.list()]
    if not rated:
        raise UsageError(
            "No answer was rated in this workspace.", "Rate some on the page of `trellis serve`."
        )
    return rated


@step("load-questions")
async def plan_of(
    systems: Sequence[EvaluatedSystem | str],
    questions: Questions,
    measures: Sequence[str],
    *,
    limit: int | None,
    criteria: Sequence[str],
    repeats: int,
) -> EvaluationPlan:
    """Read the questions, systems and measures. Raises UsageError for what does not fit."""
    if isinstance(questions, str | Path):
        name = str(questions)
        chosen = await asyncio.to_thread(load_questions, Path(questions), limit)
    else:
        chosen, name = tuple(questions)[:limit], ""
    if not chosen:
        raise UsageError(
            "There are no questions.", "Name a file of rows {id, question, answers, …}."
        )
    if len({question.id for question in chosen}) < len(chosen):
        raise UsageError("Two questions have the same id.", "Give each question an id of its own.")
    if unknown := [name for name in criteria if name not in CRITERIA]:
        near = did_you_mean(unknown[0], CRITERIA)
        raise UsageError(
            f"The judge has no criterion {unknown[0]!r}.",
            f"{near}Use some of {', '.join(CRITERIA)}.",
        )
    return EvaluationPlan(
        tuple(system_of(system) for system in systems or ("auto",)),
        chosen,
        _measures_for(chosen, measures),
        name,
        tuple(criteria),
        repeats,
    )


def _measures_for(
    questions: Sequence[EvaluationQuestion], names: Sequence[str]
) -> tuple[Measure, ...]:
    """Return the named measures, or the usual ones. Raises UsageError for a missing need."""
    known = needs_met(questions)
    if not names:
        return tuple(MEASURES[name] for name in USUAL if known.issuperset(MEASURES[name].needs))
    measures = measures_named(names)
    for measure in measures:
        if missing := sorted(set(measure.needs) - known):
            raise UsageError(
                f"The measure {measure.name!r} needs {' and '.join(missing)}, which these questions"
                " do not have.",
                "Add it to their rows (gold_documents for gold), or leave the measure out.",
            )
    return tuple(measures)


async def evaluate_plan(
    plan: EvaluationPlan, runtime: Runtime
) -> tuple[EvaluationReport, EvaluationResult]:
    """Carry out an evaluation and store it in the workspace. Raises BudgetReached."""
    started, begun = time.monotonic(), utc_now()
    judged = [measure.name for measure in plan.measures if "judge" in measure.needs]
    require_judge([*judged, *plan.criteria], Judge(runtime.models))
    with open_systems(plan.systems, runtime) as systems, _budget_errors():
        work = AnsweringWork(plan, key_of(plan, systems), runtime)
        asked = tuple(row.system for row in systems)
        answered = await gather_or_cancel(
            _coroutine(answer_questions(system, work)) for system in systems
        )
        answers = tuple(answer for own in answered for answer in own)
        scores = await score(answers, plan)
        points, verdicts = await _judged(answered, plan, runtime)
    evaluation = Evaluation(
        name=plan.name,
        key=work.key,
        started=begun,
        finished=utc_now(),
        systems=asked,
        questions=plan.questions,
        measures=tuple(measure.name for measure in plan.measures),
    )
    result = EvaluationResult(
        evaluation=evaluation, answers=answers, scores=(*scores, *points), verdicts=verdicts
    )
    result = await publish_result(result, runtime)
    await asyncio.to_thread(runtime.workspace.database.running_answers.remove, work.key)
    report = await compare(result)
    spent = {"reused": len(work.stored), "seconds": time.monotonic() - started}
    return report.model_copy(update=spent), result


@contextmanager
def _budget_errors() -> Iterator[None]:
    try:
        yield
    except BudgetSpent as end:
        raise BudgetReached(end.spent, end.budget, end.unit, end.needed) from end


def key_of(plan: EvaluationPlan, systems: Sequence[OpenSystem]) -> str:
    """Return a hash of the questions and of all that the systems' answers depend on."""
    questions = [question.model_dump_json() for question in plan.questions]
    return content_id("evl", *(f"{row.system.name} {row.identity}" for row in systems), *questions)


async def _judged(
    answered: Sequence[Sequence[EvaluatedAnswer]], plan: EvaluationPlan, runtime: Runtime
) -> tuple[Sequence[Score], tuple[Verdict, ...]]:
    """Return the judge's points for measures, and its verdicts on every two systems."""
    answers = [answer for own in answered for answer in own]
    points: Sequence[Score] = ()
    if rubrics := rubrics_of(plan.measures):
        points = await judged_points(plan.questions, answers, Grade(runtime.models), rubrics)
    pairs = list(combinations(answered, 2)) if plan.criteria else []
    judge, done = Judge(runtime.models), count(1)
    total = len(pairs) * len(plan.questions) * len(plan.criteria)

    def progress() -> None:
        runtime.progress("judge", next(done), total)

    verdicts = await gather_or_cancel(
        _coroutine(judged_pairs(plan.questions, pair, judge, plan.criteria, plan.repeats, progress))
        for pair in pairs
    )
    return points, tuple(row for rows in verdicts for row in rows)


async def _coroutine(work: Awaitable[T]) -> T:
    return await work


# --- answering ---


class AnsweringWork:
    """The plan of an evaluation, its `stored` answers of earlier runs, and where new ones go."""

    def __init__(self, plan: EvaluationPlan, key: str, runtime: Runtime) -> None:
        self.plan = plan
        self.key = key
        self._runtime = runtime
        known = runtime.workspace.database.running_answers.get(key)
        self.stored = {(row.system, row.question): row for row in known}
        self._done, self._total = len(known), len(plan.systems) * len(plan.questions)

    async def keep(self, answer: EvaluatedAnswer) -> None:
        """Store an answer unless it failed: the next run asks again."""
        if answer.answer is not None:
            put = self._runtime.workspace.database.running_answers.put
            await asyncio.to_thread(put, self.key, answer)
        self._done += 1
        self._runtime.progress("answer", self._done, self._total)


@step("answer-questions", asks_model=True)
async def answer_questions(system: OpenSystem, work: AnsweringWork) -> list[EvaluatedAnswer]:
    """Return a system's answers in the order of the questions, stored or new."""
    slots = asyncio.Semaphore(math.ceil(AT_ONCE / len(work.plan.systems)))
    name = system.system.name

    async def answered(question: EvaluationQuestion) -> EvaluatedAnswer:
        if known := work.stored.get((name, question.id)):
            return known
        async with slots:
            try:
                given = await system.answer(question)
                answer = EvaluatedAnswer(system=name, question=question.id, answer=given)
            except BudgetSpent:
                raise
            except Exception as error:  # the other questions go on
                if not isinstance(error, TrellisError | EngineError):
                    logger.warning("%s failed on question %r", name, question.id, exc_info=True)
                words = mask_keys(str(error)) or type(error).__name__
                answer = EvaluatedAnswer(system=name, question=question.id, error=words)
            await work.keep(answer)
        return answer

    return await gather_or_cancel(answered(question) for question in work.plan.questions)


# --- results ---


@step("score")
async def score(answers: Sequence[EvaluatedAnswer], plan: EvaluationPlan) -> tuple[Score, ...]:
    """Score each answer by each measure that needs no judge; failed answers get no score."""
    questions = {question.id: question for question in plan.questions}

    def scored() -> tuple[Score, ...]:
        return tuple(
            Score(
                system=row.system,
                question=row.question,
                measure=measure.name,
                value=measure.score(questions[row.question], row.answer),
            )
            for row in answers
            if row.answer is not None
            for measure in plan.measures
            if "judge" not in measure.needs
        )

    return await asyncio.to_thread(scored)


@step("publish-evaluation")
async def publish_result(result: EvaluationResult, runtime: Runtime) -> EvaluationResult:
    """Store the finished evaluation; return it with its number."""
    number = await asyncio.to_thread(runtime.workspace.evaluations.publish, result)
    return result.model_copy(
        update={"evaluation": result.evaluation.model_copy(update={"number": number})}
    )


@step("compare")
async def compare(result: EvaluationResult) -> EvaluationReport:
    """Do the same as `report_of`, as a step."""
    return await asyncio.to_thread(report_of, result)


def report_of(result: EvaluationResult) -> EvaluationReport:
    """Return the means with intervals, paired differences, wins and costs of an evaluation."""
    evaluation = result.evaluation
    systems, values = [system.name for system in evaluation.systems], values_of(result.scores)
    measures = [
        name for name in evaluation.measures if name in values and not _is_unspent(name, values)
    ]
    differing = (name for name in measures if most_different(values, name, 1))
    first = next(differing, measures[0] if measures else "")
    lower = first in MEASURES and not MEASURES[first].more_is_better
    return EvaluationReport(
        number=evaluation.number,
        name=evaluation.name,
        questions=len(evaluation.questions),
        measure=first,
        systems=evaluation.systems,
        scores=tuple(mean_scores(values, measures, systems)),
        differences=tuple(differences(values, measures, systems)),
        wins=(*wins_by_measure(values, first, systems, lower), *wins_by_judge(result.verdicts)),
        costs=tuple(costs(result.answers, systems)),
        different=tuple(most_different(values, first, MOST_DIFFERENT)),
        errors=tuple(row for row in result.answers if row.answer is None),
        judge=reliability(result.verdicts).model_dump() if result.verdicts else {},
    )


def _is_unspent(measure: str, values: Values) -> bool:
    """Whether it measures a cost that no system had, such as calls without a model."""
    spent = measure in MEASURES and not MEASURES[measure].more_is_better
    return spent and not any(value for own in values[measure].values() for value in own.values())
