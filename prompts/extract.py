"""Which entities does a passage name, and which relations between them does it state?

Source: GraphRAG (arXiv 2404.16130, section 2.2), LightRAG's `Recog`. Offline: capitalised or noun-run names, and relations
typed by the words that connect two names.
"""

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.language.aliases import stated_aliases
from prompts.language.names import NameSpan, name_spans
from prompts.language.names_zh import name_spans_zh
from prompts.language.relations import statements
from prompts.language.segment import sentences
from prompts.language.words import is_han

# What a text says when two names mean the same; entity resolution joins them.
ALIAS_PREDICATE = "also known as"
DEFAULT_KINDS = ("person", "organisation", "place", "event", "work", "method", "product", "concept")


class EntityFound(BaseModel):
    """An entity that the passage names."""

    name: str = Field(description="Exactly as written in the passage.")
    kind: str = Field(description="One of the given kinds.")
    description: str = Field(default="", description="What the passage says of it, in one sentence, in its language.")


class RelationFound(BaseModel):
    """A directed statement between two of the entities."""

    source: str = Field(description="Name of an entity in the list.")
    target: str = Field(description="Name of another entity in the list.")
    predicate: str = Field(description="Two to five words that connect them, as a verb phrase.")
    description: str = Field(default="", description="The statement in one sentence, in the passage's language.")
    strength: float = Field(default=1.0, ge=0, description="How firmly the passage states it, 1 to 10.")
    keys: tuple[str, ...] = Field(default=(), description="Up to three themes that the statement belongs to.")


class Extracted(BaseModel):
    """All that a passage yields."""

    entities: list[EntityFound] = Field(default_factory=list)
    relations: list[RelationFound] = Field(default_factory=list)


class ExtractGraph(dspy.Signature):
    """List every entity that the passage names, then every relation that it states between two of them. Infer none."""

    title: str = dspy.InputField(desc="Title of the document that the passage is from.")
    passage: str = dspy.InputField()
    kinds: list[str] = dspy.InputField(desc="The kinds an entity can have.")
    found: Extracted = dspy.OutputField()


class Extract(Step):
    """One passage → its entities and relations."""

    step = "extract"
    role = "extract"
    task = ExtractGraph

    async def run(self, title: str, passage: str, kinds: tuple[str, ...] = DEFAULT_KINDS) -> Extracted:
        if self.is_offline:
            return extract_offline(title, passage)
        prediction = await self.acall(title=title, passage=passage, kinds=list(kinds))
        found: Extracted = prediction.found
        return found


def topic_of(title: str) -> str:
    """The thing that a title names: the title without a bracketed qualifier kept apart from its name."""
    return " ".join(title.split())[:100]


def extract_offline(title: str, passage: str) -> Extracted:
    """Names and stated relations of a passage; the title's thing is the subject where a sentence opens with a pronoun."""
    spans = sentences(passage)
    names = names_in(passage, spans)
    topic = _topic_name(title, names)
    relations: dict[tuple[str, str, str], RelationFound] = {}
    described: dict[str, str] = {}
    for start, end in spans:
        inside = [name for name in names if start <= name.start < end]
        quote = " ".join(passage[start:end].split())
        for name in inside:
            described.setdefault(name.text, quote)
        for said in statements(passage, start, end, inside, topic):
            key = (said.source, said.target, said.predicate)
            relations.setdefault(
                key, RelationFound(source=said.source, target=said.target, predicate=said.predicate, description=quote)
            )
    for name, alias, quote in stated_aliases(passage, names, topic):
        relations[name, alias, ALIAS_PREDICATE] = RelationFound(
            source=name, target=alias, predicate=ALIAS_PREDICATE, description=quote
        )
    kinds: dict[str, str] = {}
    for span in names:
        if kinds.get(span.text, "thing") == "thing":
            kinds[span.text] = span.kind
    entities = [EntityFound(name=name, kind=kind, description=described.get(name, "")) for name, kind in kinds.items()]
    return Extracted(entities=entities, relations=list(relations.values()))


def names_in(passage: str, spans: list[tuple[int, int]]) -> list[NameSpan]:
    """Names by the passage's script."""
    return name_spans_zh(passage) if is_han(passage) else name_spans(passage, spans)


def _topic_name(title: str, names: list[NameSpan]) -> str:
    """The title, in the form in which the passage names it where it does."""
    topic = topic_of(title)
    bare = topic.split(" (")[0].casefold()
    return next((name.text for name in names if name.text.casefold() == bare), topic)
