"""The graph of a workspace as NetworkX graphs, and a NetworkX graph as a source of triples.

```python
from flows.graph import directed, index_graph, undirected

graph = undirected("kb")  # entities, and one weighted edge for each related pair
index_graph(networkx.les_miserables_graph(), "kb")
```
"""

from collections.abc import Sequence
from pathlib import Path

import networkx as nx

from flows.index import IndexOptions, index_documents
from flows.runtime import open_runtime
from flows.settings import load_settings
from prompts.engine.bridge import run_anywhere
from storage.graph_records import Community, Entity, Relation
from storage.run_records import IndexReport
from tasks import graph_views


def index_graph(graph: nx.Graph, workspace: str | Path | None = None) -> IndexReport:
    """Index the edges of a graph as triples: see `tasks.load.rows.read_graph`.

    A graph replaces an earlier one with the same name (default: "graph"). It can be called from any
    thread, also while an event loop runs. Raises the errors of `flows.index.build_index`.
    """
    runtime = open_runtime(load_settings({"workspace": workspace}))
    return run_anywhere(index_documents([graph], IndexOptions(), runtime))


def directed(workspace: str | Path | None = None, as_of: int | None = None) -> nx.MultiDiGraph:
    """Return an edge for each relation: see `tasks.graph_views.directed`.

    `workspace` is by default that of the settings, `as_of` the current generation. Raises
    NoGeneration, UnknownGeneration.
    """
    return graph_views.directed(*_read(workspace, as_of))


def undirected(workspace: str | Path | None = None, as_of: int | None = None) -> nx.Graph:
    """Return a weighted edge for each pair: see `tasks.graph_views.undirected` and `directed`."""
    return graph_views.undirected(*_read(workspace, as_of))


def _read(
    workspace: str | Path | None, as_of: int | None
) -> tuple[Sequence[Entity], Sequence[Relation], Sequence[Community]]:
    runtime = open_runtime(load_settings({"workspace": workspace}))
    with runtime.workspace.read(as_of) as generation:
        graph = generation.graph
        return graph.entities(), graph.relations(), generation.communities.communities()
