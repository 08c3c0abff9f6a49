"""The schema: what it may say, where it comes from, and which facts it lets through."""

import datetime as dates
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from flows.graph_schema import read_schema
from prompts.engine.models import Models
from prompts.extract import extract_step, extractor
from prompts.extracted import EntityFound, Extracted, FactFound
from prompts.schema import NO_SCHEMA, AttributeType, Schema, Unit, schema_of
from prompts.tailoring import UNTAILORED, Tailoring
from storage.errors import SettingsError
from storage.graph_records import Extraction
from storage.records import Triple
from tasks.extract import extract_triples, to_extraction
from tasks.facts.typed_values import Unfitting, days_in, typed_value, years_between
from tests.records import chunk_of
from tests.settings import load_settings


class Town(BaseModel):
    """A place with a council."""

    inhabitants: int


class Person(BaseModel):
    born: dates.date | None = None
    born_in: Town | None = None


class Bridge(BaseModel):
    length: Annotated[float, Unit("m")]
    names: list[str] = Field(description="what it is called")
    movable: bool = False
    designed_by: list[Person] = []


PLAIN = {
    "kinds": {
        "town": {
            "meaning": "A place with a council.",
            "attributes": {"inhabitants": "number"},
        },
        "person": {"attributes": {"born": "date"}},
        "bridge": {
            "attributes": {
                "length": "number in m",
                "names": {"several": True, "meaning": "what it is called"},
                "movable": "yes/no",
            }
        },
    },
    "relations": {
        "born in": {"source": "person", "target": "town", "single": True},
        "designed by": {"source": "bridge", "target": "person"},
    },
}
SCHEMA = Schema.model_validate(PLAIN)


# --- where it comes from --------------------------------------------------------------------------


def test_classes_of_pydantic_are_a_schema() -> None:
    assert schema_of([Bridge]) == SCHEMA
    assert schema_of([Person, Town]).kinds.keys() == {"person", "town"}


@pytest.mark.parametrize("name", [f"{__name__}:Bridge", f"{__name__}:SCHEMA", __name__])
def test_a_module_is_named_in_the_variable(name: str) -> None:
    settings = load_settings({}, {"TRELLIS_SCHEMA": name})
    assert settings.graph_schema == SCHEMA


