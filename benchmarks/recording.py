"""What does recording cost: a question and an index run with Prefect and without, against a running server?

`python -m benchmarks.recording --data FILE.jsonl` indexes the first passages of the file (rows with `title` and `text`)
against the scripted model server of the tests, by turns plainly and recorded, each run in a process of its own that has
indexed two other passages before. Then it asks questions about them, each plainly and recorded, one after another.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.overhead import apart, read_rows
from benchmarks.overhead_questions import questions_about
from benchmarks.recording_client import Asked, Questions, Run, Took, ask_twice, index_run_once
from flows.orchestration.local_server import own_server
from tests.server.client import Server, serving


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 2 where the data are absent or too few."""
    options = _parser().parse_args(arguments)
    if not options.data.is_file():
        print(f"There is no file {options.data}. Name one with a passage a line: --data FILE.jsonl.", file=sys.stderr)
        return 2
    rows = read_rows(options.data, options.passages)
    if len(rows) < options.passages:
        print(f"{options.data} has {len(rows)} passages. Ask for fewer: --passages.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as name:
        folder = Path(name)
        os.environ["PREFECT_HOME"] = str(folder / "prefect")  # a database of its own
        with serving() as models, own_server(None, folder) as api:
            _measure(options, rows, folder, models, api)
    return 0


def _measure(options: argparse.Namespace, rows: list[dict[str, str]], folder: Path, models: Server, api: str) -> None:
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    workspace = folder / "ws"
    if options.pairs:
        workspace = _index(folder, corpus, models, api, options)
    else:
        apart(index_run_once, _run(corpus, workspace, models, api, 0, recorded=False))
    titles = [row["title"] for row in rows]
    asked = Questions(workspace=workspace, api=api, questions=questions_about(titles, options.questions))
    print(asked_lines(apart(ask_twice, asked)), flush=True)


def _index(folder: Path, corpus: Path, models: Server, api: str, options: argparse.Namespace) -> Path:
    """Print what the pairs took; a workspace that one of them left."""
    took: dict[bool, list[Took]] = {False: [], True: []}
    workspace = folder
    for pair in range(options.pairs):
        for recorded in (False, True) if pair % 2 == 0 else (True, False):
            workspace = folder / f"ws-{pair}-{recorded}"
            took[recorded].append(
                apart(index_run_once, _run(corpus, workspace, models, api, options.latency_ms, recorded))
            )
    shares = [recorded.wall / plain.wall - 1 for plain, recorded in zip(took[False], took[True], strict=True)]
    print(f"index, {options.passages} passages at {options.latency_ms:g} ms, {options.pairs} pairs by turns")
    print(f"  plain    {_walls(took[False])}\n  recorded {_walls(took[True])}")
    print(f"  wall of the recording: median {median(shares):+.1%} ({', '.join(f'{s:+.1%}' for s in shares)})")
    return workspace


def asked_lines(asked: Sequence[Asked]) -> str:
    """The medians of the questions, and of the difference within a question."""
    more = sorted(1000 * (one.recorded.wall - one.plain.wall) for one in asked)
    cpu = median(1000 * (one.recorded.cpu - one.plain.cpu) for one in asked)
    return (
        f"query, {len(asked)} questions: plain {1000 * median(one.plain.wall for one in asked):.0f} ms, recorded "
        f"{1000 * median(one.recorded.wall for one in asked):.0f} ms; recorded minus plain: median {median(more):.0f} "
        f"ms ({more[0]:.0f} to {more[-1]:.0f}), CPU of the client {cpu:.0f} ms"
    )


def _walls(took: Sequence[Took]) -> str:
    walls = ", ".join(f"{one.wall:.2f}" for one in took)
    return f"median {median(one.wall for one in took):.2f} s ({walls}), CPU {median(one.cpu for one in took):.2f} s"


def _run(corpus: Path, workspace: Path, models: Server, api: str, latency: float, recorded: bool) -> Run:
    return Run(
        corpus=corpus, workspace=workspace, base_url=models.base_url, control=models.url, api=api, latency_ms=latency,
        recorded=recorded,
    )  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recording", description="Measure what recording costs.")
    parser.add_argument("--data", type=Path, default=Path("passages.jsonl.gz"), metavar="FILE", help="a passage a line")
    parser.add_argument("--passages", type=int, default=600, metavar="N", help="(600)")
    parser.add_argument("--latency-ms", type=float, default=50, metavar="MS", help="of the models while indexing (50)")
    parser.add_argument("--pairs", type=int, default=4, metavar="N", help="index runs, plain and recorded (4; 0: none)")
    parser.add_argument("--questions", type=int, default=8, metavar="N", help="questions of each class (8)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
