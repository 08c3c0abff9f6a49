"""Training: rows become a router, a rewriter or a filter that a role can use.

rows → training → evaluation → an adapter, a classifier, a cross-encoder or a program

`train` is the Prefect flow, whose runs Prefect records; `train_step` does the same work without
Prefect. The story is told here, one call a step; rows are stored as they come, and a training goes
on from its last checkpoint.
"""

import tasks.prefect_environment  # noqa: F401 -- before Prefect

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from prefect import flow

from flows.orchestration.artifacts import Cell, put
from flows.orchestration.recording import ends_in_words, recorded
from flows.orchestration.run_folder import RESULT, keep
from flows.runtime import Runtime, open_runtime, usage_of
from flows.session import open_session
from flows.settings import PROGRAMS_FOLDER, load_settings
from prompts.answer import AnswerStep
from prompts.engine.compiling import compile_step
from prompts.engine.effort import Policy
from prompts.engine.models import CallSettings, ModelChoice, Models, Program, Role
from prompts.engine.providers import ENCODER, LOCAL
from prompts.engine.step import Step
from prompts.filter import Filter
from prompts.rewrite import Rewrite
from prompts.route import LINEAR, Route, program_of
from prompts.train import Rank, Simulate, Synthesize
from storage.answer_records import Passage
from storage.errors import UsageError
from storage.evaluation_records import EvaluationQuestion
from storage.training_records import (
    DataCard,
    FilterRow,
    Method,
    PreferenceRow,
    Row,
    RowSource,
    TrainedStep,
    TrainingCurve,
    TrainingReport,
)
from tasks.retrieve.search import retrieve
from tasks.train import filter as filtering
from tasks.train import rewriter, router
from tasks.train.compiling import answered_by, examples_of, measure_of, worth_of
from tasks.train.linear import evened, fit
from tasks.train.lora import Dialogue, TrainingOptions, train_lora
from tasks.train.rows import (
    ROWS,
    EvaluationSets,
    balanced,
    counts_of,
    divided,
    hash_of,
    language_of_row,
    read_questions,
    read_rows,
    sha256_of,
)

logger = logging.getLogger(__name__)

ROLE: Mapping[TrainedStep, Role] = {
    "router": "route",
    "rewriter": "rewrite",
    "filter": "filter",
    "answer": "answer",
}
COMPILED: tuple[Method, ...] = ("bootstrap", "mipro", "gepa")
METHODS: Mapping[TrainedStep, tuple[Method, ...]] = {
    "router": ("linear", "dpo", *COMPILED),
    "rewriter": ("sft", *COMPILED),
    "filter": ("sft", "cross-encoder", *COMPILED),
    "answer": COMPILED,
}
# The step that is trained, and its rows as what its model reads and should answer.
STEPS: Mapping[TrainedStep, Callable[[Models], Step]] = {
    "router": Route,
    "rewriter": Rewrite,
    "filter": Filter,
    "answer": AnswerStep,
}
DIALOGUES: Mapping[TrainedStep, Callable[..., list[Dialogue]]] = {
    "router": router.dialogues_of,
    "rewriter": rewriter.dialogues_of,
    "filter": filtering.dialogues_of,
}
CARD, REPORT = "card.json", "report.json"
DEPTH = 20  # passages in which gold is looked for
_ANSWER = 512  # tokens that a model of this machine may write where it is compared


@dataclass(frozen=True)
class TrainOptions:
    """What is trained, by which method, on what.

    `rows` are files; `tasks` so many new ones in each of the `languages` are made by models
    (router); `questions` with gold make rows in the workspace (rewriter, filter), or are what a
    step is compiled on by `measure` (rewriter, answer). `compare` is a file to compare on, in place
    of a fifth that is held out; nothing is trained on its questions, nor on those of `exclude`.
    `base` is the model that is trained.
    """

    step: TrainedStep
    by: Method | None = None
    measure: str | None = None
    rows: tuple[Path, ...] = ()
    tasks: int = 0
    languages: tuple[str, ...] = ("en", "zh")
    seeds: Path | None = None
    questions: Path | None = None
    passages: int = 8
    compare: Path | None = None
    exclude: tuple[Path, ...] = ()
    base: str = ""
    folder: Path | None = None
    licence: str = ""
    use: bool = False
    training: TrainingOptions = field(default_factory=TrainingOptions)

    @property
    def method(self) -> Method:
        """Without a word of the user: a classifier for the router where no model is named,
        demonstrations for the answer, else LoRA.
        """
        if self.step == "answer":
            return self.by or "bootstrap"
        return self.by or ("sft" if self.step != "router" else "dpo" if self.base else "linear")

    @property
    def on_questions(self) -> bool:
        """Whether the rows are the questions themselves."""
        return self.step in {"rewriter", "answer"} and self.method in COMPILED


