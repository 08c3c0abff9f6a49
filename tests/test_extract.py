"""Extraction: bound to the text, a model taken at its word, rounds add what was missed, triples
keep their line.
"""

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
from prompts.extract import EntityFound, Extract, Extracted, ExtractGraph, RelationFound, merge
from prompts.text.tokens import count_tokens
from storage.records import Chunk
from storage.run_records import IndexReport
from tasks.extract import extract_triples, find_name, to_extraction
from tasks.load.text import clean, one_line
from tests.engine.fakes import AsWritten
from tests.records import chunk_of
from tests.server.client import Server
from tests.workspaces import opened, write_rows

TEXT = "Orla Bridge stands. It was designed by Tomas\nReyd, and repainted by Ada Korb."


def of_bridge(text: str, start: int = 0, **changes: Any) -> Chunk:
    return chunk_of(text, start=start, **{"id": "chk_1", "title": "Orla Bridge", **changes})


def test_mentions_stand_where_the_document_names_them() -> None:
    found = Extracted(
        entities=[
            EntityFound(name="Tomas Reyd", kind="person"),
            EntityFound(name="Reyd", kind="person"),
        ]
    )
    bound = to_extraction(of_bridge(TEXT, start=100), found)
    places = {
        mention.name: TEXT[mention.start - 100 : mention.end - 100] for mention in bound.mentions
    }
    assert places["Tomas Reyd"] == "Tomas\nReyd"
    assert places["Reyd"] == "Reyd"


def test_what_the_text_does_not_name_has_an_empty_span_at_the_chunks_start() -> None:
    found = Extracted(
        entities=[EntityFound(name="Velin", kind="place"), EntityFound(name=" ", kind="place")],
        relations=[
            RelationFound(source="ada korb", target="VELIN", predicate="lives in"),
            RelationFound(source="Velin", target=" ", predicate="holds"),
        ],
    )
    bound = to_extraction(of_bridge(TEXT, start=100, ordinal=1), found)
    places = {
        mention.name: (mention.kind, mention.start, mention.end) for mention in bound.mentions
    }
    assert places == {"Velin": ("place", 100, 100), "ada korb": ("thing", 168, 176)}
    assert [(said.source, said.target) for said in bound.relations] == [("ada korb", "Velin")]


def test_a_relation_is_bound_to_the_sentence_that_says_it() -> None:
    found = Extracted(
        entities=[EntityFound(name=name, kind="thing") for name in ("Orla Bridge", "Ada Korb")],
        relations=[
            RelationFound(
                source="Orla Bridge",
                target="Ada Korb",
                predicate="repainted by",
                description="a paraphrase",
            ),
            RelationFound(
                source="Ada Korb",
                target="Orla Bridge",
                predicate="near",
                description="Orla Bridge stands.",
                strength=3,
            ),
        ],
    )
    first, second = to_extraction(of_bridge(TEXT, start=7), found).relations
    assert TEXT[first.start - 7 : first.end - 7].startswith("It was designed")
    assert TEXT[second.start - 7 : second.end - 7] == "Orla Bridge stands."
    assert second.weight == 3


def test_names_are_found_as_whole_words() -> None:
    assert find_name("Oslofjord and Oslo", "Oslo") == (14, 18)
    assert find_name("Oslofjord", "Oslo") is None
    assert find_name("在奥拉桥上", "奥拉桥") == (1, 4)
    assert find_name("Bank  of\nVelin", "Bank of Velin") == (0, 14)
    assert find_name("the Bank  of\nVelin", "THE BANK OF VELIN") == (0, 18)
    assert find_name("Oslofjord, oslo", "OSLO") == (11, 15)
    assert find_name("Ana’s Quay", "ana's quay") == (0, 10)
    assert find_name("Oslo", " ") is None


def test_triples_keep_their_line_and_the_weight_of_their_document() -> None:
    text = "Ada -[knows]-> Bob\nBob -[knows]-> Cy"
    bound = extract_triples(
        of_bridge(text, kind="triples"),
        {("d", "Ada -[knows]-> Bob"): 4.0, ("e", "Bob -[knows]-> Cy"): 9.0},
    )
    assert [(text[r.start : r.end], r.weight) for r in bound.relations] == [
        ("Ada -[knows]-> Bob", 4.0),
        ("Bob -[knows]-> Cy", 1.0),
    ]
    assert [m.name for m in bound.mentions] == ["Ada", "Bob", "Cy"]


