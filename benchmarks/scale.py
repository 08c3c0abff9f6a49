"""What an index and its questions cost as the corpus grows, and by which power of its size."""

import asyncio
import json
import math
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.enlarged import SUPPLY, enlarged, exponent
from benchmarks.overhead import WARM_QUESTION, WARM_UP, questions_about
from benchmarks.runner import (
    MB,
    Cell,
    Run,
    apart,
    cpu_seconds,
    measure,
    option,
    peak_memory,
    whole_number,
)
from benchmarks.sets import write_rows
from flows.index import IndexOptions, index_documents
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import open_session
from flows.settings import load_settings
from storage.layout import DATABASE, Layout, size_of
from tasks.watching import watched
from tests.server.client import serving

SIDE_BY_SIDE = ("extract", "embed")
Table = dict[str, dict[str, Cell]]


@dataclass(frozen=True)
class Job:
    """What one process measures: a corpus of `size` passages in a workspace, questions, the
    settings to do it with.
    """

    size: int
    corpus: Path
    workspace: Path
    settings: Mapping[str, str]
    questions: tuple[tuple[str, str], ...] = ()


class StepCosts:
    """Processor time, wall time and peak memory by step, of this process. A step lasts until the
    next one begins, so that what is stored between them is counted; batches that run side by side
    are one.
    """

    def __init__(self) -> None:
        self.costs: Table = {}
        self._running: Counter[str] = Counter()
        self._begin("load")

    def __call__(self, name: str, begins: bool) -> None:
        self._running[name] += 1 if begins else -1
        if name in SIDE_BY_SIDE:
            going = any(self._running[one] for one in SIDE_BY_SIDE)
            self._begin("extract and embed" if going else "store, vector index")
        elif begins:
            self._begin(name)

    def _begin(self, name: str) -> None:
        self.end()
        self._name, self._cpu, self._wall = name, cpu_seconds(), time.monotonic()

    def end(self) -> None:
        if hasattr(self, "_name"):
            cost = self.costs.setdefault(self._name, {"CPU s": 0.0, "wall s": 0.0, "peak MB": 0.0})
            cost["CPU s"] = float(cost["CPU s"] or 0) + cpu_seconds() - self._cpu
            cost["wall s"] = float(cost["wall s"] or 0) + time.monotonic() - self._wall
            cost["peak MB"] = max(float(cost["peak MB"] or 0), peak_memory())


@measure(
    option(
        "--passages",
        type=whole_number,
        nargs="+",
        default=[1000, 5000],
        metavar="N",
        help="(1000 5000)",
    ),
    option(
        "--models",
        choices=["offline", "scripted"],
        default="offline",
        help="who extracts and answers (offline)",
    ),
    option("--embedding", choices=["bundled", "scripted"], default="bundled", help="(bundled)"),
    option(
        "--questions",
        type=whole_number,
        default=10,
        metavar="N",
        help="questions of each class (10)",
    ),
    option(
        "--plot", type=Path, metavar="FILE", help="draw processor time against size there (.svg)"
    ),
    files=SUPPLY,
)
def scale(run: Run) -> None:
    """What do an index and its questions cost as the corpus grows, and by which power of its size?

    Passages of published sets, and beyond their supply the same with other names
    (`benchmarks/enlarged.py`). For each size a process of its own indexes, one asks (ten classes,
    one after another, the first not counted), and one indexes one document more. `scripted` is the
    model server of the tests: its own processor time is not counted. With --keep a size that was
    measured is not measured again, so that sizes can be added.
    """
    options = run.options
    settings, found = dict[str, str](), dict[int, dict[str, Table]]()
    folder = run.workspace(f"scale-{options.models}-{options.embedding}")
    with ExitStack() as stack:
        if "scripted" in (options.models, options.embedding):
            address = stack.enter_context(serving()).base_url
            settings["TRELLIS_LM_API_KEY"] = "none"
            for name, chosen in (
                ("TRELLIS_LM", options.models),
                ("TRELLIS_EMBEDDING", options.embedding),
            ):
                if chosen == "scripted":
                    settings |= {name: "openai/scripted", f"{name}_BASE_URL": address}
        for size in sorted(options.passages):
            kept = folder / f"{size}.json"
            if not kept.exists():
                kept.write_text(
                    json.dumps(_measured(run, size, folder, settings), indent=1), encoding="utf-8"
                )
            found[size] = json.loads(kept.read_text(encoding="utf-8"))
            for title, rows in found[size].items():
                run.table(f"{size:,} passages: {title}", rows)
    if len(found) > 1:
        steps = {size: _processor_seconds(tables) for size, tables in found.items()}
        run.table("processor seconds by size, and the exponent", grown(steps))
        if options.plot:
            options.plot.write_text(plotted(steps), encoding="utf-8")


def _measured(run: Run, size: int, folder: Path, settings: Mapping[str, str]) -> dict[str, Table]:
    rows, spread = enlarged(run.options.data, size + 1)
    corpus = folder / f"{size}.jsonl"
    write_rows(rows[:size], corpus)
    questions = questions_about([str(row["title"]) for row in rows[:size]], run.options.questions)
    job = Job(size, corpus, folder / f"workspace-{size}", settings, questions)
    tables = {
        "names": spread,
        "index": apart(_index_cost, job),
        "questions": apart(_question_costs, job),
    }
    write_rows(rows, corpus)
    return tables | {
        "one document more": apart(_index_cost, job),
        "on disk": _on_disk(job.workspace),
    }


