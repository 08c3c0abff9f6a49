"""All modes on five sets, the papers' baselines among them: the product's measures, a judge, calls,
tokens and time.
"""

import asyncio
import contextlib
import copy
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, quantiles

from pydantic import SecretStr

from benchmarks.compare_sets import COMPARED, CompareSet
from benchmarks.contexts import standing
from benchmarks.runner import Cell, Run, cpu_seconds, measure, names_of, option
from benchmarks.sets import index, settings_in
from flows.modes.registry import mode_names
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import load_settings
from prompts.judge import CRITERIA, Judge
from storage.answer_records import Mode
from storage.errors import UsageError
from storage.evaluation_records import EvaluatedAnswer, EvaluationQuestion, Verdict
from storage.records import Record
from tasks.evaluate.judge import judged_pairs, reliability, win_rates
from tasks.evaluate.measures import measures_named
from tasks.evaluate.tables import budget_note

MODES = mode_names()
SERVED = 20


class Way(Record):
    """A way of asking: a mode, and for `global` the level whose reports are all read (None: the
    relevant branches).
    """

    mode: Mode
    level: int | None = None

    @property
    def name(self) -> str:
        return self.mode if self.level is None else f"{self.mode}, level {self.level}"


@dataclass(frozen=True)
class Given:
    """What one question gave, with the seconds that it took."""

    question: EvaluationQuestion
    answered: EvaluatedAnswer
    seconds: float
    cpu: float


class NeedsModelError(Exception):
    """A mode in which a model has to write was asked offline."""


@measure(
    option(
        "--modes", type=names_of(MODES), default=list(MODES), metavar="A,B", help=", ".join(MODES)
    ),
    option(
        "--server",
        action="store_true",
        help="count calls and tokens of 20 questions on the scripted server too",
    ),
    option(
        "--judge",
        choices=MODES,
        metavar="MODE",
        help="judge every mode against this one, by the role `judge`",
    ),
    option(
        "--repeats",
        type=int,
        default=1,
        metavar="N",
        help="how often the judge judges each pair in each order",
    ),
    option("--no-vectors", action="store_true", help="index and search without vectors"),
    sets={name: known.files for name, known in COMPARED.items()},
    optional=True,
)
def compare(run: Run) -> None:
    """Which mode answers best, and what does each cost?

    Each set is indexed offline, and every question is asked in every mode, without memory and with
    caches of its own; `naive` is GraphRAG's SS and `ts` its TS. `direct` and `hyde` need a model.
    With --server the first questions are asked again with every role on the scripted server of the
    tests: its answers are rules, so that only calls and tokens mean something there. For the
    questions about a whole collection `global` is asked level by level too. With --judge the model
    of the role `judge`, as the environment has it, compares the answers in pairs.
    """
    compared(run, [COMPARED[name] for name in run.options.sets])


def compared(run: Run, chosen: Sequence[CompareSet]) -> None:
    """A table for each set; the judge's, where one is asked for; and where they are known what
    others published and how often the answer stands in the context.
    """
    options = run.options
    print(budget_note(), flush=True)
    with _server(options.server) as server:
        for known in chosen:
            folder = run.workspace(known.name)
            embedding = "none" if options.no_vectors else known.embedding
            sources = known.write(options.data or Path(), folder)
            questions = known.ask(options.data or Path(), run.limit)
            with open_session(
                index(sources, settings_in(folder, embedding=embedding))[0]
            ) as session:
                given, rows = {}, {}
                for way in ways_of(known, options.modes, session):
                    given[way.name], rows[way.name] = measured(
                        way, questions, known, session, server
                    )
                run.table(known.name, rows)
                if options.judge:
                    _judge(run, known, questions, {name: own for name, own in given.items() if own})
                if known.name in {"hotpot_train100"} and "low" in options.modes:
                    shares = asyncio.run(standing(questions, session))[1]
                    run.table(f"{known.name}: the answer stands in the context", {"share": shares})
            if known.published:
                published = known.published(options.data)
                run.table(
                    f"{known.name}: published by others (with gpt-4o-mini)", {"share": published}
                )


def ways_of(known: CompareSet, modes: Sequence[str], session: Session) -> list[Way]:
    """The modes; about a whole collection `global` also with all reports of each level."""
    ways = [Way(mode=mode) for mode in modes]
    if known.whole and "global" in modes:
        levels = sorted({*session.reports.tree.levels.values()})
        ways += [Way(mode="global", level=level) for level in levels]
    return ways


def measured(
    way: Way,
    questions: Sequence[EvaluationQuestion],
    known: CompareSet,
    session: Session,
    server: str | None,
) -> tuple[list[Given], dict[str, Cell]]:
    """What a way of asking gave, and its figures: offline, and with the first 20 questions at the
    scripted server too, where the base URL of one is given.
    """
    costs = _served(ask_all(way, questions[:SERVED], session, server)) if server else {}
    try:
        given = ask_all(way, questions, session, None)
    except NeedsModelError as error:
        return [], {**costs, "note": f"needs a model: {error}"}
    return given, {**scored(given, known), **costs, **_offline(given), "note": _note(given)}


