"""What does memory save, and does it ever answer for another question? (ERM4: 100 questions fill it, 200 follow)

    python -m benchmarks.memory --data DIR [--groups N] [--fit] [--entries N]
    python -m benchmarks.memory            (our own paraphrases in Chinese and English; needs no data)

DIR holds kgqa/pathquestion_2h_{kb,questions}.jsonl.gz: a graph of triples, and questions of which those with one path
ask the same in other words. The triples of one subject are one document, so that sources can be told apart. One
question of each of N groups fills memory, the other two follow; then as many of other groups with the same entity or
the same relations are put to the trigger. Offline, in mode `auto`.

Retrieval work is counted in passages scored (every search scores all of the index) and in processor time of searching.
An answer is the same where its values are, and how well it is supported. The words and weights were chosen on other
groups, on the odd groups of our own sets and on qa/sts16_question_pairs.
"""

import argparse
import asyncio
import gzip
import itertools
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.memory_fit import fit
from benchmarks.memory_sets import LANGUAGES, fires, indexed, many_entries, own_set, runtime_of
from flows.query import respond
from flows.question import AskOptions, QuestionContext
from flows.response import Response
from flows.runtime import Runtime
from flows.session import Session, open_session
from prompts.engine.spending import Meter
from prompts.rewrite import Rewrite
from tasks.choose import SEARCH
from tasks.rewrite import rewrite
from tasks.step import watched

GRAPH, QUESTIONS = (f"kgqa/pathquestion_2h_{name}.jsonl.gz" for name in ("kb", "questions"))
TAUS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
TUNED_FROM = 336  # groups from here on were seen while the trigger's rules were written

Row = dict[str, object]