def test_the_table_stands_in_the_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_text('[schema.kinds]\nperson = "a human"\n', "utf-8")
    settings = load_settings({}, {"TRELLIS_CONFIG": str(file)})
    assert settings.graph_schema.kinds["person"].meaning == "a human"
    assert load_settings({}, {}).graph_schema == NO_SCHEMA


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('kinds.person.attributes.born = "day"', "'day'.*date"),
        ('kinds.person = ""\nrelations.knows = "person -> ship"', "'ship'.*person"),
        ('kinds.person = ""\nrelations.knows = "person"', "'person'.*person -> bridge"),
        ('kinds.person.attributes.name = "text"', "'name'.*other than"),
        ('kinds.person = ""\nkinds.Person = ""', "a name for one kind"),
        ("kinds.person.attribute = {}", "attributes"),
    ],
)
def test_a_wrong_table_is_told_with_its_remedy(table: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    lines = "\n".join(f"schema.{line}" for line in table.splitlines())
    file.write_text(lines, "utf-8")
    with pytest.raises(SettingsError, match=rf"(?s)schema.*{problem}"):
        load_settings({}, {"TRELLIS_CONFIG": str(file)})


@pytest.mark.parametrize("name", ["no.such.module", "datetime", f"{__name__}:PLAIN", "", "a b:C"])
def test_a_module_without_classes_is_told(name: str) -> None:
    with pytest.raises(ValueError, match=r"package\.module"):
        read_schema(name or " ")


def test_a_field_of_another_type_is_told() -> None:
    class Odd(BaseModel):
        shape: dict[str, int]

    with pytest.raises(ValueError, match=r"Odd\.shape.*bool"):
        schema_of([Odd])


# --- extraction -----------------------------------------------------------------------------------


@pytest.mark.parametrize("claims", [True, False])
@pytest.mark.parametrize("profile", ["small", "large"])
def test_a_schema_changes_the_author_and_its_absence_nothing(claims: bool, profile: Any) -> None:
    models = Models.offline()
    plain = extractor(models, 0, UNTAILORED, claims)
    assert plain.own_author == extractor(models, 0, UNTAILORED, claims, NO_SCHEMA).own_author
    typed = extractor(models, 0, UNTAILORED, claims, SCHEMA)
    assert typed.own_author != plain.own_author
    kind = extract_step(claims=claims, facts=True, profile=profile)
    shown = kind(models, schema=SCHEMA).module.prompt[0].content
    assert "- length: number in m; of bridge" in shown
    assert "- designed by: from bridge to person" in shown


def test_kinds_of_a_schema_come_before_those_of_the_settings() -> None:
    tailored = SCHEMA.tailored(Tailoring(entity_types=("ship", "Person: anybody")))  # type: ignore[arg-type]
    assert [kind.name for kind in tailored.entity_types] == ["town", "person", "bridge", "ship"]


TEXT = (
    "The Orla Bridge is 1.2 km long. It was designed by Ana Korb, born on 3 May 1899. "
    "It cannot be moved."
)


def bound(*facts: FactFound) -> Extraction:
    listed = [EntityFound(name="Orla Bridge", kind="bridge"), EntityFound(name="Korb", kind="town")]
    found = Extracted(entities=listed, facts=list(facts))
    return to_extraction(chunk_of(TEXT, ordinal=1, start=100), found, schema=SCHEMA)


def fact(subject: str, kind: str, value: str, quote: str = "", **time: str) -> FactFound:
    return FactFound(subject=subject, type=kind, value=value, quote=quote, **time)


@pytest.mark.parametrize(
    ("given", "words", "typed"),
    [
        (fact("Orla Bridge", "length", "1.2 km"), "1.2 km", (1200.0, "m", "", None)),
        (
            fact("Orla Bridge", "Length", "1.2 kilometres", "1.2 km long"),
            "1.2",
            (1200.0, "m", "", None),
        ),
        (
            fact("Ana Korb", "born", "1899-05-03", "born on 3 May"),
            "3 May 1899",
            (None, "", "1899-05-03", None),
        ),
        (
            fact("Orla Bridge", "movable", "no", "It cannot be moved"),
            "It cannot be moved.",
            (None, "", "", False),
        ),
        (
            fact("Orla Bridge", "designed by", "Ana Korb", "by Ana Korb"),
            "Ana Korb",
            (None, "", "", None),
        ),
        (
            fact("Ana Korb", "inverse of designed by", "Orla Bridge", "by Ana Korb"),
            None,
            (None, "", "", None),
        ),
    ],
)
def test_a_fact_stands_at_the_characters_of_its_value(
    given: FactFound, words: str | None, typed: object
) -> None:
    (mention,) = bound(given).facts
    if words:
        assert TEXT[mention.start - 100 : mention.end - 100] == words
    first, last = mention.statement
    assert (first, last) in {(100, 131), (132, 180), (181, 200)}, "a sentence"
    assert first <= mention.start <= mention.end <= last
    assert (mention.number, mention.unit, mention.day, mention.yes) == typed


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (fact("Orla Bridge", "height", "1.2 km"), "'height' is no type"),
        (fact("Orla Bridge", "length", "long"), "'long' is no number"),
        (fact("Orla Bridge", "length", "1.2 kg"), "'kg' is no unit of m"),
        (fact("Orla Bridge", "length", "9 km", "1.2 km long"), "no sentence of it holds '9 km'"),
        (
            fact("Orla Bridge", "born", "3 May 1899"),
            "born is of a person, and 'Orla Bridge' is a bridge",
        ),
        (fact("Orla Bridge", "designed by", "Korb"), "leads to a person, and 'Korb' is a town"),
        (fact("Orla Bridge", "designed by", "orla bridge"), "to itself"),
        (fact("Nobody", "born", "1907"), "no sentence of the passage states it"),
        (fact("Orla Bridge", "movable", "perhaps", "It cannot be moved"), "neither yes nor no"),
    ],
)
def test_what_breaks_the_schema_is_left_out_with_a_reason(given: FactFound, reason: str) -> None:
    extraction = bound(given)
    assert extraction.facts == ()
    (left_out,) = extraction.left_out
    assert reason in left_out.reason


