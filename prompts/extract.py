"""Extraction: the entities that a passage names, the relations between them, claims about them.

Source: GraphRAG (arXiv 2404.16130, section 2.2, also for claims and for further rounds that ask
what was missed), LightRAG's `Recog`. Offline, names are capitalised words or runs of nouns, and the
words between two names, or the label of a cell, are their relation.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, get_args

import dspy
from pydantic import BaseModel, Field

from prompts.engine.adapter import StepAdapter
from prompts.engine.effort import Profile
from prompts.engine.helper import helped
from prompts.engine.messages import Doubtful
from prompts.engine.models import Models
from prompts.engine.prompt_guard import neutralise, neutralised
from prompts.engine.step import Inputs, Outputs
from prompts.extracted import (
    ALIAS_PREDICATE,
    ClaimFound,
    EntityFound,
    Extracted,
    RelationFound,
    known,
    merge,
)
from prompts.offline.extract import extract_offline, overlooked, topic_of
from prompts.schema import NO_SCHEMA, Schema
from prompts.tailored_step import TailoredStep
from prompts.tailoring import UNTAILORED, Example, Tailoring
from prompts.text.words import WORDS_VERSION

__all__ = [
    "Extract",
    "ExtractBriefly",
    "ExtractFacts",
    "ExtractFactsBriefly",
    "ExtractFactsWithClaims",
    "ExtractWithClaims",
    "Glean",
    "GleanFacts",
    "GleanFactsWithClaims",
    "GleanWithClaims",
    "extractor",
    "topic_of",
]

FOUND_STAYS = "what the rounds before it found stays"


class _ReadPassage(dspy.Signature):
    """What every extraction reads."""

    title: str = dspy.InputField()
    passage: str = dspy.InputField()


class _ReadFirst(_ReadPassage):
    """What a large model writes."""

    found: Extracted = dspy.OutputField()


class _ReadAgain(_ReadFirst):
    """What every further round reads, too."""

    known: list[str] = dspy.InputField()


_KINDS = "{kinds}"  # where the configured kinds stand in the instruction
_TYPES = "{types}"  # where the types of facts do
_GRAPH = """\
Entities: every named thing of one of these kinds.
- name: the fullest form, spelt the same in all lines; never a pronoun or "the company".
- kind: one of {kinds}.
- description: what it is and what the passage says of it, with figures and dates.

Relations: every statement that ties two of these entities.
- source acts, owns, causes or is a part; target is acted on.
- predicate: a verb phrase of two to five words.
- description: a full sentence with names, time, place and amount. A denial, plan or rumour stays
one.
- strength: 10 inseparable, 7 lasting, 5 a single event, 3 indirect, 1 only named together.
- keys: one to three themes; no names.
- A second name of a thing is an entity of its own, tied by "also known as"."""
_CLAIMS = """\
Claims: what the passage asserts of an entity that could be dated or disputed, such as an
accusation, sanction, denial, promise, decision, measurement or forecast.
- subject: the entity; object: the one that it concerns, or nothing. kind: one word.
- status: true where it is given as a fact, false where denied, else suspected.
- since, until: as 2024-05-31, 2024-05 or 2024.
- description: a full sentence. quote: the words of the passage, copied exactly."""
_FACTS = """\
Facts: every statement of one of these types, and of no other type.

{types}

Of each fact
- subject: a listed entity. type: one of these names, spelt alike.
- value: the words of the passage, a figure with its unit; yes or no where the type says so; for a
relation a listed entity.
- since, until: when it began and ceased to hold, where the passage says so; as 2024-05-31, 2024-05
or 2024.
- quote: the words of the passage that state it, copied exactly.
- What is a fact is not listed as a relation again."""
_EXTRACT = """\
List what a passage says as lines of a knowledge graph. Each line must be understood without the
passage. Add nothing that the passage does not say. Read rows of tables like sentences under their
heading."""
_GLEAN = f"""{_EXTRACT}

