"""What the client costs beside the models: processor time, calls, tokens and waiting, and what recording adds."""

import itertools
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import get_args

from benchmarks.clients import (
    PASSAGES,
    AskJob,
    IndexJob,
    QuestionCost,
    ServerAddress,
    Spent,
    ask_both_ways,
    ask_once,
    index_once,
    passages,
    questions_about,
)
from benchmarks.runner import Cell, Run, apart, measure, option, whole_number
from benchmarks.sets import write_rows
from flows.orchestration.local_server import own_server
from storage.answer_records import Effort
from tests.server.client import Server, serving

ASK_LATENCY = 50


@measure(
    option("--passages", type=whole_number, nargs="+", default=[150, 600, 2400], help="(150 600 2400)"),
    option("--latency-ms", type=float, nargs="+", default=[0, 50], metavar="MS", help="of the models (0 50)"),
    option("--base", type=whole_number, default=600, metavar="N", help="passages for the runs after (600)"),
    option("--questions", type=whole_number, default=8, metavar="N", help="questions of each class (8)"),
    files=[PASSAGES],
)
def overhead(run: Run) -> None:
    """What does the client cost beside the models: processor time, calls, tokens and waiting, to index and to ask?

    The first passages of the 2Wiki corpus against the scripted model server of the tests, every role and the
    embedding on it. Each figure comes from a process of its own that has indexed two other passages before: imports
    and the server are not counted. Then, on an index of --base passages: an unchanged run, one document more, and
    questions of ten classes at each effort.
    """
    options, folder = run.options, run.workspace("overhead")
    base, rows = options.base, passages(options.data, max([*options.passages, options.base + 1]))
    workspace, corpus = folder / f"base-{base}", folder / "corpus.jsonl"
    with serving() as server:
        for count, latency in itertools.product(options.passages, options.latency_ms):
            write_rows(rows[:count], corpus)
            figures = _indexed(server, corpus, folder / f"{count}-{latency:g}", latency)
            run.table(f"{count} passages at {latency:g} ms", figures)
        for name, count in ((f"{base} passages", base), ("unchanged", base), ("one document more", base + 1)):
            write_rows(rows[:count], corpus)
            run.table(name, _indexed(server, corpus, workspace, 0))
        questions = questions_about([row["title"] for row in rows[:base]], options.questions)
        for effort in get_args(Effort):
            # A copy each: what one effort has asked would stand in the memory and the caches of the next.
            copied = shutil.copytree(workspace, folder / f"base-{base}-{effort}")
            address = ServerAddress.of(server, ASK_LATENCY)
            costs = apart(ask_once, AskJob(questions=questions, effort=effort, workspace=copied, server=address))
            kinds = {"all": costs}
            for cost in costs:
                kinds.setdefault(cost.kind, []).append(cost)
            title = f"effort {effort}, at {ASK_LATENCY} ms: medians of {options.questions} questions a class"
            run.table(title, {kind: _medians(own) for kind, own in kinds.items()})


def _indexed(server: Server, corpus: Path, workspace: Path, latency: float) -> dict[str, dict[str, Cell]]:
    """What an index run cost the client, and the calls and tokens that the server counted, in all and by step."""
    job = IndexJob(corpus=corpus, workspace=workspace, server=ServerAddress.of(server, latency))
    cost, counted = apart(index_once, job), server.stats()
    steps: dict[str, dict[str, Cell]] = counted["steps"]
    names = ("calls", "prompt_tokens", "completion_tokens")
    whole = {name: sum(step[name] for step in counted["steps"].values()) for name in names}
    return {
        "all": {
            **whole, "CPU s": cost.cpu, "wall s": cost.wall, "peak MB": cost.peak_mb, "start-up s": cost.startup,
            "at once": counted["most_in_flight"], "entities": cost.entities, "relations": cost.relations,
            "reports": cost.reports,
        },
        **steps,
    }  # fmt: skip


def _medians(costs: Sequence[QuestionCost]) -> dict[str, Cell]:
    calls = [cost.calls for cost in costs]
    steps = dict.fromkeys(step for cost in costs for step in cost.steps)
    return {
        "calls": median(calls),
        "range": f"{min(calls)}-{max(calls)}",
        "tokens in": median(cost.tokens_in for cost in costs),
        "ms": 1000 * median(cost.wall for cost in costs),
        "CPU ms": 1000 * median(cost.cpu for cost in costs),
        **{f"{step} (mean)": sum(cost.steps.get(step, 0) for cost in costs) / len(costs) for step in steps},
    }


@measure(
    option("--passages", type=whole_number, default=600, metavar="N", help="(600)"),
    option("--latency-ms", type=float, default=50, metavar="MS", help="of the models while indexing (50)"),
    option("--pairs", type=int, default=4, metavar="N", help="index runs, plain and recorded (4)"),
    option("--questions", type=whole_number, default=8, metavar="N", help="questions of each class (8)"),
    files=[PASSAGES],
)
def recording(run: Run) -> None:
    """What does recording cost: an index run and a question with Prefect and without, against a running server?

    The first passages of the 2Wiki corpus are indexed against the scripted model server of the tests, by turns plainly
    and recorded, each run in a process of its own that has indexed two other passages before. Then questions are asked
    about them, each plainly and recorded, one after another.
    """
    options, folder = run.options, run.workspace("recording")
    rows = passages(options.data, options.passages)
    write_rows(rows, folder / "corpus.jsonl")
    os.environ["PREFECT_HOME"] = str(folder / "prefect")  # a database of its own
    with serving() as models, own_server(None, folder) as api:
        spent: dict[bool, list[Spent]] = {False: [], True: []}
        for pair in range(max(options.pairs, 1)):
            for recorded in (False, True) if pair % 2 == 0 else (True, False):
                job = IndexJob(
                    corpus=folder / "corpus.jsonl", workspace=folder / f"ws-{pair}-{recorded}",
                    server=ServerAddress.of(models, options.latency_ms), api=api, recorded=recorded,
                )  # fmt: skip
                spent[recorded].append(apart(index_once, job))
        run.table(f"index, {options.passages} passages at {options.latency_ms:g} ms", _both(spent[False], spent[True]))
        questions = questions_about([row["title"] for row in rows], options.questions)
        asking = AskJob(workspace=folder / "ws-0-False", api=api, questions=questions)
        costs = apart(ask_both_ways, asking)
        run.table(f"{len(costs)} questions", _both([cost.plain for cost in costs], [cost.recorded for cost in costs]))


def _both(plain: Sequence[Spent], recorded: Sequence[Spent]) -> dict[str, dict[str, Cell]]:
    """Medians of both ways, and of the differences within a pair."""
    more = [Spent(wall=two.wall - one.wall, cpu=two.cpu - one.cpu) for one, two in zip(plain, recorded, strict=True)]
    return {
        name: {
            "wall s": median(one.wall for one in own), "CPU s": median(one.cpu for one in own),
            "least": min(one.wall for one in own), "most": max(one.wall for one in own), "times": len(own),
        }
        for name, own in (("plain", plain), ("recorded", recorded), ("recorded minus plain", more))
    }  # fmt: skip
