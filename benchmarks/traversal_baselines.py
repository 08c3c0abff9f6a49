"""How do the ways of walking a graph answer that PolyG is compared with?

    python -m benchmarks.traversal_baselines --data DIR [--limit N]

On the held-out questions of PathQuestion (`benchmarks.traversal`), all from the same linked names:

- bfs: everything within two steps, both directions; its values are all that it reaches.
- pagerank: the eight entities that a walk from the name visits most (personalised, damping .85); its value is the
  first.
- hop by hop: at each step the one relation that the question words best, until none is worded. A model would be asked
  once a step and once more to stop: its calls are counted so, though here the rules choose.
- plan: mode `traverse`, which plans all hops at once.

Exact match and F1 of the values (an entity counts once: never above 1), whether the answer is among what was read, how
many relations were read, and the calls that choosing by a model takes; at the end how often the plan wins by F1.
"""

import argparse
import asyncio
import gzip
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

from benchmarks.traversal import GRAPH, QUESTIONS, f1, part_of, rows
from flows.graph import undirected
from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import load_settings
from prompts.traverse import Hop
from storage.records import Record
from tasks.traverse.meta_paths import step_score
from tasks.traverse.plan import around
from tasks.traverse.relation_cues import cues_in

STEPS, FIRST, MOST_HOPS, WORDED = 2, 8, 3, 0.5


class Walked(Record):
    """What a way of walking gave: its values, all names that it read, the relations it read, the calls it takes."""

    values: tuple[str, ...]
    read: frozenset[str]
    relations: int
    calls: int


@dataclass(frozen=True)
class Start:
    """A question without the names in it, and the entities that they are."""

    question: str
    entities: tuple[str, ...]


Way = Callable[[Start], Walked]


def ways_of(session: Session, graph: nx.Graph) -> dict[str, Way]:
    """The three baselines over a session's graph."""
    facts = session.facts
    name = {entity.id: entity.name for entity in facts.entities.values()}

    def bfs(start: Start) -> Walked:
        found = around(facts, start.entities, STEPS, most=len(facts.relations))
        ends = dict.fromkeys(end for one in found for end in (one.source, one.target) if end not in start.entities)
        named = tuple(name[end] for end in ends)
        return Walked(values=named, read=frozenset(named), relations=len(found), calls=0)

    def pagerank(start: Start) -> Walked:
        known = {entity: 1.0 for entity in start.entities if entity in graph}
        ranks = nx.pagerank(graph, alpha=0.85, personalization=known) if known else {}
        best = sorted((one for one in ranks if one not in known), key=lambda one: (-ranks[one], one))[:FIRST]
        named = tuple(name[one] for one in best)
        return Walked(values=named[:1], read=frozenset(named), relations=len(best), calls=0)

    def hop_by_hop(start: Start) -> Walked:
        here, read, taken, relations = list(start.entities), set[str](), set[tuple[str, bool]](), 0
        left = list(cues_in(start.question))
        calls = 0
        for _ in range(MOST_HOPS):
            calls += 1
            ways = [way for way in facts.leaving(here) if way not in taken]
            relations += len(ways)
            scored = [
                (step_score(Hop(relation=predicate, inverse=inverse), (cue,))[0], predicate, inverse, place)
                for predicate, inverse in ways
                for place, cue in enumerate(left)
            ]
            best = max(scored, default=(0.0, "", False, 0))
            if best[0] < WORDED:
                break
            taken.add((best[1], best[2]))
            del left[best[3]]
            reached = [one for entity in here for one in facts.along(entity, best[1], best[2])]
            here = list(dict.fromkeys(one.source if best[2] else one.target for one in reached))
            read |= {name[one] for one in here}
        values = tuple(name[one] for one in here) if taken else ()
        return Walked(values=values, read=frozenset(read), relations=relations, calls=calls)

    return {"bfs": bfs, "pagerank": pagerank, "hop by hop": hop_by_hop}


