"""The graph of a workspace, as NetworkX graphs of a generation.

```python
from flows.graph import directed, undirected

graph = undirected("kb")  # entities, and one weighted edge for each related pair
```
"""

from pathlib import Path

import networkx as nx

from flows.runtime import open_runtime
from flows.settings import load_settings
from storage.graph_records import Community, Entity, Relation
from tasks import graph_views


def directed(workspace: str | Path | None = None, as_of: int | None = None) -> nx.MultiDiGraph:
    """An edge for each relation: see `tasks.graph_views.directed`. NoGeneration, UnknownGeneration.

    `workspace` is that of the settings by default, `as_of` the current generation.
    """
    return graph_views.directed(*_read(workspace, as_of))


def undirected(workspace: str | Path | None = None, as_of: int | None = None) -> nx.Graph:
    """A weighted edge for each pair: see `tasks.graph_views.undirected`. NoGeneration, UnknownGeneration."""
    return graph_views.undirected(*_read(workspace, as_of))


def _read(workspace: str | Path | None, as_of: int | None) -> tuple[list[Entity], list[Relation], list[Community]]:
    runtime = open_runtime(load_settings({"workspace": workspace}))
    with runtime.workspace.read(as_of) as generation:
        graph = generation.graph
        return graph.entities(), graph.relations(), generation.communities.communities()
