"""Training: rows become a router, a rewriter, a filter or an answer step that a role can use.

rows → training → comparison → an adapter, a classifier, a cross-encoder or a program

`train` is the Prefect flow, whose runs Prefect records; `train_step` does the same work without
Prefect. Rows are stored as they are made, and a training goes on from its last checkpoint.
"""

import tasks.prefect_environment  # noqa: F401 -- before Prefect

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
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
from storage.layout import Layout, write_atomically
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
)

logger = logging.getLogger(__name__)

# Methods that change the weights of a base model, and those that write a program of DSPy's.
TUNED: tuple[Method, ...] = ("dpo", "sft", "cross-encoder")
COMPILED: tuple[Method, ...] = ("bootstrap", "mipro", "gepa")
METHODS: Mapping[TrainedStep, tuple[Method, ...]] = {
    "router": ("linear", "dpo", *COMPILED),
    "rewriter": ("sft", *COMPILED),
    "filter": ("sft", "cross-encoder", *COMPILED),
    "answer": COMPILED,
}
STEPS: Mapping[TrainedStep, type[Step]] = {
    "router": Route,
    "rewriter": Rewrite,
    "filter": Filter,
    "answer": AnswerStep,
}
# Turn rows into the prompts of a step and the answers that its model should give.
DIALOGUES: Mapping[TrainedStep, Callable[..., list[Dialogue]]] = {
    "router": router.dialogues_of,
    "rewriter": rewriter.dialogues_of,
    "filter": filtering.dialogues_of,
}
# The roles that make tasks for a router.
TASK_MAKERS: tuple[Role, ...] = ("synthesize", "judge")
CARD, REPORT = "card.json", "report.json"
DEPTH = 20  # passages among which the gold is looked for
_LOCAL_TOKENS = 512  # that a model of this machine may write when it is compared


