"""Structures say what their sentences say, in their own form; what they do not say is counted."""

from collections.abc import Mapping, Sequence

import dspy
import pytest
from dspy.utils.dummies import DummyLM

from prompts.engine.effort import Policy
from prompts.engine.models import Models
from prompts.structures import StructureName, as_written, numbered, rendered, unverified
from prompts.structurize import Structurize, built_of
from prompts.text.evidence import Evidence
from storage.answer_records import StructureType
from tasks.citations import LazySequence, pool_of
from tasks.structurize import Structured, structurize, traced_structures
from tests.query.steps import sent
from tests.records import chunk_of

SALE = Evidence(0, "sales", "Sales of Orla", "Orla sold paper for $1,308,463 in 2023.")
STEP = Evidence(
    0, "manual", "Manual", "If the alarm sounds, close valve V-14 and call the shift lead."
)


MANUAL = "1. Open the lid.\n2. Close the valve."


def element(piece: Evidence, label: str, attribute: str, value: str) -> Evidence:
    return piece._replace(label=label, attribute=attribute, value=value)


def pool(texts: Mapping[str, str]) -> tuple[Evidence, ...]:
    return pool_of([chunk_of(text, name, title=name.title()) for name, text in texts.items()])


# --- checks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("structure", "made", "is_said"),
    [
        ("table", element(SALE, "Orla", "sales", "$1,308,463"), True),
        # A figure that lost its format.
        ("table", element(SALE, "Orla", "sales", "1308463"), False),
        ("table", element(SALE, "Orla", "sales", ""), False),
        ("graph", element(SALE, "Orla", "sold", "paper"), True),
        ("graph", element(SALE, "Orla", "sold", "Velin Mills"), False),
        ("algorithm", element(STEP, "1", "the alarm sounds", "close valve V-14"), True),
        ("algorithm", element(STEP, "1", "", "close valve V-15"), False),
        ("algorithm", element(STEP, "1", "", "evacuate the building at once"), False),
        ("catalogue", element(SALE, "1", "", "Orla sold paper for $1,308,463"), True),
        ("catalogue", element(SALE, "1", "", "Orla sold paper in 202"), False),
        ("chunk", SALE, True),
    ],
)
def test_what_a_sentence_does_not_say_is_counted_and_kept(
    structure: StructureName, made: Evidence, is_said: bool
) -> None:
    assert unverified(structure, [made]) == (not is_said)
    found = built_of(structure, "d", "D", [made], "")
    assert len(found.elements) == (1 if made.value or structure == "chunk" else 0)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("1 1.1 1.2 2", "1 1.1 1.2 2"),
        # A level skipped, a gap, a number twice.
        ("1 1.1.1 3 3", "1 1.1 2 3"),
        ("2.1 - x", "1 2 3"),
    ],
)
def test_catalogue_numbers_are_made_valid(given: str, made: str) -> None:
    lines = numbered([element(SALE, label, "", "Orla") for label in given.split()])
    assert [line.label for line in lines] == made.split()


# --- forms ----------------------------------------------------------------------------------------


def test_each_type_is_written_in_its_own_form() -> None:
    cells = [element(SALE, "Orla", "sales", "$1,308,463"), element(SALE, "Orla", "year", "2023")]
    table = "|  | sales | year |\n| --- | --- | --- |\n| Orla | $1,308,463 | 2023 |"
    assert rendered("table", cells) == table
    few = [element(SALE, row, column, "|") for row, column in zip("abc", "xyz", strict=True)]
    assert rendered("table", few).splitlines()[2] == "| a | x | \\| |"
    assert rendered("graph", [element(SALE, "Orla", "sold", "paper")]) == "Orla -[sold]-> paper"
    lines = [element(SALE, "1", "", "Orla sold paper"), element(SALE, "1.1", "", "in 2023")]
    assert rendered("catalogue", lines) == "1 Orla sold paper\n  1.1 in 2023"
    assert rendered("chunk", [SALE]) == SALE.text


def test_steps_are_written_as_pseudo_code_with_their_conditions() -> None:
    steps = [
        element(STEP, "1", "the alarm sounds", "close valve V-14"),
        element(STEP, "2", "", "call\nthe shift lead"),
    ]
    lines = ["1. IF the alarm sounds: close valve V-14", "2. call the shift lead"]
    assert rendered("algorithm", steps).splitlines() == lines
    written = as_written("algorithm", pool({"manual": f"{MANUAL}\n"}))
    assert rendered("algorithm", written) == MANUAL


def test_rows_are_a_structure_but_not_rows_among_prose() -> None:
    rows = "bridge | length\nbridge: Orla | length: 310\nbridge: Hask | length: 120"
    table = rendered("table", as_written("table", pool({"bridges": rows})))
    assert table == "|  | length |\n| --- | --- |\n| Orla | 310 |\n| Hask | 120 |"
    assert as_written("graph", pool({"bridges": f"{rows}\n\nBoth bridges are old."})) == []