def rows(path: Path) -> Iterator[Row]:
    """The rows of a zipped JSON Lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


@dataclass(frozen=True)
class Asked:
    """A question with what its group asks: (entity, relations), and the triples that answer it."""

    text: str
    about: str
    relations: tuple[str, ...]
    facts: tuple[str, ...]


def groups_of(data: Path) -> list[list[Asked]]:
    """The questions by path, in the order of the file."""
    found: dict[tuple[str, ...], list[Asked]] = {}
    for row in rows(data / QUESTIONS):
        path = tuple(map(str, row["path"]))  # type: ignore[call-overload]
        steps = zip(path[:-2:2], path[1::2], path[2::2], strict=True)
        facts = tuple(f"{s} -[{p}]-> {o}" for s, p, o in steps)
        found.setdefault(path, []).append(Asked(str(row["question"]), path[0], path[1::2], facts))
    return list(found.values())


def others(filled: Sequence[Sequence[Asked]], every: Sequence[Sequence[Asked]], limit: int) -> list[Asked]:
    """Questions of groups that did not fill, which share an entity or the relations with one that did, in turn.

    A group with the same entity and the same relations asks the same, with another of its answers in mind.
    """
    same = {(group[0].about, group[0].relations) for group in filled}
    entities, relations = {one for one, _ in same}, {two for _, two in same}
    left = [group for group in every if (group[0].about, group[0].relations) not in same]
    by_entity = [one for group in left if group[0].about in entities for one in group]
    by_relations = [
        one for group in left if group[0].about not in entities and group[0].relations in relations for one in group
    ]
    mixed = itertools.chain.from_iterable(itertools.zip_longest(by_entity, by_relations))
    return [one for one in mixed if one is not None][:limit]


@dataclass
class Costs:
    """What a series of questions cost: sums over them."""

    seconds: list[float] = field(default_factory=list)
    searching: float = 0.0
    searches: int = 0
    external: int = 0
    from_memory: int = 0
    filtered: int = 0
    hits: int = 0
    recalled: int = 0
    said: list[tuple[str, ...]] = field(default_factory=list)
    _began: dict[str, float] = field(default_factory=dict)

    def __call__(self, step: str, begins: bool) -> None:
        """Watch the step that searches."""
        if step != "retrieve":
            return
        if begins:
            self._began[step] = time.thread_time()
        else:
            self.searches += 1
            self.searching += time.thread_time() - self._began.pop(step)

    def add(self, said: Response, facts: Sequence[str]) -> None:
        read = said.result.passages
        if said.recall.used:
            self.recalled += 1
            self.from_memory += len(read)
        else:
            self.external += len(read)
        self.said.append((said.answered.fallback, *sorted(said.answered.values)))
        self.filtered += len(read) - len(said.result.filtered.chunks)
        lines = {line for passage in read for line in passage.text.splitlines()}
        self.hits += all(fact in lines for fact in facts)


async def ask_all(questions: Sequence[Asked], session: Session) -> Costs:
    """Every question through the steps of the ask path, one after another."""
    costs = Costs()
    with watched(costs):
        for question in questions:
            began = time.process_time()
            said = await put(question.text, session)
            costs.seconds.append(time.process_time() - began)
            costs.add(said, question.facts)
    return costs


async def put(question: str, session: Session) -> Response:
    """What the ask path finds and says for a question, before it is made an answer."""
    models = session.runtime.models.metered(Meter())
    asked = await rewrite(question, (), Rewrite(models))
    embedder = session.runtime.embedder.metered(models.meter)
    context = QuestionContext(session, AskOptions(mode=SEARCH), asked.question, asked.queries, models, embedder)
    return await respond(context, SEARCH)  # the mode that has a memory: `auto` would walk these triples first


def protocol(data: Path, folder: Path, number: int) -> None:
    """Prints the five costs without memory and for each τ, and how often another question was served."""
    indexed(folder, [{**row, "document": row["s"]} for row in rows(data / GRAPH)])
    every = groups_of(data)
    bar = every[:TUNED_FROM]
    filled = bar[:: max(len(bar) // number, 1)][:number]
    follow = [one for group in filled for one in group[1:3]]
    wrong = others(filled, every, len(follow))
    print(f"{len(filled)} questions fill memory, {len(follow)} like ones follow, {len(wrong)} ask for something else")
    print(
        "| memory | CPU ms | external | memory | filtered | hit rate | scored | search CPU ms | used | false | same |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    base = _line("none", runtime_of(folder, memory="off"), follow, wrong, None)
    with open_session(runtime_of(folder, tau=1.0)) as session:
        session.warm()
        asyncio.run(ask_all([group[0] for group in filled], session))
        session.runtime.workspace.side.close()
    side = folder / "ws" / "side.sqlite"
    kept = folder / "filled.sqlite"
    shutil.copy(side, kept)
    for tau in TAUS:
        for name in ("side.sqlite", "side.sqlite-wal", "side.sqlite-shm"):
            (folder / "ws" / name).unlink(missing_ok=True)
        shutil.copy(kept, side)
        _line(f"τ = {tau}", runtime_of(folder, tau=tau), follow, wrong, base)
    shutil.copy(kept, side)
    _line("published", runtime_of(folder, memory="published", theta=1), follow, wrong, base)


def _line(
    name: str,
    runtime: Runtime,
    follow: Sequence[Asked],
    wrong: Sequence[Asked],
    base: Costs | None,
) -> Costs:
    with open_session(runtime) as session:
        session.warm()
        false = sum(asyncio.run(fires(one.text, session)) for one in wrong) if base else 0
        costs = asyncio.run(ask_all(follow, session))
        scored = costs.searches * len(session.index.chunks)
    runtime.workspace.side.close()
    number = len(follow)
    same = statistics.mean(one == two for one, two in zip(costs.said, (base or costs).said, strict=True))
    saved = f" (−{1 - costs.searches / base.searches:.0%})" if base and base.searches else ""
    less = f" (−{1 - costs.searching / base.searching:.0%})" if base and base.searching else ""
    print(
        f"| {name} | {statistics.mean(costs.seconds) * 1000:.0f} | {costs.external / number:.1f} | "
        f"{costs.from_memory / number:.1f} | {costs.filtered / number:.1f} | {costs.hits / number:.3f} | "
        f"{scored / number:.0f}{saved} | {costs.searching / number * 1000:.1f}{less} | {costs.recalled / number:.3f} | "
        f"{false / len(wrong):.3f} | {same:.3f} |",
        flush=True,
    )
    return costs


def main() -> None:
    """Run what the options ask for, in temporary workspaces, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--groups", type=int, default=100, help="groups of like questions of the protocol")
    parser.add_argument("--entries", type=int, help="how long the trigger takes with so many entries")
    parser.add_argument("--fit", action="store_true", help="print what the constants of the calibration come from")
    options = parser.parse_args()
    if options.data is not None:
        needed = [GRAPH, QUESTIONS] if not options.fit else ["qa/sts16_question_pairs.jsonl.gz"]
        missing = [name for name in needed if not (options.data / name).is_file()]
        if missing:
            raise SystemExit(f"{options.data} lacks {', '.join(missing)}: give the folder of the data by --data")
    with tempfile.TemporaryDirectory() as folder:
        if options.fit:
            if options.data is None:
                raise SystemExit("--fit needs --data DIR")
            fit(options.data)
        elif options.entries:
            many_entries(Path(folder), options.entries)
        elif options.data is not None:
            protocol(options.data, Path(folder), options.groups)
        else:
            for language in LANGUAGES:
                own_set(Path(folder) / language, language)


if __name__ == "__main__":
    main()
