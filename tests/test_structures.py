"""Do structures say what their sentences say, in their form, and what do they say where nothing is?"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import dspy
import pytest
from dspy.utils.dummies import DummyLM

from prompts.engine.models import Models
from prompts.language.question import ask
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from prompts.structures.checks import StructureName, checked, has_figures, numbered
from prompts.structures.procedure import steps_of
from prompts.structures.render import rendered
from prompts.structures.schema import ReadSchema
from prompts.structurize import Structurize, structurize_offline
from storage.records import Chunk, RouteDecision
from storage.side import SideLimits, SideStore
from tasks.evidence import Pool, pool_of
from tasks.structurize.step import CALL_TOKENS, THOROUGH, Apart, Structured, packed, shown_of, structurize

SALE = Evidence(0, "sales", "Sales of Orla", "Orla sold paper for $1,308,463 in 2023.")
STEP = Evidence(0, "manual", "Manual", "If the alarm sounds, close valve V-14 and call the shift lead.")


def element(piece: Evidence, label: str, attribute: str, value: str) -> Evidence:
    return Evidence(
        piece.number, piece.document, piece.title, piece.text, label=label, attribute=attribute, value=value
    )


def pool(texts: Mapping[str, str]) -> Pool:
    return pool_of(
        [
            Chunk(
                id=f"chk_{name}", document=name, title=name.title(), ordinal=0, start=0, end=len(text), text=text,
                language="en", tokens=len(text) // 4,
            )
            for name, text in texts.items()
        ]
    )  # fmt: skip


def routed(structure: StructureName) -> RouteDecision:
    return RouteDecision(type=structure, confidence=1.0, margin=1.0, reason="asked for")


def judge(question: str) -> Relevance:
    return Relevance(ask(question), {})


# --- checks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("structure", "made", "kept"),
    [
        ("table", element(SALE, "Orla", "sales", "$1,308,463"), True),
        ("table", element(SALE, "Orla", "sales", "1308463"), False),  # a figure that lost its format
        ("table", element(SALE, "Orla", "sales", ""), False),
        ("graph", element(SALE, "Orla", "sold", "paper"), True),
        ("graph", element(SALE, "Orla", "sold", "Velin Mills"), False),
        ("algorithm", element(STEP, "1", "the alarm sounds", "close valve V-14"), True),
        ("algorithm", element(STEP, "1", "", "close valve V-15"), False),
        ("algorithm", element(STEP, "1", "", "evacuate the building at once"), False),
        ("catalogue", element(SALE, "1", "", "Orla sold paper for $1,308,463"), True),
        ("catalogue", element(SALE, "1", "", "Orla sold paper for $138463"), False),
        ("chunk", SALE, True),
    ],
)
def test_what_a_sentence_does_not_say_is_refused(structure: StructureName, made: Evidence, kept: bool) -> None:
    found = checked(structure, [made])
    assert (len(found.elements), found.refused) == ((1, 0) if kept else (0, 1))


def test_a_condition_that_is_not_stated_is_left_out() -> None:
    (found,) = checked("algorithm", [element(STEP, "1", "the moon is full", "close valve V-14")]).elements
    assert (found.attribute, found.value) == ("", "close valve V-14")


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (["1", "1.1", "1.2", "2"], ["1", "1.1", "1.2", "2"]),
        (["1", "1.1.1", "3", "3"], ["1", "1.1", "2", "3"]),  # a level skipped, a gap, a number twice
        (["2.1", "", "x"], ["1", "2", "3"]),
    ],
)
def test_catalogue_numbers_are_made_valid(given: Sequence[str], made: Sequence[str]) -> None:
    assert [line.label for line in numbered([element(SALE, label, "", "Orla") for label in given])] == made


@pytest.mark.parametrize(("said", "so"), [("$1,308,463", True), ("1308463", False), ("2023", True), ("202", False)])
def test_figures_are_compared_as_written(said: str, so: bool) -> None:
    assert has_figures(said, SALE.text) is so


# --- forms ------------------------------------------------------------------------------------------------------------


def test_each_type_is_written_in_its_own_form() -> None:
    cells = [element(SALE, "Orla", "sales", "$1,308,463"), element(SALE, "Orla", "year", "2023")]
    assert rendered("table", cells) == "|  | sales | year |\n| --- | --- | --- |\n| Orla | $1,308,463 | 2023 |"
    assert rendered("graph", [element(SALE, "Orla", "sold", "paper")]) == "Orla -[sold]-> paper"
    met = Evidence(0, "d", "Velin Museum", "Tomas Reyd (born 1890) founded the Velin Museum.")
    triple = element(met, "Tomas Reyd", "founded", "Velin Museum")
    assert rendered("graph", [triple]) == "Tomas Reyd (person) -[founded]-> Velin Museum (organisation)"
    assert rendered("algorithm", steps_of([STEP, STEP])) == ""
    lines = [element(SALE, "1", "", "Orla sold paper"), element(SALE, "1.1", "", "in 2023")]
    assert rendered("catalogue", lines) == "1 Orla sold paper\n  1.1 in 2023"
    assert rendered("chunk", [SALE]) == SALE.text


def test_a_table_with_few_cells_is_written_cell_by_cell() -> None:
    cells = [element(SALE, row, column, "|") for row, column in zip("abc", "xyz", strict=True)]
    assert rendered("table", cells).splitlines()[2] == "| a | x | \\| |"


def test_steps_are_written_as_pseudo_code_with_their_conditions() -> None:
    text = "1. Open the lid.\n2. If the alarm sounds, close valve V-14.\n3. 如果水位过高，关闭闸门。\n"
    found = structurize_offline(
        "algorithm", pool({"manual": text}).evidence, judge("How is the lid of the manual valve opened?")
    )
    assert rendered("algorithm", found.elements).splitlines() == [
        "1. Open the lid.",
        "2. IF the alarm sounds: close valve V-14.",
        "3. 如果水位过高: 关闭闸门。",
    ]


def test_sentences_that_say_their_place_are_steps_where_no_list_is() -> None:
    text = "The pump is old. First, open the lid. Then close the valve. It is blue. Finally, call the lead."
    found = structurize_offline("algorithm", pool({"manual": text}).evidence, judge("How is the pump lid opened?"))
    assert [(one.label, one.value) for one in found.elements] == [
        ("1", "First, open the lid."), ("2", "Then close the valve."), ("3", "Finally, call the lead."),
    ]  # fmt: skip


# --- documents --------------------------------------------------------------------------------------------------------


async def test_a_document_that_gives_nothing_is_named_with_not_found() -> None:
    texts = {"manual": "1. Open the lid.\n2. Close the valve.\n", "poem": "The sea is wide."}
    made = Structurize(Models.offline())
    found = await structurize(routed("algorithm"), pool(texts), judge("How is it opened?"), made)
    shown = shown_of(found)
    assert [(one.document, one.elements, one.description) for one in shown] == [
        ("manual", 2, "Manual: 2 elements"),
        ("poem", 0, "Poem: not found"),
    ]
    assert shown[0].text.startswith("1. Open the lid.")


async def test_a_structure_that_fits_no_document_falls_back_to_passages() -> None:
    made = Structurize(Models.offline())
    found = await structurize(routed("algorithm"), pool({"poem": "The sea is wide."}), judge("How?"), made)
    assert (found.type, [piece.text for piece in found.elements]) == ("chunk", ["The sea is wide."])


def answering(*answers: Mapping[str, object]) -> tuple[Structurize, DummyLM]:
    made = Structurize(Models.offline())
    made.lm = model = DummyLM([dict(one) for one in answers], adapter=dspy.JSONAdapter())
    return made, model


def built(*elements: tuple[str, str, str, int]) -> dict[str, object]:
    fields = ("label", "attribute", "value", "sentence")
    return {"built": {"description": "who", "elements": [dict(zip(fields, one, strict=True)) for one in elements]}}


BRIDGES = {"orla": "Orla Bridge was designed by Tomas Reyd.", "kestrel": "Kestrel Bridge was designed by Ana Korb."}
ORLA, KESTREL = ("Orla Bridge", "designed by", "Tomas Reyd", 0), ("Kestrel Bridge", "designed by", "Ana Korb", 1)


async def structured(texts: Mapping[str, str], made: Structurize, store: SideStore | None = None) -> Structured:
    shelf = store.structures if store else None
    return await structurize(
        routed("graph"), pool(texts), judge("Who designed the bridges?"), made, THOROUGH, Apart(shelf=shelf)
    )


async def test_what_a_model_invents_is_refused_and_counted_by_document() -> None:
    made, _ = answering(built(ORLA, ("Orla Bridge", "designed by", "Ana Korb", 0), KESTREL))
    found = await structured(BRIDGES, made)
    assert [one.value for one in found.elements] == ["Tomas Reyd", "Ana Korb"]
    assert [(one.document, len(one.elements), one.refused) for one in found.built] == [
        ("orla", 1, 1),
        ("kestrel", 1, 0),
    ]


async def test_large_documents_are_structured_in_calls_of_their_own() -> None:
    long = {name: f"{text} " + "It is long and old and made of stone. " * 60 for name, text in BRIDGES.items()}
    made, model = answering(built(ORLA), built())
    await structured(long, made)
    assert len(model.history) == 2
    assert all("Kestrel" not in call["messages"][-1]["content"] for call in model.history[:1])


def test_small_documents_share_a_call() -> None:
    pieces = [[Evidence(n, f"d{n}", "T", "word " * 200)] for n in range(9)]
    calls = packed(pieces)
    assert [piece.number for call in calls for piece in call] == list(range(9))
    assert 2 <= len(calls) <= 3
    assert [len(packed([[Evidence(0, "d", "T", "word " * 5 * CALL_TOKENS)]]))] == [1]


async def test_a_structure_is_kept_for_each_document_until_its_text_changes(tmp_path: Path) -> None:
    store = SideStore(tmp_path / "side.sqlite")
    first, _ = answering(built(ORLA, KESTREL))
    once = await structured(BRIDGES, first, store)
    again, silent = answering()
    assert (await structured(BRIDGES, again, store)).built == once.built
    assert silent.history == []
    changed, model = answering(built(("Orla Bridge", "designed by", "Ivo Lamm", 0)))
    found = await structured({**BRIDGES, "orla": "Orla Bridge was designed by Ivo Lamm."}, changed, store)
    assert [one.value for one in found.elements] == ["Ivo Lamm", "Ana Korb"]
    assert "Kestrel" not in model.history[0]["messages"][-1]["content"]
    assert store.structures.remove_document("orla") == 2
    store.close()


def test_the_kept_structures_are_bounded_and_an_older_store_gets_their_table(tmp_path: Path) -> None:
    store = SideStore(tmp_path / "side.sqlite", SideLimits(structures=2), clock=iter(range(1, 99)).__next__)
    with store.memory._db.transaction() as connection:  # as a version without the table left it
        connection.execute("DROP TABLE structures")
    store.close()
    for key in ("a", "b", "c", "d"):
        store.structures.put(key, "doc", "[]")
    assert [store.structures.get(key) for key in ("a", "b", "d")] == [None, None, "[]"]
    store.close()


def test_a_catalogue_has_its_sections_numbered_with_what_they_tell() -> None:
    text = "# Ferry\n\nThe ferry is old.\n\n# Bridge\n\nThe bridge is long. It is of stone.\n"
    found = structurize_offline("catalogue", pool({"sound": text}).evidence, judge("Summarise the sound."))
    assert rendered("catalogue", found.elements).splitlines() == [
        "1 Ferry", "  1.1 The ferry is old.", "2 Bridge", "  2.1 The bridge is long.", "  2.2 It is of stone.",
    ]  # fmt: skip


def test_figures_of_prose_are_cells_under_the_words_around_them() -> None:
    found = structurize_offline("table", pool({"sale": SALE.text}).evidence, judge("How much paper did Orla sell?"))
    assert [(one.attribute, one.value) for one in found.elements] == [
        ("Orla sold paper for … in 2023", "$1,308,463"), ("Orla sold paper for $1,308,463 in …", "2023"),
    ]  # fmt: skip


async def test_one_schema_serves_all_documents_of_a_table_and_other_questions_after_it(tmp_path: Path) -> None:
    texts = {name: f"{name.title()} is {length} m long. " + "It is old and made of stone. " * 90 for name, length in
             (("orla", 412), ("kestrel", 97))}  # fmt: skip
    store = SideStore(tmp_path / "side.sqlite")
    schema = {"schema_found": {"things": [], "attributes": ["length"], "periods": []}}
    asked = []
    for question in ("How long are the bridges Orla and Kestrel?", "Which bridge is longer, Orla or Kestrel?"):
        lengths = [built(("Orla", "length", "412 m", 0)), built()]
        made, model = answering(*lengths)
        schemer = ReadSchema(Models.offline())
        schemer.lm = DummyLM([schema], adapter=dspy.JSONAdapter())
        apart = Apart(schemer, store.structures)
        await structurize(routed("table"), pool(texts), judge(question), made, THOROUGH, apart)
        asked.append([call["messages"][-1]["content"] for call in model.history])
    assert len(asked[0]) == 2
    assert all("Columns: length." in content for content in asked[0])
    assert asked[1] == []
    store.close()
