"""Which entities does a passage name, and which relations between them does it state?

Source: GraphRAG (arXiv 2404.16130, section 2.2: also the further rounds that ask what was missed), LightRAG's `Recog`.
Offline: capitalised or noun-run names, cells of tables, and relations typed by the words that connect two names, or by
the column.
"""

from bisect import bisect_right

import dspy
from pydantic import BaseModel, Field

from prompts.engine.models import Models
from prompts.engine.records_wire import RecordsWire
from prompts.engine.step import Step
from prompts.language.aliases import stated_aliases
from prompts.language.names import NameSpan, name_spans
from prompts.language.names_zh import name_spans_zh
from prompts.language.relations import Statement, statements
from prompts.language.segment import units
from prompts.language.story import actors
from prompts.language.tables import table_facts
from prompts.language.words import is_han

# What a text says when two names mean the same; entity resolution joins them.
ALIAS_PREDICATE = "also known as"
DEFAULT_KINDS = ("person", "organisation", "place", "event", "work", "method", "product", "concept")


class EntityFound(BaseModel):
    """An entity that the passage names."""

    name: str = Field(description="Exactly as written.")
    kind: str = Field(description="One of the kinds.")
    description: str = Field(default="", description="What the passage says of it: one sentence, in its language.")


class RelationFound(BaseModel):
    """A directed statement between two of the entities."""

    source: str = Field(description="A listed entity.")
    target: str = Field(description="Another one.")
    predicate: str = Field(description="A verb phrase of two to five words.")
    description: str = Field(default="", description="The statement in one sentence.")
    strength: float = Field(default=1.0, ge=0, description="How firm, 1 to 10.")
    keys: tuple[str, ...] = Field(default=(), description="Up to three themes.")


class Extracted(BaseModel):
    """All that a passage yields."""

    entities: list[EntityFound] = Field(default_factory=list)
    relations: list[RelationFound] = Field(default_factory=list)


class ExtractGraph(dspy.Signature):
    """List every entity that the passage names, then every relation that it states between two of them. Infer none."""

    title: str = dspy.InputField()
    passage: str = dspy.InputField()
    kinds: list[str] = dspy.InputField()
    found: Extracted = dspy.OutputField()


class GleanGraph(dspy.Signature):
    """Another reader listed the known entities of the passage. List the entities that the passage names and that the
    list lacks, then every relation that the passage states and that has one of them. If none was missed, list none."""

    title: str = dspy.InputField()
    passage: str = dspy.InputField()
    kinds: list[str] = dspy.InputField()
    known: list[str] = dspy.InputField(desc="The entities that are listed already.")
    found: Extracted = dspy.OutputField()


class Glean(Step):
    """One passage and what was found in it → what was missed."""

    step = "glean"
    role = "extract"
    task = GleanGraph
    wire = RecordsWire(E="entities", R="relations")


class Extract(Step):
    """One passage → its entities and relations; a model is asked up to `gleanings` times more what it has missed."""

    step = "extract"
    role = "extract"
    task = ExtractGraph
    wire = RecordsWire(E="entities", R="relations")

    def __init__(self, models: Models, gleanings: int = 0) -> None:
        super().__init__(models)
        self.gleanings = gleanings

    def __deepcopy__(self, memo: dict[int, object]) -> "Extract":
        copied = super().__deepcopy__(memo)
        assert isinstance(copied, Extract)  # noqa: S101 - a copy is of the same class
        copied.gleanings = self.gleanings
        return copied

    async def run(self, title: str, passage: str, kinds: tuple[str, ...] = DEFAULT_KINDS) -> Extracted:
        if self.is_offline:
            return extract_offline(title, passage)
        prediction = await self.acall(title=title, passage=passage, kinds=list(kinds))
        found: Extracted = prediction.found
        return await self._gleaned(found, title, passage, kinds) if self.gleanings else found

    async def _gleaned(self, found: Extracted, title: str, passage: str, kinds: tuple[str, ...]) -> Extracted:
        """With what further rounds add; a round that adds nothing is the last."""
        more = Glean(self.models)
        more.lm = self.lm
        for _ in range(self.gleanings):
            known = list(dict.fromkeys(entity.name for entity in found.entities))
            prediction = await more.acall(title=title, passage=passage, kinds=list(kinds), known=known)
            merged = merge(found, prediction.found)
            if merged == found:
                break
            found = merged
        return found