def training_in_words(report: TrainingReport) -> str:
    """How a training ended, as one sentence."""
    return f"A {report.step}, trained by {report.by} on {report.rows} rows: {report.use}"


@flow(flow_run_name="train {options.step}", persist_result=False)
@ends_in_words(training_in_words)
async def train(options: TrainOptions, workspace: str | None = None) -> TrainingReport:
    """Train a router, a rewriter or a filter on rows, and compare it with other ways.

    Args:
        options: What is trained, by which method, on what.
        workspace: The folder of state; without it the one of the settings (./.trellis).
    """
    settings = load_settings({"workspace": workspace})
    async with recorded(settings) as progress:
        report = await train_step(options, open_runtime(settings, progress.tell))
    logger.info(training_in_words(report))
    keep(settings.workspace, RESULT, report.model_dump_json())
    table: list[Mapping[str, Cell]] = [
        {"way": name, **scores} for name, scores in report.scores.items()
    ]
    await put("training", table, training_in_words(report))
    return report


@dataclass
class Training:
    """One training under way: rows to train on, rows held out, where they came from, and what was
    left out.
    """

    options: TrainOptions
    runtime: Runtime
    folder: Path
    sources: list[RowSource] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    held_out: list[Row] = field(default_factory=list)
    questions: list[EvaluationQuestion] = field(default_factory=list)

    def leave_out(self, reason: str, number: int) -> None:
        """Count rows that are not taken."""
        if number:
            self.left_out[reason] = self.left_out.get(reason, 0) + number

    def tell(self, step: str) -> Callable[[int, int], None]:
        """Tells the progress of a step."""
        return lambda done, total: self.runtime.progress(step, done, total)

    @property
    def models(self) -> Models:
        """The settings' models, spared nothing and without programs."""
        return replace(self.runtime.models, programs=(), policy=Policy.of("high"))

    @property
    def card(self) -> DataCard:
        options = self.options
        named = options.training.in_words()
        return DataCard(
            step=options.step,
            by=options.method,
            base=options.base,
            sources=tuple(self.sources),
            rows=len(self.rows),
            held_out=len(self.held_out),
            left_out=self.left_out,
            counts=counts_of(self.rows),
            sha256=hash_of(self.rows),
            options=(
                {}
                if options.method == "linear"
                else self._compiling
                if options.method in COMPILED
                else named
            ),
        )

    @property
    def _compiling(self) -> dict[str, str]:
        options = self.options
        return {
            "measure": measure_of(options.step, options.measure),
            "seed": str(options.training.seed),
        }


