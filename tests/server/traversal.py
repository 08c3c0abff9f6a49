"""What does the scripted model answer to the steps of a traversal: which type has a question, and which plan?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Typed:
    """What a question leaves open."""

    type: str
    confidence: float
    reason: str


@dataclass(frozen=True, slots=True)
class Hop:
    """A relation and its direction."""

    relation: str
    inverse: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One operation."""

    operator: str
    sources: tuple[str, ...]
    targets: tuple[str, ...] = ()
    hops: tuple[Hop, ...] = ()


@dataclass(frozen=True, slots=True)
class Planned:
    """The steps in order."""

    steps: tuple[PlanStep, ...]


def classify(fields: Mapping[str, str | Sequence[str]]) -> Typed:
    """The question is about how two things are connected where it names two, else about a relation of one."""
    names = _items(fields["names"])
    return Typed("s*o" if len(names) == 2 else "sp*", 0.9, f"{len(names)} names")


def plan(fields: Mapping[str, str | Sequence[str]]) -> Planned:
    """From the first name along the first relation that the question does not hold."""
    question, names = str(fields["question"]).lower(), _items(fields["names"])
    relation = next(one for one in _items(fields["relations"]) if one.lower() not in question)
    return Planned((PlanStep("follow", (names[0],), hops=(Hop(relation),)),))


def _items(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
