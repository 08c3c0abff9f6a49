"""What is the choice of a structure worth? The same questions with other routers, with one type for all, and with parts
of the way left out.

    python -m benchmarks.router_effect --data DIR [--sets samples,hotpot_train100,loong] [--keep DIR]

StructRAG's figure of router accuracy against the score, its ablations, and its comparison of fixed types (arXiv
2410.08815), offline. Every question is asked with the router and with each of the five types; what
a random router gives follows from these answers. The sample questions name their right types. Where a set does not, the
right type of a kind of question is the one that, fixed, answers most of that kind: so "right type" says there only how
near a router comes to the best fixed choice.

- our router: mode `struct`. Its choice, forced: the same types asked for by name, as the fixed ones are; a type
  asked for by name keeps neutral passages too and tries no second structure.
- random, never right: five seeds; the mean, the least and the most.
- no utilizer: the structures read at once, without plans over tables and without sub-questions. No structurizer is
  "chunk for all", no router is "random".
"""

import asyncio
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks.compare import absent
from benchmarks.router_effect_sets import KNOWN, Case, cases_of, indexed
from benchmarks.set_options import set_parser
from benchmarks.variants_steps import Steps, stepwise
from flows.asking import answer_question
from flows.session import Session, open_session
from prompts.offline.route import STRUCTURES
from storage.records import StructureType

SEEDS = 5


@dataclass(frozen=True)
class Given:
    """What one question gave: its right types, the type that our router chose, and the score with our router, with each
    type fixed, and without a utilizer."""

    kind: str
    right: tuple[StructureType, ...]
    chosen: StructureType
    ours: float
    fixed: dict[StructureType, float]
    at_once: float


@dataclass(frozen=True)
class Line:
    """A router's name, how often its type was right (None where it has none), its score over all questions and by kind,
    and the least and most of its seeds."""

    name: str
    accuracy: float | None
    score: float
    kinds: dict[str, float]
    spread: tuple[float, float] | None = None

    def __str__(self) -> str:
        told = "    –" if self.accuracy is None else f"{self.accuracy:5.3f}"
        kinds = "".join(f"{value:12.3f}" for value in self.kinds.values() if len(self.kinds) > 1)
        spread = f"   {self.spread[0]:.3f}–{self.spread[1]:.3f}" if self.spread else ""
        return f"  {self.name:22}{told:>10}{self.score:8.3f}{kinds}{spread}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the sets asked for; 2 where the folder or a file of theirs is absent."""
    options = set_parser("router_effect", "Compare routers.", list(KNOWN), list(KNOWN)).parse_args(arguments)
    chosen = [KNOWN[name] for name in options.sets]
    problem = absent(options.data, chosen)
    if problem:
        print(problem, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as temporary:
        for known in chosen:
            runtime = indexed(known, options.data, (options.keep or Path(temporary)) / known.name)
            with open_session(runtime) as session:
                given = asyncio.run(asked(cases_of(known, options.data, session)[: options.limit], session))
            print("\n".join([f"{known.name}: {len(given)} questions", *report(given)]), flush=True)
    return 0


async def asked(cases: Sequence[Case], session: Session) -> list[Given]:
    """Every question in all ways."""
    found = []
    for case in cases:
        ours = await answer_question(case.text, case.options, session)
        fixed = {
            one: case.judge(await answer_question(case.text, case.fixed(one), session)) for one in STRUCTURES
        }  # fmt: skip
        at_once = await stepwise(case.text, case.options, session, Steps(utilizer=False))
        route, score, unread = ours.trace.route.type, case.judge(ours), case.judge(at_once.answer)
        found.append(Given(case.kind, case.right, route, score, fixed, unread))
    return found


def report(given: Sequence[Given]) -> list[str]:
    """The table of a set: routers, fixed types, and the way without a utilizer."""
    right = right_types(given)
    kinds = sorted({one.kind for one in given})
    heads = "".join(f"{kind:>12}" for kind in kinds if len(kinds) > 1)
    lines = [
        scored("our router", given, [one.ours for one in given], _hits([one.chosen for one in given], right)),
        routed("its choice, forced", given, right, [one.chosen for one in given]),
        routed("the right type", given, right, [types[0] for types in right]),
        seeded("random", given, right, [[*STRUCTURES]] * len(given)),
        seeded("never the right type", given, right, [_others(types) for types in right]),
        *(routed(f"{one} for all", given, right, [one] * len(given)) for one in STRUCTURES),
        scored("no utilizer", given, [one.at_once for one in given], None),
        scored("some type is right", given, [max(one.fixed.values()) for one in given], None),
    ]
    same = sum(len(set(one.fixed.values())) == 1 for one in given)
    return [
        f"  {'':22}{'right type':>10}{'score':>8}{heads}",
        *map(str, lines),
        f"  for {same} of {len(given)} questions all five types give the same score",
    ]


def right_types(given: Sequence[Given]) -> list[tuple[StructureType, ...]]:
    """The right types of each question: the set's own, else those that answer most of its kind."""
    best: dict[str, tuple[StructureType, ...]] = {}
    for kind in {one.kind for one in given}:
        own = [one for one in given if one.kind == kind]
        sums = {structure: sum(one.fixed[structure] for one in own) for structure in STRUCTURES}
        best[kind] = tuple(structure for structure in STRUCTURES if sums[structure] == max(sums.values()))
    return [one.right or best[one.kind] for one in given]


def scored(name: str, given: Sequence[Given], scores: Sequence[float], accuracy: float | None) -> Line:
    """A line of the table: the mean score over all questions and over those of each kind."""
    kinds = {
        kind: mean(score for one, score in zip(given, scores, strict=True) if one.kind == kind)
        for kind in sorted({one.kind for one in given})
    }
    return Line(name, accuracy, mean(scores), kinds)


def routed(
    name: str, given: Sequence[Given], right: Sequence[Sequence[StructureType]], types: Sequence[StructureType]
) -> Line:
    """What a router gives that chooses these types."""
    scores = [one.fixed[structure] for one, structure in zip(given, types, strict=True)]
    return scored(name, given, scores, _hits(types, right))


def seeded(
    name: str,
    given: Sequence[Given],
    right: Sequence[Sequence[StructureType]],
    offered: Sequence[Sequence[StructureType]],
) -> Line:
    """What a router gives that chooses one of the offered types by chance: the mean over the seeds, and their spread;
    where nothing is offered all types are."""
    lines = []
    for seed in range(SEEDS):
        chance = random.Random(seed)  # noqa: S311 -- a choice, no secret
        lines.append(routed(name, given, right, [chance.choice(types or STRUCTURES) for types in offered]))
    scores = [line.score for line in lines]
    kinds = {kind: mean(line.kinds[kind] for line in lines) for kind in lines[0].kinds}
    accuracy = mean(line.accuracy or 0.0 for line in lines)
    return Line(name, accuracy, mean(scores), kinds, (min(scores), max(scores)))


def _hits(types: Sequence[StructureType], right: Sequence[Sequence[StructureType]]) -> float:
    return mean(one in known for one, known in zip(types, right, strict=True))


def _others(types: Sequence[StructureType]) -> list[StructureType]:
    return [one for one in STRUCTURES if one not in types]


if __name__ == "__main__":
    sys.exit(main())