# --- documents ------------------------------------------------------------------------------------


async def by_rules(structure: StructureType, texts: Mapping[str, str]) -> Structured:
    return await structurize(pool(texts), "How?", Structurize(Models.offline(), structure))


def elements_of(found: Structured) -> list[Evidence]:
    return [element for built in found.built for element in built.elements]


def test_an_error_while_a_pool_is_computed_is_not_an_empty_pool() -> None:
    with pytest.raises(IndexError):
        next(iter(LazySequence(lambda: list[str]()[0])), None)


async def test_a_document_that_gives_nothing_is_named_with_not_found() -> None:
    texts = {"manual": f"{MANUAL}\n", "poem": "The sea is wide."}
    shown = traced_structures(await by_rules("algorithm", texts))
    assert [(one.document, one.elements, one.description) for one in shown] == [
        ("manual", 2, "Manual: 2 elements"),
        ("poem", 0, "Poem: not found"),
    ]
    assert shown[0].text.startswith("1. Open the lid.")


async def test_a_structure_that_fits_no_document_falls_back_to_passages() -> None:
    found = await by_rules("algorithm", {"poem": "The sea is wide."})
    assert (found.type, elements_of(found)) == ("chunk", [])


FORMS: dict[StructureType, tuple[str, tuple[str, ...]]] = {
    "table": ("cells", ("row", "column", "cell", "sentence")),
    "graph": ("triples", ("head", "relation", "tail", "sentence")),
    "algorithm": ("steps", ("number", "condition", "action", "sentence")),
    "catalogue": ("lines", ("number", "text", "sentence")),
}
BRIDGES = {
    "orla": "Orla Bridge was designed by Tomas Reyd.",
    "kestrel": "Kestrel Bridge was designed by Ana Korb.",
}
ORLA, KESTREL = (
    ("Orla Bridge", "designed by", "Tomas Reyd", 0),
    ("Kestrel Bridge", "designed by", "Ana Korb", 1),
)


def answering(
    structure: StructureType,
    *answers: Sequence[tuple[object, ...]],
    limits: Mapping[str, int] | None = None,
) -> Structurize:
    """A builder whose model gives these elements in turn."""
    made = Structurize(Models({}, policy=Policy.of("medium", given=limits or {})), structure)
    name, fields = FORMS[structure]
    written = [[dict(zip(fields, one, strict=True)) for one in own] for own in answers]
    built = [{"built": {"description": "who", name: own}} for own in written]
    made.lm = DummyLM(built, adapter=dspy.JSONAdapter())
    return made


async def by_model(texts: Mapping[str, str], made: Structurize) -> Structured:
    return await structurize(pool(texts), "Who designed the bridges?", made)


@pytest.mark.parametrize(
    ("structure", "elements"),
    [
        (
            "graph",
            [
                ("Orla Bridge", "was the work of", "T. Reyd", 0),
                ("the bridge at Velin", "drawn by", "Korb", 1),
            ],
        ),
        ("table", [("Orla", "designer", "Reyd, Tomas", 0), ("Kestrel", "designer", "Ana Korb", 1)]),
        ("algorithm", [("1", "before the winter", "ask Tomas Reyd for the drawings", 0)]),
        ("catalogue", [("1", "Both bridges have designers who are known by name", 1)]),
    ],
)
async def test_a_paraphrase_of_a_model_is_taken_whole(
    structure: StructureType, elements: Sequence[tuple[object, ...]]
) -> None:
    found = await by_model(BRIDGES, answering(structure, elements))
    wanted = [one[:3] if len(one) == 4 else (one[0], "", one[1]) for one in elements]
    assert [(one.label, one.attribute, one.value) for one in elements_of(found)] == wanted
    assert found.by_model


async def test_what_a_model_invents_is_counted_by_document() -> None:
    invented = ("Orla Bridge", "designed by", "Zorblax", 0)
    found = await by_model(BRIDGES, answering("graph", [ORLA, invented, KESTREL]))
    assert [one.value for one in elements_of(found)] == ["Tomas Reyd", "Zorblax", "Ana Korb"]
    assert [(one.document, len(one.elements), one.unverified) for one in found.built] == [
        ("orla", 2, 1),
        ("kestrel", 1, 0),
    ]


LONG = "It is long and old and made of stone. " * 60


async def test_large_documents_are_structured_in_calls_of_their_own() -> None:
    long = {name: f"{text} {LONG}" for name, text in BRIDGES.items()}
    made = answering("table", *[[("Orla", "length", "long", 0)]] * 4, limits={"structure": 900})
    await by_model(long, made)
    asked = sent(made)
    assert 2 <= len(asked) <= 4
    assert "Kestrel" not in asked[0]


async def test_a_document_beyond_the_limit_is_told() -> None:
    made = answering("graph", [ORLA], limits={"structures": 40})
    found = await by_model({**BRIDGES, "long": LONG}, made)
    assert "not read" in found.built[-1].description
