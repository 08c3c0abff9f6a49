"""Which entities does a passage name, which relations between them does it state, and what does it claim of them?

Source: GraphRAG (arXiv 2404.16130, section 2.2: also claims, and the further rounds that ask what was missed),
LightRAG's `Recog`. Offline: capitalised or noun-run names, cells of tables, relations typed by the words that connect
two names, or by the column, and sentences with a verb that tells of a claim.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import dspy

from prompts.engine.guard import neutralised
from prompts.engine.messages import NotAsAsked
from prompts.engine.models import Models
from prompts.engine.records_wire import RecordsWire
from prompts.reading.found import (
    ALIAS_PREDICATE,
    ClaimFound,
    EntityFound,
    Extracted,
    RelationFound,
    known,
    merge,
)
from prompts.reading.overlooked import overlooked
from prompts.reading.passage import extract_offline, names_in, topic_of
from prompts.tailoring.step import TailoredStep
from prompts.tailoring.values import UNTAILORED, Example, Tailoring

__all__ = [
    "ALIAS_PREDICATE", "ClaimFound", "EntityFound", "Extract", "ExtractClaims", "ExtractGraph", "ExtractWithClaims",
    "Extracted", "Glean", "GleanClaims", "GleanGraph", "GleanWithClaims", "RelationFound", "extract_offline",
    "extractor", "known", "merge", "names_in", "topic_of",
]  # fmt: skip


class ExtractGraph(dspy.Signature):
    """List every entity that the passage names, then every relation that it states between two of them. Infer none,
    resolve pronouns, write in the passage's language."""

    title: str = dspy.InputField()
    passage: str = dspy.InputField()
    kinds: list[str] = dspy.InputField()
    found: Extracted = dspy.OutputField()


class ExtractClaims(dspy.Signature):
    """List every entity that the passage names, then every relation that it states between two of them, then every
    claim about one of them that could be dated, checked or disputed: who is accused of, punished for, denies, decides
    or announces what. Infer none, resolve pronouns, write in the passage's language."""

    title: str = dspy.InputField()
    passage: str = dspy.InputField()
    kinds: list[str] = dspy.InputField()
    found: Extracted = dspy.OutputField()


class GleanGraph(dspy.Signature):
    """Another reader of the passage has listed what is known. List what that list lacks: the entities that the passage
    names, then the relations that it states between two entities, known or new. Infer none, repeat none, resolve
    pronouns, write in the passage's language. Where nothing was missed, list nothing."""

    title: str = dspy.InputField()
    passage: str = dspy.InputField()
    kinds: list[str] = dspy.InputField()
    known: list[str] = dspy.InputField(desc="Entities, then relations as source -[predicate]-> target.")
    found: Extracted = dspy.OutputField()


class GleanClaims(dspy.Signature):
    """Another reader of the passage has listed what is known. List what that list lacks: the entities that the passage
    names, then the relations that it states between two entities, then the claims about one entity that could be dated,
    checked or disputed. Infer none, repeat none, resolve pronouns, write in the passage's language. Where nothing was
    missed, list nothing."""

    title: str = dspy.InputField()
    passage: str = dspy.InputField()
    kinds: list[str] = dspy.InputField()
    known: list[str] = dspy.InputField(
        desc="Entities, then relations as source -[predicate]-> target, then claims as subject: claim."
    )
    found: Extracted = dspy.OutputField()


class Glean(TailoredStep):
    """One passage and what was found in it → what was missed."""

    step = "glean"
    role = "extract"
    task = GleanGraph
    wire = RecordsWire(E="entities", R="relations")
    own_language = "the passage's language"

    def __init__(self, models: Models, tailoring: Tailoring = UNTAILORED) -> None:
        super().__init__(models, tailoring)
        self.demos = [_missed(example) for example in tailoring.examples]


class GleanWithClaims(Glean):
    """The same with what was missed of claims."""

    task = GleanClaims
    wire = RecordsWire(E="entities", R="relations", C="claims")


