"""Does the filter judge as it should without a model: by the graph and the words, strongly or weakly, and say why?"""

import pytest

from prompts.engine.models import Models
from prompts.filter import Filter
from prompts.reading.claims import Desk
from prompts.reading.entail import Hypothesis, probability, signs_of, strength
from prompts.reading.lookup import look_up
from storage.records import FilterCounts
from tasks.evidence import Pool
from tasks.filter import MOST_SHOWN, Standing, disagreements, filter_passages, tier_of
from tasks.filter_signs import shares
from tasks.retrieve.switches import Switches
from tests.filter.passages import candidates_of, relevance_of, retrieved
from tests.retrieve.passages import index_of

DESIGNED = relevance_of("Who designed the Orla Bridge?", "Orla Bridge")
TOLD = "Orla Bridge was designed by Tomas Reyd."
BREAD = "Bread is baked from flour."
OFFLINE = Filter(Models.offline())


async def test_a_passage_is_explained_by_what_it_shares_and_says() -> None:
    found = await OFFLINE.run("strong", candidates_of(TOLD, BREAD), DESIGNED)
    assert [one.label for one in found.each] == ["entailment", "neutral"]
    assert [one.explanation for one in found.each] == [
        "names Orla Bridge; has 'designed'; says Tomas Reyd", "shares nothing with the question",
    ]  # fmt: skip


@pytest.mark.parametrize(("hypothesis", "label"), [("strong", "neutral"), ("weak", "entailment")])
async def test_what_helps_but_holds_no_answer_is_entailed_by_the_weak_hypothesis_alone(
    hypothesis: Hypothesis, label: str
) -> None:
    given = candidates_of(TOLD, "It stands over a river.", together=(0.995, 0.005))
    assert (await OFFLINE.run(hypothesis, given, DESIGNED)).each[1].label == label


def test_the_graph_counts_more_than_words_and_a_better_share_is_stronger() -> None:
    judge = relevance_of("Where was the designer of the Orla Bridge born?", "Orla Bridge")
    texts = ("Tomas Reyd came from Velin.", "The Orla Bridge was painted by the designer of a calendar.")
    near, far = signs_of("weak", candidates_of(*texts, together=(0.9, 0.001)), judge)
    assert strength("weak", near) > 0 > strength("weak", far)
    likely, unlikely = probability("weak", near), probability("weak", far)
    assert likely is not None
    assert unlikely is not None
    assert (likely > 0.9, unlikely < 0.1) == (True, True)


def test_a_value_that_others_give_too_speaks_for_a_passage() -> None:
    texts = (TOLD, "The Orla Bridge is the work of Tomas Reyd.", "The Orla Bridge is the work of Ana Korb.")
    first, second, third = signs_of("strong", candidates_of(*texts, together=(0.4, 0.3, 0.3)), DESIGNED)
    assert first.values[0] == second.values[0] == "Tomas Reyd"
    assert second.agreeing > third.agreeing == 0
    assert strength("strong", second) > strength("strong", third)


def test_shares_come_from_how_passages_hang_together() -> None:
    texts = {
        "Orla Bridge": "Orla Bridge was designed by Tomas Reyd.",
        "Tomas Reyd": "Tomas Reyd was born in Velin.",
        "Bread": "Bread is baked from flour in Harrow.",
        "Salt": "Salt is mined in Harrow.",
    }
    kinds = {"Orla Bridge": "place", "Tomas Reyd": "person", "Velin": "place", "Harrow": "place"}
    index = index_of(texts, kinds)
    chunks = [chunk.id for chunk in index.chunks]
    question = "Where was the designer of Orla Bridge born?"
    found = shares(index, question, {}, [*chunks, "chk_of_a_page"])
    assert list(found) == chunks
    assert sum(found.values()) == pytest.approx(1)
    assert found["chk_Tomas Reyd"] > 10 * found["chk_Salt"]
    assert shares(index, question, {}, chunks[:1]) == {}
    assert shares(index.switched(Switches(sets=False)), question, {}, chunks) == {}
    assert shares(index, "奥拉桥的设计者出生在哪里？", {}, chunks) == {}


def test_what_was_asked_is_kept_and_not_shared_between_switches() -> None:
    index = index_of({"Orla Bridge": TOLD, "Bread": BREAD}, {"Orla Bridge": "place"})
    asked = index.asked("Who designed Orla Bridge?", {})
    assert index.asked("Who designed Orla Bridge?", {}) is asked
    assert index.without_graph().asked("Who designed Orla Bridge?", {}).walked.sum() == 0
    assert index.asked("Who designed Orla Bridge?", {"chk_Bread": 0.5}) is not asked


# --- what is kept ------------------------------------------------------------------------------------------------


async def test_the_entailed_alone_are_kept_where_there_are_some() -> None:
    passages, pool = retrieved(BREAD, TOLD)
    kept = await filter_passages("strong", passages, pool, DESIGNED, OFFLINE)
    assert (kept.chunks, kept.entailed, kept.counts.tier) == (("chk_1",), ("chk_1",), "entailed")
    assert [(one.chunk, one.label) for one in kept.counts.judged] == [("chk_0", "neutral"), ("chk_1", "entailment")]


