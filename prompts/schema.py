"""The schema of a typed graph: kinds with attributes, and relations with the kinds at their ends.

It comes from the table `[schema]` of `trellis.toml` or from classes of pydantic, and is checked
here. Extraction gets it in words (`Schema.shown`), and what breaks it is left out afterwards
(KAG, arXiv 2409.13731: extraction under a schema).
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, Field, field_validator, model_validator
from pydantic.fields import FieldInfo

from prompts.tailoring import ConfiguredValue, EntityType, Line, Tailoring, Unfit

ValueType = Literal["text", "number", "date", "yes/no"]

NAME = "name"  # the column of a kind that holds the names of its things
LEADS_TO = ">"  # stands between a relation and a column of what it leads to
LONGEST_NAME = 40
_NUMBER_IN = re.compile(r"number in (.+)")
_TYPES_OF_PYTHON: Mapping[object, ValueType] = {
    str: "text",
    int: "number",
    float: "number",
    date: "date",
    bool: "yes/no",
}


def _name(value: str) -> str:
    """A name that no sign of a prompt, a plan or a file can be taken for."""
    name = " ".join(value.split())
    if not 0 < len(name) <= LONGEST_NAME or set(name) & set(':;|>,()[]{}"') or name == NAME:
        form = f"a name of 1 to {LONGEST_NAME} letters, digits and blanks other than {NAME!r}"
        raise Unfit(value[:80], form)
    return name


Name = Annotated[str, AfterValidator(_name)]


class AttributeType(ConfiguredValue):
    """What values an attribute has; "text", "date", "yes/no", "number" or "number in m" is enough.

    `units` are further units with their size in `unit`: `{"ft" = 0.3048}`. A thing has `several`
    values at a time, or one, which a newer one ends.
    """

    type: ValueType = "text"
    unit: Line = ""
    units: dict[Line, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    several: bool = False
    meaning: Line = ""

    @classmethod
    def _of_text(cls, text: str) -> object:
        if match := _NUMBER_IN.fullmatch(text.strip()):
            return {"type": "number", "unit": match[1]}
        if text.strip() not in get_args(ValueType):
            raise Unfit(text, 'one of "text", "number", "number in UNIT", "date" and "yes/no"')
        return {"type": text.strip()}

    @property
    def shown(self) -> str:
        """The type as a model reads it."""
        unit = f" in {self.unit}" if self.unit else ""
        several = ", may have several" if self.several else ""
        meaning = f", {self.meaning}" if self.meaning else ""
        return f"{self.type}{unit}{several}{meaning}"


class KindType(ConfiguredValue):
    """A kind of entity, with the attributes that its things may have; a text is its meaning."""

    meaning: Line = ""
    attributes: dict[Name, AttributeType] = Field(default_factory=dict)

    @classmethod
    def _of_text(cls, text: str) -> object:
        return {"meaning": text}


class RelationType(ConfiguredValue):
    """The kinds that a relation may lead from and to; "person -> bridge" is enough.

    A `single` relation leads to one thing at a time: a newer fact ends the older one. `inverse` is
    its name when it is read from its target.
    """

    source: tuple[Name, ...]
    target: tuple[Name, ...]
    single: bool = False
    inverse: Line = ""
    meaning: Line = ""

    @classmethod
    def _of_text(cls, text: str) -> object:
        source, _, target = (part.strip() for part in text.partition("->"))
        if not (source and target):
            raise Unfit(text, 'the kinds at both ends, as "person -> bridge" or "a | b -> c"')
        return {"source": source, "target": target}

    @field_validator("source", "target", mode="before")
    @classmethod
    def _apart(cls, kinds: object) -> object:
        return kinds.split("|") if isinstance(kinds, str) else kinds

    @property
    def shown(self) -> str:
        """The ends as a model reads them."""
        single = ", one at a time" if self.single else ""
        meaning = f", {self.meaning}" if self.meaning else ""
        return f"from {' or '.join(self.source)} to {' or '.join(self.target)}{single}{meaning}"


class Schema(ConfiguredValue):
    """Kinds by name, and relations by name. An empty schema checks nothing."""

    kinds: dict[Name, KindType] = Field(default_factory=dict)
    relations: dict[Name, RelationType] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        for relation in self.relations.values():
            for end in (*relation.source, *relation.target):
                if end not in self.kinds:
                    raise Unfit(end, f"the kinds of this schema: {', '.join(self.kinds) or 'none'}")
        inverses = map(self.inverse, self.relations)
        owned = {name for kind in self.kinds.values() for name in kind.attributes}
        for names in (list(self.kinds), [*self.relations, *inverses, *owned]):
            folded = [name.casefold() for name in names]
            for name in names:
                if folded.count(name.casefold()) > 1:
                    raise Unfit(name, "a name for one kind, attribute, relation or inverse alone")
        return self

    def __bool__(self) -> bool:
        return bool(self.kinds)

    def inverse(self, relation: str) -> str:
        """The name of a relation that is read from its target."""
        return self.relations[relation].inverse or f"inverse of {relation}"

    def owners(self, attribute: str) -> tuple[str, ...]:
        """The kinds that have an attribute."""
        return tuple(name for name, kind in self.kinds.items() if attribute in kind.attributes)

    def leaving(self, kind: str) -> Mapping[str, tuple[str, ...]]:
        """The names of the relations of a kind, read from it, with the kinds that they lead to."""
        outward = {name: one.target for name, one in self.relations.items() if kind in one.source}
        inward = {
            self.inverse(name): one.source
            for name, one in self.relations.items()
            if kind in one.target
        }
        return outward | inward

    @property
    def shown(self) -> str:
        """All types of facts as a model reads them, one a line."""
        owned = {name for kind in self.kinds.values() for name in kind.attributes}
        return "\n".join(f"- {line}" for line in self.lines({*owned, *self.relations}))

    def lines(self, types: Collection[str]) -> list[str]:
        """The types of facts with these names, as a model reads them."""
        owners: dict[tuple[str, str], list[str]] = {}
        for kind, of_kind in self.kinds.items():
            for name, each in of_kind.attributes.items():
                owners.setdefault((name, each.shown), []).append(kind)
        attributes = [
            f"{name}: {shown}; of {' or '.join(kinds)}"
            for (name, shown), kinds in owners.items()
            if name in types
        ]
        relations = [
            f"{name}: {each.shown}" for name, each in self.relations.items() if name in types
        ]
        return [*attributes, *relations]

    def tailored(self, tailoring: Tailoring) -> Tailoring:
        """The tailoring with the kinds of the schema before its own."""
        if not self:
            return tailoring
        kinds = [EntityType(name=name, meaning=kind.meaning) for name, kind in self.kinds.items()]
        known = {kind.name.casefold() for kind in kinds}
        others = [one for one in tailoring.entity_types if one.name.casefold() not in known]
        return tailoring.model_copy(update={"entity_types": (*kinds, *others)})

    @property
    def digest(self) -> str:
        """A hash of the schema; empty where there is none."""
        text = self.model_dump_json(exclude_defaults=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12] if self else ""


NO_SCHEMA = Schema()


# --- classes of pydantic --------------------------------------------------------------------------


class Unit(str):
    """The unit of a number in a class of pydantic: `length: Annotated[float, Unit("m")]`."""


def schema_of(classes: Iterable[type[BaseModel]]) -> Schema:
    """The schema that classes of pydantic describe, and those that their fields name.

    A class is a kind, named as its class in lower case, with its docstring as the meaning. A field
    of `str`, `int`, `float`, `date` or `bool` is an attribute; one of another class is a relation
    to it, single unless it is a list. Raises Unfit for a field of another type.
    """
    kinds: dict[str, object] = {}
    relations: dict[str, dict[str, Any]] = {}
    waiting, known = list(classes), set[type[BaseModel]]()
    while waiting:
        kind = waiting.pop(0)
        if kind in known:
            continue
        known.add(kind)
        attributes: dict[str, object] = {}
        for field_name, field in kind.model_fields.items():
            name, (inner, several) = field_name.replace("_", " "), _inner(field.annotation)
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                waiting.append(inner)
                ends = relations.setdefault(
                    name, {"source": [], "target": [], "single": not several}
                )
                for end, value in (("source", kind), ("target", inner)):
                    ends[end] = list(dict.fromkeys([*ends[end], _kind_name(value)]))
            else:
                attributes[name] = _attribute(
                    f"{kind.__name__}.{field_name}", inner, several, field
                )
        meaning = " ".join((kind.__doc__ or "").split())
        kinds[_kind_name(kind)] = {"meaning": meaning, "attributes": attributes}
    return Schema.model_validate({"kinds": kinds, "relations": relations})


def _kind_name(kind: type[BaseModel]) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", kind.__name__).lower()


def _inner(annotation: Any) -> tuple[Any, bool]:
    """The type of a field without None and list, and whether there may be several values."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _inner(arguments[0])
    if origin in {Union, UnionType}:
        (first, *_) = [one for one in arguments if one is not NoneType]
        return _inner(first)
    if origin in {list, tuple, set, frozenset}:
        return _inner(arguments[0])[0], True
    return annotation, False


def _attribute(place: str, inner: Any, several: bool, field: FieldInfo) -> dict[str, object]:
    if inner not in _TYPES_OF_PYTHON:
        known = "str, int, float, date, bool, another class of pydantic, or a list of these"
        raise Unfit(place, f"a field of one of the types {known}")
    units = [one for one in field.metadata if isinstance(one, Unit)]
    return {
        "type": _TYPES_OF_PYTHON[inner],
        "unit": str(units[0]) if units else "",
        "several": several,
        "meaning": " ".join((field.description or "").split()),
    }