def merge(first: Extracted, more: Extracted) -> Extracted:
    """The first, and of `more` the names and the statements (ends and predicate) that it lacks."""
    names = {entity.name for entity in first.entities}
    said = {(one.source, one.target, one.predicate) for one in first.relations}
    return Extracted(
        entities=[*first.entities, *(entity for entity in more.entities if entity.name not in names)],
        relations=[
            *first.relations,
            *(one for one in more.relations if (one.source, one.target, one.predicate) not in said),
        ],
    )


def topic_of(title: str) -> str:
    """The thing that a title names: the title without a bracketed qualifier kept apart from its name."""
    return " ".join(title.split())[:100]


def extract_offline(title: str, passage: str) -> Extracted:
    """Names and stated relations of a passage; the title's thing is the subject of a sentence with a pronoun."""
    lines = units(passage)
    cells, facts = table_facts(passage, [(unit.start, unit.end) for unit in lines if unit.kind == "row"])
    spans = [(unit.start, unit.end) for unit in lines if unit.kind != "code"]
    names = _without_overlaps(cells, names_in(passage, spans, title))
    topic = _topic_name(title, names)
    tabled = {fact.start for fact in facts}
    said = [*facts]
    described: dict[str, str] = {}
    following = 0
    for start, end in spans:
        first = following
        while following < len(names) and names[following].start < end:
            following += 1
        inside = names[first:following]
        for name in inside:
            described.setdefault(name.text, _one_line(passage[start:end]))
        if start not in tabled:
            said += statements(passage, start, end, inside, topic)
    kinds: dict[str, str] = {}
    for span in [*names, *actors(passage)]:
        if kinds.get(span.text, "thing") == "thing":
            kinds[span.text] = span.kind
    entities = [EntityFound(name=name, kind=kind, description=described.get(name, "")) for name, kind in kinds.items()]
    return Extracted(entities=entities, relations=_relations(passage, said, names, topic))


def _relations(passage: str, said: list[Statement], names: list[NameSpan], topic: str) -> list[RelationFound]:
    """Each statement once, quoted by the first sentence that makes it, and the aliases that the passage states."""
    found: dict[tuple[str, str, str], RelationFound] = {}
    for one in said:
        found.setdefault(
            (one.source, one.target, one.predicate),
            RelationFound(
                source=one.source,
                target=one.target,
                predicate=one.predicate,
                description=_one_line(passage[one.start : one.end]),
            ),
        )
    for name, alias, words in stated_aliases(passage, names, topic):
        found[name, alias, ALIAS_PREDICATE] = RelationFound(
            source=name, target=alias, predicate=ALIAS_PREDICATE, description=_one_line(words)
        )
    return list(found.values())


def names_in(passage: str, spans: list[tuple[int, int]], title: str = "") -> list[NameSpan]:
    """Names by the passage's script, in order; words of `title` are known to be written with a capital on purpose."""
    return name_spans_zh(passage) if is_han(passage) else name_spans(passage, spans, title)


def _without_overlaps(first: list[NameSpan], others: list[NameSpan]) -> list[NameSpan]:
    """Both lists in order; where two overlap, that of the first list stays."""
    if not first:
        return others
    starts = [span.start for span in first]
    kept = list(first)
    for span in others:
        place = bisect_right(starts, span.start)
        before_free = place == 0 or first[place - 1].end <= span.start
        if before_free and (place == len(first) or first[place].start >= span.end):
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _topic_name(title: str, names: list[NameSpan]) -> str:
    """The title, in the form in which the passage names it where it does."""
    topic = topic_of(title)
    bare = topic.partition(" (")[0].casefold()
    return next((name.text for name in names if name.text.casefold() == bare), topic)
