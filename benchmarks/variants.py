"""What is each of the four modules worth? ERM4's variants, each with one module more (arXiv 2407.10670).

    python -m benchmarks.variants --data DIR [--sets hotpot_train100,2wiki_780] [--served N] [--keep DIR]

direct → plain retrieval → retrieval by the graph too → + rewriter → + filter → + memory. After the passages all go the
same way (route, structures, sub-questions, answer), save that plain retrieval answers from the passages as they are.
"plain + filter" is beside the row of variants: a filter that does not know how the graph compares the passages.

`direct` needs a model: its quality is not measured. The last two are asked twice: the first time fills memory, the
second is asked of it, or without it has the structures alone that a model made the first time. Offline; calls and
tokens are those of the first N questions with every role on the scripted server of the tests, whose answers are rules:
there only the cost means something.

answer: as in `benchmarks.answers`. gold read: all gold passages are among those that the answer was read from, after
the filter. read: how many these are.
"""

import argparse
import asyncio
import copy
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

from benchmarks.compare import absent
from benchmarks.compare_measure import Room, ask_all, by_answer, cost_of
from benchmarks.compare_records import Asked, Way
from benchmarks.compare_sets import ANSWER, COMPARED, PASSAGES, CompareSet, of_question_set
from benchmarks.overhead_client import cpu_seconds
from benchmarks.set_options import set_parser
from benchmarks.variants_steps import Outcome, Steps, stepwise
from flows.asking_view import AskOptions
from flows.runtime import Runtime
from flows.session import Session, open_session
from tests.copying import copy_of

SETS: dict[str, CompareSet] = {
    **{known.name: known for known in COMPARED if known.name in {"hotpot_train100", "2wiki_780"}},
    "musique_train100": of_question_set(
        "musique_train100", "answer", (ANSWER, PASSAGES), "MuSiQue, 100 questions of train over their 1,890 passages"
    ),
}
DEFAULT = "hotpot_train100", "2wiki_780"
PLAIN, WHOLE = AskOptions(mode="naive"), AskOptions()
VARIANTS: dict[str, tuple[AskOptions, Steps]] = {
    "plain retrieval": (PLAIN, Steps(rewrite=False, filter=False)),
    "plain + filter": (PLAIN, Steps(rewrite=False)),
    "retrieval": (WHOLE, Steps(rewrite=False, filter=False)),
    "+ rewriter": (WHOLE, Steps(filter=False)),
    "+ filter": (WHOLE, Steps()),
    "+ memory": (WHOLE, Steps(memory=True)),
}
AGAIN = "+ filter", "+ memory"


@dataclass(frozen=True)
class Timed:
    """What a question gave, and the CPU seconds that it took."""

    asked: Asked
    found: Outcome
    cpu: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the sets asked for; 2 where the folder or a file of theirs is absent."""
    options = _parser().parse_args(arguments)
    chosen = [SETS[name] for name in options.sets]
    problem = absent(options.data, chosen)
    if problem:
        print(problem, file=sys.stderr)
        return 2
    from tests.server.client import serving

    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as temporary, serving() as server:
        for known in chosen:
            folder = (options.keep or Path(temporary)) / known.name
            folder.mkdir(parents=True, exist_ok=True)
            room = Room(known, folder / "workspace")
            room.index(known.write(options.data, folder)).workspace.side.close()
            questions = [
                one
                for place, one in enumerate(known.ask(options.data, options.limit))
                if options.half is None or place % 2 == (options.half == "odd")
            ]
            print(f"{known.name}: {len(questions)} questions")
            print(f"  {'':18}  answer  gold read   read  CPU ms  calls  tokens", flush=True)
            measured(room, questions, server.base_url, options.served)
    return 0


def measured(room: Room, questions: Sequence[Asked], server: str, served: int) -> None:
    """Print a line for each variant."""
    with open_session(room.runtime()) as session:
        cost = cost_of(ask_all(Way(mode="direct"), questions[:served], session, room, server))
        print(f"  {'direct':18}{'not measured':>19}      0       –  {cost.calls:5.1f}{cost.tokens:8.0f}", flush=True)
        for name in VARIANTS:
            offline = rounds(name, room, questions, None)
            on_server = rounds(name, room, questions[:served], server)
            for number, (given, paid) in enumerate(zip(offline, on_server, strict=True)):
                told = f"{name}, again" if number else name
                print(line(told, given, paid, room.known.judged == "answer", session), flush=True)


def rounds(name: str, room: Room, questions: Sequence[Asked], server: str | None) -> list[list[Timed]]:
    """Every question in a variant, of the last two twice; in a copy of the workspace that remembers nothing. Each time
    has a cache of model answers of its own."""
    options, steps = VARIANTS[name]
    with tempfile.TemporaryDirectory(prefix="trellis-bench-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        room = replace(room, workspace=copy_of(room.workspace, folder / "workspace"))
        for remembered in room.workspace.glob("side.sqlite*"):
            remembered.unlink()
        with open_session(_runtime(room, folder / "warm", server)) as session:
            asyncio.run(_asked(questions[-1:], options, replace(steps, memory=False), session))
            seen = copy.copy(session)
            given = []
            for number in range(2 if name in AGAIN else 1):
                seen.runtime = _runtime(room, folder / f"measured{number}", server)
                given.append(asyncio.run(_asked(questions, options, steps, seen)))
            return given


def _runtime(room: Room, cache: Path, server: str | None) -> Runtime:
    """With a cache of its own, and with memory: whether it is used is a variant's choice."""
    cache.mkdir()
    runtime = room.runtime(cache, server)
    return replace(runtime, settings=runtime.settings.model_copy(update={"memory": "on"}))


async def _asked(questions: Sequence[Asked], options: AskOptions, steps: Steps, session: Session) -> list[Timed]:
    given = []
    for one in questions:
        began = cpu_seconds()
        found = await stepwise(one.text, options, session, steps)
        given.append(Timed(one, found, cpu_seconds() - began))
    return given


def line(name: str, given: Sequence[Timed], paid: Sequence[Timed], answers: bool, session: Session) -> str:
    """The figures of a variant: `given` offline, `paid` on the scripted server; `answers` where the set has some."""
    right = "        –"
    if answers:
        right = f"{mean(by_answer(one.asked, one.found.answer, session)[0] for one in given):9.3f}"
    gold = mean(set(one.asked.gold) <= one.found.documents for one in given)
    read = mean(one.found.passages for one in given)
    cpu = 1000 * mean(one.cpu for one in given)
    usage = [one.found.answer.usage for one in paid]
    calls, tokens = mean(one.calls for one in usage), mean(one.input_tokens + one.output_tokens for one in usage)
    recalled = mean(one.found.recalled for one in given)
    told = f"   {recalled:.0%} from memory" if recalled else ""
    return f"  {name:18}{right}{gold:10.3f}{read:7.1f}{cpu:8.0f}{calls:7.1f}{tokens:8.0f}{told}"


def _parser() -> argparse.ArgumentParser:
    parser = set_parser("variants", "Measure the four modules.", list(SETS), DEFAULT)
    parser.add_argument("--half", choices=["even", "odd"], help="rows of even or odd places only")
    parser.add_argument("--served", type=int, default=20, metavar="N", help="so many on the scripted server (20)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