Another reader has made the list that is given as known. List only what it lacks; known names keep
their spelling."""


class ExtractGraph(_ReadFirst):
    __doc__ = f"{_EXTRACT}\n\n{_GRAPH}"


class ExtractClaims(_ReadFirst):
    __doc__ = f"{_EXTRACT}\n\n{_GRAPH}\n\n{_CLAIMS}"


class GleanGraph(_ReadAgain):
    __doc__ = f"{_GLEAN}\n\n{_GRAPH}"


class GleanClaims(_ReadAgain):
    __doc__ = f"{_GLEAN}\n\n{_GRAPH}\n\n{_CLAIMS}"


class ReadFacts(_ReadFirst):
    __doc__ = f"{_EXTRACT}\n\n{_GRAPH}\n\n{_FACTS}"


class ReadFactsAndClaims(_ReadFirst):
    __doc__ = f"{_EXTRACT}\n\n{_GRAPH}\n\n{_CLAIMS}\n\n{_FACTS}"


class MissedFacts(_ReadAgain):
    __doc__ = f"{_GLEAN}\n\n{_GRAPH}\n\n{_FACTS}"


class MissedFactsAndClaims(_ReadAgain):
    __doc__ = f"{_GLEAN}\n\n{_GRAPH}\n\n{_CLAIMS}\n\n{_FACTS}"


# The most that a small model lists; it fills a bounded list, and repeats itself in an open one.
MOST_LISTED = 20


class EntityListed(BaseModel):
    """An entity in few words."""

    name: str = Field(max_length=80)
    kind: str = Field(max_length=40)
    description: str = Field(max_length=160)


class RelationListed(BaseModel):
    """A statement between two entities in few words."""

    source: str = Field(max_length=80)
    target: str = Field(max_length=80)
    predicate: str = Field(max_length=60)
    description: str = Field(max_length=160)


class FactListed(BaseModel):
    """A fact of a type of the schema in few words."""

    subject: str = Field(min_length=1, max_length=80)
    type: str = Field(min_length=1, max_length=40)
    value: str = Field(min_length=1, max_length=80)
    since: str = Field(max_length=20)


class _Listed(BaseModel):
    entities: list[EntityListed] = Field(default_factory=list, max_length=MOST_LISTED)

    def extracted(self) -> Extracted:
        """The same as any other extraction."""
        return Extracted.model_validate(self.model_dump())


class GraphListed(_Listed):
    """What a small model lists of a passage."""

    relations: list[RelationListed] = Field(default_factory=list, max_length=MOST_LISTED)


class ListGraph(_ReadPassage):
    """Make a knowledge graph of the passage. Add nothing that it does not say.

    - entities: everything that the passage names, each with its full name, its kind (one of
    {kinds}) and a short description from the passage.
    - relations: every statement that ties two of them, with a predicate of two to five words and
    the statement as a full sentence.
    """

    found: GraphListed = dspy.OutputField()


class FactsListed(_Listed):
    """What a small model lists of a passage where there is a schema."""

    facts: list[FactListed] = Field(default_factory=list, max_length=MOST_LISTED)


class ListFacts(_ReadPassage):
    """List what the passage says. Add nothing that it does not say.

    - entities: everything that the passage names, each with its full name, its kind (one of
    {kinds}) and a short description from the passage.
    - facts: every statement of one of these types, and of no other type, with its subject (one of
    the entities), the name of the type, the value in the words of the passage (yes or no where the
    type says so, for a relation one of the entities), and since when it holds (as 2024-05 or 2024,
    else empty).

    The types:

    {types}
    """

    found: FactsListed = dspy.OutputField()


# The examples where the settings have none; passages get those in their script.
EXAMPLES: Sequence[Mapping[str, Any]] = (
    {
        "title": "Harrow Mill",
        "passage": (
            "Founded by Edda Quist in 1871, the mill spun flax. She sold it to Brandt & Sons, "
            "which, some say, had bribed the surveyor."
        ),
        "found": Extracted(
            entities=[
                EntityFound(
                    name="Harrow Mill",
                    kind="organisation",
                    description="A flax mill, founded in 1871.",
                ),
                EntityFound(
                    name="Edda Quist",
                    kind="person",
                    description="Founded Harrow Mill in 1871 and sold it.",
                ),
                EntityFound(
                    name="Brandt & Sons",
                    kind="organisation",
                    description="A firm that bought Harrow Mill.",
                ),
            ],
            relations=[
                RelationFound(
                    source="Edda Quist",
                    target="Harrow Mill",
                    predicate="founded",
                    description="Edda Quist founded Harrow Mill in 1871.",
                    strength=10,
                    keys=("founding of firms",),
                ),
                RelationFound(
                    source="Edda Quist",
                    target="Brandt & Sons",
                    predicate="sold mill to",
                    description="Edda Quist sold Harrow Mill to Brandt & Sons.",
                    strength=5,
                    keys=("sale of firms",),
                ),
            ],
            claims=[
                ClaimFound(
                    subject="Brandt & Sons",
                    kind="accusation",
                    status="suspected",
                    description="Some say that Brandt & Sons had bribed the surveyor.",
                    quote="had bribed the surveyor",
                )
            ],
        ),
    },
    {
        "title": "南溪抽水站",
        "passage": "该站由水利局于2016年建成，简称南溪站。",
        "found": Extracted(
            entities=[
                EntityFound(
                    name="南溪抽水站", kind="place", description="水利局于2016年建成的抽水站。"
                ),
                EntityFound(
                    name="水利局", kind="organisation", description="2016年建成南溪抽水站的机构。"
                ),
                EntityFound(name="南溪站", kind="place", description="南溪抽水站的简称。"),
            ],
            relations=[
                RelationFound(
                    source="水利局",
                    target="南溪抽水站",
                    predicate="建成",
                    description="水利局于2016年建成南溪抽水站。",
                    strength=7,
                    keys=("水利建设",),
                ),
                RelationFound(
                    source="南溪抽水站",
                    target="南溪站",
                    predicate=ALIAS_PREDICATE,
                    description="南溪抽水站简称南溪站。",
                    strength=10,
                ),
            ],
            claims=[
                ClaimFound(
                    subject="水利局",
                    object="南溪抽水站",
                    kind="建设",
                    status="true",
                    since="2016",
                    until="2016",
                    description="水利局于2016年建成南溪抽水站。",
                    quote="由水利局于2016年建成",
                )
            ],
        ),
    },
)


class _ReadingStep(TailoredStep):
    """A step that finds things of the configured kinds in a passage."""

    role = "extract"
    output_format: ClassVar[StepAdapter] = StepAdapter(E="entities", R="relations")
    writes_in = "passage"
    examples = EXAMPLES

    def __init__(
        self,
        models: Models | None = None,
        tailoring: Tailoring = UNTAILORED,
        schema: Schema = NO_SCHEMA,
    ) -> None:
        super().__init__(models, schema.tailored(tailoring))
        self.schema = schema
        self.demos = [self._as_shown(_shown(example)) for example in tailoring.examples]

    def _as_shown(self, example: Mapping[str, Any]) -> Mapping[str, Any]:
        """An example of the settings in the form of this step."""
        return example

    @property
    def fitting_examples(self) -> Sequence[Mapping[str, Any]]:
        """None where kinds are set, since the examples have others."""
        return () if self.tailoring.entity_types else super().fitting_examples

    @property
    def instruction(self) -> str:
        """The instruction with the configured kinds and types in their places, or at its end."""
        text, kinds = super().instruction, neutralise(self._shown_kinds)
        if _KINDS not in text:
            text += f"\n\nKinds of entities: {_KINDS}"
        if _TYPES not in text and self.schema:
            text += f"\n\nTypes of facts:\n{_TYPES}"
        return text.replace(_KINDS, kinds).replace(_TYPES, neutralise(self.schema.shown))

    @property
    def _shown_kinds(self) -> str:
        return "; ".join(self.tailoring.kinds)


class Glean(_ReadingStep):
    """A passage and what was found in it → what was missed."""

    step = "glean"
    task: ClassVar[type[dspy.Signature]] = GleanGraph

    def _as_shown(self, example: Mapping[str, Any]) -> Mapping[str, Any]:
        return _missed(example)

    @property
    def fitting_examples(self) -> Sequence[Mapping[str, Any]]:
        """The examples of what a first reader missed."""
        return list(map(_missed, super().fitting_examples))


class GleanWithClaims(Glean):
    """`Glean` with claims."""

    task = GleanClaims
    output_format = StepAdapter(E="entities", R="relations", C="claims")


class GleanFacts(Glean):
    """`Glean` with the facts of a schema."""

    task = MissedFacts
    output_format = StepAdapter(E="entities", R="relations", F="facts")


class GleanFactsWithClaims(Glean):
    """`Glean` with the facts of a schema and with claims."""

    task = MissedFactsAndClaims
    output_format = StepAdapter(E="entities", R="relations", C="claims", F="facts")


class Extract(_ReadingStep):
    """A passage → its entities and relations; up to `gleanings` more calls add what it missed."""

    step = "extract"
    task: ClassVar[type[dspy.Signature]] = ExtractGraph
    further: ClassVar[type[Glean]] = Glean

    def __init__(
        self,
        models: Models | None = None,
        gleanings: int = 0,
        tailoring: Tailoring = UNTAILORED,
        schema: Schema = NO_SCHEMA,
    ) -> None:
        super().__init__(models, tailoring, schema)
        self.gleanings = gleanings

    @property
    def own_author(self) -> str:
        """The author, with the schema; offline its version of the rules and the configured
        kinds.
        """
        checked = f", schema {self.schema.digest}" if self.schema else ""
        if self.is_offline:
            kinds = self.tailoring.digest("entity_types")
            name = f"{self.models.name(self.role)}, rules {WORDS_VERSION}"
            return name + (f", tailored {kinds}" if kinds else "") + checked
        gleaned = ""
        if self.gleanings:
            gleaned = f", {self.gleanings} gleanings {self._glean.module.prompt_hash}"
        return super().own_author + gleaned + checked

    @property
    def _glean(self) -> Glean:
        return self.further(self.models, self.tailoring, self.schema)

    async def run(self, title: str, passage: str) -> Extracted:
        """What the passage holds; an entity of no configured kind is a "thing"."""
        if self.is_offline:
            extracted = extract_offline(title, passage)
        else:
            asked = {"title": title, "passage": passage}
            found: Extracted | _Listed = (await self.acall(**asked)).found
            found = found.extracted() if isinstance(found, _Listed) else found
            extracted = await self._gleaned(found, asked)
        kinds = [self.tailoring.kind(entity.kind) for entity in extracted.entities]
        entities = [
            entity.model_copy(update={"kind": kind})
            for entity, kind in zip(extracted.entities, kinds, strict=True)
        ]
        return extracted.model_copy(update={"entities": entities})

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """Raise Doubtful for an answer without an entity where the passage seems to have names."""
        names = [] if outputs["found"].entities else overlooked(inputs["title"], inputs["passage"])
        if names:
            raise Doubtful(
                f"it lists no entity, but the passage seems to name {', '.join(names)}. If not, say"
                " so again.",
                dict(outputs),
            )

    async def _gleaned(self, extracted: Extracted, asked: Mapping[str, object]) -> Extracted:
        """The result with what further rounds add; a round that adds nothing is the last."""
        more = self._glean
        more.lm = self.lm
        for _ in range(self.gleanings):
            further = await helped(
                more, partial(_missed_in, extracted, asked), FOUND_STAYS, otherwise=Extracted
            )
            merged = merge(extracted, further)
            if merged == extracted:
                break
            extracted = merged
        return extracted


class ExtractBriefly(Extract):
    """`Extract` for a small model: a bounded list in JSON, to which a server can hold it.

    Qwen2.5 with 1.5 billion parameters found a fifth of the names in lines of records, and more
    than half in this form (docs/experiments.md).
    """

    task = ListGraph
    listed: ClassVar[type[_Listed]] = GraphListed
    output_format = StepAdapter(items=True, bounded=True)
    examples = ()

    def _as_shown(self, example: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**example, "found": _briefly(example["found"], self.listed)}

    @property
    def _shown_kinds(self) -> str:
        """The names alone: a small model takes the meanings for things in the passage."""
        return ", ".join(kind.partition(" (")[0] for kind in self.tailoring.kinds)


class ExtractWithClaims(Extract):
    """`Extract` with the passage's claims, from the same call."""

    task = ExtractClaims
    output_format = GleanWithClaims.output_format
    further = GleanWithClaims


