"""Search: names are linked, passages are found by words, graph and vectors, and both levels of the
graph give tables.
"""

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from storage.records import Chunk
from tasks.citations import source_of
from tasks.load.rows import opening_subject
from tasks.retrieve.dual_levels import LevelScores, best_rows, graph_notes, stating_sources
from tasks.retrieve.lexical import K1, B, Lexicon
from tasks.retrieve.link import OTHER_NAME, Names
from tasks.retrieve.pagerank import Walker
from tasks.retrieve.passage_sets import (
    Bridges,
    SearchParts,
    Subjects,
    choose,
    shorter_names,
)
from tasks.retrieve.search import SearchIndex, retrieve
from tests.records import chunk_of
from tests.retrieve.corpus import NAMES, STATED, TEXTS, graph, passage
from tests.retrieve.passages import index_of

SEARCHED = {
    "Orla Bridge": (
        "Orla Bridge is a bridge in Velin. It was designed by Ada Korb and painted by Ned Cobb."
    ),
    "Ada Korb": "Ada Korb (1871–1940) was an engineer. She studied in Marl.",
    "Ned Cobb": "Ned Cobb was a boxer and a painter. He studied in Sunder.",
    "Velin": "Velin is a town with salt works. Ned Cobb was born in Velin.",
    "Salt": "Salt is mined in Velin and in many other places.",
    "The Long Pier": "The Long Pier is a pier in Marl. It was designed by Ida Sund.",
    "Ida Sund": "Ida Sund was an engineer. She studied in Velin.",
}
KINDS = {
    "Orla Bridge": "thing",
    "Ada Korb": "person",
    "Ned Cobb": "person",
    "Velin": "place",
    "Salt": "thing",
    "The Long Pier": "thing",
    "Ida Sund": "person",
    "Marl": "place",
    "Sunder": "place",
}
CHAIN = "Where did the designer of Orla Bridge study?"
EITHER = "Did the designers of Orla Bridge and The Long Pier study in the same town?"


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    return index_of(SEARCHED, KINDS)


async def found(index: SearchIndex, question: str, k: int = 8) -> list[str]:
    return [passage.document for passage in await retrieve(index, [question], [{}], k)]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        # Cobb's passage says "studied" as well.
        (CHAIN, {"Orla Bridge", "Ada Korb"}),
        (EITHER, {"Orla Bridge", "The Long Pier", "Ada Korb", "Ida Sund"}),
    ],
)
async def test_the_halves_of_a_chain_come_first(
    question: str, first: set[str], index: SearchIndex
) -> None:
    assert set(await found(index, question, len(first))) == first


async def test_without_the_graph_the_second_half_is_unknown(index: SearchIndex) -> None:
    assert set(await found(index.without_graph(), CHAIN, 2)) != {"Orla Bridge", "Ada Korb"}


async def test_every_passage_comes_once_with_its_own_score(index: SearchIndex) -> None:
    passages = await retrieve(index, [CHAIN], [{}], 50)
    first = [passage.document for passage in passages]
    assert len(first) == len(set(first))
    assert await found(index, CHAIN, 50) == first
    fits = index.asked(CHAIN, {}).base
    expected = [float(fits[index.position[passage.chunk]]) for passage in passages]
    assert [passage.score for passage in passages] == pytest.approx(expected, abs=1e-6)


async def test_the_first_of_a_further_query_comes_third(index: SearchIndex) -> None:
    passages = await retrieve(index, [CHAIN, "Who is Ida Sund?"], [{}, {}], 3)
    assert passages[2].document == "Ida Sund"


def test_a_passage_names_what_stands_within_its_names() -> None:
    names = [("Orla Bridge",), ("Chief Engineer Ada Korb",), ("Ada Korb",)]
    by_key, stands = Names(names).by_key, csr_matrix(np.array([[1, 1, 0], [0, 0, 1]], np.int32))
    chunks = [
        chunk_of("Orla Bridge is by Chief Engineer Ada Korb.", "Orla Bridge"),
        chunk_of("Ada Korb studied in Marl.", "Ada Korb"),
    ]
    about = Subjects(chunks, stands, names, by_key)
    bridges = Bridges(stands, about, shorter_names(by_key, len(names)))
    mentions, shared = bridges.ties([0, 1], [0])
    assert mentions.tolist() == [[False, True], [False, False]]
    assert shared[0, 1] > 0
    assert bridges.ties([0, 1], [1])[1][0, 1] == 0, "the question holds both names"


def test_what_a_chosen_passage_holds_is_no_gain_of_another() -> None:
    pairs = np.full((4, 4), -9.0)
    for (one, other), score in {(0, 1): 5.0, (1, 2): 2.0, (0, 3): 1.0}.items():
        pairs[one, other] = pairs[other, one] = score
    subject, rarity = np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.4, 0.4, 0.2])
    holds = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]], bool)
    assert choose(pairs, subject, holds, rarity) == [0, 1, 3, 2]
    assert choose(pairs, subject, np.zeros_like(holds), rarity) == [0, 1, 2, 3]