@dataclass(frozen=True)
class TrainOptions:
    """What is trained, by which method, on what.

    Rows come from the files `rows`, from `tasks` new tasks in each of the `languages` that models
    make (router), or from `questions` with gold that are asked in the workspace (rewriter, filter);
    a rewriter or an answer step is compiled on the questions themselves, by `measure`. `compare` is
    a file to compare on instead of a held-out fifth; nothing is trained on its questions or on
    those of `exclude`. `base` is the model to train.
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
        """The method `by`; by default linear for a router without a base model and DPO with one,
        bootstrap for an answer step, and LoRA (sft) for the others.
        """
        if self.by is not None:
            return self.by
        if self.step == "router":
            return "dpo" if self.base else "linear"
        return "bootstrap" if self.step == "answer" else "sft"

    @property
    def on_questions(self) -> bool:
        """Whether the rows are the questions themselves."""
        return self.step in {"rewriter", "answer"} and self.method in COMPILED


def training_in_words(report: TrainingReport) -> str:
    """Say in one sentence how a training ended."""
    return f"A {report.step}, trained by {report.by} on {report.rows} rows: {report.use}"


@flow(flow_run_name="train {options.step}", persist_result=False)
@ends_in_words(training_in_words)
async def train(options: TrainOptions, workspace: str | None = None) -> TrainingReport:
    """Train a step on rows, and compare it with other ways of doing its work.

    Args:
        options: What is trained, by which method, on what.
        workspace: The folder of state (default: the one in the settings, or ./.trellis).
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
    """A training under way: the rows to train on and those held out, their sources, and how many
    rows were left out for which reason.
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
        """Count rows that are not used."""
        if number:
            self.left_out[reason] = self.left_out.get(reason, 0) + number

    def progress_of(self, step: str) -> Callable[[int, int], None]:
        """Return the function that reports the progress of a step."""
        return partial(self.runtime.progress, step)

    @property
    def role(self) -> Role:
        """The role whose model is trained; a compiled step has the same name."""
        return STEPS[self.options.step].role

    @property
    def program(self) -> Path:
        """The file of a compiled step or of a linear classifier."""
        return self.folder / f"{self.role}.json"

    @cached_property
    def models(self) -> Models:
        """The models of the settings at high effort and without programs."""
        return replace(self.runtime.models, programs=(), policy=Policy.of("high"))

    @property
    def measure(self) -> str:
        """What a step is compiled by."""
        return measure_of(self.options.step, self.options.measure)

    @property
    def card(self) -> DataCard:
        """Describe the data and the options of the training."""
        options = self.options
        if options.method in COMPILED:
            used = {"measure": self.measure, "seed": str(options.training.seed)}
        else:
            used = {} if options.method == "linear" else options.training.in_words()
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
            options=used,
        )


async def train_step(options: TrainOptions, runtime: Runtime) -> TrainingReport:
    """Train a step, compare it with others on held-out rows, and write result and card to a folder.

    Rows that an interrupted run has stored are used again; of a complete training only the report
    is read. Raises UsageError where the method or the rows do not fit, ModelUnavailable where a
    base model is not on this machine.
    """
    started = time.monotonic()
    check_options(options, runtime.models)
    if options.use and runtime.settings.programs is None:
        Layout(runtime.settings.workspace).refuse_copy()
    default = runtime.settings.workspace / "trained" / f"{options.step}-{options.method}"
    folder = options.folder or default
    folder.mkdir(parents=True, exist_ok=True)
    training = Training(options, runtime, folder)
    await gather_rows(training)
    divide(training)
    report, card = folder / REPORT, training.card
    before = _trained_before(folder / CARD, card)
    if before is not None and report.exists():
        known = TrainingReport.model_validate_json(report.read_text(encoding="utf-8"))
        return known.model_copy(update={"use": _use(training)})
    report.unlink(missing_ok=True)
    if before is None:
        before = card.model_copy(update={"curve": await fit_rows(training)})
        write_atomically(folder / CARD, before.model_dump_json(indent=1) + "\n")
    scores = await compare(training)
    trained = TrainingReport(
        step=options.step,
        by=options.method,
        folder=str(folder),
        rows=card.rows,
        held_out=card.held_out,
        left_out=card.left_out,
        curve=before.curve,
        scores=scores,
        use=_use(training),
        usage=usage_of(runtime.models.meter, time.monotonic() - started),
    )
    write_atomically(report, trained.model_dump_json(indent=1) + "\n")
    return trained


def check_options(options: TrainOptions, models: Models) -> None:
    """Refuse what cannot be trained before any model is asked. Raises UsageError."""
    step, method, role = options.step, options.method, STEPS[options.step].role
    if method in METHODS[step] and method in COMPILED:
        measure_of(step, options.measure)
    no_model = models.is_offline(role)
    no_maker = [maker for maker in TASK_MAKERS if options.tasks and models.is_offline(maker)]
    answered = options.questions is not None and not options.on_questions
    refusals = {
        f"A {step} is not trained by {method!r}.": (
            method not in METHODS[step],
            f"Choose one of {', '.join(METHODS[step])}.",
        ),
        f"{method!r} knows no measure.": (
            options.measure is not None and method not in COMPILED,
            f"It is what {', '.join(COMPILED)} compile by.",
        ),
        f"A {step} is compiled on questions.": (
            options.on_questions and options.questions is None,
            "Name them with their gold: --questions FILE.",
        ),
        f"Nothing is named to train by {method!r}.": (
            method in TUNED and not options.base,
            "Name a model or its folder: --base MODEL.",
        ),
        f"Compiling needs a model for the role {role!r}.": (
            method in COMPILED and no_model,
            "Set TRELLIS_LM.",
        ),
        "There is nothing to train on.": (
            not (options.rows or options.questions or options.tasks),
            "Name --rows, or what makes them: --tasks, --questions.",
        ),
        f"Rows for a {step} are not made of tasks.": (
            options.tasks and step != "router",
            "Name --questions with their gold, or --rows.",
        ),
        f"Making tasks needs a model for the role {next(iter(no_maker), '')!r}.": (
            no_maker,
            "Set TRELLIS_LM, or name --rows.",
        ),
        f"Questions make no rows for a {step} here.": (
            answered and (step == "router" or no_model or models.encoder(role)),
            "Set TRELLIS_LM, or name --rows.",
        ),
    }
    for problem, (refused, remedy) in refusals.items():
        if refused:
            raise UsageError(problem, remedy)


def _trained_before(path: Path, card: DataCard) -> DataCard | None:
    """Return the card of a training that ended in this folder, if it was the same training."""
    if not path.exists():
        return None
    stored = DataCard.model_validate_json(path.read_text(encoding="utf-8"))
    return stored if stored.model_copy(update={"curve": None}) == card else None


# --- rows -----------------------------------------------------------------------------------------


async def gather_rows(training: Training) -> None:
    """Read the rows of files and have models make others, without those of evaluation sets.

    Raises UsageError where a file of rows is itself an evaluation set.
    """
    options = training.options
    sets = EvaluationSets.read([*options.exclude, *([options.compare] if options.compare else ())])
    for path in options.rows:
        rows, source = read_rows(path, options.step, options.licence)
        sets.refuse(source)
        training.rows += rows
        training.sources.append(source)
    made: Sequence[Row] = ()
    if options.tasks:
        made = await _judge_tasks(training)
    if options.questions is not None:
        training.questions = read_questions(options.questions)
        if options.on_questions:
            training.rows += training.questions
            _add_source(training, str(options.questions), len(training.questions))
        else:
            own = [question for question in training.questions if not sets.holds(question.question)]
            made = await _answer_questions(training, divided(own)[0])
    if made:
        maker = training.models.name("synthesize" if options.tasks else training.role)
        _add_source(training, f"made by {maker}", len(made))
    training.rows += made
    apart = [row for row in training.rows if not sets.holds(row.question)]
    training.leave_out("evaluation set", len(training.rows) - len(apart))
    training.rows = apart


def _add_source(training: Training, name: str, rows: int) -> None:
    source = RowSource(name=name, rows=rows, licence=training.options.licence)
    training.sources.append(source)


async def _judge_tasks(training: Training) -> list[PreferenceRow]:
    """Have models make tasks for a router and judge which structure serves each best."""
    options, models = training.options, training.models
    seeds = router.read_seeds(options.seeds)
    tasks = await router.synthesize_tasks(
        seeds, options.tasks, options.languages, Synthesize(models)
    )
    repeated = len(options.languages) * options.tasks - len(tasks)
    training.leave_out("tasks that repeat another", repeated)
    path, progress = training.folder / ROWS, training.progress_of("judge")
    return await router.judge_tasks(tasks, path, Simulate(models), Rank(models), progress)


async def _answer_questions(
    training: Training, questions: Sequence[EvaluationQuestion]
) -> Sequence[Row]:
    """Have the role's model rewrite the questions, or judge passages for them."""
    models, path = training.models, training.folder / ROWS
    async with _search(training) as find:
        if training.options.step == "rewriter":
            progress = training.progress_of("rewrite")
            tried = await rewriter.rewrite_questions(
                questions, path, Rewrite(models), find, progress
            )
            rewritten = rewriter.improving(tried)
            training.leave_out("finds the gold no better", len(tried) - len(rewritten))
            return rewritten
        most, progress = training.options.passages, training.progress_of("filter")
        judged = await filtering.judge_passages(
            questions, path, Filter(models), find, most, progress
        )
        agreed = filtering.agreeing(judged)
        training.leave_out("label against the gold", len(judged) - len(agreed))
        return agreed


