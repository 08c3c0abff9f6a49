"""How the ways of walking a graph answer that PolyG is compared with."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import networkx as nx

from benchmarks.runner import Cell, Run, measure, share
from benchmarks.sets import read_rows
from benchmarks.traversal import GRAPH, QUESTIONS, open_graph
from flows.graph import undirected
from flows.query import answer_question
from flows.question import AskOptions
from flows.session import Session
from prompts.text.words import terms
from storage.graph_records import Relation
from storage.records import Record
from tasks.evaluate.measures import set_f1

QUESTIONS_ASKED = 600
STEPS, FIRST, MOST_HOPS, WORDED = 2, 8, 3, 0.5


class Walked(Record):
    """What a way of walking gave: its values, all names that it read, the relations it read, the
    calls it takes.
    """

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


@measure(files=[GRAPH, QUESTIONS])
def traversal_baselines(run: Run) -> None:
    """How do the ways of walking a graph answer that PolyG is compared with?

    On questions of PathQuestion (600, evenly taken), all from the same linked names:

    - bfs: everything within two steps, both directions; its values are all that it reaches.
    - pagerank: the eight entities that a walk from the name visits most (personalised, damping
      .85); its value is the first.
    - hop by hop: at each step the relation that has most of its words in the question, until none
      has half of them. A model would be asked once a step and once more to stop: its calls are
      counted so, though here words choose.
    - plan: mode `traverse`, which plans all hops at once by the configured model; without one it
      looks up.

    Exact match and F1 of the values (an entity counts once: never above 1), whether the answer is
    among what was read, how many relations were read, the calls that choosing by a model takes, and
    how often the plan wins by F1.
    """
    held, most = list(read_rows(run.file(QUESTIONS))), run.limit or QUESTIONS_ASKED
    rows = held[:: max(1, len(held) // most)][:most]
    wanted = [list(map(str, row["answers"])) for row in rows]
    with open_graph(run) as session:
        session.warm()
        workspace = session.runtime.settings.workspace
        starts = [start_of(row["question"], session) for row in rows]
        walks: dict[str, tuple[list[Walked], float]] = {}
        for name, walk in ways_of(session, undirected(workspace)).items():
            began = time.perf_counter()
            walks[name] = [walk(start) for start in starts], time.perf_counter() - began
        began = time.perf_counter()
        plans = [asyncio.run(planned(row["question"], session)) for row in rows]
        walks["plan"] = plans, time.perf_counter() - began
    scores = {
        name: [set_f1(one.values, gold) for one, gold in zip(walked, wanted, strict=True)]
        for name, (walked, _) in walks.items()
    }
    table = {}
    for name, (walked, seconds) in walks.items():
        figures = _figures(walked, wanted, scores[name], seconds)
        if name != "plan":
            pairs = list(zip(scores["plan"], scores[name], strict=True))
            figures |= {
                "plan wins": share([a > b for a, b in pairs]),
                "plan loses": share([a < b for a, b in pairs]),
            }
        table[name] = figures
    run.table(f"{len(rows)} questions of two hops", table)


def _figures(
    walked: Sequence[Walked],
    wanted: Sequence[Sequence[str]],
    scores: Sequence[float],
    seconds: float,
) -> dict[str, Cell]:
    pairs = list(zip(walked, wanted, strict=True))
    return {
        "exact": share([sorted(set(one.values)) == sorted(set(gold)) for one, gold in pairs]),
        "F1": share(scores),
        "answer read": share([set(gold) <= one.read for one, gold in pairs]),
        "relations read": share([one.relations for one in walked]),
        "calls": share([one.calls for one in walked]),
        "ms": seconds / len(walked) * 1000,
    }


def ways_of(session: Session, graph: nx.Graph) -> dict[str, Way]:
    """The three baselines over a session's graph."""
    facts = session.graph.facts
    name = {entity.id: entity.name for entity in facts.entities.values()}

    def bfs(start: Start) -> Walked:
        found, edge = dict[str, Relation](), list(start.entities)
        for _ in range(STEPS):
            found |= {one.id: one for entity in edge for one in facts.of(entity)}
            edge = list(
                dict.fromkeys(end for one in found.values() for end in (one.source, one.target))
            )
        ends = [end for end in edge if end not in start.entities]
        named = tuple(name[end] for end in ends)
        return Walked(values=named, read=frozenset(named), relations=len(found), calls=0)

    def pagerank(start: Start) -> Walked:
        known = {entity: 1.0 for entity in start.entities if entity in graph}
        ranks = nx.pagerank(graph, alpha=0.85, personalization=known) if known else {}
        best = sorted(
            (one for one in ranks if one not in known), key=lambda one: (-ranks[one], one)
        )[:FIRST]
        named = tuple(name[one] for one in best)
        return Walked(values=named[:1], read=frozenset(named), relations=len(best), calls=0)

    def hop_by_hop(start: Start) -> Walked:
        here, read, walked, relations, calls = (
            list(start.entities),
            set[str](),
            set[tuple[str, bool]](),
            0,
            0,
        )
        left = set(terms(start.question))
        for _ in range(MOST_HOPS):
            calls += 1
            ways = [way for way in facts.leaving(here) if way not in walked]
            relations += len(ways)
            share_of = {way: _share(terms(way[0].replace("_", " ")), left) for way in ways}
            best = max(ways, key=lambda way: (share_of[way], way), default=None)
            if best is None or share_of[best] < WORDED:
                break
            walked.add(best)
            left -= set(terms(best[0].replace("_", " ")))
            reached = [one for entity in here for one in facts.along(entity, *best)]
            here = list(dict.fromkeys(one.source if best[1] else one.target for one in reached))
            read |= {name[one] for one in here}
        values = tuple(name[one] for one in here) if walked else ()
        return Walked(values=values, read=frozenset(read), relations=relations, calls=calls)

    return {"bfs": bfs, "pagerank": pagerank, "hop by hop": hop_by_hop}


def _share(words: Sequence[str], asked: set[str]) -> float:
    """The share of words that the question has."""
    return len(asked.intersection(words)) / max(len(words), 1)


async def planned(question: str, session: Session) -> Walked:
    """Mode `traverse`: a plan for all hops at once."""
    answer = await answer_question(question, AskOptions(mode="traverse"), session)
    read = {value for part in answer.trace.subquestions for value in part.answer.split(", ")} | set(
        answer.values
    )
    return Walked(
        values=answer.values, read=frozenset(read), relations=len(answer.citations), calls=0
    )


def start_of(question: str, session: Session) -> Start:
    """What the question names, and what is left of it."""
    links, rest = session.index.link(question), question
    for link in links:
        rest = rest.replace(link.text, " ")
    return Start(rest, tuple(session.index.entities[link.entity].id for link in links))