def print_rows(method: str, walked: Sequence[tuple[Walked, Sequence[str]]], seconds: float) -> None:
    """One line of figures."""
    exact = statistics.mean(sorted(set(one.values)) == sorted(set(wanted)) for one, wanted in walked)
    mean = statistics.mean(f1(one.values, wanted) for one, wanted in walked)
    inside = statistics.mean(set(wanted) <= one.read for one, wanted in walked)
    relations = statistics.mean(one.relations for one, _ in walked)
    calls = statistics.mean(one.calls for one, _ in walked)
    print(
        f"{method:<11} exact {exact:.3f}  F1 {mean:.3f}  answer read {inside:.3f}  relations read {relations:.1f}  "
        f"calls {calls:.1f}  {seconds / len(walked) * 1000:.1f} ms"
    )


async def planned(question: str, session: Session) -> Walked:
    """Mode `traverse`: a plan for all hops at once."""
    answer = await answer_question(question, AskOptions(mode="traverse"), session)
    read = {value for part in answer.trace.subquestions for value in part.answer.split(", ")} | set(answer.values)
    return Walked(values=answer.values, read=frozenset(read), relations=len(answer.citations), calls=0)


def compare(workspace: Path, questions: Sequence[dict[str, object]]) -> None:
    """Print a line for each way."""
    with open_session(open_runtime(load_settings({"workspace": workspace, "embedding": "none"}))) as session:
        session.warm()
        asked = [(str(row["question"]), [str(one) for one in _list(row["answers"])]) for row in questions]
        starts = [start_of(text, session) for text, _ in asked]
        scores: dict[str, list[float]] = {}
        for method, walk in ways_of(session, undirected(workspace)).items():
            began = time.perf_counter()
            found = [(walk(start), wanted) for start, (_, wanted) in zip(starts, asked, strict=True)]
            print_rows(method, found, time.perf_counter() - began)
            scores[method] = [f1(one.values, wanted) for one, wanted in found]
        began = time.perf_counter()
        plans = [(asyncio.run(planned(text, session)), wanted) for text, wanted in asked]
        print_rows("plan", plans, time.perf_counter() - began)
        print_wins([f1(one.values, wanted) for one, wanted in plans], scores)


def print_wins(plan: Sequence[float], others: Mapping[str, Sequence[float]]) -> None:
    """One line for each other way: how often a plan's values are better by F1, as good, worse."""
    for method, scores in others.items():
        pairs = list(zip(plan, scores, strict=True))
        better, worse = statistics.mean(a > b for a, b in pairs), statistics.mean(a < b for a, b in pairs)
        print(f"plan against {method:<11} better {better:.3f}  equal {1 - better - worse:.3f}  worse {worse:.3f}")


def start_of(question: str, session: Session) -> Start:
    """What the question names, and what is left of it."""
    links, rest = session.index.link(question), question
    for link in links:
        rest = rest.replace(link.text, " ")
    return Start(rest, tuple(session.index.entities[link.entity].id for link in links))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def main() -> None:
    """Import the graph into a temporary workspace and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=600, help="so many questions, evenly taken (default 600)")
    options = parser.parse_args()
    missing = [name for name in (GRAPH, QUESTIONS) if not (options.data / name).is_file()]
    if missing:
        raise SystemExit(f"{options.data} lacks {', '.join(missing)}: give the folder of the data by --data")
    held = [row for row in rows(options.data / QUESTIONS) if part_of([str(one) for one in _list(row["path"])])]
    chosen = held[:: max(1, len(held) // options.limit)][: options.limit]
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "kb.jsonl"
        graph.write_bytes(gzip.decompress((options.data / GRAPH).read_bytes()))
        workspace = Path(folder) / "ws"
        runtime = open_runtime(load_settings({"workspace": workspace, "embedding": "none"}))
        asyncio.run(build_index([graph], IndexOptions(), runtime))
        print(f"{len(chosen)} held-out questions of two hops")
        compare(workspace, chosen)


if __name__ == "__main__":
    main()
