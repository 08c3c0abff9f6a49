"""Where does a chain of one relation lead, over the triples of several documents? (StructRAG, section 2.4: the graph)

The graph structure is loaded into NetworkX and followed link by link; each link is cited where it is stated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx

from prompts.language.asked import Ask
from prompts.language.chain_question import ChainPlan, relation_of
from prompts.language.words import fold_name
from prompts.reading.claims import Claim, Reading, ending
from prompts.reading.evidence import Evidence
from storage.records import SubQuestion
from tasks.evidence import Pool
from tasks.utilize.subjects import same_name

MOST_LINKS = 24


@dataclass(frozen=True)
class Followed:
    """The reading of a chain and its links as sub-questions; it cites the evidence of the pool that it was made of."""

    reading: Reading
    subquestions: tuple[SubQuestion, ...]


def follow(ask: Ask, plan: ChainPlan, pool: Pool) -> Followed | None:
    """The chain of a plan among the pool's triples (label -[attribute]-> value), or None where none has its start."""
    graph = _graph(plan, pool.evidence)
    start = next((node for node in sorted(graph) if same_name(graph.nodes[node]["name"], plan.start)), None)
    if start is None:
        return None
    walked = graph.reverse(copy=False) if plan.up else graph
    links = list(nx.bfs_edges(walked, start))[:MOST_LINKS]
    return _told(ask, plan, walked, links, pool) if links else None


def _graph(plan: ChainPlan, elements: Sequence[Evidence]) -> "nx.DiGraph[str]":
    """What owns what: an edge from the owner to what it owns, with the evidence that states it."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for piece in elements:
        stated = relation_of(piece.attribute) if piece.label and piece.value else None
        if stated is None or stated[0] != plan.relation:
            continue
        ends = (piece.value, piece.label) if stated[1] else (piece.label, piece.value)
        for name in ends:
            graph.add_node(fold_name(name), name=name.strip())
        source, target = map(fold_name, ends)
        if source != target and not graph.has_edge(source, target):
            graph.add_edge(source, target, evidence=piece)
    return graph


def _told(
    ask: Ask, plan: ChainPlan, walked: "nx.DiGraph[str]", links: Sequence[tuple[str, str]], pool: Pool
) -> Followed:
    reached = [target for _, target in links]
    goals = [node for node in reached if not any(other in reached for other in walked.successors(node))]
    chosen = (goals or reached[-1:]) if plan.ends else reached
    names = [walked.nodes[node]["name"] for node in chosen]
    pieces: list[Evidence] = [walked.edges[link]["evidence"] for link in links]
    claims = tuple(Claim(" ".join(piece.text.split()), (piece.number,)) for piece in pieces)
    comma = "、" if ask.chinese else ", "
    reading = Reading(tuple(dict.fromkeys(claims)), tuple(names), "none", ending(comma.join(names), ask))
    return Followed(reading, tuple(_subquestion(ask, plan, walked, link, pool) for link in links))


def _subquestion(
    ask: Ask, plan: ChainPlan, walked: "nx.DiGraph[str]", link: tuple[str, str], pool: Pool
) -> SubQuestion:
    """One link: what was asked of its near end, and its far end."""
    near, far = (walked.nodes[node]["name"] for node in link)
    piece: Evidence = walked.edges[link]["evidence"]
    if ask.chinese:
        question = f"{near} ← {plan.relation} ← ？" if plan.up else f"{near} → {plan.relation} → ？"
    else:
        question = f"Who {plan.relation} {near}?" if plan.up else f"What is it that {near} {plan.relation}?"
    return SubQuestion(question=question, answer=far, evidence=(pool.places[piece.number].chunk,))