async def test_the_neutral_are_kept_where_nothing_is_entailed() -> None:
    passages, pool = retrieved(BREAD, "Salt is mined.")
    kept = await filter_passages("strong", passages, pool, DESIGNED, OFFLINE)
    assert (kept.chunks, kept.entailed, kept.counts.tier) == (("chk_0", "chk_1"), (), "neutral")


async def test_nothing_is_kept_where_all_contradict_and_the_answer_abstains() -> None:
    known = "Orla Bridge was designed by Ana Korb in the end."
    passages, pool = retrieved(TOLD.replace(".", " in the end."), known)
    kept = await filter_passages("strong", passages, pool, DESIGNED, OFFLINE, Standing(trusted=("chk_1",)))
    assert kept.chunks == ("chk_1",)
    alone = await filter_passages("strong", [], Pool((), ()), DESIGNED, OFFLINE)
    assert (alone.chunks, alone.counts.tier) == ((), "none")
    assert look_up(Desk(DESIGNED.ask, pool.inside(alone.chunks).evidence, (), DESIGNED)).support == "abstained"


@pytest.mark.parametrize(
    ("question", "entailed", "neutral", "tier"),
    [
        ("Who designed the Orla Bridge?", 2, 3, "entailed"),
        ("Who designed the Orla Bridge?", 0, 3, "neutral"),
        ("Who designed the Orla Bridge?", 0, 0, "none"),
        ("Which is older, Orla Bridge or Kestrel Bridge?", 2, 3, "entailed"),
        ("Which bridge is the longest?", 2, 3, "neutral"),
        ("Give me a summary of the bridges", 2, 3, "neutral"),
    ],
)
def test_tiers(question: str, entailed: int, neutral: int, tier: str) -> None:
    assert tier_of(relevance_of(question).ask, entailed, neutral) == tier


def test_whoever_names_the_documents_gets_all_of_them_read() -> None:
    assert tier_of(DESIGNED.ask, 2, 3, wide=True) == "neutral"


# --- what is told ------------------------------------------------------------------------------------------------

MIXED = (
    "Orla Bridge was designed by Tomas Reyd of Velin.",
    "Orla Bridge was designed by Ana Korb of Velin.",
    "The plans of Orla Bridge, designed in 1928, are the work of Tomas Reyd.",
)


async def test_a_settled_conflict_drops_the_worse_side_and_says_what_each_holds() -> None:
    passages, pool = retrieved(*MIXED)
    kept = await filter_passages("strong", passages, pool, DESIGNED, OFFLINE)
    assert (kept.chunks, kept.counts.contradiction) == (("chk_0", "chk_2"), 1)
    (told,) = kept.counts.conflicts
    assert (told.document, told.says, told.against_document, told.against_says) == (
        "d1",
        "Ana Korb",
        "d0",
        "Tomas Reyd",
    )
    assert told.settled
    assert told.explanation == kept.counts.judged[1].explanation == "says 'Ana Korb' where others say 'Tomas Reyd'"
    assert disagreements(kept.counts) == [
        "The sources disagree: d1 says 'Ana Korb', d0 says 'Tomas Reyd', which is better supported."
    ]


async def test_an_even_conflict_keeps_both_sides_and_is_told() -> None:
    passages, pool = retrieved(*MIXED[:2])
    kept = await filter_passages("strong", passages, pool, DESIGNED, OFFLINE)
    assert (kept.chunks, kept.counts.contradiction) == (("chk_0", "chk_1"), 0)
    assert disagreements(kept.counts) == [
        "The sources disagree: d0 says 'Tomas Reyd', d1 says 'Ana Korb'; nothing in them tells which is right."
    ]
    assert disagreements(kept.counts, chinese=True) == [
        "来源不一致：d0 说“Tomas Reyd”，d1 说“Ana Korb”，无法判断哪个正确。"
    ]


def test_without_a_conflict_nothing_is_told() -> None:
    assert disagreements(FilterCounts()) == []


async def test_the_explanations_are_bounded_and_what_contradicts_is_among_them() -> None:
    texts = [f"Orla Bridge has stone number {place}, laid by hand in winter." for place in range(20)]
    passages, pool = retrieved(*texts, *MIXED)
    kept = await filter_passages("strong", passages, pool, DESIGNED, OFFLINE)
    judged = kept.counts.judged
    assert len(judged) == MOST_SHOWN
    assert [one.chunk for one in judged if one.label == "contradiction"] == ["chk_21"]


async def test_pages_from_outside_are_judged_like_the_passages_of_the_index() -> None:
    passages, pool = retrieved("Velin has a harbour and a market.", TOLD)
    kept = await filter_passages("strong", passages, pool, DESIGNED, OFFLINE, Standing({"chk_0": 1.0}))
    assert kept.chunks == ("chk_1",)


async def test_passages_that_share_nothing_with_the_question_do_not_answer_it_however_they_stand() -> None:
    found = await OFFLINE.run("strong", candidates_of(BREAD, "Salt is mined.", together=(0.5, 0.5)), DESIGNED)
    assert [one.label for one in found.each] == ["neutral", "neutral"]