class ExtractFacts(Extract):
    """`Extract` with the facts of a schema, from the same call."""

    task = ReadFacts
    output_format = GleanFacts.output_format
    further = GleanFacts


class ExtractFactsWithClaims(Extract):
    """`Extract` with the facts of a schema and with claims, from the same call."""

    task = ReadFactsAndClaims
    output_format = GleanFactsWithClaims.output_format
    further = GleanFactsWithClaims


class ExtractFactsBriefly(ExtractBriefly):
    """`ExtractFacts` for a small model: entities and facts, bounded as in `ExtractBriefly`."""

    task = ListFacts
    listed = FactsListed
    further = GleanFacts


def extractor(
    models: Models,
    gleanings: int,
    tailoring: Tailoring,
    claims: bool,
    schema: Schema = NO_SCHEMA,
) -> Extract:
    """The step that extracts. `claims` asks a model for them; offline they are always found."""
    kind = extract_step(claims=claims, facts=bool(schema), profile=models.policy.profile)
    return kind(models, gleanings, tailoring, schema)


def extract_step(*, claims: bool, facts: bool, profile: Profile) -> type[Extract]:
    """The class of the step that extracts."""
    if claims:
        return ExtractFactsWithClaims if facts else ExtractWithClaims
    if profile == "small":
        return ExtractFactsBriefly if facts else ExtractBriefly
    return ExtractFacts if facts else Extract


