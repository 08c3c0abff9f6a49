"""Results of a traversal: something found, or nothing for one of three reasons."""

from dataclasses import dataclass
from typing import Literal

from storage.graph_records import Relation

ProblemKind = Literal["no path", "not in the graph", "bad plan"]
Chain = tuple[Relation, ...]


@dataclass(frozen=True)
class Found:
    """What a step found: entities (ids), in order, or plain values, with the chains of relations that show them.

    Where `values` is filled it is the answer; else the entities are.
    """

    entities: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    chains: tuple[Chain, ...] = ()


@dataclass(frozen=True)
class Problem:
    """Why there is no answer: the things are there but no such way leads on; a name is unknown; the plan cannot be run.

    `reason` is a sentence for the reader; `nearest` are names or relations that may have been meant.
    """

    kind: ProblemKind
    reason: str
    nearest: tuple[str, ...] = ()

    def sentence(self) -> str:
        """The reason with its suggestion."""
        meant = f" Nearest: {', '.join(self.nearest)}." if self.nearest else ""
        return f"{self.kind.capitalize()}: {self.reason}{meant}"


Outcome = Found | Problem
