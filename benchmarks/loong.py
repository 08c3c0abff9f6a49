"""Are questions over many financial reports answered exactly, and what does it cost?

    python -m benchmarks.loong --data DIR [--mode full|chunk|naive] [--half even|odd|all] [--keep DIR] [--many N]

Loong's financial questions of levels 1 to 4, each asked over its own documents, offline: `full` lets the structure be
chosen, `chunk` fixes it to passages, `naive` is plain vector and word search. Exact match by level and language; the
rule is stated in `benchmarks.loong_questions` and is ours. Construction (the cells of the documents, made at their
first question) and reading (the same question again) are timed apart. `--many N` asks one comparison over N documents.
"""

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.loong_questions import (
    DOCUMENTS,
    QUESTIONS,
    LoongQuestion,
    half,
    is_right,
    read_questions,
    write_documents,
)
from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime, open_runtime
from flows.session import Session, open_session
from flows.settings import Settings
from storage.answer_records import Answer
from storage.records import Record

MODES: dict[str, AskOptions] = {
    "full": AskOptions(mode="struct"),
    "chunk": AskOptions(structure="chunk"),
    "naive": AskOptions(mode="naive"),
}
MANY = "Which company has the highest total assets?"
WARM_ROUNDS = 3
_CPU = ("first_cpu", "again_cpu")


class Result(Record):
    """How one question was answered; seconds of its first and of a later asking."""

    id: str
    level: int
    language: str
    right: bool
    first: float
    again: float
    first_cpu: float
    again_cpu: float
    calls: int
    tokens: int
    fallback: str
    structure: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the modes asked for; 2 where the folder or a file of Loong's is absent."""
    options = _parser().parse_args(arguments)
    missing = [str(options.data / name) for name in (QUESTIONS, DOCUMENTS) if not (options.data / name).is_file()]
    if missing:
        print(
            f"These files are absent: {', '.join(missing)}. Name the folder that has them: --data DIR.", file=sys.stderr
        )
        return 2
    questions = [
        one
        for one in half(read_questions(options.data), options.half)
        if not options.level or one.level in options.level
    ]
    with tempfile.TemporaryDirectory(prefix="trellis-loong-") as temporary:
        runtime = _indexed(options, questions, options.keep or Path(temporary))
        with open_session(runtime) as session:
            session.warm()
            if options.many:
                print("\n".join(asyncio.run(many(session, options.many))))
                return 0
            for mode in options.mode or list(MODES):
                results = asyncio.run(measured(questions, mode, session, show=options.show))
                print("\n".join(_table(mode, results)), flush=True)
    return 0


