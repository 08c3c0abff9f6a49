"""Mode `lazy` beside mode `global`: what they say, and what index and answer cost."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks.compare_sets import PODCAST, PODCAST_QUESTIONS
from benchmarks.rows import read_questions, read_rows, write_rows
from benchmarks.runner import Cell, Run, measure, names_of, option, whole_number
from benchmarks.sets import index, settings_in
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import Session, open_session
from prompts.judge import CRITERIA, Judge
from storage.answer_records import Answer
from storage.evaluation_records import EvaluatedAnswer, EvaluationQuestion, Verdict
from storage.run_records import IndexReport, StepUsage
from tasks.evaluate.judge import Answers, judged_pairs, win_rates
from tasks.evaluate.measures import claim_clusters, claims_of
from tasks.grounding import sentences_of
from tasks.question_sets.public_sets import Row
from tests.server.client import serving

REPORTS = "router/loong_financial_docs.jsonl.gz"
SETS = {"podcasts": (PODCAST, PODCAST_QUESTIONS), "reports_zh": (REPORTS,)}
ASKED = 5
WAYS = ("lazy", "global", "global_unread")
# Questions about all of the Chinese financial reports.
ZH_QUESTIONS = (
    "这些公司的营业收入有哪些变化，原因是什么？",
    "报告中提到了哪些主要风险和减值损失？",
    "各公司在研发方面有哪些投入？",
    "这些公司的现金流量出现了哪些变动，原因是什么？",
    "报告中提到了哪些股东变动和股份回购？",
)


@dataclass(frozen=True)
class Asked:
    """The answers of one way, and the index that they come from."""

    name: str
    index: IndexReport
    answers: Sequence[Answer]
    seconds: Sequence[float]


@measure(
    option(
        "--budgets",
        type=whole_number,
        nargs="+",
        default=[100, 500, 1500],
        metavar="N",
        help="relevance tests of a question in mode lazy (100 500 1500)",
    ),
    option(
        "--documents",
        type=whole_number,
        metavar="N",
        help="index only the first N documents of each set",
    ),
    option("--ways", type=names_of(WAYS), default=list(WAYS), metavar="A,B", help=", ".join(WAYS)),
    option("--base-url", metavar="URL", help="a real model's server (the scripted one)"),
    option("--model", default="scripted", metavar="NAME", help="the model's name on that server"),
    option("--judge", action="store_true", help="the model also judges lazy against global"),
    sets=SETS,
)
def lazy(run: Run) -> None:
    """Does mode `lazy` say as much as `global`, and at which part of its cost?

    `lazy` asks an index that no model has read, with each budget of relevance tests; `global` asks
    one that the model has extracted and reported, `global_unread` the first one. Told are the means
    of each question: claims (sentences that cite), the different ones among them (ROUGE-L below
    .5), those that their sources support, calls and tokens; what the index took; and the tokens of
    the index with one answer, as a share of those of `global`. The questions are the first 5, or
    --limit, of the podcasts' list, and 5 of ours on the Chinese reports. By default the model
    is the scripted server of the tests, whose answers are rules; --base-url names a real one, for
    which --documents and --limit choose a part.
    """
    with _served(run) as model:
        for name in run.options.sets:
            folder = run.workspace(name)
            source, questions = _set(name, run, folder)
            given = _answers(source, questions, model, folder, run)
            run.table(f"{name}: {len(questions)} questions, {run.options.model}", _rows(given))
            for one in given:
                run.show(
                    f"{one.name}: {answer.question}\n{answer.answer}" for answer in one.answers
                )
            if run.options.judge:
                _judge(run, name, questions, given, model)


def _set(name: str, run: Run, folder: Path) -> tuple[Path, list[EvaluationQuestion]]:
    """Write the corpus of a set; return its path, and the questions."""
    limit, path = run.limit or ASKED, folder / "corpus.jsonl"
    if name == "podcasts":
        rows = [
            {"id": f"{row['doc']} #{row['part']}", "title": row["doc"], "text": row["text"]}
            for row in read_rows(run.file(PODCAST))
        ]
        questions = read_questions(run.file(PODCAST_QUESTIONS), limit)
    else:
        rows = [_report(row) for row in read_rows(run.file(REPORTS)) if row["language"] == "zh"]
        questions = [
            EvaluationQuestion(id=str(number), question=question)
            for number, question in enumerate(ZH_QUESTIONS[:limit])
        ]
    write_rows(rows[: run.options.documents], path)
    return path, [row.model_copy(update={"kind": "global"}) for row in questions]


def _report(row: Row) -> Row:
    """A report, which its file name alone tells from others."""
    return {"id": row["id"], "title": str(row["id"]).removesuffix(".txt"), "text": row["text"]}


def _answers(
    source: Path,
    questions: Sequence[EvaluationQuestion],
    model: Mapping[str, object],
    folder: Path,
    run: Run,
) -> list[Asked]:
    """Ask each way that is wanted, in a workspace of its own."""
    given: list[Asked] = []
    of_global = ("global", AskOptions(mode="global"))
    lazily = [
        (f"lazy {budget}", AskOptions(mode="lazy", budget=budget)) for budget in run.options.budgets
    ]
    ways = {
        "lazy": lazily,
        "global": [of_global],
        "global_unread": [("global, index unread", of_global[1])],
    }
    wanted = {name: own for name, own in ways.items() if name in run.options.ways}
    unread = [*wanted.get("lazy", ()), *wanted.get("global_unread", ())]
    read = wanted.get("global", [])
    for name, settings, options in (
        ("unread", settings_in(folder / "unread"), unread),
        ("read", settings_in(folder / "read", **model), read),
    ):
        if not options:
            continue
        (folder / name).mkdir(exist_ok=True)
        report = _first_report(index([source], settings)[1], folder / name / "index.json")
        asking = settings_in(folder / name, **model, answer_cache=run.options.keep is not None)
        with open_session(open_runtime(asking)) as session:
            given += [_asked(label, report, questions, how, session) for label, how in options]
    return given


def _first_report(report: IndexReport, kept: Path) -> IndexReport:
    """Return the report of the run that made the index, which may be an earlier one (--keep)."""
    if report.published:
        kept.write_text(report.model_dump_json(), encoding="utf-8")
        return report
    return IndexReport.model_validate_json(kept.read_text(encoding="utf-8"))


def _asked(
    name: str,
    report: IndexReport,
    questions: Sequence[EvaluationQuestion],
    options: AskOptions,
    session: Session,
) -> Asked:
    async def each() -> tuple[list[Answer], list[float]]:
        answers, seconds = [], []
        for question in questions:
            began = time.perf_counter()
            answers.append(await answer_question(question.question, options, session))
            seconds.append(time.perf_counter() - began)
        await session.runtime.models.aclose()
        return answers, seconds

    answers, seconds = asyncio.run(each())
    return Asked(name, report, answers, seconds)


def _rows(given: Sequence[Asked]) -> dict[str, dict[str, Cell]]:
    whole = {one.name: _whole(one) for one in given}
    rows = {one.name: _row(one) for one in given}
    for name, row in rows.items():
        base = whole.get("global")
        row["of global"] = whole[name] / base if base else None
    return rows


def _whole(one: Asked) -> float:
    """The tokens of the index and of one answer."""
    return _tokens(one.index.usage) + mean(_tokens(answer.usage) for answer in one.answers)


def _tokens(usage: StepUsage) -> int:
    return usage.input_tokens + usage.output_tokens


def _row(one: Asked) -> dict[str, Cell]:
    claims = [claims_of(answer) for answer in one.answers]
    supported = [supported_claims(answer) for answer in one.answers]
    tests = [answer.trace.relevance for answer in one.answers]
    usages = [answer.usage for answer in one.answers]
    return {
        "claims": mean(map(len, claims)),
        "different": mean(map(claim_clusters, claims)),
        "supported": mean(map(len, supported)),
        "different supported": mean(map(claim_clusters, supported)),
        "documents": mean(len({c.document for c in answer.citations}) for answer in one.answers),
        "tests": mean(test.tests if test else 0 for test in tests),
        "relevant": mean(test.relevant if test else 0 for test in tests),
        "calls": mean(usage.calls for usage in usages),
        "tokens in": mean(usage.input_tokens for usage in usages),
        "tokens out": mean(usage.output_tokens for usage in usages),
        "forecast in": mean(test.forecast.input_tokens if test else 0 for test in tests),
        "s": mean(one.seconds),
        "index calls": one.index.usage.calls,
        "index tokens": _tokens(one.index.usage),
        "index + answer": _whole(one),
    }


def supported_claims(answer: Answer) -> list[str]:
    """The claims of an answer that its own check calls supported."""
    supported = {(row.start, row.end) for row in answer.grounding if row.supported}
    return [
        row.claim
        for row in sentences_of(answer.answer)
        if row.claim and row.markers and (row.start, row.end) in supported
    ]


def _judge(
    run: Run,
    name: str,
    questions: Sequence[EvaluationQuestion],
    given: Sequence[Asked],
    model: Mapping[str, object],
) -> None:
    answers = {
        one.name: [
            EvaluatedAnswer(system=one.name, question=question.id, answer=answer)
            for question, answer in zip(questions, one.answers, strict=True)
        ]
        for one in given
    }
    judge = Judge(open_runtime(settings_in(run.workspace("judge"), **model)).models)
    if (base := answers.pop("global", None)) is None:
        return
    for other, own in answers.items():
        verdicts = asyncio.run(_compared(questions, (base, own), judge))
        run.table(f"{name}: global against {other}, share of verdicts", win_rates(verdicts))


async def _compared(
    questions: Sequence[EvaluationQuestion], pair: tuple[Answers, Answers], judge: Judge
) -> list[Verdict]:
    return await judged_pairs(questions, pair, judge, tuple(CRITERIA))


@contextmanager
def _served(run: Run) -> Iterator[Mapping[str, object]]:
    """The settings of the model: that of --base-url, else of a scripted server."""
    settings = {"lm": f"openai/{run.options.model}", "lm_api_key": "none"}
    if run.options.base_url:
        yield {**settings, "lm_base_url": run.options.base_url, "concurrency": 1}
        return
    with serving() as server:
        yield {**settings, "lm_base_url": server.base_url}