def _index_cost(job: Job) -> Table:
    """By step, after an index of two passages, which loads everything."""
    os.environ.update(job.settings, DO_NOT_TRACK="1")
    warm = job.workspace.with_name(f"warm-{os.getpid()}")
    write_rows(WARM_UP, warm.with_suffix(".jsonl"))
    for corpus, workspace in ((warm.with_suffix(".jsonl"), warm), (job.corpus, job.workspace)):
        peak_memory()
        cpu, wall, costs = cpu_seconds(), time.monotonic(), StepCosts()
        with watched(costs):
            runtime = open_runtime(load_settings({"workspace": workspace}))
            report = asyncio.run(index_documents([corpus], IndexOptions(), runtime))
        costs.end()
    whole: dict[str, Cell] = {"CPU s": cpu_seconds() - cpu, "wall s": time.monotonic() - wall}
    whole["peak MB"] = max(float(cost["peak MB"] or 0) for cost in costs.costs.values())
    made = report.model_dump(include={"entities", "relations", "communities", "reports"})
    return {
        "all": {**whole, "ms a passage": 1000 * float(whole["CPU s"] or 0) / job.size, **made},
        **costs.costs,
    }


def _question_costs(job: Job) -> Table:
    os.environ.update(job.settings, DO_NOT_TRACK="1")
    peak_memory()

    async def asked() -> list[tuple[str, float, float]]:
        costs = []
        with open_session(open_runtime(load_settings({"workspace": job.workspace}))) as session:
            for kind, question in [WARM_QUESTION, *job.questions]:
                cpu, wall = cpu_seconds(), time.monotonic()
                await answer_question(question, AskOptions(), session)
                costs.append((kind, cpu_seconds() - cpu, time.monotonic() - wall))
        return costs

    first, *costs = asyncio.run(asked())
    kinds = {"all": costs} | {
        kind: [cost for cost in costs if cost[0] == kind] for kind, *_ in costs
    }
    table = {kind: _percentiles(own) for kind, own in kinds.items()}
    table["all"]["peak MB"] = peak_memory()
    return table | {"the first, which opens the index": _percentiles([first])}


def _percentiles(costs: Sequence[tuple[str, float, float]]) -> dict[str, Cell]:
    return {
        f"{name} ms p{part}": float(np.percentile([1000 * cost[place] for cost in costs], part))
        for place, name in ((1, "CPU"), (2, "wall"))
        for part in (50, 95)
    }


def _on_disk(folder: Path) -> Table:
    layout = Layout(folder)
    generation = layout.folder(max(layout.folders()))
    database = (generation / DATABASE).stat().st_size
    sizes = {
        "database of a generation": database,
        "its vector index": size_of(generation) - database,
        "caches and history": layout.database_file.stat().st_size,
    }
    return {name: {"MB": size / MB} for name, size in sizes.items()}


def _processor_seconds(tables: Mapping[str, Table]) -> dict[str, float]:
    """What is compared between sizes, in processor seconds."""
    seconds = {step: float(cost["CPU s"] or 0) for step, cost in tables["index"].items()}
    seconds["one document more"] = float(tables["one document more"]["all"]["CPU s"] or 0)
    return seconds | {
        "a question (p50)": float(tables["questions"]["all"]["CPU ms p50"] or 0) / 1000
    }


def grown(steps: Mapping[int, Mapping[str, float]]) -> Table:
    """A row for each step: its seconds at each size, the exponent over all sizes, and over the last
    two.
    """
    table: Table = {}
    for step in steps[max(steps)]:
        points = [
            (size, costs[step]) for size, costs in sorted(steps.items()) if costs.get(step, 0) > 0
        ]
        table[step] = {f"{size:,}": cost for size, cost in points}
        if len(points) > 1:
            table[step] |= {"exponent": exponent(points), "of the last two": exponent(points[-2:])}
    return table


_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 900, 520, 60, 250, 20, 40
_COLOURS = (
    "#222",
    "#1b7f5c",
    "#c2571a",
    "#6a4fb3",
    "#b3304f",
    "#2470b3",
    "#8a7a00",
    "#0d8a8a",
    "#777",
    "#a0522d",
)


def plotted(steps: Mapping[int, Mapping[str, float]]) -> str:
    """The same as a picture (SVG), both axes logarithmic."""
    sizes, names = sorted(steps), list(steps[max(steps)])
    values = [value for costs in steps.values() for value in costs.values() if value > 0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log10(sizes[0]), math.log10(sizes[-1])

    def x(size: float) -> float:
        return _LEFT + (math.log10(size) - first) / (last - first) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return (
            _HEIGHT
            - _BOTTOM
            - (math.log10(value) - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)
        )

    box = (
        f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12"'
    )
    parts = [f"<svg {box}>", f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>']
    for power in range(low, high + 1):
        at = y(10**power)
        parts.append(f'<path d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>'
        )
    parts += [
        f'<text x="{x(n):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{n:,}</text>' for n in sizes
    ]
    ends = sorted((y(steps[sizes[-1]][name]), name) for name in names if steps[sizes[-1]][name] > 0)
    label = 0.0
    for place, (end, name) in enumerate(ends):
        colour, label = _COLOURS[place % len(_COLOURS)], max(end, label + 15)
        line = " ".join(
            f"{x(size):.1f},{y(steps[size][name]):.1f}"
            for size in sizes
            if steps[size].get(name, 0) > 0
        )
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="{_WIDTH - _RIGHT + 8}" y="{label + 4:.1f}" fill="{colour}">{name}</text>'
        )
    parts.append(
        f'<text x="{_LEFT}" y="{_HEIGHT - 2}">processor seconds against passages</text></svg>\n'
    )
    return "\n".join(parts)
