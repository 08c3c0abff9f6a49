"""How well does retrieval find what published questions need, and what does it cost?

`python -m benchmarks.retrieval --data DIR` indexes each set offline, as `trellis index` does, and asks every question.
"""

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.questions import SETS, Question, QuestionSet
from benchmarks.ranking import Quality, floors, quality, ranked, table
from flows.indexing import IndexOptions, build_index
from flows.runtime import Runtime, open_runtime
from flows.session import Session, open_session
from flows.settings import Settings
from storage.records import Record


class Measured(Record):
    """What one set gave. `reused`: the index was there already, so its seconds say nothing."""

    name: str
    passages: int
    questions: int
    reused: bool
    index_seconds: float
    load_seconds: float
    ms_per_query: float
    peak_rss_mb: int
    methods: dict[str, Quality]

    def lines(self) -> list[str]:
        indexed = "reused" if self.reused else f"{self.index_seconds:.1f} s"
        return [
            f"{self.name}: {self.passages} passages, {self.questions} questions",
            f"  index {indexed}, open {self.load_seconds:.2f} s, {self.ms_per_query:.1f} ms per query,"
            f" peak memory {self.peak_rss_mb} MB",
            *table(self.methods),
        ]


class Job(Record):
    """What one measuring process has to do; `folder` is where its corpus and workspace go."""

    name: str
    data: Path
    folder: Path
    limit: int | None
    ks: tuple[int, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the sets asked for; 2 where the folder or a file of theirs is absent."""
    options = _parser().parse_args(arguments)
    chosen = [known for known in SETS if options.set is None or known.name in options.set]
    problem = _absent(options.data, chosen)
    if problem:
        print(problem, file=sys.stderr)
        return 2
    results = []
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as temporary:
        for known in chosen:
            folder = (options.keep or Path(temporary)) / known.name
            folder.mkdir(parents=True, exist_ok=True)
            job = Job(name=known.name, data=options.data, folder=folder, limit=options.limit, ks=tuple(options.k))
            # A process for each set: its peak memory is its own.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                results.append(pool.submit(measure, job).result())
            print("\n".join(results[-1].lines()), flush=True)
    if options.json:
        lines = ",\n".join(result.model_dump_json() for result in results)
        options.json.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return 0


def measure(job: Job) -> Measured:
    """Index one set, unless its folder holds that index already, and ask all its questions."""
    known = next(one for one in SETS if one.name == job.name)
    corpus = job.folder / "corpus.jsonl"
    passages = known.write_corpus(job.data, corpus)
    questions = known.read_questions(job.data, job.limit)
    runtime = _open(job.folder / "workspace")
    report = asyncio.run(build_index([corpus], IndexOptions(), runtime))
    started = time.monotonic()
    with open_session(runtime) as session:
        # The first question loads the index and the embedder; it is paid once in a session.
        asyncio.run(ranked(questions[0].text, max(job.ks), session))
        loaded = time.monotonic() - started
        methods, milliseconds = asyncio.run(_ask(questions, job.ks, session))
    return Measured(
        name=job.name, passages=passages, questions=len(questions), reused=not report.published,
        index_seconds=round(report.seconds, 1), load_seconds=round(loaded, 2), ms_per_query=round(milliseconds, 2),
        peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, methods=methods,
    )  # fmt: skip


async def _ask(questions: Sequence[Question], ks: Sequence[int], session: Session) -> tuple[dict[str, Quality], float]:
    """The quality of our ranking and of each floor, and the mean milliseconds of ours."""
    started = time.monotonic()
    found = {"trellis": [await ranked(question.text, max(ks), session) for question in questions]}
    milliseconds = 1000 * (time.monotonic() - started) / len(questions)
    for question in questions:
        for name, documents in floors(question.text, max(ks), session).items():
            found.setdefault(name, []).append(documents)
    return {name: quality(questions, documents, ks) for name, documents in found.items()}, milliseconds


def _open(workspace: Path) -> Runtime:
    """Offline and with the default settings, whatever the environment and `trellis.toml` say."""
    return open_runtime(Settings(workspace=workspace), progress=_progress)


def _progress(step: str, done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r  {step} {done}/{total}   ", end="" if done < total else "\n", file=sys.stderr, flush=True)


def _absent(data: Path, chosen: Sequence[QuestionSet]) -> str:
    if not data.is_dir():
        return f"There is no folder {data}. Name the one that holds the question sets: --data DIR."
    missing = sorted({str(path) for known in chosen for path in known.missing(data)})
    if missing:
        return f"These files are absent: {', '.join(missing)}. Add them, or choose other sets with --set NAME."
    return ""


def _numbers(text: str) -> list[int]:
    numbers = sorted({int(part) for part in text.split(",")})
    if numbers[0] < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: use whole numbers from 1, as in 2,5,8")
    return numbers


def _parser() -> argparse.ArgumentParser:
    names = [known.name for known in SETS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description="Measure retrieval, offline.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder that holds the sets")
    parser.add_argument("--set", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--limit", type=int, metavar="N", help="ask the first N questions only")
    parser.add_argument("--k", type=_numbers, default=[1, 2, 5, 8], metavar="K,K", help="cut-offs (1,2,5,8)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the workspaces there and use them again")
    return parser


if __name__ == "__main__":
    sys.exit(main())
