"""The filter: a model's labels decide what goes on; without one every passage does."""

from dataclasses import replace

import pytest

from prompts.answer import NumberedText
from prompts.engine.models import Models
from prompts.filter import Filter, FilterRequest
from storage.answer_records import Passage
from tasks.filter import filter_passages
from tests.query.steps import scripted, sent, spared

QUESTION = "How long is the Tarn tunnel?"
TEXTS = {"tarn": "The bore measures 3.1 km.", "lake": "Hikers need three hours.", "old": "The Tarn tunnel, 2.4 km."}
PASSAGES = [Passage(document=name, title=name, chunk=f"c_{name}", score=1, text=text) for name, text in TEXTS.items()]


def request(all_read: bool = False) -> FilterRequest:
    passages = [NumberedText(n, one.title, one.text) for n, one in enumerate(PASSAGES, 1)]
    return FilterRequest(QUESTION, "strong", passages, lambda _: 1.0, all_read)


def judged(*labels: str) -> dict[str, object]:
    rows = [
        {
            "passage": n,
            "explanation": f"because {n}",
            "label": label,
            "against": 1 if label == "contradiction" else None,
        }
        for n, label in enumerate(labels, 1)
    ]
    return {"judgements": rows}


@pytest.mark.parametrize(
    ("labels", "kept", "tier"),
    [
        (("entailment", "neutral", "neutral"), ["c_tarn"], "entailed"),
        (("neutral", "entailment", "entailment"), ["c_lake", "c_old"], "entailed"),
        (("neutral", "neutral", "contradiction"), ["c_tarn", "c_lake"], "neutral"),
        (("contradiction", "contradiction", "contradiction"), [], "none"),
    ],
)
async def test_a_model_s_labels_decide(labels: tuple[str, ...], kept: list[str], tier: str) -> None:
    found = await filter_passages(request(), PASSAGES, scripted(Filter, judged(*labels)))
    assert (list(found.chunks), found.counts.tier) == (kept, tier)


async def test_a_contradiction_names_both_sides() -> None:
    found = await filter_passages(
        request(), PASSAGES, scripted(Filter, judged("entailment", "neutral", "contradiction"))
    )
    (one,) = found.counts.conflicts
    assert (one.document, one.against_document, one.explanation) == ("old", "tarn", "because 3")


async def test_a_passage_that_is_left_out_is_neutral_and_a_number_of_nothing_is_none() -> None:
    rows = judged("entailment")
    rows["judgements"] = [
        *rows["judgements"],
        {"passage": 9, "explanation": "?", "label": "entailment", "against": None},
    ]  # type: ignore[misc]
    found = await filter_passages(request(), PASSAGES, scripted(Filter, rows))
    assert (found.counts.entailment, found.counts.neutral) == (1, 2)


async def test_whole_passages_go_in_as_many_calls_as_they_need() -> None:
    step = scripted(Filter, judged("entailment"), judged("entailment"), judged("entailment"))
    step.models = replace(step.models, policy=type(step.policy).of("medium", given={"filter": 12}))
    await filter_passages(request(), PASSAGES, step)
    asked = sent(step)
    assert len(asked) == 3
    assert all(any(text in content for content in asked) for text in TEXTS.values())


async def test_where_the_answer_reads_everything_the_call_is_spared_but_not_at_high_effort() -> None:
    medium = scripted(Filter)
    found = await filter_passages(request(all_read=True), PASSAGES, medium)
    assert list(found.chunks) == ["c_tarn", "c_lake", "c_old"]
    assert "filter" in spared(medium)
    high = scripted(Filter, judged("neutral", "entailment", "neutral"), effort="high")
    assert list((await filter_passages(request(all_read=True), PASSAGES, high)).chunks) == ["c_lake"]


async def test_without_a_model_every_passage_goes_on_under_a_label() -> None:
    found = await filter_passages(request(), PASSAGES, Filter(Models.offline()))
    assert (len(found.chunks), found.counts.tier) == (3, "all")
    assert [one.label for one in found.counts.judged] == ["entailment", "neutral", "entailment"]