def test_a_typed_relation_is_an_edge_of_the_graph_too() -> None:
    extraction = bound(fact("Orla Bridge", "designed by", "Ana Korb", "designed by Ana Korb"))
    (relation,) = extraction.relations
    assert (relation.source, relation.predicate, relation.target) == (
        "Orla Bridge",
        "designed by",
        "Ana Korb",
    )
    assert {mention.name: mention.kind for mention in extraction.mentions}["Ana Korb"] == "person"


def test_imported_triples_are_facts_where_they_fit() -> None:
    rows = [("Orla", "designed by", "Ana"), ("Orla", "length", "412 m"), ("Ana", "born", "never")]
    text = "\n".join(Triple(s=s, p=p, o=o).rendered() for s, p, o in rows)
    extraction = extract_triples(chunk_of(text, kind="triples"), {}, SCHEMA)
    assert [(one.subject, one.type, one.number) for one in extraction.facts] == [
        ("Orla", "designed by", None),
        ("Orla", "length", 412.0),
    ]
    assert [one.reason for one in extraction.left_out] == ["'never' is no date"]
    assert len(extraction.relations) == 3
    assert {mention.name: mention.kind for mention in extraction.mentions} == {
        "Orla": "bridge",
        "Ana": "person",
        "412 m": "thing",
        "never": "thing",
    }


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "attribute", "expected"),
    [
        ("412.5", "number in m", 412.5),
        ("1.284 km", "number in m", 1284.0),
        ("42 km long", "number in km", 42.0),
        ("3.88米", "number in m", 3.88),
        ("about 2,300 drawings", "number", 2300.0),
        ("five vessels", {"type": "number", "unit": "ships", "units": {"vessels": 1}}, 5.0),
        ("2370万克朗", {"type": "number", "unit": "crowns", "units": {"克朗": 1}}, 23_700_000.0),
        ("5 ft", "number in m", None),
        ("6 June 1938", "date", "1938-06-06"),
        ("2024年3月8日", "date", "2024-03-08"),
        ("June 1938", "date", "1938-06"),
        ("31 February 1938", "date", None),
        ("是", "yes/no", True),
        ("False", "yes/no", False),
    ],
)
def test_a_value_is_read_by_its_type(text: str, attribute: Any, expected: object) -> None:
    kind = AttributeType.model_validate(attribute)
    if expected is None:
        with pytest.raises(Unfitting):
            typed_value(text, kind)
        return
    value = typed_value(text, kind)
    read = {"number": value.number, "date": value.day, "yes/no": value.yes}
    assert read[kind.type] == expected


def test_days_and_the_years_between_them() -> None:
    text = "opened on 6 June 1938 and 2024-13-01, in 1987 or 3,874,620"
    assert [(text[slice(*span)], day) for span, day in days_in(text)] == [
        ("6 June 1938", "1938-06-06"),
        ("1987", "1987"),
    ]
    assert [years_between("1938-06-06", day) for day in ("1952", "1952-06-05", "1938-06-05")] == [
        14,
        13,
        0,
    ]


def test_a_schema_says_what_is_wrong_with_it() -> None:
    with pytest.raises(ValidationError):
        Schema.model_validate({"kinds": {"a>b": ""}})