OF_A_MILL = (
    "After she had left the firm, its founder wrote that the second hall would never pay. He was "
    "wrong: by 1911 it did."
)
CHUNK = chunk_of(OF_A_MILL, ordinal=1, title="Harrow Mill")
# Pronouns resolved, names from elsewhere in the document, descriptions in other words, an abstract
# thing.
SAID = Extracted.model_validate(
    {
        "entities": [
            {
                "name": "Harrow Mill",
                "kind": "organisation",
                "description": "A mill with two halls.",
            },
            {
                "name": "Rut Hald",
                "kind": "person",
                "description": "She left Harrow Mill before 1911.",
            },
            {"name": "Jonas Brandt", "kind": "person", "description": "Doubted the second hall."},
            {
                "name": "profitability",
                "kind": "concept",
                "description": "Reached by the second hall in 1911.",
            },
        ],
        "relations": [
            {
                "source": "Rut Hald",
                "target": "Harrow Mill",
                "predicate": "left",
                "strength": 7,
                "keys": ["careers"],
            },
            {
                "source": "Jonas Brandt",
                "target": "Harrow Mill",
                "predicate": "set up",
                "description": "He set it up.",
            },
            {
                "source": "Harrow Mill",
                "target": "profitability",
                "predicate": "reached in 1911",
                "strength": 5,
            },
        ],
    }
)


async def test_an_extraction_in_other_words_is_kept_whole() -> None:
    extract = Extract(Models.offline())
    written = Extract.output_format.write(ExtractGraph, {"found": SAID})
    extract.lm = DummyLM([{"found": written}], adapter=AsWritten())
    found = await extract.run("Harrow Mill", OF_A_MILL)
    assert found == SAID
    bound = to_extraction(CHUNK, found)
    assert [(one.name, one.kind, one.description) for one in bound.mentions] == [
        (one.name, one.kind, one.description) for one in SAID.entities
    ]
    assert [
        (one.source, one.predicate, one.target, one.weight, one.keys) for one in bound.relations
    ] == [(one.source, one.predicate, one.target, one.strength, one.keys) for one in SAID.relations]
    assert all(OF_A_MILL[one.start : one.end] for one in bound.relations), (
        "each points to a sentence"
    )


LONGEST_EXTRACTION = 420


def test_the_instruction_that_is_sent_with_each_passage_stays_short() -> None:
    system, *examples, asked = Extract(Models.offline()).module.prompt
    assert count_tokens([system.content])[0] <= LONGEST_EXTRACTION
    assert len(examples) == 4, "two, of two turns each"
    assert sum(count_tokens([turn.content for turn in examples])) <= LONGEST_EXTRACTION
    assert "[[ ## passage ## ]]" in asked.content
    assert "kinds" not in asked.content, (
        "what is the same in all calls stands in the system message"
    )


def read(folder: Path, *sources: Path) -> tuple[Runtime, IndexReport]:
    runtime = opened(folder / "ws")
    return runtime, asyncio.run(build_index(sources, IndexOptions(), runtime))


def well_formed(rows: Sequence[Mapping[str, object]]) -> Counter[tuple[str, ...]]:
    """The triples that must be found again, by document; names as the import keeps them."""
    facts = (
        tuple(one_line(clean(str(row.get(name, "")))) for name in ("document", *"spo"))
        for row in rows
    )
    return Counter(fact for fact in facts if all(fact))


def stored(runtime: Runtime) -> Counter[tuple[str, ...]]:
    """The statements of the generation by document, each as often as it was asserted."""
    found: Counter[tuple[str, ...]] = Counter()
    with runtime.workspace.read() as generation:
        owner = {
            chunk.id: chunk.document
            for chunk in generation.documents.chunks()
            if chunk.kind == "triples"
        }
        for extraction in generation.extractions.extractions(list(owner)):
            for one in extraction.relations:
                found[owner[one.chunk], one.source, one.predicate, one.target] += round(one.weight)
    return found


def fact(s: str, p: str, o: str, document: str = "d", **more: object) -> dict[str, object]:
    return {"s": s, "p": p, "o": o, "document": document, **more}


ODD = [
    fact("Orla Bridge", "has [two] of", "Arch"),
    fact("Orla Bridge", "[spans]", "River Tarn"),
    fact("a -[b", "joins", "c]-> d"),
    fact("桥", "位于", "“海岸”"),
    fact("Orla Bridge", "is", "Orla Bridge"),
    fact("x", "p", "y", document="e"),
    *[fact("a", "p", "b")] * 2,
    fact("a", "p", "b", weight=3),
]


