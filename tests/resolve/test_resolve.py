"""Entity resolution: spellings join, homonyms stay apart, no order counts, and edits hold."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.engine.effort import LIMITS, Effort, Policy
from prompts.engine.embedders import Embedder, Floats
from prompts.engine.messages import rough_tokens
from prompts.extracted import ALIAS_PREDICATE
from prompts.resolve import PAIRS_IN_ONE_CALL, NameInContext, Pair, Resolve
from storage.graph import Edit, Subject
from storage.graph_records import Alias, Entity, Extraction, Mention, RelationMention
from storage.records import Chunk
from tasks.dedupe import LastResolution, dedupe
from tasks.resolve.assemble import ResolvedGraph
from tasks.resolve.keys import form, name_key
from tests.graphs import HeldExtractions, build_graph
from tests.query.steps import scripted, sent
from tests.records import chunk_of

Named = str | tuple[str, str]
Stated = tuple[str, str, str]
Read = tuple[Chunk, Extraction]


def read(
    document: str,
    names: Sequence[Named],
    said: Sequence[Stated] = (),
    title: str = "",
    ordinal: int = 0,
) -> Read:
    """A passage that mentions these names one after another, and states this of them."""
    chunk = chunk_of(
        "x" * 9, document, ordinal, id=f"chk_{document}_{ordinal}", title=title or document
    )
    pairs = [(name, "thing") if isinstance(name, str) else name for name in names]
    mentions = [
        Mention(chunk.id, name, kind, place, place + 1) for place, (name, kind) in enumerate(pairs)
    ]
    relations = [
        RelationMention(chunk=chunk.id, source=s, target=o, predicate=p, start=0, end=5)
        for s, p, o in said
    ]
    return chunk, Extraction(chunk=chunk.id, mentions=tuple(mentions), relations=tuple(relations))


def graph_from(*found: Read, edits: Sequence[Edit] = ()) -> ResolvedGraph:
    return build_graph([one for _, one in found], {part.id: part for part, _ in found}, edits=edits)


def graph_of(*documents: Sequence[Named], edits: Sequence[Edit] = ()) -> ResolvedGraph:
    """The graph of one passage a document with these names."""
    return graph_from(*(read(f"d{n}", names) for n, names in enumerate(documents)), edits=edits)


def together(graph: ResolvedGraph, first: str, second: str) -> bool:
    names = {entity.id: {entity.name} for entity in graph.entities}
    for alias in graph.aliases:
        names[alias.entity].add(alias.name)
    return any({first, second} <= group for group in names.values())


def meant(graph: ResolvedGraph, document: str, start: int) -> Entity:
    """What is mentioned at a place."""
    place = (f"chk_{document}_0", start)
    (item,) = {one.item for one in graph.entity_occurrences if (one.chunk, one.start) == place}
    return next(entity for entity in graph.entities if entity.id == item)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Tolkien, J. R. R.", "J.R.R. Tolkien"),
        ("President Abraham Lincoln", "Abraham Lincoln"),
        ("King Edward III", "Edward 3"),
        ("World War II", "World War Two"),
        ("Hask Steel Inc.", "Hask Steel"),
        ("張偉博士", "张伟"),
        ("鴻海精密工業股份有限公司", "鸿海精密工业"),
        ("ＡＢＣ　Institute", "ABC Institute"),
        ("G#", "g♯"),
        ("Mg²⁺", "Mg2+"),
        ("-3 bar", "−3 bar"),
        ("Hask + Korb", "Hask & Korb"),
        ("IŞIKLI KÖPRÜ", "ışıklı köprü"),
    ],
)
def test_one_name_in_two_spellings_is_one_entity(first: str, second: str) -> None:
    """Peers that merge by the exact string get two entities."""
    graph = graph_of((first,), (second,))
    assert len(graph.entities) == 1
    assert all(alias.reason for alias in graph.aliases)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Duke of Hask", "Earl of Hask"),
        ("☂", "☀"),
        ("Route 11", "Route 12"),
        ("Mr. Tarn", "Mrs. Tarn"),
        ("D", "D++"),
        (".ORB", "Orb"),
        ("Level 20.5", "Level 205"),
        ("10⁷", "107"),
        ("$40", "€40"),
        ("Velin C++11", "Velin C11"),
    ],
)
def test_other_names_have_other_forms(first: str, second: str) -> None:
    assert name_key(first) != name_key(second)
    assert form(first) != form(second)
    assert not together(graph_of((first,), (second,)), first, second)


@pytest.mark.parametrize("name", ["+", "#", "(+)", "...", "''", "\u0301", "\u200b"])
def test_a_name_of_signs_alone_joins_no_other(name: str) -> None:
    others = ("+ +", "++", "☂", "Ada", "5", "\u0302")
    graph = graph_of((name,), *((other,) for other in others))
    assert not any(together(graph, name, other) for other in others)


@pytest.mark.parametrize(
    ("found", "count"),
    [
        # GraphRAG groups by (title, type), keeps the first row, and loses the sources of the other.
        ([read("a", [("Kestrel", "place")]), read("b", [("KESTREL", "work")])], 1),
        ([read("a", [("Lady Anne Bay", "person")]), read("b", [("Ladyanne Bay", "place")])], 2),
        ([read("a", ["奥拉公司", "公司"], [("奥拉公司", ALIAS_PREDICATE, "公司")])], 2),
        ([read("a", ["Mercury (planet)"], title="Mercury (planet)"), read("b", ["Mercury"])], 1),
        ([read("a", ["Mercury (planet)", "Mercury (god)"]), read("b", ["Mercury"])], 3),
    ],
    ids=["two kinds", "kinds apart", "generic word", "the only qualified one", "one of two"],
)
def test_names_become_entities_and_no_source_is_lost(found: list[Read], count: int) -> None:
    graph = graph_from(*found)
    assert len(graph.entities) == count
    assert {place.chunk for place in graph.entity_occurrences} == {chunk.id for chunk, _ in found}
    mentions = sum(len(one.mentions) for _, one in found)
    assert sum(entity.mentions for entity in graph.entities) == mentions


def test_stated_aliases_join_everywhere() -> None:
    names = ["Coastal Hydrology Institute", "CHI", "海岸水文研究所"]
    said = [(names[0], ALIAS_PREDICATE, names[1]), (names[2], ALIAS_PREDICATE, names[0])]
    graph = graph_from(
        read("a", [(names[0], "organisation"), *names[1:]], said), read("b", ["CHI"])
    )
    assert len(graph.entities) == 1
    assert {alias.reason for alias in graph.aliases} == {
        "the text states that both names mean the same"
    }
    assert graph.relations == ()


def test_an_abbreviation_of_two_things_stays_apart() -> None:
    full = ["Asian Football League", "Arctic Fishing Lobby"]
    found = [read(name, [name, "AFL"], [(name, ALIAS_PREDICATE, "AFL")]) for name in full]
    assert len(graph_from(*found).entities) == 3


def test_a_qualified_title_says_what_its_bare_name_means() -> None:
    titles = ["Mercury (planet)", "Mercury (god)"]
    graph = graph_from(*(read(title, [title, "Mercury"]) for title in titles))
    assert [meant(graph, title, 1).name for title in titles] == titles


# --- a model's verdicts ---


class Letters(Embedder):
    """Names are near where they share pairs of letters."""

    max_tokens = 99
    width = 676

    def __init__(self) -> None:
        super().__init__("letters", None)

    def _encode(self, texts: list[str], query: bool) -> Floats:
        vectors = np.zeros((len(texts), self.width), np.float32)
        for row, text in enumerate(texts):
            letters = [ord(sign) - 97 for sign in text.lower() if "a" <= sign <= "z"]
            for one, other in pairwise(letters):
                vectors[row, 26 * one + other] = 1.0
        lengths: Floats = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return np.asarray(vectors / lengths, np.float32)


NEIGHBOUR = "Coast Survey of Hask"
ROBERTS = ("Robert Amos Castellan", "Robert Castellan")
SIMILAR = [read(f"d{n}", [(name, "person"), NEIGHBOUR]) for n, name in enumerate(ROBERTS)]
JUDGED = {"verdicts": [{"pair": 0, "reason": "a middle name", "same": True}]}


async def resolved(
    resolver: Resolve, found: Sequence[Read] = SIMILAR, before: LastResolution | None = None
) -> ResolvedGraph:
    held = HeldExtractions([one for _, one in found])
    return await dedupe(held, [chunk for chunk, _ in found], resolver, (), before, Letters())


async def test_a_model_decides_on_near_names_and_says_why() -> None:
    graph = await resolved(scripted(Resolve, JUDGED))
    assert together(graph, *ROBERTS)
    assert [alias.reason for alias in graph.aliases] == ["a model decided: a middle name"]


@pytest.mark.parametrize(
    ("answers", "letters"),
    [([{"verdicts": []}] * 2, []), (["no list"] * 3, [("resolve", True)])],
    ids=["left out", "refused"],
)
async def test_what_no_model_decides_is_not_joined(
    answers: list[object], letters: list[tuple[str, bool]]
) -> None:
    graph = await resolved(scripted(Resolve, *answers))
    assert not together(graph, *ROBERTS)
    assert [(letter.step, bool(letter.remedy)) for letter in graph.dead_letters] == letters


async def test_names_without_a_shared_neighbour_are_not_asked_about() -> None:
    resolver = scripted(Resolve, JUDGED)
    await resolved(resolver, [read("d0", [ROBERTS[0], "Velin"]), read("d1", [ROBERTS[1], "Hask"])])
    assert sent(resolver) == []


async def test_a_small_model_is_not_asked_about_near_names() -> None:
    resolver = scripted(Resolve, JUDGED)
    resolver.models = replace(resolver.models, policy=Policy(profile="small"))
    assert not together(await resolved(resolver), *ROBERTS)
    assert sent(resolver) == []


async def test_what_a_model_has_decided_is_not_asked_again() -> None:
    resolver = scripted(Resolve, JUDGED)
    first = await resolved(resolver)
    before = LastResolution(places=first.places, decisions=first.decisions)
    again = await resolved(resolver, before=before)
    assert len(sent(resolver)) == 1
    assert again.decisions == first.decisions
    assert (again.touched, again.entities) == ((), ()), "nothing has changed"


async def asked_about(pairs: Sequence[Pair], effort: Effort) -> str:
    """What a model is asked about these pairs."""
    verdicts = [{"pair": n, "reason": "one person", "same": True} for n in range(len(pairs))]
    resolver = scripted(Resolve, {"verdicts": verdicts}, effort=effort)
    await resolver.run(pairs)
    return sent(resolver)[0]


async def test_a_higher_effort_reads_more_of_what_is_said_of_a_name() -> None:
    said = "A long statement that goes on about this person. " * 40
    names = (NameInContext(name=name, said=(said, said)) for name in ("Ada Korb", "Ada Korp"))
    pair = Pair(first=next(names), second=next(names))
    sizes = list[int]()
    efforts: tuple[Effort, ...] = ("low", "medium", "high")
    for effort in efforts:
        sizes.append(len(await asked_about([pair], effort)))
        tokens = rough_tokens(await asked_about([pair] * PAIRS_IN_ONE_CALL, effort))
        assert tokens < 1.2 * LIMITS[effort].rate + 25 * PAIRS_IN_ONE_CALL  # 25: names, numbers
    assert sizes == sorted(set(sizes))


# --- edits ---


def merge(number: int, first: str, second: str) -> Edit:
    return Edit(id=number, action="merge", subject=Subject(name=first), other=Subject(name=second))


TARN = (("Tarn", "Old Mill"), ("Tarn", "Quay"))
NAMES = ("Hongkong", "Hong-Kong")
MERGE = merge(1, *NAMES)
SPLIT = Edit(id=2, action="split", subject=Subject(name=NAMES[0]), names=(NAMES[1],))


def test_a_merge_joins_and_keeps_the_first_name_and_the_reason() -> None:
    edit = merge(7, "Ada Korb", "The Keeper")
    graph = graph_of(("Ada Korb", "The Keeper"), ("The Keeper",), edits=[edit])
    (entity,) = graph.entities
    assert (entity.name, entity.mentions) == ("Ada Korb", 3)
    reason = "merged by hand (edit 7)"
    assert graph.aliases == (Alias(entity=entity.id, name="The Keeper", reason=reason),)


@pytest.mark.parametrize(
    ("edits", "joined"),
    [((), True), ((SPLIT,), False), ((MERGE, SPLIT), False), ((SPLIT, MERGE), True)],
)
def test_edits_apply_in_their_order_over_what_rules_join(
    edits: Sequence[Edit], joined: bool
) -> None:
    assert together(graph_of(NAMES[:1], NAMES[1:], edits=edits), *NAMES) is joined


def test_later_documents_join_a_merged_entity() -> None:
    before = graph_of(NAMES, edits=[MERGE])
    after = graph_of(NAMES, (NAMES[1], "Velin"), edits=[MERGE])
    assert {one.id for one in before.entities} < {one.id for one in after.entities}


@pytest.mark.parametrize(
    "edit",
    [
        merge(1, "Tarn", "Nobody"),
        Edit(id=2, action="change", subject=Subject(name="Nobody"), kind="place"),
        Edit(id=3, action="split", subject=Subject(name="Tarn"), documents=("d0", "d1")),
    ],
    ids=["merge with nothing", "change of nothing", "split of all"],
)
def test_an_edit_of_what_is_gone_or_of_all_changes_nothing(edit: Edit) -> None:
    assert graph_of(*TARN, edits=[edit]) == graph_of(*TARN)


def test_documents_say_which_of_two_things_of_a_name_is_meant() -> None:
    of_second = Subject(name="Tarn", documents=("d1",))
    split = Edit(id=1, action="split", subject=Subject(name="Tarn"), documents=("d1",))
    change = Edit(id=2, action="change", subject=of_second, kind="place")
    graph = graph_of(*TARN, edits=[split, change])
    assert [meant(graph, document, 0).kind for document in ("d0", "d1")] == ["thing", "place"]


# --- records ---


def test_statements_of_one_kind_become_one_weighted_relation() -> None:
    graph = graph_from(
        read("a", ["Ada", "Bob", "Cy"], [("Ada", "designed by", "Bob"), ("Ada", "knows", "Cy")]),
        read("b", ["Ada", "Bob"], [("Ada", "Designs by", "Bob")]),
    )
    assert sorted((r.count, r.weight) for r in graph.relations) == [(1, 0.5), (2, 1.0)]
    assert len(graph.relation_occurrences) == 3


SPELLINGS = "Ada Korb|Korb|Ada|K (x)|K (y)|K|AFL|奥拉桥|Korb House|Dr Korb".split("|")
ANY_NAME = st.sampled_from(SPELLINGS)
KINDS = st.sampled_from(["person", "thing", "place", "organisation"])
STATED = st.tuples(ANY_NAME, st.sampled_from(["knows", ALIAS_PREDICATE]), ANY_NAME)
PASSAGES = st.tuples(
    st.dictionaries(ANY_NAME, KINDS, min_size=1, max_size=6), st.lists(STATED, max_size=4)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PASSAGES, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_no_order_changes_the_graph_and_no_mention_is_lost(
    passages: list[tuple[dict[str, str], list[Stated]]], random: Random
) -> None:
    found = []
    for number, (names, said) in enumerate(passages):
        stated = [one for one in said if {one[0], one[2]} <= names.keys() and one[0] != one[2]]
        found.append(read(f"d{number // 2}", list(names.items()), stated, ordinal=number % 2))
    graph = graph_from(*found)
    assert graph == graph_from(*random.sample(found, len(found)))
    assert {(p.chunk, p.start) for p in graph.entity_occurrences} == {
        (m.chunk, m.start) for _, one in found for m in one.mentions
    }
    ids = {entity.id for entity in graph.entities}
    for relation in graph.relations:
        assert {relation.source, relation.target} <= ids
        assert relation.source != relation.target
        assert 0 < relation.weight <= 1