def _briefly(extracted: Extracted, form: type[_Listed]) -> _Listed:
    """An example's records in the form for a small model: the first ones, without other fields."""
    listed: dict[str, Any] = {}
    for name, field in form.model_fields.items():
        (kind,) = get_args(field.annotation)
        listed[name] = [
            kind.model_construct(**{each: getattr(found, each) for each in kind.model_fields})
            for found in getattr(extracted, name)[:MOST_LISTED]
        ]
    return form.model_construct(**listed)


async def _missed_in(extracted: Extracted, asked: Mapping[str, object], more: Glean) -> Extracted:
    """What a further round finds that the earlier ones missed."""
    missed: Extracted = (await more.acall(**asked, known=known(extracted))).found
    return missed


def _shown(example: Example) -> Mapping[str, object]:
    inputs = {"title": example.title} if example.title else {}
    return {**inputs, "passage": example.passage, "found": _found(example)}


def _missed(shown: Mapping[str, Any]) -> Mapping[str, object]:
    """The example as if its first reader had missed the last entity and all about it."""
    extracted: Extracted = shown["found"]
    names = {entity.name for entity in extracted.entities[-1:]}
    relations = [
        relation for relation in extracted.relations if {relation.source, relation.target} & names
    ]
    claims = [claim for claim in extracted.claims if {claim.subject, claim.object} & names]
    facts = [fact for fact in extracted.facts if {fact.subject, fact.value} & names]
    listed = Extracted(
        entities=extracted.entities[:-1],
        relations=[relation for relation in extracted.relations if relation not in relations],
        claims=[claim for claim in extracted.claims if claim not in claims],
        facts=[fact for fact in extracted.facts if fact not in facts],
    )
    missed = Extracted(
        entities=extracted.entities[-1:], relations=relations, claims=claims, facts=facts
    )
    return {**shown, "known": known(listed), "found": missed}


def _found(example: Example) -> Extracted:
    """The records of an example, neutralised like any input."""
    return Extracted.model_validate(
        neutralised(example.model_dump(include={"entities", "relations", "facts"}))
    )
