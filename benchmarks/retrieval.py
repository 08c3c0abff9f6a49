"""How well does retrieval find what published questions need, what is each part of it worth, and what does it cost?

`python -m benchmarks.retrieval --data DIR` indexes each set offline, as `trellis index` does, and asks every question:
as it stands, beside plain rankings and what other systems published; by kind; made worse on purpose; and with one part
of the search left out after another; and how often a mode lays the answer before the answering step. `--brief` prints
the first table alone.
"""

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.ablations import LEVELS, WITHOUT, Standing, standing
from benchmarks.questions import SETS, Question, QuestionSet
from benchmarks.ranking import Quality, by_kind, floors, quality, ranked, table
from benchmarks.stress import lowered, misspelt
from flows.index import IndexOptions, build_index
from flows.runtime import Runtime, open_runtime
from flows.session import Session, open_session
from flows.settings import Settings
from storage.answer_records import Mode
from storage.records import Record
from tasks.retrieve.passage_sets import Switches


class Cost(Record):
    """What a set cost. `reused`: the index was there already, so its seconds say nothing. A query's milliseconds are
    those of the search, its vector made before."""

    reused: bool
    index_seconds: float
    load_seconds: float
    ms_per_query: float
    cpu_ms_per_query: float
    peak_rss_mb: int


class Measured(Record):
    """What one set gave: its tables by heading, each row a way of asking."""

    name: str
    passages: int
    questions: int
    cost: Cost
    tables: dict[str, dict[str, Quality]]
    standing: Standing | None = None

    def lines(self) -> list[str]:
        cost = self.cost
        indexed = "reused" if cost.reused else f"{cost.index_seconds:.1f} s"
        return [
            f"{self.name}: {self.passages} passages, {self.questions} questions",
            f"  index {indexed}, open {cost.load_seconds:.2f} s, {cost.ms_per_query:.1f} ms per query"
            f" ({cost.cpu_ms_per_query:.1f} CPU ms), peak memory {cost.peak_rss_mb} MB",
            *(line for heading, methods in self.tables.items() for line in [f"  {heading}", *table(methods)]),
            *(self.standing.lines() if self.standing else []),
        ]


class Job(Record):
    """What one measuring process has to do; `folder` is where its corpus and workspace go."""

    name: str
    data: Path
    folder: Path
    limit: int | None
    ks: tuple[int, ...]
    brief: bool


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
            job = Job(name=known.name, data=options.data, folder=folder, limit=options.limit, ks=tuple(options.k),
                      brief=options.brief)  # fmt: skip
            # A process for each set: its peak memory is its own.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                results.append(pool.submit(measure, job).result())
            print("\n".join(results[-1].lines()), flush=True)
    if options.json:
        lines = ",\n".join(result.model_dump_json() for result in results)
        options.json.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return 0


def measure(job: Job) -> Measured:
    """Index one set, unless its folder holds that index already, and ask all its questions in every way."""
    known = next(one for one in SETS if one.name == job.name)
    sources = [job.folder / "corpus.jsonl", job.folder / "triples.jsonl"]
    passages = known.write_corpus(job.data, sources[0])
    if not known.write_triples(job.data, sources[1]):
        del sources[1]
    questions = known.read_questions(job.data, job.limit)
    runtime = _open(job.folder / "workspace")
    report = asyncio.run(build_index(sources, IndexOptions(), runtime))
    started = time.monotonic()
    with open_session(runtime) as session:
        # The first question loads the index and the embedder; it is paid once in a session.
        asyncio.run(ranked(questions[0].text, max(job.ks), session))
        loaded = time.monotonic() - started
        asking = Asking(questions, job.ks, session)
        tables = asyncio.run(asking.tables(job.brief or known.chinese))
        told = not (job.brief or known.chinese) and any(question.answers for question in questions)
        answers = asyncio.run(standing(questions, session)) if told else None
    cost = Cost(
        reused=not report.published, index_seconds=round(report.seconds, 1), load_seconds=round(loaded, 2),
        ms_per_query=round(asking.milliseconds, 2), cpu_ms_per_query=round(asking.cpu, 2),
        peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )  # fmt: skip
    return Measured(
        name=job.name, passages=passages, questions=len(questions), cost=cost, tables=tables, standing=answers
    )


class Asking:
    """All questions of a set, asked in many ways; the first time tells what a question costs."""

    def __init__(self, questions: Sequence[Question], ks: Sequence[int], session: Session) -> None:
        self.questions = questions
        self.ks = ks
        self.session = session
        self.milliseconds = self.cpu = 0.0

    async def tables(self, brief: bool) -> dict[str, dict[str, Quality]]:
        """The tables by heading; the first alone where `brief`."""
        found = await self._timed()
        plain = {"trellis": quality(self.questions, found, self.ks), **self._floors(), **self._peers()}
        if brief:
            return {"as they stand": plain}
        kinds = by_kind(self.questions, found, self.ks)
        return {
            "as they stand": plain,
            "by kind": {f"{kind} ({count})": figures for kind, (count, figures) in kinds.items()},
            "made worse": {
                "lower case": await self._asked(self.session, change=lowered),
                "one slip a name": await self._asked(self.session, change=misspelt),
                "the same -fuzzy": await self._asked(self.session.switched(Switches(fuzzy=False)), change=misspelt),
            },
            "a part left out": {
                "all parts": plain["trellis"],
                **{name: await self._asked(self.session.switched(parts)) for name, parts in WITHOUT.items()},
                **{name: await self._asked(self.session, mode=mode) for name, mode in LEVELS.items()},
            },
        }

    async def _timed(self) -> list[list[str]]:
        # Vectors are kept once they are made; what making them costs is the embedder's.
        embedder = self.session.runtime.embedder
        embedder.embed([question.text for question in self.questions if embedder.reads(question.text)])
        wall, cpu = time.monotonic(), time.process_time()
        found = [await ranked(question.text, max(self.ks), self.session) for question in self.questions]
        share = 1000 / len(self.questions)
        self.milliseconds, self.cpu = share * (time.monotonic() - wall), share * (time.process_time() - cpu)
        return found

    async def _asked(self, session: Session, change: Callable[[str], str] = str, mode: Mode = "auto") -> Quality:
        found = [await ranked(change(question.text), max(self.ks), session, mode) for question in self.questions]
        return quality(self.questions, found, self.ks)

    def _floors(self) -> dict[str, Quality]:
        found: dict[str, list[list[str]]] = {}
        for question in self.questions:
            for name, documents in floors(question.text, max(self.ks), self.session).items():
                found.setdefault(name, []).append(documents)
        return {name: quality(self.questions, documents, self.ks) for name, documents in found.items()}

    def _peers(self) -> dict[str, Quality]:
        """What other systems published for these questions, as far down as their lists go."""
        found = {}
        for name in self.questions[0].peers:
            lists = [question.peers[name] for question in self.questions]
            ks = [k for k in self.ks if k <= max(map(len, lists))]
            found[name] = quality(self.questions, lists, ks)
        return found


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
    parser.add_argument("--brief", action="store_true", help="the questions as they stand, and nothing else")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the workspaces there and use them again")
    return parser


if __name__ == "__main__":
    sys.exit(main())
