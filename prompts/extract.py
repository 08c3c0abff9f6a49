"""Extraction: the entities that a passage names, the relations that it states between them, its claims about them.

Source: GraphRAG (arXiv 2404.16130, section 2.2: also claims, and the further rounds that ask what was missed),
LightRAG's `Recog`. Offline: capitalised or noun-run names, and relations typed by the words that connect two names, or
by the label of a cell.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from prompts.engine.calls import Doubtful
from prompts.engine.helper import helped
from prompts.engine.models import Models
from prompts.engine.output_formats import RecordsFormat
from prompts.engine.prompt_guard import neutralised
from prompts.engine.step import InputField, Inputs, OutputField, Outputs, Signature
from prompts.offline.extract import (
    ALIAS_PREDICATE,
    ClaimFound,
    EntityFound,
    Extracted,
    RelationFound,
    extract_offline,
    known,
    merge,
    names_in,
    overlooked,
    topic_of,
)
from prompts.tailored_step import TailoredStep
from prompts.tailoring import UNTAILORED, Example, Tailoring
from prompts.text.words import WORDS_VERSION

__all__ = [
    "ALIAS_PREDICATE", "ClaimFound", "EntityFound", "Extract", "ExtractWithClaims",
    "Extracted", "Glean", "GleanWithClaims", "RelationFound", "extract_offline",
    "extractor", "known", "merge", "names_in", "topic_of",
]  # fmt: skip


FOUND_STAYS = "what the rounds before it found stays"


class _ReadPassage(Signature):
    """What every extraction reads."""

    kinds: list[str] = InputField()
    title: str = InputField()
    passage: str = InputField()


class ExtractGraph(_ReadPassage, prompt="extract extract_entities extract_relations extract_hard"):
    found: Extracted = OutputField()


class ExtractClaims(_ReadPassage, prompt="extract extract_entities extract_relations extract_claims extract_hard"):
    found: Extracted = OutputField()


class GleanGraph(_ReadPassage, prompt="extract glean extract_entities extract_relations"):
    known: list[str] = InputField(desc="Entities, then relations as source -[predicate]-> target.")
    found: Extracted = OutputField()


class GleanClaims(_ReadPassage, prompt="extract glean extract_entities extract_relations extract_claims"):
    known: list[str] = InputField(
        desc="Entities, then relations as source -[predicate]-> target, then claims as subject: claim."
    )
    found: Extracted = OutputField()


class _ReadingStep(TailoredStep):
    """A step that reads a passage for things of the configured kinds."""

    role = "extract"
    output_format = RecordsFormat(E="entities", R="relations")
    own_language = "the passage's language"
    examples = "extract"

    def __init__(self, models: Models, tailoring: Tailoring = UNTAILORED) -> None:
        super().__init__(models, tailoring)
        self.demos = [_shown(example) for example in tailoring.examples]

    @property
    def fitting_examples(self) -> Sequence[Mapping[str, object]]:
        """None where kinds are set: those of the examples are others."""
        return () if self.tailoring.entity_types else super().fitting_examples

    @property
    def fixed(self) -> dict[str, object]:
        return {"kinds": list(self.tailoring.kinds)}


class Glean(_ReadingStep):
    """One passage and what was found in it → what was missed."""

    step = "glean"
    task: ClassVar[type[Signature]] = GleanGraph

    def __init__(self, models: Models, tailoring: Tailoring = UNTAILORED) -> None:
        super().__init__(models, tailoring)
        self.demos = [_missed(example) for example in self.demos]

    @property
    def fitting_examples(self) -> Sequence[Mapping[str, object]]:
        """With what a first reader missed."""
        return [_missed(example) for example in super().fitting_examples]


class GleanWithClaims(Glean):
    """The same with what was missed of claims."""

    task = GleanClaims
    output_format = RecordsFormat(E="entities", R="relations", C="claims")


class Extract(_ReadingStep):
    """One passage → its entities and relations; a model is asked up to `gleanings` times more what it has missed."""

    step = "extract"
    task: ClassVar[type[Signature]] = ExtractGraph
    further: ClassVar[type[Glean]] = Glean

    def __init__(self, models: Models, gleanings: int = 0, tailoring: Tailoring = UNTAILORED) -> None:
        super().__init__(models, tailoring)
        self.gleanings = gleanings

    @property
    def own_author(self) -> str:
        """Offline only the rules and the kinds count."""
        if self.is_offline:
            kinds = self.tailoring.digest("entity_types")
            name = f"{self.models.name(self.role)}, rules {WORDS_VERSION}"
            return name + (f", tailored {kinds}" if kinds else "")
        more = self.further(self.models, self.tailoring)
        return super().own_author + (
            f", {self.gleanings} gleanings {more.module.prompt_hash}" if self.gleanings else ""
        )

    async def run(self, title: str, passage: str) -> Extracted:
        """Of the configured kinds; what is of none of them is kept as a "thing"."""
        if self.is_offline:
            extracted = extract_offline(title, passage)
        else:
            asked = {"title": title, "passage": passage, "kinds": list(self.tailoring.kinds)}
            extracted = await self._gleaned((await self.acall(**asked)).found, asked)
        kinds = [self.tailoring.kind(entity.kind) for entity in extracted.entities]
        entities = [
            entity.model_copy(update={"kind": kind}) for entity, kind in zip(extracted.entities, kinds, strict=True)
        ]
        return extracted.model_copy(update={"entities": entities})

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """An answer without an entity is doubted where the passage has names: see `prompts.offline.extract`."""
        names = [] if outputs["found"].entities else overlooked(inputs["title"], inputs["passage"])
        if names:
            raise Doubtful(
                f"it lists no entity, but the passage seems to name {', '.join(names)}. If not, say so again.",
                dict(outputs),
            )

    async def _gleaned(self, extracted: Extracted, asked: Mapping[str, object]) -> Extracted:
        """With what further rounds add; a round that adds nothing is the last."""
        more = self.further(self.models, self.tailoring)
        more.lm = self.lm
        for _ in range(self.gleanings):
            further = await helped(more, partial(_missed_in, extracted, asked), FOUND_STAYS, otherwise=Extracted)
            merged = merge(extracted, further)
            if merged == extracted:
                break
            extracted = merged
        return extracted


class ExtractWithClaims(Extract):
    """The same with the passage's claims, for which a model is asked in the same call."""

    task = ExtractClaims
    output_format = RecordsFormat(E="entities", R="relations", C="claims")
    further = GleanWithClaims