def scored(given: Sequence[Given], known: CompareSet) -> dict[str, Cell]:
    """The mean of each of the set's measures over the questions of which it has something to say; a
    question that failed scores nothing.
    """
    figures: dict[str, Cell] = {}
    for wanted in measures_named(known.measures):
        pairs = [(one.question, one.answered.answer) for one in given]
        values = [wanted.score(question, answer) if answer else 0.0 for question, answer in pairs]
        figures[wanted.name] = _mean([value for value in values if value is not None])
    return figures


def _judge(
    run: Run,
    known: CompareSet,
    questions: Sequence[EvaluationQuestion],
    given: Mapping[str, Sequence[Given]],
) -> None:
    judge, base = Judge(open_runtime(load_settings({})).models), run.options.judge
    answers = {name: [one.answered for one in own] for name, own in given.items()}
    for name in [name for name in answers if name != base]:
        pair = (answers[base], answers[name])
        verdicts = asyncio.run(_judged(questions, pair, judge, run.options.repeats))
        run.table(f"{known.name}: {base} against {name}, share of verdicts", win_rates(verdicts))
        trust = {
            name: [verdict for verdict in verdicts if verdict.criterion == name]
            for name in CRITERIA
        }
        run.table(
            "  how the judge judged",
            {name: reliability(own).model_dump() for name, own in trust.items()},
        )


async def _judged(
    questions: Sequence[EvaluationQuestion],
    pair: tuple[Sequence[EvaluatedAnswer], Sequence[EvaluatedAnswer]],
    judge: Judge,
    repeats: int,
) -> list[Verdict]:
    return await judged_pairs(questions, pair, judge, tuple(CRITERIA), repeats)


def ask_all(
    way: Way, questions: Sequence[EvaluationQuestion], session: Session, server: str | None
) -> list[Given]:
    """Every question once, after the first, which loads what the way needs.

    With caches of its own and without kept answers, so that no way of asking profits from one
    before it. Raises NeedsModelError where the way cannot be asked offline.
    """
    model = (
        {"lm": "openai/scripted", "lm_base_url": server, "lm_api_key": SecretStr("none")}
        if server
        else {}
    )
    given: list[Given] = []
    with tempfile.TemporaryDirectory(prefix="trellis-bench-", ignore_cleanup_errors=True) as folder:
        seen = copy.copy(session)
        for name, asked in (("warm", questions[:1]), ("measured", questions)):
            cache = Path(folder) / name
            cache.mkdir()
            settings = {"answer_cache": False, "cache_dir": cache, **model}
            seen.runtime = open_runtime(session.runtime.settings.model_copy(update=settings))
            given = [asyncio.run(ask(way, question, seen)) for question in asked]
    return given


async def ask(way: Way, question: EvaluationQuestion, session: Session) -> Given:
    """One question. What fails is noted: a way that breaks is a row of the comparison, not its
    end.
    """
    began, cpu = time.perf_counter(), cpu_seconds()
    answer, problem = None, ""
    try:
        answer = await answer_question(
            question.question, AskOptions(mode=way.mode, level=way.level), session
        )
    except UsageError as error:
        raise NeedsModelError(str(error)) from error
    except Exception as error:  # noqa: BLE001 -- counted, and its words are shown
        problem = f"{type(error).__name__}: {error}"
    answered = EvaluatedAnswer(system=way.name, question=question.id, answer=answer, error=problem)
    return Given(question, answered, time.perf_counter() - began, cpu_seconds() - cpu)


def _served(given: Sequence[Given]) -> dict[str, Cell]:
    usages = [one.answered.answer.usage for one in given if one.answered.answer is not None]
    return {
        "calls*": _mean([usage.calls for usage in usages]),
        "tokens in*": _mean([usage.input_tokens for usage in usages]),
        "tokens out*": _mean([usage.output_tokens for usage in usages]),
    }


def _offline(given: Sequence[Given]) -> dict[str, Cell]:
    done = [one for one in given if one.answered.answer is not None]
    tenths = (
        quantiles([1000 * one.seconds for one in done], n=10, method="inclusive")
        if len(done) > 1
        else [0.0] * 9
    )
    return {
        "ms, median": tenths[4],
        "ms, 90%": tenths[8],
        "CPU ms": _mean([1000 * one.cpu for one in done]),
        "asked": len(given),
    }


def _note(given: Sequence[Given]) -> str:
    problems = [one.answered.error for one in given if one.answered.error]
    reports = mean(
        len(one.answered.answer.trace.reports) if one.answered.answer else 0 for one in given
    )
    parts = [f"{len(problems)} failed: {problems[0]}"] if problems else []
    return "; ".join([*parts, *([f"{reports:.0f} reports read"] if reports else [])])


def _mean(values: Sequence[float]) -> float | None:
    return round(float(mean(values)), 4) if values else None


@contextlib.contextmanager
def _server(wanted: bool) -> Iterator[str | None]:
    """The base URL of a scripted server, where one is wanted."""
    if not wanted:
        yield None
        return
    from tests.server.client import serving

    with serving() as server:
        yield server.base_url
