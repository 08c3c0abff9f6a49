"""Extraction: names, relations and triples are bound to the text; rounds add what was missed."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM

from flows.index import IndexOptions, build_index
from flows.runtime import Runtime
from prompts.engine.errors import BadKey
from prompts.engine.models import ModelChoice, Models
from prompts.extract import Extract, ExtractGraph
from prompts.extracted import ClaimFound, EntityFound, Extracted, RelationFound, merge
from prompts.text.tokens import count_tokens
from storage.records import Chunk
from storage.run_records import IndexReport
from tasks.extract import extract_triples, find_name, to_extraction
from tests.engine.fakes import AsWritten
from tests.records import chunk_of
from tests.server.client import Server
from tests.workspaces import opened, write_rows

TEXT = "Orla Bridge stands. It was designed by Tomas\nReyd, and repainted by Ada Korb."


def of_bridge(text: str, start: int = 0, **changes: Any) -> Chunk:
    return chunk_of(text, start=start, **{"id": "chk_1", "title": "Orla Bridge", **changes})


def things(*names: str) -> list[EntityFound]:
    return [EntityFound(name=name, kind="thing") for name in names]


def related(source: str, target: str, predicate: str, **more: Any) -> RelationFound:
    return RelationFound(source=source, target=target, predicate=predicate, **more)


def test_mentions_stand_where_the_document_names_them() -> None:
    bound = to_extraction(
        of_bridge(TEXT, start=100), Extracted(entities=things("Tomas Reyd", "Reyd"))
    )
    places = {one.name: TEXT[one.start - 100 : one.end - 100] for one in bound.mentions}
    assert places == {"Tomas Reyd": "Tomas\nReyd", "Reyd": "Reyd", "Orla Bridge": ""}


def test_what_the_text_does_not_name_has_an_empty_span() -> None:
    found = Extracted(
        entities=things("Velin", " "),
        relations=[related("ada korb", "VELIN", "lives in"), related("Velin", " ", "holds")],
        claims=[
            ClaimFound(subject=" ", kind="fact", status="true", description="Nobody is named.")
        ],
    )
    bound = to_extraction(of_bridge(TEXT, start=100, ordinal=1), found)
    places = {one.name: (one.kind, one.start, one.end) for one in bound.mentions}
    assert places == {"Velin": ("thing", 100, 100), "ada korb": ("thing", 168, 176)}
    assert [(said.source, said.target) for said in bound.relations] == [("ada korb", "Velin")]
    assert bound.claims == (), "a claim about nothing is dropped"


def test_a_relation_is_bound_to_the_sentence_that_says_it() -> None:
    bridge, keeper = "Orla Bridge", "Ada Korb"
    paraphrased = related(bridge, keeper, "repainted by", description="a paraphrase")
    quoted = related(keeper, bridge, "near", description="Orla Bridge stands.", strength=3)
    found = Extracted(entities=things(bridge, keeper), relations=[paraphrased, quoted])
    first, second = to_extraction(of_bridge(TEXT, start=7), found).relations
    assert TEXT[first.start - 7 : first.end - 7].startswith("It was designed")
    assert TEXT[second.start - 7 : second.end - 7] == "Orla Bridge stands."
    assert second.weight == 3


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [
        ("Oslofjord and Oslo", "Oslo", (14, 18)),
        ("Oslofjord", "Oslo", None),
        ("在奥拉桥上", "奥拉桥", (1, 4)),
        ("Bank  of\nVelin", "Bank of Velin", (0, 14)),
        ("the Bank  of\nVelin", "THE BANK OF VELIN", (0, 18)),
        ("Oslofjord, oslo", "OSLO", (11, 15)),
        ("Ana’s Quay", "ana's quay", (0, 10)),
        ("Oslo", " ", None),
    ],
)
def test_names_are_found_as_whole_words(
    text: str, name: str, place: tuple[int, int] | None
) -> None:
    assert find_name(text, name) == place


def test_triples_keep_their_line_and_their_weight() -> None:
    lines = ["Ada -[knows]-> Bob", "Bob -[knows]-> Cy"]
    text = "\n".join(lines)
    bound = extract_triples(
        of_bridge(text, kind="triples"), {("d", lines[0]): 4.0, ("e", lines[1]): 9.0}
    )
    assert [text[one.start : one.end] for one in bound.relations] == lines
    assert [one.weight for one in bound.relations] == [4.0, 1.0]
    assert [one.name for one in bound.mentions] == ["Ada", "Bob", "Cy"]


MILL = (
    "After she had left the firm, its founder wrote that the second hall would never pay. He was "
    "wrong: by 1911 it did."
)
# Pronouns resolved, names from elsewhere in the document, other words, an abstract thing.
SAID = Extracted(
    entities=[
        EntityFound(name=name, kind=kind, description=description)
        for name, kind, description in (
            ("Harrow Mill", "organisation", "A mill with two halls."),
            ("Rut Hald", "person", "She left Harrow Mill before 1911."),
            ("Jonas Brandt", "person", "Doubted the second hall."),
            ("profitability", "concept", "Reached by the second hall in 1911."),
        )
    ],
    relations=[
        related("Rut Hald", "Harrow Mill", "left", strength=7, keys=["careers"]),
        related("Jonas Brandt", "Harrow Mill", "set up", description="He set it up."),
        related("Harrow Mill", "profitability", "reached in 1911", strength=5),
    ],
)


async def test_an_extraction_in_other_words_is_kept_whole() -> None:
    extract = Extract(Models.offline())
    written = Extract.output_format.write(ExtractGraph, {"found": SAID})
    extract.lm = DummyLM([{"found": written}], adapter=AsWritten())
    found = await extract.run("Harrow Mill", MILL)
    assert found == SAID
    bound = to_extraction(chunk_of(MILL, ordinal=1, title="Harrow Mill"), found)
    assert [(one.name, one.kind, one.description) for one in bound.mentions] == [
        (one.name, one.kind, one.description) for one in SAID.entities
    ]
    assert [
        (one.source, one.predicate, one.target, one.weight, one.keys) for one in bound.relations
    ] == [(one.source, one.predicate, one.target, one.strength, one.keys) for one in SAID.relations]
    assert all(MILL[one.start : one.end] for one in bound.relations), "each points to a sentence"


MOST_TOKENS = 420


def test_the_instruction_that_is_sent_with_each_passage_is_short() -> None:
    system, *examples, asked = Extract(Models.offline()).module.prompt
    assert count_tokens([system.content])[0] <= MOST_TOKENS
    assert len(examples) == 4, "two, of two turns each"
    assert sum(count_tokens([turn.content for turn in examples])) <= MOST_TOKENS
    assert "[[ ## passage ## ]]" in asked.content
    assert "kinds" not in asked.content, "what all calls share stands in the system message"


# --- triples from a file to the store ---


def indexed(rows: Sequence[Mapping[str, object]], folder: Path) -> tuple[Runtime, IndexReport]:
    runtime = opened(folder / "ws")
    source = write_rows(folder / "facts.jsonl", rows)
    return runtime, asyncio.run(build_index([source], IndexOptions(), runtime))


def stored(runtime: Runtime) -> Counter[tuple[object, ...]]:
    """The triples of the generation by document, each as often as it was asserted."""
    found: Counter[tuple[object, ...]] = Counter()
    with runtime.workspace.read() as generation:
        owner = {chunk.id: chunk.document for chunk in generation.documents.chunks()}
        for extraction in generation.extractions.extractions(list(owner)):
            for one in extraction.relations:
                found[owner[one.chunk], one.source, one.predicate, one.target] += round(one.weight)
    return found


def fact(s: str, p: str, o: str, document: str = "d", **more: object) -> dict[str, object]:
    return {"s": s, "p": p, "o": o, "document": document, **more}


def test_every_triple_is_stored_whatever_signs_it_holds(tmp_path: Path) -> None:
    rows = [
        fact("Orla Bridge", "has [two] of", "Arch"),
        fact("Orla Bridge", "[spans]", "River Tarn"),
        fact("a -[b", "joins", "c]-> d"),
        fact("桥", "位于", "“海岸”"),
        fact("Orla Bridge", "is", "Orla Bridge"),
        fact("x", "p", "y", document="e"),
        *[fact("a", "p", "b")] * 2,
        fact("a", "p", "b", weight=3),
    ]
    runtime, report = indexed(rows, tmp_path)
    assert report.dead_letters == 0
    expected = Counter(tuple(row[key] for key in ("document", "s", "p", "o")) for row in rows)
    assert stored(runtime) == expected + Counter({("d", "a", "p", "b"): 2}), "a weight of three"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"malformed": ["a", "b"], "document": "d"}, "neither `text` nor all of"),
        (fact("", "p", "o"), "`s` is empty"),
        ({"s": "a", "p": None, "o": "b"}, "`p` is empty"),
        (fact("a", "p", "b", weight="much"), "`weight` is not a number"),
        (fact("a", "p", "word " * 300), "more than 1000"),
    ],
)
def test_a_bad_row_is_a_dead_letter_with_its_line_and_reason(
    row: dict[str, object], reason: str, tmp_path: Path
) -> None:
    runtime, report = indexed([fact("a", "p", "b"), row], tmp_path)
    with runtime.workspace.read() as generation:
        (letter,) = generation.extractions.dead_letters()
    assert report.dead_letters == 1
    assert reason in letter.error
    assert letter.item.endswith("facts.jsonl:2")
    assert letter.remedy
    assert stored(runtime).total() == 1


# --- rounds ---

# The scripted model leaves single words out where there are longer names, until it is asked again.
PASSAGE = "Ada Lovelace met Charles Babbage. Charles Babbage lived in London."


@pytest.fixture
async def models(model_server: Server) -> AsyncIterator[Models]:
    made = Models({"extract": ModelChoice("openai/scripted", model_server.base_url, "a key")})
    yield made
    await made.aclose()


async def test_a_round_adds_what_was_missed(models: Models, model_server: Server) -> None:
    found = await Extract(models, gleanings=1).run("T", PASSAGE)
    ada, charles, london = "Ada Lovelace", "Charles Babbage", "London"
    assert [entity.name for entity in found.entities] == [ada, charles, london]
    assert [(one.source, one.target) for one in found.relations] == [
        (ada, charles),
        (charles, london),
    ]
    asked = model_server.requests()[-1]
    assert asked["step"] == "glean"
    # The round is told the names and statements that are known.
    assert '"Charles Babbage", "Ada Lovelace -[met]-> Charles Babbage"]' in str(asked["body"])


async def test_the_rounds_end_where_nothing_is_new(models: Models, model_server: Server) -> None:
    await Extract(models, gleanings=5).run("T", PASSAGE)
    calls = {name: row["calls"] for name, row in model_server.stats()["steps"].items()}
    assert calls == {"extract": 1, "glean": 2}
    assert {step: spent.calls for step, _, spent in models.meter.rows()} == calls


async def test_a_failing_round_is_an_error_not_a_small_answer(
    models: Models, model_server: Server
) -> None:
    model_server.misbehave({"kind": "unauthorized", "step": "glean"})
    with pytest.raises(BadKey):
        await Extract(models, gleanings=1).run("T", PASSAGE)


def said(name: str, target: str, text: str, predicate: str = "met") -> Extracted:
    """A description of a name, and of its relation to a target, in the same words."""
    return Extracted(
        entities=[EntityFound(name=name, kind="person", description=text)],
        relations=[related("A", target, predicate, description=text)],
    )


def test_a_further_description_is_kept_with_the_first() -> None:
    merged = merge(said("Ada", "B", "She kept the light."), said("Ada", "B", "She was in Velin."))
    for found in (merged.entities, merged.relations):
        assert [one.description for one in found] == ["She kept the light.", "She was in Velin."]


@pytest.mark.parametrize(
    "again", ["She kept the light in Velin.", "she  kept the light", "the Light, in Velin!", ""]
)
def test_what_was_said_already_is_no_addition(again: str) -> None:
    first = said("Ada Lund", "B", "She kept the light in Velin.")
    assert merge(first, said("ADA  Lund", "b", again, predicate="Met")) == first


def test_a_part_of_a_word_is_an_addition() -> None:
    first = said("Ada Lund", "B", "She kept the light in Velin.")
    assert merge(first, said("Ada Lund", "B", "the li")) != first
