"""Tailoring: persona, language, entity types and examples for a domain (GraphRAG 3.1.1).

Nothing is set by default. The values come from the TOML table `[tailoring]` of `trellis.toml` or of
the workspace's own file, and are checked here.
"""

import hashlib
import json
import tomllib
from typing import Annotated, Self

import tomli_w
from pydantic import AfterValidator, BaseModel, Field, field_validator, model_validator

from prompts.engine.messages import rough_tokens

# The kinds of entities where none is configured, with their meanings.
DEFAULT_MEANINGS = {
    "person": "",
    "organisation": "a firm, authority, team or people",
    "place": "also a building, region or body of water",
    "event": "what happens at a time",
    "work": "a text, law, film, picture or piece of music",
    "method": "a procedure, theory or algorithm",
    "product": "what is made for use, also software",
    "concept": "an idea, field, problem or illness",
}
OTHER_KIND = "thing"
TABLE = "tailoring"


class Unfit(ValueError):
    """Raised for an invalid value; `expected` completes the sentence "Use …"."""

    def __init__(self, value: str, expected: str) -> None:
        super().__init__(f"{value!r} cannot be. Use {expected}.")
        self.value = value
        self.expected = expected


def _text(value: str) -> str:
    """Text that can be written to a file and be sent."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Unfit(value, "text without lone surrogates") from error
    return value


def _line(value: str) -> str:
    """Text on one line, since another line could be taken for a part of the prompt."""
    return " ".join(_text(value).split())


Text = Annotated[str, AfterValidator(_text)]
Line = Annotated[str, AfterValidator(_line)]


class ConfiguredValue(BaseModel, frozen=True, extra="forbid"):
    """A value of the settings, which some classes also read from a text."""

    @model_validator(mode="before")
    @classmethod
    def _of_any_form(cls, value: object) -> object:
        return cls._of_text(value) if isinstance(value, str) else value

    @classmethod
    def _of_text(cls, text: str) -> object:
        """The fields that a text stands for."""
        return text


class EntityType(ConfiguredValue):
    """A kind of entity; written as "name" or "name: meaning"."""

    name: Line
    meaning: Line = ""

    @classmethod
    def _of_text(cls, text: str) -> object:
        name, _, meaning = text.partition(":")
        return {"name": name, "meaning": meaning}

    @field_validator("name")
    @classmethod
    def _is_short(cls, name: str) -> str:
        if not name or len(name) > 40 or set(name) & set(":;"):
            raise Unfit(
                name,
                "a name of 1 to 40 characters without ':' and ';', as \"person\" or \"pier: a "
                'support"',
            )
        return name

    def __str__(self) -> str:
        return f"{self.name}: {self.meaning}" if self.meaning else self.name

    @property
    def shown(self) -> str:
        """The kind as a model reads it."""
        return f"{self.name} ({self.meaning})" if self.meaning else self.name


class ExampleEntity(ConfiguredValue):
    """An entity that is to be found in an example."""

    name: Line
    kind: Line
    description: Line


class ExampleRelation(ConfiguredValue):
    """A relation between two of the example's entities."""

    source: Line
    target: Line
    predicate: Line
    description: Line
    strength: float = Field(default=5.0, ge=0, le=10)
    keys: tuple[Line, ...] = ()


class ExampleFact(ConfiguredValue):
    """A fact of a type of the schema, about one of the example's entities."""

    subject: Line
    type: Line
    value: Line
    since: Line = ""
    until: Line = ""
    quote: Line = ""


class Example(ConfiguredValue):
    """A passage with all that is to be found in it; facts where there is a schema."""

    title: Line = ""
    passage: Text
    entities: tuple[ExampleEntity, ...]
    relations: tuple[ExampleRelation, ...] = ()
    facts: tuple[ExampleFact, ...] = ()

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        text = " ".join(f"{self.passage} {self.title}".split())
        names = [entity.name for entity in self.entities]
        for name in names:
            if not name or name not in text:
                raise Unfit(name, "names exactly as the example's passage or title writes them")
        ends = [end for relation in self.relations for end in (relation.source, relation.target)]
        for end in (*ends, *(fact.subject for fact in self.facts)):
            if end not in names:
                raise Unfit(
                    end, f"the example's entities as ends of its relations: {', '.join(names)}"
                )
        return self

    def tokens(self) -> int:
        """Its tokens in a prompt, estimated."""
        items = [*self.entities, *self.relations, *self.facts]
        return sum(
            map(
                rough_tokens,
                [self.title, self.passage, *(item.model_dump_json() for item in items)],
            )
        )


_DEFAULT_KINDS = tuple(
    EntityType(name=name, meaning=meaning).shown for name, meaning in DEFAULT_MEANINGS.items()
)


class Tailoring(ConfiguredValue):
    """The tailoring of prompts to a domain.

    `persona` describes writer and readers in one or two sentences, `language` is the language to
    write in (empty: the documents' own), `entity_types` are all kinds of entities, `examples` show
    what to extract.
    """

    persona: Line = Field(default="", max_length=600)
    language: Line = Field(default="", max_length=60)
    entity_types: tuple[EntityType, ...] = Field(default=(), max_length=40)
    examples: tuple[Example, ...] = ()

    @field_validator("entity_types", mode="before")
    @classmethod
    def _apart(cls, kinds: object) -> object:
        """Read kinds separated by semicolons, as an environment variable holds them."""
        if not isinstance(kinds, str):
            return kinds
        return [kind.strip() for kind in kinds.split(";") if kind.strip()]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        names = [entity_type.name for entity_type in self.entity_types]
        folded = [name.casefold() for name in names]
        for name in names:
            if folded.count(name.casefold()) > 1:
                raise Unfit(name, "each kind once")
        kinds = names or list(DEFAULT_MEANINGS)
        for kind in (entity.kind for example in self.examples for entity in example.entities):
            if kind not in kinds:
                raise Unfit(
                    kind,
                    f"in examples the kinds {', '.join(kinds)}, or name the others in entity_types",
                )
        return self

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds as a model reads them: "name" or "name (meaning)"."""
        return tuple(kind.shown for kind in self.entity_types) or _DEFAULT_KINDS

    def kind(self, word: str) -> str:
        """The configured kind of this name, or "thing"; without configured kinds the word."""
        meant = word.partition(":")[0].partition(" (")[0].strip()
        if not self.entity_types:
            return meant
        names = (entity_type.name for entity_type in self.entity_types)
        return next((name for name in names if name.casefold() == meant.casefold()), OTHER_KIND)

    def digest(self, *names: str) -> str:
        """A hash of these values; empty where none of them is set."""
        values = {
            name: value
            for name, value in self.model_dump(mode="json", include=set(names)).items()
            if value
        }
        text = json.dumps(values, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12] if values else ""


UNTAILORED = Tailoring()


def from_toml(text: str) -> Tailoring:
    """The tailoring in a file's text.

    Raises ValueError: TOMLDecodeError, pydantic's ValidationError, or one that names a table that
    does not belong here.
    """
    tables = tomllib.loads(text)
    others = [name for name in tables if name != TABLE]
    if others:
        raise ValueError(f"It holds {others[0]!r}; only [{TABLE}] belongs here.")
    return Tailoring.model_validate(tables.get(TABLE, {}))


def to_toml(tailoring: Tailoring) -> str:
    """The text that `from_toml` reads, without values that are not set."""
    values = tailoring.model_dump(exclude_defaults=True)
    if tailoring.entity_types:
        values["entity_types"] = list(map(str, tailoring.entity_types))
    return tomli_w.dumps({TABLE: values})
