"""How well does the filter without a model tell evidence from the rest?

`python -m benchmarks.filter --data DIR [--keep DIR]` judges the first 20 passages that are retrieved for published
questions. A model's filter is measured with a model.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.questions import SETS
from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import Settings
from prompts.offline.filter import FLOOR, odds_of
from prompts.text.words import fold_name
from tasks.filter import shares
from tasks.retrieve.search import retrieve

MEASURED = ("2wiki_780", "hotpot_train100", "musique_train100")
TOP, DEPTH = 20, 12  # passages that are judged, and that a short question reads

Flags = NDArray[np.bool_]


def area(scores: NDArray[np.float64], gold: Flags) -> float:
    """The area under the ROC curve: how often a passage of evidence comes before another one; ties count half."""
    first, second = scores[gold], scores[~gold]
    higher = (first[:, None] > second[None, :]).sum() + 0.5 * (first[:, None] == second[None, :]).sum()
    return float(higher / max(len(first) * len(second), 1))


async def judged(session: Session, question: str, gold: Sequence[str]) -> tuple[NDArray[np.float64], Flags, Flags]:
    """The log-odds of each passage, whether it is evidence, and whether the question names it."""
    near = session.dense([question])
    passages = await retrieve(session.index, [question], near, TOP)
    known = shares(session.index, question, near[0], [passage.chunk for passage in passages])
    odds = [odds_of(known.get(one.chunk, 0.0), rank) for rank, one in enumerate(passages, 1)]
    asked = f" {fold_name(question)} "
    return (
        np.array(odds), np.array([one.document in gold for one in passages], bool),
        np.array([bool(one.title) and f" {fold_name(one.title)} " in asked for one in passages], bool),
    )  # fmt: skip


def measured(name: str, data: Path, keep: Path) -> str:
    """One line of figures for a set."""
    folder = keep / name
    folder.mkdir(parents=True, exist_ok=True)
    known = next(one for one in SETS if one.name == name)
    known.write_corpus(data, folder / "corpus.jsonl")
    runtime = open_runtime(Settings(workspace=folder / "workspace"))
    asyncio.run(build_index([folder / "corpus.jsonl"], IndexOptions(), runtime))

    async def all_judged() -> list[tuple[NDArray[np.float64], Flags, Flags]]:
        with open_session(runtime) as session:
            return [await judged(session, one.text, one.gold) for one in known.read_questions(data, None)]

    rows = asyncio.run(all_judged())
    odds, gold, named = (np.concatenate([row[place] for row in rows]) for place in range(3))
    second = ~(gold & named)
    kept = np.concatenate([row[0][:DEPTH] >= FLOOR for row in rows])
    first = np.concatenate([row[1][:DEPTH] for row in rows])
    return (
        f"{name}: AUC {area(odds, gold):.3f}, of evidence that the question does not name"
        f" {area(odds[second], gold[second]):.3f}; of the first {DEPTH}: {kept[first].mean():.3f} of the evidence"
        f" entailed, {1 - kept[~first].mean():.3f} of the rest not"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; 2 where the folder is absent."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.filter", description="Measure the knowledge filter.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder that holds the sets")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the workspaces there and use them again")
    options = parser.parse_args(arguments)
    if not options.data.is_dir():
        print(f"{options.data} is absent. Name the folder that has the sets: --data DIR.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as temporary:
        for name in MEASURED:
            print(measured(name, options.data, options.keep or Path(temporary)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
