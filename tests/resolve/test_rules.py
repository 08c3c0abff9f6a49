"""Entity resolution: aliases join, homonyms stay apart, nothing is lost, order never counts, and edits by hand hold."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.engine.calls import rough_tokens
from prompts.engine.effort import LIMITS, Effort
from prompts.extract import ALIAS_PREDICATE
from prompts.resolve import PAIRS_IN_ONE_CALL, NameInContext, Pair, Resolve
from prompts.text.likeness import form
from storage.graph import Edit, Subject
from storage.graph_records import Alias, Extraction, Mention, RelationMention
from storage.records import Chunk
from tasks.dedupe import LastResolution, dedupe
from tasks.resolve.assemble import ResolvedGraph
from tasks.resolve.keys import name_key
from tests.graphs import HeldExtractions, build_graph
from tests.query.steps import scripted, sent
from tests.records import chunk_of

Said = tuple[str, ...] | tuple[tuple[str, str], ...]
Named = str | tuple[str, str]
Stated = tuple[str, str, str]
Read = tuple[Chunk, Extraction]


def read(document: str, names: Sequence[Named], said: Sequence[Stated] = (), title: str = "", ordinal: int = 0) -> Read:
    """A passage that names these, and says this of them."""
    chunk = chunk_of("x" * 9, document, ordinal, id=f"chk_{document}_{ordinal}", title=title or document)
    pairs = enumerate([(name, "thing") if isinstance(name, str) else name for name in names])
    mentions = [Mention(chunk=chunk.id, name=name, kind=kind, start=n, end=n + 1) for n, (name, kind) in pairs]
    relations = [RelationMention(chunk=chunk.id, source=s, target=o, predicate=p, start=0, end=5) for s, p, o in said]
    return chunk, Extraction(chunk=chunk.id, mentions=tuple(mentions), relations=tuple(relations))


def found_in(*documents: Said) -> tuple[list[Extraction], dict[str, Chunk]]:
    """One passage a document with these names; a name stands alone, of a person, or with its kind."""
    pairs = [[(name, "person") if isinstance(name, str) else name for name in names] for names in documents]
    found = [read(f"d{number}", names) for number, names in enumerate(pairs)]
    return [one for _, one in found], {chunk.id: chunk for chunk, _ in found}


def graph_of(*documents: Said) -> ResolvedGraph:
    return build_graph(*found_in(*documents))


def together(graph: ResolvedGraph, first: str, second: str) -> bool:
    names = {entity.id: {entity.name} for entity in graph.entities}
    for alias in graph.aliases:
        names[alias.entity].add(alias.name)
    return any({first, second} <= group for group in names.values())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Tolkien, J. R. R.", "J.R.R. Tolkien"),
        ("President Abraham Lincoln", "Abraham Lincoln"),
        ("King Edward III", "Edward 3"),
        ("Hongkong", "Hong-Kong"),
        ("World War II", "World War Two"),
        ("張偉博士", "张伟"),
        ("頭髮", "头发"),
        ("軟體", "软体"),
        ("蘋果", "苹果"),
        ("鴻海精密工業股份有限公司", "鸿海精密工业"),
        ("ＡＢＣ　Institute", "ABC Institute"),
    ],
)
def test_one_name_in_two_writings_is_one_entity(first: str, second: str) -> None:
    """The peers merge by the exact string: these are two entities there."""
    graph = graph_of((first,), (second,))
    assert len(graph.entities) == 1
    assert all(alias.reason for alias in graph.aliases)


@pytest.mark.parametrize(("first", "second"), [("Hask Steel Inc.", "Hask Steel"), ("东海汽车股份有限公司", "东海汽车")])
def test_a_legal_form_is_no_part_of_the_name(first: str, second: str) -> None:
    graph = graph_of(((first, "organisation"),), ((second, "organisation"),))
    assert [alias.reason.partition(": ")[2] for alias in graph.aliases] == ["the legal form stands after the name"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Duke of Hask", "Earl of Hask"),
        ("General Hask Company", "Hask Company"),
        ("Boeing 7 47", "Boeing 747"),
        ("☂", "☀"),
        ("Route 11", "Route 12"),
    ],
)
def test_other_names_have_other_forms(first: str, second: str) -> None:
    assert name_key(first) != name_key(second)
    assert form(first)[0] != form(second)[0]
    assert not together(graph_of((first,), (second,)), first, second)


@pytest.mark.parametrize(
    ("first", "second", "kind", "beside"),
    [
        ("Apollo 11", "Apollo 12", "event", ("Moon", "NASA")),
        ("Henry IV of Orlen", "Henry VI of Orlen", "person", ("Orlen", "House of Dask")),
        ("Edmund Vale Sr.", "Edmund Vale Jr.", "person", ("Tarnow", "Vale Mill")),
        ("Mr. Tarn", "Mrs. Tarn", "person", ("Martha", "Peter")),
        ("Robert Castellan", "Ruth Castellan", "person", ("Coast Survey",)),
        ("North Harbour School", "South Harbour School", "organisation", ("Hask", "Ada Korb")),
        ("Orlen Museum of Art", "Orlen Museum of Modern Art", "organisation", ("Orlen",)),
    ],
)
def test_names_that_differ_in_what_tells_them_apart_stay_apart(
    first: str, second: str, kind: str, beside: tuple[str, ...]
) -> None:
    graph = graph_of(((first, kind), *((name, "thing") for name in beside)), ((second, kind), (beside[0], "thing")))
    assert not together(graph, first, second)


SIGNED = [
    ("D", "D++"),
    ("G#", "G++"),
    (".ORB", "Orb"),
    ("Grade B+", "Grade B−"),
    ("K+", "K"),
    ("Mg2+", "Mg2"),
    ("J*", "J"),
    ("Tidepad++", "Tidepad"),
    ("Level 20.5", "Level 205"),
    ("r2.4", "r24"),
    ("Clause 7.2", "Clause 72"),
    ("+3 bar", "-3 bar"),
    ("y < 9", "y > 9"),
    ("y ≤ 9", "y ≥ 9"),
    ("10⁷", "107"),
    ("5 %", "5"),
    ("$40", "€40"),
    ("K-300", "300"),
    ("A/K", "K"),
    ("Velin C++11", "Velin C11"),
]
ONE_NAME = [
    ("G#", "g♯"),
    ("Mg²⁺", "Mg2+"),
    ("A-", "A−"),
    ("-3 bar", "−3 bar"),
    ("y<9", "y < 9"),
    ("Kestrel®", "Kestrel"),
    ("Node.orb", "NODE.ORB"),
    ("H.O.S.", "HOS"),
    ("Hask + Korb", "Hask & Korb"),
    ("The K-Team", "K Team"),
    ("IŞIKLI KÖPRÜ", "ışıklı köprü"),
]


@pytest.mark.parametrize(("first", "second"), SIGNED)
def test_a_sign_that_carries_meaning_tells_two_names_apart(first: str, second: str) -> None:
    beside = ("Hask", "Velin")
    assert not together(graph_of((first, *beside), (second, *beside)), first, second)


@pytest.mark.parametrize(("first", "second"), ONE_NAME)
def test_a_sign_in_another_writing_is_the_same(first: str, second: str) -> None:
    assert len(graph_of(((first, "thing"),), ((second, "thing"),)).entities) == 1


@pytest.mark.parametrize("name", ["+", "-", "#", "(+)", "...", "''", "\u0301", "\u200b", "∅"])
def test_a_name_of_signs_alone_joins_no_other(name: str) -> None:
    others = ("+ +", "++", "☂", "Ada", "5", "\u0302")
    graph = graph_of((name,), *((other,) for other in others))
    assert not any(together(graph, name, other) for other in others)


def test_a_title_that_a_comma_qualifies_is_meant_by_the_bare_name() -> None:
    graph = graph_from(
        read("a", ["Marl, Upland", "Marl"], title="Marl, Upland"),
        read("b", ["Marl, Lowland", "Marl"], title="Marl, Lowland"),
        read("c", ["Marl"], title="Marl"),
    )
    assert [meant(graph, part, 1) for part in "ab"] == ["Marl, Upland", "Marl, Lowland"]
    assert meant(graph, "c", 0) == "Marl"


def test_names_of_one_form_but_two_kinds_stay_apart() -> None:
    assert len(graph_of((("Lady Anne Bay", "person"),), (("Ladyanne Bay", "place"),)).entities) == 2


@pytest.mark.parametrize(
    ("short", "full", "kind"),
    [
        ("R. Castellan", "Robert Castellan", "person"),
        ("J. R. R. Tolmay", "John Ronald Reuel Tolmay", "person"),
        ("President Castellan", "Robert Castellan", "person"),
        ("OBC", "Orla Bridge Company", "organisation"),
        ("王教授", "王建国", "person"),
    ],
)
def test_a_short_form_is_the_only_full_name_of_its_document(short: str, full: str, kind: str) -> None:
    assert together(graph_of(((short, kind), (full, kind))), short, full)
    apart = graph_of(((short, kind),), ((full, kind),))
    assert not together(apart, short, full), "another document may mean somebody else"


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("Caroline", "Caroline's Husband"),
        ("Mr. Tarn", "Mrs. Tarn"),
        ("The Boy", "Boy Singing"),
        ("Father", "Old Father"),
        ("R. Castellan", "Ruth Castellan and Sons"),
    ],
)
def test_what_is_no_name_or_another_ones_shortens_nothing(short: str, full: str) -> None:
    assert not together(graph_of((short, full)), short, full)
    two = ("R. Castellan", "Robert Castellan", "Ruth Castellan")
    assert len(graph_of(two).entities) == 3, "initials that two persons have are nobody's"


BESIDE = "Coast Survey of Hask"


SIMILAR = (("Robert Amos Castellan", BESIDE), ("Robert Castellan", BESIDE), ("Ada Korb", "Ida Moss", BESIDE))


async def test_a_model_decides_on_all_pairs_in_one_call_and_says_why() -> None:
    verdict = {"pair": 1, "reason": "father and son", "same": False}
    resolver = scripted(Resolve, *[{"verdicts": [verdict]}] * 2)
    extractions, chunks = found_in(*SIMILAR, ("Maren Hollister", "Kai Ott"), ("Maren Holister", "Kai Ott"))
    graph = await dedupe(HeldExtractions(extractions), list(chunks.values()), resolver)
    assert len(sent(resolver)) == 2, "one call for all pairs, and once more for what it left out"
    assert not together(graph, "Robert Amos Castellan", "Robert Castellan")
    assert not together(graph, "Maren Hollister", "Maren Holister"), "what the model leaves out is not joined"


async def test_a_model_that_refuses_leaves_a_letter_and_nothing_is_joined() -> None:
    resolver = scripted(Resolve, *["no list"] * 3)
    extractions, chunks = found_in(*SIMILAR)
    graph = await dedupe(HeldExtractions(extractions), list(chunks.values()), resolver)
    assert not together(graph, "Robert Amos Castellan", "Robert Castellan")
    assert [(letter.step, bool(letter.remedy)) for letter in graph.dead_letters] == [("resolve", True)]


async def test_what_a_model_has_decided_is_not_asked_again() -> None:
    verdict = {"pair": 0, "reason": "father and son", "same": False}
    resolver = scripted(Resolve, *[{"verdicts": [verdict]}] * 2)
    extractions, chunks = found_in(*SIMILAR)
    first = await dedupe(HeldExtractions(extractions), list(chunks.values()), resolver)
    before = LastResolution(places=first.places, documents=(), decisions=first.decisions)
    again = await dedupe(HeldExtractions(extractions), list(chunks.values()), resolver, before=before)
    assert len(sent(resolver)) == 1
    assert again.decisions == first.decisions
    assert (again.touched, again.entities) == ((), ()), "nothing has changed"


def test_a_document_of_triples_writes_its_names_in_full() -> None:
    extractions, chunks = found_in(("Maren Hollister", "Hollister", "Kai Ott"))
    assert together(build_graph(extractions, chunks), "Maren Hollister", "Hollister")
    listed = {name: replace(chunk, kind="triples") for name, chunk in chunks.items()}
    assert not together(build_graph(extractions, listed), "Maren Hollister", "Hollister")


def edited(edits: tuple[Edit, ...], *documents: Said) -> ResolvedGraph:
    return build_graph(*found_in(*documents), edits=edits)


def merge(number: int, first: str, second: str) -> Edit:
    return Edit(id=number, action="merge", subject=Subject(name=first), other=Subject(name=second))


TARN = (("Tarn", "Old Mill"), ("Tarn", "Quay"))


def test_a_merge_joins_and_keeps_the_first_name_and_the_reason() -> None:
    graph = edited((merge(7, "Ada Korb", "The Keeper"),), ("Ada Korb", "The Keeper"), ("The Keeper",))
    (entity,) = graph.entities
    assert (entity.name, entity.mentions) == ("Ada Korb", 3)
    assert graph.aliases == (Alias(entity=entity.id, name="The Keeper", reason="merged by hand (edit 7)"),)


NAMES = ("Hongkong", "Hong-Kong")
GONE = (merge(1, "Ada Korb", "Nobody"), Edit(id=2, action="change", subject=Subject(name="Nobody"), kind="place"))
BOTH = (merge(1, *NAMES), Edit(id=2, action="split", subject=Subject(name=NAMES[0]), names=(NAMES[1],)))


def test_edits_apply_in_their_order_and_a_split_undoes_what_a_rule_joined() -> None:
    said = [(name,) for name in NAMES]
    found = [together(edited(edits, *said), *NAMES) for edits in ((), BOTH[1:], BOTH, BOTH[::-1])]
    assert found == [True, False, False, True]
    before, after = edited(BOTH[:1], NAMES), edited(BOTH[:1], NAMES, (NAMES[1], "Velin"))
    assert {one.id for one in before.entities} < {one.id for one in after.entities}, "later documents join them"


def test_an_edit_of_what_is_gone_or_of_all_changes_nothing() -> None:
    assert edited(GONE, ("Ada Korb",)) == edited((), ("Ada Korb",))
    edit = Edit(id=3, action="split", subject=Subject(name="Tarn"), documents=("d0", "d1"))
    assert edited((edit,), *TARN) == edited((), *TARN)


def test_documents_say_which_of_two_things_of_a_name_is_meant() -> None:
    split = Edit(id=1, action="split", subject=Subject(name="Tarn"), documents=("d1",))
    change = Edit(id=2, action="change", subject=Subject(name="Tarn", documents=("d1",)), kind="place")
    graph = edited((split, change), *TARN)
    kinds = {
        place.chunk: next(one.kind for one in graph.entities if one.id == place.item)
        for place in graph.entity_occurrences
        if place.start == 0
    }
    assert kinds == {"chk_d0_0": "person", "chk_d1_0": "place"}


def graph_from(*found: Read) -> ResolvedGraph:
    return build_graph([one for _, one in found], {part.id: part for part, _ in found})


def meant(graph: ResolvedGraph, document: str, start: int) -> str:
    """The name of what is mentioned there."""
    (item,) = {p.item for p in graph.entity_occurrences if (p.chunk, p.start) == (f"chk_{document}_0", start)}
    return next(entity.name for entity in graph.entities if entity.id == item)


@pytest.mark.parametrize(
    ("found", "count"),
    [
        # GraphRAG groups by (title, type) and keeps the first row: the other row's sources are lost there.
        ([read("a", [("Kestrel", "place")]), read("b", [("KESTREL", "work")])], 1),
        ([read("a", ["奥拉公司", "公司"], [("奥拉公司", ALIAS_PREDICATE, "公司")])], 2),
        (
            [
                read(
                    "a",
                    [("Ada Korb", "person"), ("Korb House", "organisation")],
                    [("Ada Korb", ALIAS_PREDICATE, "Korb House")],
                )
            ],
            2,
        ),
        ([read("a", ["Mercury (planet)"], title="Mercury (planet)"), read("b", ["Mercury"])], 1),
        ([read("a", ["MV Kestrel", ("Kestrel Bridge", "place"), "Kestrel"])], 3),
    ],
    ids=[
        "two kinds",
        "a generic word",
        "different kinds",
        "the only qualified thing",
        "a last word that begins a name",
    ],
)
def test_names_mean_so_many_things_and_no_source_is_lost(found: list[Read], count: int) -> None:
    graph = graph_from(*found)
    assert len(graph.entities) == count
    assert {place.chunk for place in graph.entity_occurrences} == {chunk.id for chunk, _ in found}
    assert sum(entity.mentions for entity in graph.entities) == sum(len(one.mentions) for _, one in found)


def test_stated_aliases_join_everywhere() -> None:
    names = ["Coastal Hydrology Institute", "CHI", "海岸水文研究所"]
    said = [(names[0], ALIAS_PREDICATE, names[1]), (names[2], ALIAS_PREDICATE, names[0])]
    graph = graph_from(read("a", [(names[0], "organisation"), *names[1:]], said), read("b", ["CHI"]))
    assert len(graph.entities) == 1
    assert {(alias.name, alias.reason) for alias in graph.aliases} >= {
        ("海岸水文研究所", "the text states that both names mean the same")
    }
    assert graph.relations == ()


def test_an_abbreviation_of_two_things_stays_apart() -> None:
    full = {"a": "Asian Football League", "b": "Arctic Fishing Lobby"}
    found = [read(part, [name, "AFL"], [(name, ALIAS_PREDICATE, "AFL")]) for part, name in full.items()]
    graph = graph_from(*found, read("c", ["AFL"]))
    assert (meant(graph, "a", 1), meant(graph, "b", 1), meant(graph, "c", 0)) == (*full.values(), "AFL")


HOMONYMS = ("Tobias Wren (engineer)", "Tobias Wren (brewer)")
FACTS = read(
    "facts",
    [*HOMONYMS, "Kestrel Bridge", "Agnes Wren", "Gullstone Brewery"],
    [
        (HOMONYMS[0], "designed", "Kestrel Bridge"),
        (HOMONYMS[0], "father of", "Agnes Wren"),
        (HOMONYMS[1], "brews at", "Gullstone Brewery"),
    ],
)


@pytest.mark.parametrize(
    ("company", "title", "name"),
    [
        ("Kestrel Bridge", "", HOMONYMS[0]),
        ("Gullstone Brewery", "", HOMONYMS[1]),
        ("Port Hask", "", "Tobias Wren"),
        ("Gullstone Brewery", HOMONYMS[0], HOMONYMS[0]),
    ],
)
def test_a_homonym_goes_to_the_title_or_the_one_whose_neighbours_are_named(company: str, title: str, name: str) -> None:
    graph = graph_from(FACTS, read("a", ["Tobias Wren", company, ("Wren", "person")], title=title))
    assert meant(graph, "a", 0) == name
    assert not title or meant(graph, "a", 2) == name


def test_an_alias_of_a_homonym_follows_it_in_its_document() -> None:
    same = [("雷恩", ALIAS_PREDICATE, "Tobias Wren")]
    beside = {"a": "Kestrel Bridge", "b": "Gullstone Brewery"}
    graph = graph_from(FACTS, *(read(part, ["雷恩", "Tobias Wren", name], same) for part, name in beside.items()))
    assert (meant(graph, "a", 0), meant(graph, "b", 0)) == HOMONYMS


def test_statements_of_one_kind_become_one_weighted_relation() -> None:
    graph = graph_from(
        read("a", ["Ada", "Bob", "Cy"], [("Ada", "designed by", "Bob"), ("Ada", "knows", "Cy")]),
        read("b", ["Ada", "Bob"], [("Ada", "Designs by", "Bob")]),
    )
    assert sorted((r.count, r.weight) for r in graph.relations) == [(1, 0.5), (2, 1.0)]
    assert len(graph.relation_occurrences) == 3


ANY_NAME = st.sampled_from(["Ada Korb", "Korb", "Ada", "K (x)", "K (y)", "K", "AFL", "奥拉桥", "Korb House", "Dr Korb"])
KINDS = st.sampled_from(["person", "thing", "place", "organisation"])
PREDICATES = st.sampled_from(["knows", ALIAS_PREDICATE])
CONTENTS = st.lists(
    st.tuples(
        st.lists(st.tuples(ANY_NAME, KINDS), min_size=1, max_size=6),
        st.lists(st.tuples(ANY_NAME, PREDICATES, ANY_NAME), max_size=4),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=60, deadline=None)
@given(CONTENTS, st.integers(0, 99))
def test_no_order_changes_the_graph_and_no_mention_is_lost(
    contents: list[tuple[list[tuple[str, str]], list[Stated]]], seed: int
) -> None:
    found = []
    for number, (names, said) in enumerate(contents):
        known = dict(names)
        stated = [one for one in said if {one[0], one[2]} <= known.keys() and one[0] != one[2]]
        found.append(read(f"d{number // 2}", list(known.items()), stated, ordinal=number % 2))
    graph = graph_from(*found)
    assert graph == graph_from(*random.Random(seed).sample(found, len(found)))  # noqa: S311 -- a shuffle, no secret
    assert {(p.chunk, p.start) for p in graph.entity_occurrences} == {
        (m.chunk, m.start) for _, one in found for m in one.mentions
    }
    ids = {entity.id for entity in graph.entities}
    assert all({r.source, r.target} <= ids and r.source != r.target and 0 < r.weight <= 1 for r in graph.relations)


async def test_a_higher_effort_reads_more_of_what_is_said_of_a_name() -> None:
    said = "A long statement that goes on about this person. " * 40
    first, second = (NameInContext(name=name, said=(said, said)) for name in ("Ada Korb", "Ada Korp"))
    both = Pair(first=first, second=second)
    efforts: list[Effort] = ["low", "medium", "high"]
    sizes = list[int]()
    for effort in efforts:
        sizes.append(len(await asked_about([both], effort)))
        call = await asked_about([both] * PAIRS_IN_ONE_CALL, effort)
        assert rough_tokens(call) < 1.2 * LIMITS[effort].rate + 25 * PAIRS_IN_ONE_CALL, "names and numbers beside it"
    assert sizes == sorted(set(sizes))


async def asked_about(pairs: Sequence[Pair], effort: Effort) -> str:
    """What a model is asked about so many pairs."""
    verdicts = [{"pair": number, "reason": "one person", "same": True} for number in range(len(pairs))]
    resolver = scripted(Resolve, {"verdicts": verdicts}, effort=effort)
    await resolver.run(pairs)
    return sent(resolver)[0]