class Extract(TailoredStep):
    """One passage → its entities and relations; a model is asked up to `gleanings` times more what it has missed."""

    step = "extract"
    role = "extract"
    task = ExtractGraph
    wire = RecordsWire(E="entities", R="relations")
    own_language = "the passage's language"
    further: ClassVar[type[Glean]] = Glean

    def __init__(self, models: Models, gleanings: int = 0, tailoring: Tailoring = UNTAILORED) -> None:
        super().__init__(models, tailoring)
        self.gleanings = gleanings
        self.demos = [_shown(example) for example in tailoring.examples]

    def __deepcopy__(self, memo: dict[int, object]) -> "Extract":
        copied = super().__deepcopy__(memo)
        assert isinstance(copied, Extract)  # noqa: S101 - a copy is of the same class
        copied.gleanings = self.gleanings
        return copied

    async def run(self, title: str, passage: str) -> Extracted:
        """Of the configured kinds; what is of none of them is kept as a "thing"."""
        if self.is_offline:
            found = extract_offline(title, passage)
            return _of_kinds(found, [self.tailoring.kind_offline(one.name, one.kind) for one in found.entities])
        asked = {"title": title, "passage": passage, "kinds": list(self.tailoring.kinds)}
        found = (await self.acall(**asked)).found
        if self.gleanings:
            found = await self._gleaned(found, asked)
        return _of_kinds(found, [self.tailoring.kind(one.kind) for one in found.entities])

    def check(self, outputs: Mapping[str, object], inputs: Mapping[str, object]) -> None:
        """An answer without an entity is refused where the passage has names: see `prompts.reading.overlooked`."""
        found = outputs["found"]
        if isinstance(found, Extracted) and not found.entities:
            names = overlooked(str(inputs["title"]), str(inputs["passage"]))
            if names:
                raise NotAsAsked(f"it lists no entity, but the passage names {', '.join(names)}.")

    async def _gleaned(self, found: Extracted, asked: Mapping[str, object]) -> Extracted:
        """With what further rounds add; a round that adds nothing is the last."""
        more = self.further(self.models, self.tailoring)
        more.lm = self.lm
        for _ in range(self.gleanings):
            merged = merge(found, (await more.acall(**asked, known=known(found))).found)
            if merged == found:
                break
            found = merged
        return found


class ExtractWithClaims(Extract):
    """The same with the passage's claims, for which a model is asked in the same call."""

    task = ExtractClaims
    wire = RecordsWire(E="entities", R="relations", C="claims")
    further = GleanWithClaims


def extractor(models: Models, gleanings: int, tailoring: Tailoring, claims: bool) -> Extract:
    """The step that extracts. `claims` asks a model for them too; the offline reader finds them in any case."""
    return (ExtractWithClaims if claims else Extract)(models, gleanings, tailoring)


def _of_kinds(found: Extracted, kinds: Sequence[str]) -> Extracted:
    """The same with these kinds of its entities."""
    entities = [
        one if one.kind == kind else one.model_copy(update={"kind": kind})
        for one, kind in zip(found.entities, kinds, strict=True)
    ]
    return found.model_copy(update={"entities": entities})


def _shown(example: Example) -> dspy.Example:
    """A user's example as a demonstration; the kinds are those of the passage that is asked about."""
    given = {"title": example.title} if example.title else {}
    return dspy.Example(**given, passage=example.passage, found=_found(example)).with_inputs("title", "passage")


def _missed(example: Example) -> dspy.Example:
    """The example with its last entity missed by the first reader, and the relations of that entity with it."""
    found = _found(example)
    last = found.entities[-1:]
    names = {one.name for one in last}
    missed = [one for one in found.relations if {one.source, one.target} & names]
    listed = Extracted(entities=found.entities[:-1], relations=[one for one in found.relations if one not in missed])
    shown = _shown(example).copy(known=known(listed), found=Extracted(entities=last, relations=missed))
    return shown.with_inputs("title", "passage", "known")


def _found(example: Example) -> Extracted:
    """What the example shows, as a model writes it; signs that structure a prompt are broken as in any input."""
    return Extracted.model_validate(neutralised(example.model_dump(include={"entities", "relations"})))
