"""How well each algorithm parts a graph into communities, and how long that takes."""

import time
from collections.abc import Sequence

import networkx as nx

from benchmarks.runner import EXAMPLES, Cell, Run, measure, option, whole_number
from benchmarks.sets import SETS, files_of, index, settings_in
from storage.graph_records import Entity, Relation
from tasks.communities import detect, partition_by, quality

# `leiden` is igraph's own, `leiden()` cdlib's by leidenalg.
ALGORITHMS = ("leiden", "leiden()", "louvain", "infomap", "label_propagation")
SAMPLES = "the sample corpus"
Graph = tuple[Sequence[Entity], Sequence[Relation]]


@measure(
    option(
        "--sizes",
        type=whole_number,
        nargs="+",
        default=[300, 1000, 3000],
        help="of nodes (300 1000 3000)",
    ),
    option(
        "--algorithms",
        nargs="+",
        default=ALGORITHMS,
        metavar="NAME",
        help=f"default: {' '.join(ALGORITHMS)}",
    ),
    sets=files_of("2wiki_6119"),
    optional=True,
)
def communities(run: Run) -> None:
    """How well does each algorithm part a graph into communities, and how soon?

    The graph of the sample corpus, with --data those of published sets, and planted partitions of
    growing size. Modularity, conductance and coverage are those of the coarsest level; the
    processor time is that of all levels.
    """
    for algorithm in run.options.algorithms:
        partition_by(algorithm)  # loading cdlib takes seconds
    graphs = {SAMPLES: indexed_graph(run, SAMPLES)}
    graphs |= {name: indexed_graph(run, name) for name in run.options.sets if run.options.data}
    graphs |= {f"planted, {size} nodes": planted(size) for size in run.options.sizes}
    for name, (entities, relations) in graphs.items():
        title = f"{name}: {len(entities):,} entities, {len(relations):,} relations"
        run.table(
            title,
            {
                algorithm: measured(entities, relations, algorithm)
                for algorithm in run.options.algorithms
            },
        )


def indexed_graph(run: Run, name: str) -> Graph:
    """The graph of the sample corpus or of a set, indexed offline."""
    folder = run.workspace(name)
    sources = (
        [EXAMPLES / "corpus"] if name == SAMPLES else SETS[name].write(run.options.data, folder)
    )
    runtime, _ = index(sources, settings_in(folder, embedding="none"))
    with runtime.workspace.read() as generation:
        return generation.graph.entities(), generation.graph.relations()


def planted(size: int) -> Graph:
    """A graph of `size` nodes in groups of 25 with far more edges inside than between them."""
    groups = max(2, size // 25)
    graph = nx.planted_partition_graph(groups, size // groups, 0.3, 1.5 / size, seed=11)
    names = {node: f"ent_{node:06}" for node in graph.nodes}
    entities = [Entity(id=name, name=name, kind="thing") for name in names.values()]
    relations = [
        Relation(
            id=f"rel_{number}",
            source=names[source],
            target=names[target],
            predicate="p",
            weight=1 + number % 3,
        )
        for number, (source, target) in enumerate(graph.edges)
    ]
    return entities, relations


def measured(
    entities: Sequence[Entity], relations: Sequence[Relation], algorithm: str
) -> dict[str, Cell]:
    """The figures of one algorithm."""
    started = time.process_time()
    found = detect([entity.id for entity in entities], relations, algorithm=algorithm)
    seconds = time.process_time() - started
    scores = quality(found, relations, algorithm)
    figures = {} if scores is None else scores.model_dump(exclude={"algorithm"})
    return {"communities": len(found), **figures, "CPU s": seconds}
