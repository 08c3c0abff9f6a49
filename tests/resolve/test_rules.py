"""Entity resolution by rules: what joins, what stays apart, and what a person's edits change."""

import pytest

from prompts.resolve import NameInContext, Pair, Resolve, decide
from prompts.text.likeness import form
from storage.graph import Edit, Subject
from storage.graph_records import Alias, Extraction, Mention
from storage.records import Chunk
from tasks.dedupe import Before, build_graph, dedupe
from tasks.resolve.assemble import ResolvedGraph
from tasks.resolve.keys import name_key
from tests.query.steps import scripted, sent
from tests.records import chunk_of

Said = tuple[str, ...] | tuple[tuple[str, str], ...]


def found_in(*documents: Said) -> tuple[list[Extraction], dict[str, Chunk]]:
    """One passage a document with these names; a name stands alone or with its kind."""
    chunks, extractions = {}, []
    for number, names in enumerate(documents):
        chunk = chunk_of(document=f"d{number}", id=f"chk_{number}", title=f"Note {number}")
        named = [(name, "person") if isinstance(name, str) else name for name in names]
        mentions = tuple(
            Mention(chunk=chunk.id, name=name, kind=kind, start=place, end=place + 1)
            for place, (name, kind) in enumerate(named)
        )
        chunks[chunk.id] = chunk
        extractions.append(Extraction(chunk=chunk.id, mentions=mentions))
    return extractions, chunks


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


def test_a_left_out_middle_name_needs_the_same_company() -> None:
    names = ("Robert Amos Castellan", "Robert Castellan")
    graph = graph_of((names[0], BESIDE), (names[1], BESIDE))
    assert together(graph, *names)
    assert [one.reason for one in graph.aliases] == [f"similar names, both beside {BESIDE}"]
    assert not together(graph_of((names[0], BESIDE), (names[1], "Ada Korb")), *names)


def test_a_document_that_writes_both_spellings_means_two() -> None:
    names = ("Maren Hollister", "Maren Holister")
    assert together(graph_of((names[0], BESIDE), (names[1], BESIDE)), *names)
    assert not together(graph_of((*names, BESIDE)), *names)


def test_the_rule_weighs_what_is_said() -> None:
    def pair(first: str, second: str, *said: str) -> Pair:
        one, other = said or ("", "")
        return Pair(first=NameInContext(name=first, said=(one,)), second=NameInContext(name=second, said=(other,)))

    said = ("14 Quay Street, Hask, 212/555 -0147", "14 Quay St., Hask, 212-555-0147")
    assert decide(pair("Arno's Delicatessen", "Arno's Deli", *said)).same
    assert not decide(pair("Arno's Delicatessen", "Arno's Deli")).same
    assert not decide(pair("Hask Grill Room", "Hask Grill Bar", *said)).same, "two rooms with one telephone"
    assert not decide(pair("Arno's Deli", "Arno's Deli", said[0], "9 Mill Lane, Velin, 718-555-0199")).same
    assert decide(pair("Arno's Deli", "Arno's Deli")).same


SIMILAR = (("Robert Amos Castellan", BESIDE), ("Robert Castellan", BESIDE), ("Ada Korb", "Ida Moss", BESIDE))


async def test_a_model_decides_on_all_pairs_in_one_call_and_says_why() -> None:
    verdict = {"pair": 1, "reason": "father and son", "same": False}
    resolver = scripted(Resolve, *[{"verdicts": [verdict]}] * 2)
    extractions, chunks = found_in(*SIMILAR, ("Maren Hollister", "Kai Ott"), ("Maren Holister", "Kai Ott"))
    graph = await dedupe(extractions, list(chunks.values()), resolver)
    assert len(sent(resolver)) == 2, "one call for all pairs, and once more for what it left out"
    assert not together(graph, "Robert Amos Castellan", "Robert Castellan")
    assert together(graph, "Maren Hollister", "Maren Holister"), "what the model leaves out is decided by rule"


async def test_a_model_that_refuses_leaves_a_letter_and_the_rule_decides() -> None:
    resolver = scripted(Resolve, *["no list"] * 3)
    extractions, chunks = found_in(*SIMILAR)
    graph = await dedupe(extractions, list(chunks.values()), resolver)
    assert together(graph, "Robert Amos Castellan", "Robert Castellan")
    assert [(letter.step, bool(letter.remedy)) for letter in graph.dead_letters] == [("resolve", True)]


async def test_what_a_model_has_decided_is_not_asked_again() -> None:
    verdict = {"pair": 0, "reason": "father and son", "same": False}
    resolver = scripted(Resolve, *[{"verdicts": [verdict]}] * 2)
    extractions, chunks = found_in(*SIMILAR)
    first = await dedupe(extractions, list(chunks.values()), resolver)
    before = Before(places=first.places, documents=(), decisions=first.decisions)
    again = await dedupe(extractions, list(chunks.values()), resolver, before=before)
    assert len(sent(resolver)) == 1
    assert again.decisions == first.decisions
    assert (again.touched, again.entities) == ((), ()), "nothing has changed"


def test_a_document_of_triples_writes_its_names_in_full() -> None:
    extractions, chunks = found_in(("Maren Hollister", "Hollister", "Kai Ott"))
    assert together(build_graph(extractions, chunks), "Maren Hollister", "Hollister")
    listed = {name: chunk.model_copy(update={"kind": "triples"}) for name, chunk in chunks.items()}
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
    assert kinds == {"chk_0": "person", "chk_1": "place"}