@asynccontextmanager
async def _search(training: Training) -> AsyncIterator[rewriter.Find]:
    """Give the workspace's search by words, meaning and the graph, without a model."""
    with open_session(training.runtime) as session:

        async def find(queries: Sequence[str]) -> Sequence[Passage]:
            return await retrieve(session.index, queries, session.dense(queries), DEPTH)

        yield find


def divide(training: Training) -> None:
    """Hold out rows to compare on: those of the file `compare`, else a fifth of the questions.

    A rewriter that is trained on made rows is compared on its questions. Raises UsageError where no
    row is left.
    """
    options = training.options
    if options.compare is not None:
        training.held_out, source = read_rows(options.compare, options.step)
        training.sources.append(source.model_copy(update={"name": f"compared on {source.name}"}))
    elif options.questions is None or options.step != "rewriter" or options.on_questions:
        training.rows, training.held_out = divided(training.rows)
    if not training.rows:
        raise UsageError(
            "No row is left to train on.", f"Left out: {training.left_out or 'all are held out'}."
        )


# --- training -------------------------------------------------------------------------------------


async def fit_rows(training: Training) -> TrainingCurve | None:
    """Train in a thread; return the curve of a training that has steps."""
    options, folder, progress = training.options, training.folder, training.progress_of("train")
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
            train_encoder, judged, options.base, folder, options.training, progress
        )
    step, to_dialogues = STEPS[options.step](training.models), DIALOGUES[options.step]
    rows, held_out = to_dialogues(training.rows, step), to_dialogues(training.held_out, step)
    return await asyncio.to_thread(
        train_lora, rows, held_out, options.base, folder, options.training, progress
    )


def _fit_linear(training: Training) -> None:
    once = {row.question: row for row in training.rows if isinstance(row, PreferenceRow)}
    pairs = [(row.question, language_of_row(row), row.chosen) for row in once.values()]
    program = program_of(fit(evened(pairs), router.STRUCTURES), Route.step, LINEAR)
    training.program.write_text(json.dumps(program, ensure_ascii=False), encoding="utf-8")


