"""What is each level of the graph worth, and what the texts beside its tables? LightRAG's ablations (arXiv 2410.05779).

    python -m benchmarks.variants_levels --data DIR [--sets A,B] [--keep DIR]

hybrid searches both levels; −High is mode `low`, −Low is mode `high`; −Origin leaves the texts of the passages out of
what is laid before the answering step. Offline, so −Origin has no answers of its own: an offline answer quotes texts.

answer, expected, passages: as in `benchmarks.compare`. context: the answer stands in what is laid before the answering
step (`benchmarks.ablations`), of the questions that do not name it themselves.
"""

import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.ablations import CONTEXTS, LEVELS, standing
from benchmarks.compare import absent
from benchmarks.compare_measure import Room, ask_all, quality_of
from benchmarks.compare_records import Asked, Way
from benchmarks.compare_sets import COMPARED, CompareSet
from benchmarks.questions import Question
from benchmarks.set_options import set_parser
from benchmarks.variants import SETS
from flows.session import Session, open_session
from prompts.answer import EVIDENCE_TOKENS

KNOWN: dict[str, CompareSet] = {**SETS, **{known.name: known for known in COMPARED if known.name == "samples"}}
DEFAULT = "hotpot_train100", "2wiki_780", "samples"
ROWS = "hybrid", "-High", "-Low", "-Origin"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the sets asked for; 2 where the folder or a file of theirs is absent."""
    options = set_parser("variants_levels", "Ablate the levels.", list(KNOWN), list(DEFAULT)).parse_args(arguments)
    chosen = [KNOWN[name] for name in options.sets]
    problem = absent(options.data, chosen)
    if problem:
        print(problem, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as temporary:
        for known in chosen:
            folder = (options.keep or Path(temporary)) / known.name
            folder.mkdir(parents=True, exist_ok=True)
            data = options.data or Path()
            room = Room(known, folder / "workspace")
            with open_session(room.index(known.write(data, folder))) as session:
                print("\n".join(report(room, known.ask(data, options.limit), session)), flush=True)
    return 0


def report(room: Room, questions: Sequence[Asked], session: Session) -> list[str]:
    """The table of a set: a row for each ablation, "–" where it has no such figure."""
    names = [measure.name for measure in room.known.measures]
    found: dict[str, Mapping[str, float]] = {
        row: quality_of(ask_all(Way(mode=mode), questions, session, room, None), room.known, session)
        for row, mode in LEVELS.items()
    }
    asked = [Question(text=one.text, gold=one.gold, answers=one.answers) for one in questions if not one.abstains]
    told = asyncio.run(standing(asked, session))
    contexts = told.shares if told.questions else dict.fromkeys(CONTEXTS)
    lines = [f"{room.known.name}: {len(questions)} questions; context: {told.questions} in {EVIDENCE_TOKENS} tokens"]
    lines.append(f"  {'':9}" + "".join(f"{name:>10}" for name in (*names, "context")))
    for row in ROWS:
        values = [*(found.get(row, {}).get(name) for name in names), contexts[row]]
        lines.append(f"  {row:9}" + "".join(f"{_shown(value):>10}" for value in values))
    return lines


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    sys.exit(main())