ALIKE = {
    "Marl": "Marl is a town. The mayor of Marl is Ada Korb. Marl has a bridge.",
    "Marl, Upland": (
        "Marl is a town in Upland. The mayor of Marl is Ned Cobb. Marl has a bridge, and Marl is "
        "old."
    ),
    "Valve A-100": "The valve opens at 3 bar. It is made of brass.",
    "Valve A-300": "The valve opens at 5 bar. It is made of brass.",
    "Valve A-1000": "The valve opens at 9 bar. It is made of brass.",
    "Orla Engine 1.2": "The engine was released in March. It needs 8 GB.",
    "Orla Engine 1.3": "The engine was released in June. It needs 8 GB.",
    "Orla Engine 1.2.1": (
        "Orla Engine 1.2 was good. The engine was released in July. Orla Engine 1.2 needs 8 GB."
    ),
    "Ida Sund": "Sund was an engineer. Sund was born in 1901.",
    "Olle Sund": "Sund was a brewer. Sund was born in 1877. Ida Sund was a sister.",
    "Report 2022": "Revenue rose to 5 million, more than in 2023.",
    "Report 2023": "Revenue rose to 7 million, more than in 2022.",
    "Kestrel": "The ship Kestrel was built in 1931.",
    "Kestrel II": "The ship Kestrel was built in 1951. Kestrel carried salt, and Kestrel was sold.",
    "Orla Bridge": "The director of the museum of Orla Bridge is Ann Reed.",
    "Orla Bridge Museum": (
        "Orla Bridge is famous. The director is Bo Lund. Orla Bridge has a museum."
    ),
    "Grey Tide (film)": "Grey Tide was made by Tomas Reyd.",
    "Grey Tide (novel)": "Grey Tide was made by Ada Marsh.",
    "Q": "Q is a language that was designed by Denis Ray.",
    "Q#": "Q# is a language that was designed by Ada Nils.",
}


@pytest.fixture(scope="module")
def alike() -> SearchIndex:
    kinds = dict.fromkeys([*ALIKE, "Ada Korb", "Ned Cobb", "Sund", "Upland"], "thing")
    return index_of(ALIKE, kinds)


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Who is the mayor of Marl?", "Marl"),
        ("Who is the mayor of Marl in Upland?", "Marl, Upland"),
        ("When does the valve A300 open?", "Valve A-300"),
        ("How much does version 1.2 of the Orla Engine need?", "Orla Engine 1.2"),
        ("When was Ida Sund born?", "Ida Sund"),
        ("When was the ship Kestrel built?", "Kestrel"),
        ("Who is the director of the Orla Bridge Museum?", "Orla Bridge Museum"),
        ("Who made the novel Grey Tide?", "Grey Tide (novel)"),
        ("Who designed the language Q?", "Q"),
    ],
)
async def test_a_title_named_in_whole_comes_before_similar_ones(
    alike: SearchIndex, question: str, title: str
) -> None:
    assert await found(alike, question, 1) == [title]


async def test_a_text_of_many_documents_comes_once_and_names_them() -> None:
    copies = {f"copy {n}": "The dam of Velin was closed in May by the office." for n in range(12)}
    index = index_of(copies | SEARCHED, KINDS)
    passages = await retrieve(
        index, ["When was the dam of Velin closed?", "Which dam was closed?"], [{}] * 2, 8
    )
    (shown,) = (passage for passage in passages if passage.document in copies)
    assert {shown.document, *shown.also} == set(copies)
    assert not any(passage.also for passage in passages if passage != shown)


@pytest.mark.parametrize("part", SearchParts.model_fields)
async def test_any_part_may_be_left_out(index: SearchIndex, part: str) -> None:
    partial = index.switched(SearchParts(**{part: False}))
    assert (await found(partial, CHAIN))[0] == "Orla Bridge"
    assert index.parts == SearchParts()


def test_bm25_is_the_published_formula(index: SearchIndex) -> None:
    lexicon = Lexicon(csr_matrix([[2, 0], [1, 3]]), ["x", "y"])
    idf_y = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    norm = K1 * (1 - B + B * 4 / 3)
    expected = [0.0, idf_y * 3 * (K1 + 1) / (3 + norm)]
    assert lexicon.scores_of(["y"]).tolist() == pytest.approx(expected)
    assert index.lexicon.idf_of("zeppelin") > max(index.lexicon.idf)