def _indexed(options: argparse.Namespace, questions: Sequence[LoongQuestion], folder: Path) -> Runtime:
    """The documents of all questions, indexed offline; a kept workspace is used as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    runtime = open_runtime(Settings(workspace=folder / "workspace", embedding=options.embedding))
    if not (folder / "workspace" / "CURRENT").exists():
        count = write_documents(
            options.data, read_questions(options.data) if options.keep else questions, folder / "corpus.jsonl"
        )
        report = asyncio.run(build_index([folder / "corpus.jsonl"], IndexOptions(), runtime))
        print(f"{count} documents, {report.chunks} chunks, indexed in {report.seconds:.0f} s", flush=True)
    return runtime


async def measured(
    questions: Sequence[LoongQuestion], mode: str, session: Session, *, show: bool = False
) -> list[Result]:
    """Every question in one mode, each asked again at once to tell construction from reading."""
    results = []
    for question in questions:
        options = _over(MODES[mode], question.documents)
        answered, first, first_cpu = await _timed(question.text, options, session)
        _, again, again_cpu = await _timed(question.text, options, session)
        right = is_right(question, answered.values, answered.answer)
        if show:
            print(_shown(question, answered, right), flush=True)
        usage = answered.usage
        results.append(
            Result(
                id=question.id, level=question.level, language=question.language, right=right, first=first,
                again=again, first_cpu=first_cpu, again_cpu=again_cpu, calls=usage.calls,
                tokens=usage.input_tokens + usage.output_tokens, fallback=answered.fallback,
                structure=answered.trace.structure,
            )
        )  # fmt: skip
    return results


async def _timed(question: str, options: AskOptions, session: Session) -> tuple[Answer, float, float]:
    """(answer, seconds, CPU seconds)"""
    wall, cpu = time.monotonic(), time.process_time()
    answered = await answer_question(question, options, session)
    return answered, time.monotonic() - wall, time.process_time() - cpu


def _over(options: AskOptions, documents: Sequence[str]) -> AskOptions:
    return AskOptions(mode=options.mode, structure=options.structure, documents=tuple(documents))


async def many(session: Session, count: int) -> list[str]:
    """One comparison over `count` documents: tokens, construction and reading apart, peak memory."""
    names = [name for name in session.index.documents if name.isascii()][:count]
    tokens = sum(session.index.chunks[place].tokens for name in names for place in session.index.documents[name])
    options = _over(MODES["full"], names)
    times = []
    for _ in range(1 + WARM_ROUNDS):
        answered, wall, cpu = await _timed(MANY, options, session)
        times.append((wall, cpu))
    (first, first_cpu), (reading, reading_cpu) = times[0], min(times[1:])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return [
        f"{len(names)} documents, {tokens:,} tokens: {MANY}",
        f"  construction {first - reading:.2f} s ({first_cpu - reading_cpu:.2f} CPU), reading {reading:.3f} s "
        f"({reading_cpu:.3f} CPU); peak memory {peak} MB; {answered.usage.calls} calls",
        f"  {answered.answer.splitlines()[0]}",
        f"  {len(answered.citations)} citations, {sum(one.verified for one in answered.citations)} verified, "
        f"fallback {answered.fallback}",
    ]


def _table(mode: str, results: Sequence[Result]) -> list[str]:
    lines = [f"{mode}: exact match"]
    for level in sorted({one.level for one in results}):
        cells = []
        for language in ("en", "zh"):
            own = [one for one in results if one.level == level and one.language == language]
            if own:
                cells.append(f"{language} {sum(one.right for one in own)}/{len(own)}")
        own = [one for one in results if one.level == level]
        share = sum(one.right for one in own) / len(own)
        lines.append(f"  level {level}: {share:.2f}  ({', '.join(cells)})")
    count = len(results)
    mean = {name: sum(getattr(one, name) for one in results) / count for name in ("first", "again", *_CPU)}
    lines.append(
        f"  a question: construction {max(mean['first'] - mean['again'], 0.0):.2f} s "
        f"({max(mean['first_cpu'] - mean['again_cpu'], 0.0):.2f} CPU), reading {mean['again']:.3f} s "
        f"({mean['again_cpu']:.3f} CPU); {sum(one.calls for one in results)} calls, "
        f"{sum(one.tokens for one in results)} tokens"
    )
    return lines


def _shown(question: LoongQuestion, answered: Answer, right: bool) -> str:
    return "\n".join(
        [
            f"{'RIGHT' if right else 'WRONG'} {question.level} {question.language} {question.text}",
            f"   gold: {question.answer}",
            f"   said: {list(answered.values)} [{answered.trace.structure}, {answered.fallback}]",
            *(f"         {line}" for line in answered.answer.splitlines()[:9]),
        ]
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loong", description="Measure many-document questions.")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="the folder that holds the question sets"
    )
    parser.add_argument("--mode", action="append", choices=list(MODES), help="a way of asking (default: all)")
    parser.add_argument("--half", choices=["even", "odd", "all"], default="all", help="rows within level and language")
    parser.add_argument("--level", type=int, action="append", help="a level (default: all)")
    parser.add_argument("--many", type=int, metavar="N", help="ask one comparison over N documents instead")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the workspace there and use it again")
    parser.add_argument("--embedding", default="bundled", help="as in the settings (bundled; none is faster)")
    parser.add_argument("--show", action="store_true", help="print every question with its answer")
    return parser


if __name__ == "__main__":
    sys.exit(main())