def extractor(models: Models, gleanings: int, tailoring: Tailoring, claims: bool) -> Extract:
    """The step that extracts. `claims` asks a model for them too; the offline reader finds them in any case."""
    return (ExtractWithClaims if claims else Extract)(models, gleanings, tailoring)


async def _missed_in(extracted: Extracted, asked: Mapping[str, object], more: Glean) -> Extracted:
    """What a further round finds that the rounds before it missed."""
    missed: Extracted = (await more.acall(**asked, known=known(extracted))).found
    return missed


def _shown(example: Example) -> Mapping[str, object]:
    inputs = {"title": example.title} if example.title else {}
    return {**inputs, "passage": example.passage, "found": _found(example)}


def _missed(shown: Mapping[str, Any]) -> Mapping[str, object]:
    """The example with its last entity missed by the first reader, and what is said of that entity with it."""
    extracted: Extracted = shown["found"]
    names = {entity.name for entity in extracted.entities[-1:]}
    relations = [relation for relation in extracted.relations if {relation.source, relation.target} & names]
    claims = [claim for claim in extracted.claims if {claim.subject, claim.object} & names]
    listed = Extracted(
        entities=extracted.entities[:-1],
        relations=[relation for relation in extracted.relations if relation not in relations],
        claims=[claim for claim in extracted.claims if claim not in claims],
    )
    missed = Extracted(entities=extracted.entities[-1:], relations=relations, claims=claims)
    return {**shown, "known": known(listed), "found": missed}


def _found(example: Example) -> Extracted:
    """What the example shows, as a model writes it; signs that structure a prompt are broken as in any input."""
    return Extracted.model_validate(neutralised(example.model_dump(include={"entities", "relations"})))