def test_a_walk_favours_what_is_connected_with_its_start() -> None:
    walker = Walker(csr_matrix([[1, 0], [1, 1], [0, 1]]))
    walked = walker.walk({0: 1.0}, {})
    assert walked[0] > walked[2] > 0
    assert walked[1] > walked[2]


def test_the_nearest_vectors_count(index: SearchIndex) -> None:
    ranked = index.rank(index.asked("mineral extraction", {"chk_Salt": 0.8}).base, 1)
    assert [passage.document for passage in ranked] == ["Salt"]


async def test_an_index_of_nothing_finds_nothing() -> None:
    assert await found(index_of({}, {}), CHAIN) == []
    assert await found(index_of({"Velin": "Velin is a town."}, {}), "Which town?") == ["Velin"]


async def test_triples_are_read_only_for_what_their_text_lacks() -> None:
    index = index_of(
        {**SEARCHED, "Pier log": "The pier was painted."},
        {**KINDS, "Sunder Works": "thing"},
        {
            "Orla Bridge": "Orla Bridge -[designed by]-> Ada Korb",
            "Pier log": "Long Pier -[steel from]-> Sunder Works",
        },
    )
    first = [passage.chunk for passage in await retrieve(index, [CHAIN], [{}], 4)]
    assert "chk_Orla Bridge" in first
    assert "chk_Orla Bridge/triples" not in first
    steel = await retrieve(index, ["Whose steel came from Sunder Works?"], [{}], 2)
    assert "chk_Pier log/triples" in [passage.chunk for passage in steel]


# --- linking --------------------------------------------------------------------------------------

INDEX, FACTS, LEVELS = graph()


def linked(question: str) -> list[str]:
    return [NAMES[link.entity] for link in INDEX.link(question)]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Was Tomas Reyd older than the Orla Bridge?", ["Tomas Reyd", "Orla Bridge"]),
        ("Where was Tomás Reyd's house?", ["Tomas Reyd"]),
        ("Where was T. Reyd born?", ["Tomas Reyd"]),
        ("was tomas reyd born in velin?", ["Tomas Reyd", "Velin"]),
        # The documents write "salt" and "changing it" small; after "film" they are titles.
        ("where is salt found?", []),
        ("who wrote of changed it?", ["Changed It"]),
        ("who made the film salt?", ["Salt (2010 film)"]),
        ("Tell me of agni (2004 film)", ["Agni (2004 film)"]),
        ("When was Agni made?", ["Agni", "Agni (2004 film)"]),
        ("Who invented the telescope?", []),
        # One slip of the pen is forgiven, but not another figure.
        ("Who designed Orla Brigde?", ["Orla Bridge"]),
        ("where was omas reyd born?", ["Tomas Reyd"]),
        ("Who was Louis XV?", []),
        # Chinese names are the longest and cut no Latin word.
        ("訓練混合結構路由器要多久？", ["混合结构路由器"]),
        ("LoRA 微调是什么？", ["LoRA微调"]),
        ("XLoRA微调是什么？", []),
    ],
)
def test_names_are_found_in_any_capitals_spelling_and_script(
    question: str, names: list[str]
) -> None:
    assert linked(question) == names


SIGNED = (
    "G",
    "G#",
    "G++",
    ".ORB",
    "Orb",
    "5 V",
    "-5 V",
    "Clause 3.1",
    "Clause 31",
    "Visual G",
    "Işıklı Köprü",
    "Kestel",
    "K+",
)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Who designed G#?", "G#"),
        ("Who designed G# (2.0)?", "G#"),
        ("Who made .ORB?", ".ORB"),
        ("Who made Orb?", "Orb"),
        ("What needs -5 V?", "-5 V"),
        ("Who wrote Clause 3.1?", "Clause 3.1"),
        ("What is Visual G#?", "G#"),
        ("Işıklı Köprü'yü kim yaptı?", "Işıklı Köprü"),
        ("Kestel'de kaç vinç var?", "Kestel"),
    ],
)
def test_signs_of_a_name_are_read_in_a_question(question: str, name: str) -> None:
    links = Names([(signed,) for signed in SIGNED]).link(question)
    assert [SIGNED[link.entity] for link in links] == [name]


def test_an_alias_counts_less_and_a_misspelt_name_has_candidates() -> None:
    assert [link.score for link in INDEX.link("Who is T. Reyd?")] == [OTHER_NAME]
    candidates = INDEX.names.candidates("Orla Brige")
    assert [NAMES[link.entity] for link in candidates] == ["Orla Bridge"]


SPELLINGS = [("Ada Korb",), ("Velin",), ("7",), ("Ada",)]
BY_KEY = {"ada korb": [0], "velin": [1], "7": [2], "ada": [3]}