def test_every_triple_is_there_with_its_document_and_weight_whatever_signs_it_holds(
    tmp_path: Path,
) -> None:
    runtime, report = read(tmp_path, write_rows(tmp_path / "facts.jsonl", ODD))
    assert report.dead_letters == 0
    assert stored(runtime) == well_formed(ODD) + Counter({("d", "a", "p", "b"): 2}), (
        "one row has the weight of three"
    )


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
def test_what_is_no_triple_is_a_dead_letter_with_its_line_and_reason(
    tmp_path: Path, row: dict[str, object], reason: str
) -> None:
    runtime, report = read(
        tmp_path, write_rows(tmp_path / "facts.jsonl", [fact("a", "p", "b"), row])
    )
    with runtime.workspace.read() as generation:
        (letter,) = generation.extractions.dead_letters()
    assert report.dead_letters == 1
    assert reason in letter.error
    assert letter.item.endswith("facts.jsonl:2")
    assert letter.remedy
    assert stored(runtime).total() == 1


# The scripted model leaves single words out where there are longer names, until it is asked again.
PASSAGE = "Ada Lovelace met Charles Babbage. Charles Babbage lived in London."


@pytest.fixture
async def models(model_server: Server) -> AsyncIterator[Models]:
    made = Models({"extract": ModelChoice("openai/scripted", model_server.base_url, "a key")})
    yield made
    await made.aclose()


async def test_a_round_adds_what_was_missed(models: Models, model_server: Server) -> None:
    found = await Extract(models, gleanings=1).run("T", PASSAGE)
    assert [entity.name for entity in found.entities] == [
        "Ada Lovelace",
        "Charles Babbage",
        "London",
    ]
    assert [(link.source, link.target) for link in found.relations] == [
        ("Ada Lovelace", "Charles Babbage"),
        ("Charles Babbage", "London"),
    ]
    asked = model_server.requests()[-1]
    assert asked["step"] == "glean"
    # A round is told what is known: names, and statements.
    assert '"Charles Babbage", "Ada Lovelace -[met]-> Charles Babbage"]' in str(asked["body"])


async def test_the_rounds_end_where_nothing_is_new(models: Models, model_server: Server) -> None:
    await Extract(models, gleanings=5).run("T", PASSAGE)
    assert {name: row["calls"] for name, row in model_server.stats()["steps"].items()} == {
        "extract": 1,
        "glean": 2,
    }
    assert [(step, spent.calls) for step, _, spent in models.meter.rows()] == [
        ("extract", 1),
        ("glean", 2),
    ]


async def test_a_failing_round_is_an_error_and_not_an_answer_that_found_little(
    models: Models, model_server: Server
) -> None:
    model_server.misbehave({"kind": "unauthorized", "step": "glean"})
    with pytest.raises(BadKey):
        await Extract(models, gleanings=1).run("T", PASSAGE)


def about(name: str, *said: str, kind: str = "person") -> list[EntityFound]:
    return [EntityFound(name=name, kind=kind, description=text) for text in said]


def link(target: str, *said: str, predicate: str = "met") -> list[RelationFound]:
    return [
        RelationFound(source="A", target=target, predicate=predicate, description=text)
        for text in said
    ]


def test_a_further_thing_said_of_a_known_name_or_statement_is_kept_beside_the_first() -> None:
    first = Extracted(
        entities=about("Ada", "She kept the light."), relations=link("B", "They met.")
    )
    more = Extracted(
        entities=about("Ada", "She was born in Velin."), relations=link("B", "A met B in Velin.")
    )
    merged = merge(first, more)
    assert [entity.description for entity in merged.entities] == [
        "She kept the light.",
        "She was born in Velin.",
    ]
    assert [one.description for one in merged.relations] == ["They met.", "A met B in Velin."]


@pytest.mark.parametrize(
    "again", ["She kept the light in Velin.", "she  kept the light", "the Light, in Velin!", ""]
)
def test_what_was_said_already_is_no_addition(again: str) -> None:
    first = Extracted(
        entities=about("Ada Lund", "She kept the light in Velin."),
        relations=link("B", "She kept the light in Velin."),
    )
    more = Extracted(
        entities=about("ADA  Lund", again), relations=link("b", again, predicate="Met")
    )
    assert merge(first, more) == first
    assert (
        merge(first, Extracted(entities=about("Ada Lund", "the li"))) != first
    )  # a part of a word is no part