async def _compile(training: Training) -> None:
    """Compile in a thread; the search that measures some steps stays in this event loop."""
    options, loop = training.options, asyncio.get_running_loop()
    async with _search(training) if options.on_questions else nullcontext() as find:

        def search(queries: Sequence[str]) -> Sequence[Passage]:
            async def found() -> Sequence[Passage]:
                return await find(queries) if find is not None else ()

            return asyncio.run_coroutine_threadsafe(found(), loop).result()

        examples = await examples_of(options.step, training.rows, find, options.passages)
        worth = worth_of(options.step, training.measure, search)
        compiled = await asyncio.to_thread(
            compile_step,
            STEPS[options.step](training.models),
            examples,
            worth,
            options.method,  # type: ignore[arg-type]
            training.models,
            options.training.seed,
        )
        compiled.save(training.program)


# --- comparison -----------------------------------------------------------------------------------


async def compare(training: Training) -> dict[str, dict[str, float]]:
    """Score the trained step and the other ways of doing its work on the held-out rows, if any."""
    if training.options.step == "rewriter":
        return await _compare_rewriters(training)
    if not training.held_out:
        return {}
    if training.options.step == "router":
        return await _compare_routers(training)
    if training.options.step == "answer":
        return await _compare_answers(training)
    rows = [row for row in training.held_out if isinstance(row, FilterRow)]
    gold = [row.label for row in rows]
    return {
        name: filtering.macro_f1(gold, await filtering.labels_by(rows, Filter(models)))
        for name, models in _contestants(training).items()
    }


async def _compare_routers(training: Training) -> dict[str, dict[str, float]]:
    rows = balanced([row for row in training.held_out if isinstance(row, PreferenceRow)])
    routers = {name: Route(models) for name, models in _contestants(training).items()}
    if "prompt" in routers:
        one_of_each = {row.chosen: row for row in training.rows if isinstance(row, PreferenceRow)}
        routers["few-shot"] = Route(training.models)
        routers["few-shot"].demos = router.examples_of(list(one_of_each.values()))
    return {name: await router.accuracy(rows, route) for name, route in routers.items()}


async def _compare_rewriters(training: Training) -> dict[str, dict[str, float]]:
    apart = divided(training.questions)[1]
    if not apart:
        return {}
    async with _search(training) as find:
        scores = {"question": await rewriter.found_by(apart, None, find)}
        for name, models in _contestants(training).items():
            scores[name] = await rewriter.found_by(apart, Rewrite(models), find)
    return scores


async def _compare_answers(training: Training) -> dict[str, dict[str, float]]:
    passages, measure = training.options.passages, training.measure
    questions = [row for row in training.held_out if isinstance(row, EvaluationQuestion)]
    async with _search(training) as find:
        return {
            name: await answered_by(questions, AnswerStep(models), find, passages, measure)
            for name, models in _contestants(training).items()
        }


def _contestants(training: Training) -> dict[str, Models]:
    """Return the models to compare: none (rules), the role's own with its prompt, with the program
    in use, the base model, and what was trained.
    """
    role, method, folder = training.role, training.options.method, training.folder
    models = {"rules": Models.offline()}
    if not training.models.is_offline(role):
        models["prompt"] = training.models
    programs = training.runtime.models.programs
    if in_use := [program for program in programs if program.get("step") == role]:
        models["in use"] = replace(training.models, programs=in_use)
    if method == "cross-encoder":
        models["trained"] = _local_model(training, f"{ENCODER}{folder}")
    elif method in TUNED:
        models["base"] = _local_model(training, f"{LOCAL}{training.options.base}")
        models["trained"] = _local_model(training, f"{LOCAL}{folder}")
    else:
        program: Program = json.loads(training.program.read_text(encoding="utf-8"))
        if method == "linear":
            models["trained"] = Models({}, programs=[program])
        else:
            models["compiled"] = replace(training.models, programs=[program])
    return models


def _local_model(training: Training, name: str) -> Models:
    return Models(
        {training.role: ModelChoice(name)},
        calls=CallSettings(max_tokens=_LOCAL_TOKENS, timeout=training.models.calls.timeout),
        instructions=training.models.instructions,
        policy=Policy.of("high"),
    )


# --- use ------------------------------------------------------------------------------------------


def _use(training: Training) -> str:
    """Say how a role uses what was trained; with the option `use`, install the program."""
    method, settings, source = training.options.method, training.runtime.settings, training.program
    if method in TUNED:
        prefix = ENCODER if method == "cross-encoder" else LOCAL
        return f"TRELLIS_LM_{training.role.upper()}={prefix}{training.folder.absolute()}"
    programs = settings.programs or settings.workspace / PROGRAMS_FOLDER
    if not training.options.use:
        return f"--use, or copy {source} into {programs}"
    programs.mkdir(parents=True, exist_ok=True)
    (programs / source.name).write_bytes(source.read_bytes())
    return f"in use: {programs / source.name}"
