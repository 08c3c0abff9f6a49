"""Of which types are the scripted answers? Their parts have the names that the wire uses."""

from dataclasses import dataclass

from tests.server.collection import Direct, Explored, Passage, Points, Ratings
from tests.server.tables import Schema, TablePlan
from tests.server.traversal import Planned


@dataclass(frozen=True, slots=True)
class Entity:
    """A capitalised span, exactly as written."""

    name: str
    kind: str
    description: str


@dataclass(frozen=True, slots=True)
class Relation:
    """Two entities of one sentence."""

    source: str
    target: str
    predicate: str
    description: str
    strength: float = 5.0
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence with a name and a year."""

    subject: str
    object: str
    kind: str
    status: str
    since: str
    until: str
    description: str
    quote: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """All of a passage; claims are written only where they are asked for."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Born:
    """Who the text says was born when."""

    name: str
    year: int
    kind: str = "person"


@dataclass(frozen=True, slots=True)
class Summary:
    """An entity's description."""

    description: str


@dataclass(frozen=True, slots=True)
class RelationSummary:
    """A relation's description, with keys to find it by."""

    relation: int
    description: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RelationSummaries:
    """One for every relation that was asked about."""

    relations: tuple[RelationSummary, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement quoted as an insight."""

    summary: str
    explanation: str
    statements: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A community's report."""

    title: str
    summary: str
    findings: tuple[Finding, ...]
    rating_reason: str
    rating: float


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The question on its own."""

    question: str
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Keys:
    """What a question names, and its other words."""

    high: tuple[str, ...]
    low: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """One passage's label."""

    passage: int
    explanation: str
    label: str


@dataclass(frozen=True, slots=True)
class Judgements:
    """A judgement for each passage."""

    judgements: tuple[Judgement, ...]


@dataclass(frozen=True, slots=True)
class Routed:
    """The chosen structure."""

    reason: str
    structure: str
    confidence: float
    margin: float


@dataclass(frozen=True, slots=True)
class Scope:
    """What a question is about."""

    reason: str
    about: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table."""

    row: str
    column: str
    cell: str
    sentence: int


@dataclass(frozen=True, slots=True)
class Cells:
    """A table."""

    description: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """One triple."""

    head: str
    relation: str
    tail: str
    sentence: int


@dataclass(frozen=True, slots=True)
class Triples:
    """A graph."""

    description: str
    triples: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """One step of a procedure."""

    number: str
    condition: str
    action: str
    sentence: int


@dataclass(frozen=True, slots=True)
class Steps:
    """An algorithm."""

    description: str
    steps: tuple[Done, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an outline."""

    number: str
    text: str
    sentence: int


@dataclass(frozen=True, slots=True)
class Lines:
    """A catalogue."""

    description: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """Sub-questions."""

    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """A sentence with its marker, or nothing."""

    answer: str
    values: tuple[str, ...]
    answerable: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one pair of names means one thing."""

    pair: int
    reason: str
    same: bool


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A verdict for each pair."""

    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of entity."""

    name: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence with what is to be found in it."""

    passage: str
    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]


@dataclass(frozen=True, slots=True)
class Tuned:
    """What fits a domain."""

    persona: str
    language: str
    entity_types: tuple[Kind, ...]
    examples: tuple[Example, ...]


Answered = (
    Verdicts
    | Extraction
    | Born
    | Summary
    | RelationSummaries
    | Report
    | Rewriting
    | Keys
    | Judgements
    | Routed
    | Scope
    | Cells
    | Triples
    | Steps
    | Lines
    | Parts
    | Answer
    | Tuned
    | Planned
    | TablePlan
    | Schema
    | Ratings
    | Points
    | Explored
    | Direct
    | Passage
)