async def train_step(options: TrainOptions, runtime: Runtime) -> TrainingReport:
    """Train, compare with other ways on rows held out, and leave the result with its card in a
    folder.

    What a run that was killed has stored is used again; a training that is complete is only told
    again. Raises UsageError where a method or rows do not fit, ModelUnavailable where a base model
    is not on this machine.
    """
    started = time.monotonic()
    training = _begun(options, runtime)
    await gather_rows(training)
    divide(training)
    report = training.folder / REPORT
    card = training.card
    before = _trained_before(training, card)
    if before is not None and report.exists():
        known = TrainingReport.model_validate_json(report.read_text(encoding="utf-8"))
        return known.model_copy(update={"use": _use(training)})
    report.unlink(missing_ok=True)
    if before is None:
        before = card.model_copy(update={"curve": await fit_rows(training)})
        (training.folder / CARD).write_text(
            before.model_dump_json(indent=1) + "\n", encoding="utf-8"
        )
    curve, scores = before.curve, await compare(training)
    trained = TrainingReport(
        step=options.step,
        by=options.method,
        folder=str(training.folder),
        rows=card.rows,
        held_out=card.held_out,
        left_out=card.left_out,
        curve=curve,
        scores=scores,
        use=_use(training),
        usage=usage_of(runtime.models.meter, time.monotonic() - started),
    )
    report.write_text(trained.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return trained


def _begun(options: TrainOptions, runtime: Runtime) -> Training:
    step, method = options.step, options.method
    if method not in METHODS[step]:
        raise UsageError(
            f"A {step} is not trained by {method!r}.", f"Choose one of {', '.join(METHODS[step])}."
        )
    if method in COMPILED:
        measure_of(step, options.measure)
    elif options.measure is not None:
        raise UsageError(
            f"{method!r} knows no measure.", f"It is what {', '.join(COMPILED)} compile by."
        )
    if options.on_questions and options.questions is None:
        raise UsageError(
            f"A {step} is compiled on questions.", "Name them with their gold: --questions FILE."
        )
    if method in {"dpo", "sft", "cross-encoder"} and not options.base:
        raise UsageError(
            f"Nothing is named to train by {method!r}.", "Name a model or its folder: --base MODEL."
        )
    if method in COMPILED and runtime.models.is_offline(ROLE[step]):
        raise UsageError(
            f"To compile needs a model for the role {ROLE[step]!r}.", "Set TRELLIS_LM."
        )
    if not (options.rows or options.questions or options.tasks):
        raise UsageError(
            "There is nothing to train on.",
            "Name --rows, or what makes them: --tasks, --questions.",
        )
    if options.tasks and step != "router":
        raise UsageError(
            f"Rows for a {step} are not made of tasks.",
            "Name --questions with their gold, or --rows.",
        )
    folder = options.folder or runtime.settings.workspace / "trained" / f"{step}-{method}"
    folder.mkdir(parents=True, exist_ok=True)
    return Training(options, runtime, folder)


# --- rows -----------------------------------------------------------------------------------------


async def gather_rows(training: Training) -> None:
    """All rows: those of files, and those that models make; those of an evaluation set are
    refused.
    """
    options = training.options
    sets = EvaluationSets.read([*options.exclude, *([options.compare] if options.compare else ())])
    for path in options.rows:
        rows, source = read_rows(path, options.step, options.licence)
        sets.refuse(source)
        training.rows += rows
        training.sources.append(source)
    made: list[Row] = []
    if options.tasks:
        made = list(await _tasks_judged(training))
    if options.questions is not None:
        training.questions = read_questions(options.questions)
    if options.on_questions:
        training.rows += training.questions
        source = RowSource(
            name=str(options.questions), rows=len(training.questions), licence=options.licence
        )
        training.sources.append(source)
    elif options.questions is not None:
        own = [question for question in training.questions if not sets.holds(question.question)]
        made = list(await _questions_answered(training, divided(own)[0]))
    if made:
        maker = training.models.name("synthesize" if options.tasks else ROLE[options.step])
        training.sources.append(
            RowSource(name=f"made by {maker}", rows=len(made), licence=options.licence)
        )
    training.rows += made
    apart = [row for row in training.rows if not sets.holds(row.question)]
    training.leave_out("evaluation set", len(training.rows) - len(apart))
    training.rows = apart


async def _tasks_judged(training: Training) -> list[PreferenceRow]:
    options, models = training.options, training.models
    for role in ("synthesize", "judge"):
        if models.is_offline(role):
            raise UsageError(
                f"To make tasks needs a model for the role {role!r}.",
                "Set TRELLIS_LM, or name --rows.",
            )
    seeds = router.read_seeds(
        options.seeds
    )  # a run before this one has put the answers into the cache
    tasks = await router.synthesize_tasks(
        seeds, options.tasks, options.languages, Synthesize(models)
    )
    training.leave_out(
        "tasks that repeat another", len(options.languages) * options.tasks - len(tasks)
    )
    tell = training.tell("judge")
    return await router.judge_tasks(
        tasks, training.folder / ROWS, Simulate(models), Rank(models), tell
    )


async def _questions_answered(
    training: Training, questions: Sequence[EvaluationQuestion]
) -> Sequence[Row]:
    step, models, path = training.options.step, training.models, training.folder / ROWS
    if step == "router" or models.is_offline(ROLE[step]) or models.encoder(ROLE[step]):
        raise UsageError(
            f"Questions make no rows for a {step} here.", "Set TRELLIS_LM, or name --rows."
        )
    async with _search(training) as find:
        if step == "rewriter":
            tried = await rewriter.rewrite_questions(
                questions, path, Rewrite(models), find, training.tell("rewrite")
            )
            rewritten = rewriter.improving(tried)
            training.leave_out("finds the gold no better", len(tried) - len(rewritten))
            return rewritten
        judged = await filtering.judge_passages(
            questions,
            path,
            Filter(models),
            find,
            training.options.passages,
            training.tell("filter"),
        )
        agreed = filtering.agreeing(judged)
        training.leave_out("label against the gold", len(judged) - len(agreed))
        return agreed


@asynccontextmanager
async def _search(training: Training) -> AsyncIterator[rewriter.Find]:
    """The search of the workspace by words, meaning and the graph, without a model."""
    with open_session(training.runtime) as session:

        async def find(queries: Sequence[str]) -> Sequence[Passage]:
            return await retrieve(session.index, queries, session.dense(queries), DEPTH)

        yield find


def divide(training: Training) -> None:
    """What is held out: the file to compare on, else a fifth of the questions. Raises UsageError
    without rows.
    """
    options = training.options
    if options.compare is not None:
        held_out, source = read_rows(options.compare, options.step)
        training.held_out = held_out
        training.sources.append(source.model_copy(update={"name": f"compared on {source.name}"}))
    elif options.questions is None or options.step != "rewriter" or options.on_questions:
        training.rows, training.held_out = divided(training.rows)
    if not training.rows:
        raise UsageError(
            "No row is left to train on.", f"Left out: {training.left_out or 'all are held out'}."
        )


# --- training -------------------------------------------------------------------------------------


async def fit_rows(training: Training) -> TrainingCurve | None:
    """The training itself, in a thread; its curve where there are steps."""
    options, folder, tell = training.options, training.folder, training.tell("train")
    if options.method == "linear":
        await asyncio.to_thread(_fit_linear, training)
        return None
    if options.method in COMPILED:
        await _compile(training)
        return None
    if options.method == "cross-encoder":
        judged = [row for row in training.rows if isinstance(row, FilterRow)]
        train_encoder = filtering.train_cross_encoder
        return await asyncio.to_thread(
            train_encoder, judged, options.base, folder, options.training, tell
        )
    rows, held_out = _dialogues(training, training.rows), _dialogues(training, training.held_out)
    return await asyncio.to_thread(
        train_lora, rows, held_out, options.base, folder, options.training, tell
    )


def _dialogues(training: Training, rows: Sequence[Row]) -> list[Dialogue]:
    """Rows as the step's model will be asked: the prompt is the one of the settings."""
    step = training.options.step
    return DIALOGUES[step](rows, STEPS[step](training.models))


def _fit_linear(training: Training) -> None:
    rows = {
        sha256_of(row.question.encode()): row
        for row in training.rows
        if isinstance(row, PreferenceRow)
    }
    pairs = [(row.question, language_of_row(row), row.chosen) for row in rows.values()]
    program = program_of(fit(evened(pairs), router.STRUCTURES), Route.step, LINEAR)
    (training.folder / f"{Route.step}.json").write_text(
        json.dumps(program, ensure_ascii=False), encoding="utf-8"
    )


async def _compile(training: Training) -> None:
    """Compile in a thread; the search that some steps are measured by stays in this loop."""
    options, loop = training.options, asyncio.get_running_loop()
    async with _search(training) if options.on_questions else nullcontext() as find:

        def found(queries: Sequence[str]) -> Sequence[Passage]:
            async def search() -> Sequence[Passage]:
                return await find(queries) if find is not None else ()

            return asyncio.run_coroutine_threadsafe(search(), loop).result()

        examples = await examples_of(options.step, training.rows, find, options.passages)
        worth = worth_of(options.step, measure_of(options.step, options.measure), found)
        step, models, seed = (
            STEPS[options.step](training.models),
            training.models,
            options.training.seed,
        )
        compiled = await asyncio.to_thread(
            compile_step,
            step,
            examples,
            worth,
            options.method,  # type: ignore[arg-type]
            models,
            seed,
        )
        compiled.save(training.folder / f"{compiled.step}.json")


# --- evaluation -----------------------------------------------------------------------------------


async def compare(training: Training) -> dict[str, dict[str, float]]:
    """What was trained beside the rules and, where the role has a model, its prompt: on what was
    held out, if anything was.
    """
    if training.options.step == "rewriter":
        return await _compare_rewriters(training)
    if not training.held_out:
        return {}
    if training.options.step == "router":
        return await _compare_routers(training)
    if training.options.step == "answer":
        return await _compare_answers(training)
    rows = [row for row in training.held_out if isinstance(row, FilterRow)]
    filters = {name: Filter(models) for name, models in _contestants(training).items()}
    gold = [row.label for row in rows]
    return {
        name: filtering.macro_f1(gold, await filtering.labels_by(rows, judge))
        for name, judge in filters.items()
    }


async def _compare_routers(training: Training) -> dict[str, dict[str, float]]:
    rows = balanced([row for row in training.held_out if isinstance(row, PreferenceRow)])
    routers = {name: Route(models) for name, models in _contestants(training).items()}
    if "prompt" in routers:
        shown = {
            row.chosen: row for row in training.rows if isinstance(row, PreferenceRow)
        }  # one of each type
        routers["few-shot"] = Route(training.models)
        routers["few-shot"].demos = router.examples_of(list(shown.values()))
    return {name: await router.accuracy(rows, route) for name, route in routers.items()}


async def _compare_rewriters(training: Training) -> dict[str, dict[str, float]]:
    apart = divided(training.questions)[1]
    if not apart:
        return {}
    async with _search(training) as find:
        rewriters = {name: Rewrite(models) for name, models in _contestants(training).items()}
        shares = {
            name: await rewriter.found_by(apart, rewrite, find)
            for name, rewrite in rewriters.items()
        }
        return {"question": await rewriter.found_by(apart, None, find), **shares}


async def _compare_answers(training: Training) -> dict[str, dict[str, float]]:
    options = training.options
    questions = [row for row in training.held_out if isinstance(row, EvaluationQuestion)]
    measure = measure_of(options.step, options.measure)
    async with _search(training) as find:
        steps = {name: AnswerStep(models) for name, models in _contestants(training).items()}
        return {
            name: await answered_by(questions, step, find, options.passages, measure)
            for name, step in steps.items()
        }


def _contestants(training: Training) -> dict[str, Models]:
    """The rules, the role's model by its prompt, the program that is in use, the base model, and
    what was trained.
    """
    role, method, folder = ROLE[training.options.step], training.options.method, training.folder
    models = {"rules": Models.offline()}
    if not training.models.is_offline(role):
        models["prompt"] = training.models
    if in_use := [
        program for program in training.runtime.models.programs if program.get("step") == role
    ]:
        models["in use"] = replace(training.models, programs=in_use)
    if method in {"dpo", "sft"}:
        models["base"] = _of_machine(training, f"{LOCAL}{training.options.base}")
        models["trained"] = _of_machine(training, f"{LOCAL}{folder}")
    elif method == "cross-encoder":
        models["trained"] = _of_machine(training, f"{ENCODER}{folder}")
    elif method == "linear":
        models["trained"] = Models({}, programs=[_program(training)])
    else:
        models["compiled"] = replace(training.models, programs=[_program(training)])
    return models


def _of_machine(training: Training, name: str) -> Models:
    """A model of this machine, asked as the settings say."""
    models = Models(
        {ROLE[training.options.step]: ModelChoice(name)}, calls=CallSettings(max_tokens=_ANSWER)
    )
    return replace(models, instructions=training.models.instructions, policy=Policy.of("high"))


def _program(training: Training) -> Program:
    path = training.folder / f"{ROLE[training.options.step]}.json"
    program: Program = json.loads(path.read_text(encoding="utf-8"))
    return program


# --- use ------------------------------------------------------------------------------------------


def _use(training: Training) -> str:
    """How a role comes to use it; a program is put in its place where that is wanted."""
    role, method, settings = (
        ROLE[training.options.step],
        training.options.method,
        training.runtime.settings,
    )
    if method in {"dpo", "sft", "cross-encoder"}:
        prefix = ENCODER if method == "cross-encoder" else LOCAL
        return f"TRELLIS_LM_{role.upper()}={prefix}{training.folder.absolute()}"
    source = training.folder / f"{role}.json"
    programs = settings.programs or settings.workspace / PROGRAMS_FOLDER
    if not training.options.use:
        return f"--use, or copy {source} into {programs}"
    programs.mkdir(parents=True, exist_ok=True)
    (programs / source.name).write_bytes(source.read_bytes())
    return f"in use: {programs / source.name}"


def _trained_before(training: Training, card: DataCard) -> DataCard | None:
    """The card of the training that has ended in this folder, if it was the same."""
    path = training.folder / CARD
    stored = (
        DataCard.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else None
    )
    return (
        stored if stored is not None and stored.model_copy(update={"curve": None}) == card else None
    )