@pytest.mark.parametrize(
    ("title", "text", "named", "about"),
    [
        ("Velin (town)", "It lies in the salt hills.", {0, 1}, (1,)),
        ("Velin", "A town.", set(), (1,)),
        ("7", "Ada Korb( born 1871) was an engineer from Velin.", {0, 1, 2, 3}, (0, 2)),
        ("7", "The engineer Ada Korb was born here.", {0, 2}, (2,)),
    ],
)
def test_a_passage_is_about_its_title_and_its_opening(
    title: str, text: str, named: set[int], about: tuple[int, ...]
) -> None:
    mentions = csr_matrix([[int(entity in named) for entity in range(len(SPELLINGS))]])
    assert Subjects([chunk_of(text, title=title)], mentions, SPELLINGS, BY_KEY)[0] == about


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Velin is a town with salt works.", "Velin"),
        ("Ada Korb( born 1871 in Velin (upper town)) was an engineer.", "Ada Korb"),
        ("Ned Cobb, also known as The Duke, was a boxer.", "Ned Cobb"),
        ('"When the Salt Runs Out" is a song by Ned Cobb.', "When the Salt Runs Out"),
        ("The film was released in Velin in 1961.", ""),
        ("In Velin there is a museum.", ""),
        ("Ada Korb met Ned Cobb.", ""),
        ("奥拉桥是一座桥。", ""),
    ],
)
def test_the_subject_of_an_opening(text: str, subject: str) -> None:
    assert opening_subject(text) == subject


# --- the two levels -------------------------------------------------------------------------------

QUESTION = "Where was the designer of Orla Bridge born?"


def low() -> LevelScores:
    near = LEVELS.near(QUESTION, {})
    return LEVELS.low(LEVELS.link(QUESTION, []), ["designer", "born"], near)


def high(key: str) -> LevelScores:
    return LEVELS.high([key], LEVELS.near(key, {}))


def read(level: LevelScores) -> list[str]:
    return [passage.document for passage in LEVELS.best(level, 5)]


def named(level: LevelScores) -> set[str]:
    return {NAMES[place] for place in level.entities.nonzero()[0]}


def stated(level: LevelScores) -> list[str]:
    return [LEVELS.relations[place].id for place in level.relations.nonzero()[0]]


def test_the_low_level_gives_what_is_named_and_one_hop_on() -> None:
    level = low()
    assert read(level) == ["bridge", "reyd"]
    assert named(level) == {"Orla Bridge", "Tomas Reyd"}
    assert stated(level) == ["rel_0"]


def test_the_high_level_needs_no_name() -> None:
    level = high("restored")
    assert stated(level) == ["rel_3"]
    assert named(level) == {"Fenn Mill", "Ilka Dorn"}
    assert read(level) == ["mill"]


def test_a_relation_is_found_by_its_further_keys() -> None:
    near = LEVELS.near("Fenn Mill", {})
    assert stated(LEVELS.high(["monuments"], near)) == ["rel_3"]
    assert stated(LEVELS.high(["zebra"], near)) == []


def test_every_relation_has_the_source_that_states_it() -> None:
    def stating(relation: str) -> list[Chunk]:
        return [passage(STATED[int(relation[-1])][3])]

    entities, relations = best_rows(low().with_high(high("restored")), LEVELS, 4_000)
    retrieved = [source_of(passage("bridge"))]
    sources, numbers = stating_sources(relations, FACTS, stating, retrieved, lambda *_: True)
    shown = {note.label: note.text for note in graph_notes(entities, relations, FACTS, numbers)}
    assert "| Orla Bridge | thing | Orla Bridge. |" in shown["Entities"]
    assert "| Orla Bridge | designed by | Tomas Reyd |" in shown["Relations"]
    # Stated by a passage that was not retrieved: its sentence joins as a source of its own.
    (restored,) = (one for one in relations if one.predicate == "restored by")
    number = numbers[restored.id]
    assert number is not None
    source = sources[number - 1]
    assert (source.document, source.text) == ("mill", TEXTS["mill"][1][source.start : source.end])
    assert f"[{number}]" in shown["Relations"]


def test_a_relation_is_found_by_the_meaning_of_its_keys_and_description() -> None:
    vectors = {"rel_3": np.array([0.0, 1.0], np.float32), "rel_0": np.array([1.0, 0.0], np.float32)}
    levels = graph(vectors)[2]
    theme = "conservation of heritage"  # none of these words stands in the relation
    near, elsewhere = levels.near(theme, {}), levels.near(theme, {}, ["bridge"])
    alike, far = (
        levels.alike(np.array([vector], np.float32)) for vector in ([0.2, 0.98], [-0.7, -0.7])
    )
    assert stated(levels.high([theme], near, alike)) == ["rel_3"]
    assert not stated(levels.high(["conservation"], elsewhere, alike))
    assert not stated(levels.high(["conservation"], near, far))
    assert not LEVELS.has_vectors
