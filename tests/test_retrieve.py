"""Which passages does a question need: words, names, walks and chains of relations."""

import math

import numpy as np
import pytest

from storage.documents import Postings
from storage.graph import EntityChunkPairs
from storage.graph_records import Alias, Entity, Occurrence, Relation
from storage.records import Chunk, content_id
from tasks.retrieve.facts import GraphFacts
from tasks.retrieve.lexical import K1, B, Lexicon, chunk_terms
from tasks.retrieve.link import Names
from tasks.retrieve.search import SearchIndex, Walker, retrieve
from tasks.traverse.paths import shortest_paths

TEXTS = {
    "bridge": ("Orla Bridge", "Orla Bridge was designed by Tomas Reyd."),
    "reyd": ("Tomas Reyd", "Tomas Reyd was born in Velin."),
    "velin": ("Velin", "Velin is a town with salt works."),
    "salt": ("Salt", "Salt is mined in many places."),
    "桥": ("奥拉桥", "奥拉桥全长412米。"),
}
NAMES = ("Orla Bridge", "Tomas Reyd", "Velin", "Salt", "奥拉桥", "Agni (2004 film)", "Agni")
NAMED = {"bridge": (0, 1), "reyd": (1, 2), "velin": (2, 3), "salt": (3,), "桥": (4,)}


def chunk_of(document: str) -> Chunk:
    title, text = TEXTS[document]
    return Chunk(
        id=f"chk_{document}",
        document=document,
        ordinal=0,
        start=0,
        end=len(text),
        text=text,
        tokens=8,
        language="en",
        title=title,
    )


def postings_of(chunks: list[Chunk]) -> Postings:
    counts = [chunk_terms(chunk) for chunk in chunks]
    terms = sorted({term for count in counts for term in count})
    rows = [(c, terms.index(term), tf) for c, count in enumerate(counts) for term, tf in sorted(count.items())]
    columns = np.array(rows, np.int32).T
    return Postings([chunk.id for chunk in chunks], terms, columns[0], columns[1], columns[2])


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    chunks = [chunk_of(document) for document in TEXTS]
    entities = [Entity(id=f"ent_{number}", name=name, kind="thing") for number, name in enumerate(NAMES)]
    pairs = [(entity, c) for c, document in enumerate(TEXTS) for entity in NAMED[document]]
    entity_index, chunk_index = np.array(pairs, np.int32).T
    stored = EntityChunkPairs(
        [entity.id for entity in entities],
        [chunk.id for chunk in chunks],
        entity_index,
        chunk_index,
        np.ones(len(pairs), np.int32),
    )
    alias = Alias(entity="ent_1", name="T. Reyd", reason="initials")
    return SearchIndex(chunks, postings_of(chunks), stored, entities, [alias])


def test_bm25_is_the_published_formula() -> None:
    lexicon = Lexicon(2, ["x", "y"], np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([2, 1, 3]))
    idf_y = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    norm = K1 * (1 - B + B * 4 / 3)
    assert lexicon.scores_of(["y"]).tolist() == pytest.approx([0.0, idf_y * 3 * (K1 + 1) / (3 + norm)])


def test_a_term_that_occurs_nowhere_is_the_rarest(index: SearchIndex) -> None:
    rarest = max(index.lexicon.idf)
    assert index.lexicon.idf_of("zeppelin") > rarest
    assert index.lexicon.scores("zeppelin").tolist() == [0.0] * 5


def test_a_walk_reaches_the_second_hop_before_what_is_unconnected() -> None:
    walker = Walker(3, 2, np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]), np.ones(4))
    walked = walker.walk({0: 1.0}, {})
    assert walked[0] > walked[2] > 0
    assert walked[1] > walked[2]


@pytest.mark.parametrize(
    ("question", "linked"),
    [
        ("Who designed Orla Bridge?", {"Orla Bridge"}),
        ("who designed the ORLA BRIDGE?", {"Orla Bridge"}),
        ("Where was T. Reyd born?", {"Tomas Reyd"}),
        ("Where was Tomas Reid born?", {"Tomas Reyd"}),
        ("奥拉桥全长多少米?", {"奥拉桥"}),
        ("When was Agni (2004 film) made?", {"Agni (2004 film)"}),
        ("Who invented the telescope?", set()),
    ],
)
def test_names_in_a_question_are_linked(index: SearchIndex, question: str, linked: set[str]) -> None:
    assert {NAMES[link.entity] for link in index.link(question)} == linked


def test_a_request_word_is_no_name() -> None:
    names = Names([("Tell", 0), ("Velin", 1)])
    assert [link.entity for link in names.link("Tell me about Velin.")] == [1]


def test_the_second_hop_is_retrieved(index: SearchIndex) -> None:
    ranked = index.rank(index.scores("Where was the designer of Orla Bridge born?", {}), 3)
    assert [passage.document for passage in ranked][:2] == ["bridge", "reyd"]


async def test_documents_restrict_and_ties_keep_their_order(index: SearchIndex) -> None:
    found = await retrieve(index, ["Salt and Velin"], [{}], 5, ["velin"])
    assert [passage.document for passage in found] == ["velin"]
    again = [await retrieve(index, ["Salt and Velin"], [{}], 5) for _ in range(3)]
    assert again[0] == again[1] == again[2]


def test_the_nearest_vectors_count(index: SearchIndex) -> None:
    ranked = index.rank(index.scores("mineral extraction", {"chk_salt": 0.8}), 1)
    assert [passage.document for passage in ranked] == ["salt"]


def relation(source: str, target: str) -> Relation:
    return Relation(id=content_id("rel", source, target), source=source, target=target, predicate="knows")


def test_chains_avoid_hubs_and_stop_where_there_is_none() -> None:
    names = ["a", "b", "c", "hub", *(f"x{i}" for i in range(40)), "alone"]
    relations = [relation("a", "hub"), relation("hub", "c"), relation("a", "b"), relation("b", "c")]
    relations += [relation("hub", f"x{i}") for i in range(40)]
    degree = {name: sum(name in (r.source, r.target) for r in relations) for name in names}
    entities = [Entity(id=name, name=name, kind="thing", degree=degree[name]) for name in names]
    places = [Occurrence(item=r.id, chunk="chk", start=0, end=1) for r in relations]
    facts = GraphFacts(entities, relations, places)
    first = shortest_paths(facts, ["a"], ["c"])[0]
    assert [(step.source, step.target) for step in first] == [("a", "b"), ("b", "c")]
    assert shortest_paths(facts, ["a"], ["alone"]) == []
    assert {r.id for r in facts.inside(["chk"])} == {r.id for r in relations}
