"""The sample corpus on models: each way to name one, roles apart, vectors of a server, what one
document more costs.
"""

import json
from pathlib import Path

import pytest

from storage.answer_records import Answer
from storage.graph_records import Report
from storage.run_records import IndexReport
from tests.copying import corpus_in
from tests.models.running import Place
from tests.workspaces import write_rows

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTIONS = [
    json.loads(line)
    for line in (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
ROWS = (
    {
        "id": "bridge",
        "title": "Orla Bridge",
        "text": "Orla Bridge was designed by Tomas Reyd. It opened in 1931.",
    },
    {
        "id": "reyd",
        "title": "Tomas Reyd",
        "text": "Tomas Reyd was born in Velin Town. Tomas Reyd met Ana Korb.",
    },
    {
        "id": "quay",
        "title": "Velin Quay",
        "text": "Velin Quay was built by Ana Korb in Velin Town. It cost 4 million.",
    },
)
QUESTION = "Who designed Orla Bridge?"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "docs.jsonl", ROWS)


def is_sound(answer: Answer) -> bool:
    """Whether citations were checked against the text and what the models did was counted."""
    usage = answer.usage
    steps = usage.by_step.values()
    return (
        all(citation.verified for citation in answer.citations)
        and usage.calls == sum(step.calls for step in steps)
        and usage.input_tokens == sum(step.input_tokens for step in steps)
        and usage.output_tokens == sum(step.output_tokens for step in steps)
    )


async def test_the_sample_corpus_and_its_questions_on_models_alone(place: Place) -> None:
    report = await place.index(EXAMPLES / "corpus")
    indexed = place.server.stats()
    assert report.dead_letters == 0
    assert report.skipped == ()
    assert report.usage.calls == indexed["calls"]
    assert report.usage.input_tokens == indexed["prompt_tokens"]
    assert report.usage.output_tokens == indexed["completion_tokens"]
    assert {row.step: row.calls for row in place.usage()} == {
        step: counted["calls"] for step, counted in indexed["steps"].items()
    }
    assert {row.step: row.input_tokens for row in place.usage()} == {
        step: spent.input_tokens for step, spent in report.usage.by_step.items()
    }
    answers = await place.ask(*(row["question"] for row in QUESTIONS))
    assert len(answers) == 12
    for answer in answers:
        assert is_sound(answer), answer
        assert answer.citations
        assert {"answer", "reduce"} & set(answer.usage.by_step)
    assert (
        sum(answer.usage.calls for answer in answers)
        == place.server.stats()["calls"] - indexed["calls"]
    )
    assert place.server.stats()["others"] == []
    assert set(place.server.stats()["kinds"]) == {"answered"}


@pytest.mark.parametrize(
    "of", [("extract",), ("answer", "filter"), ("report", "summarize", "route")]
)
async def test_roles_on_a_model_beside_roles_offline(
    of: tuple[str, ...], place: Place, source: Path
) -> None:
    roles = {
        role: {"model": "openai/m", "base_url": place.server.base_url, "api_key": "k"}
        for role in of
    }
    settings = {"lm": "offline", "lm_base_url": None, "lm_api_key": None, "roles": roles}
    report = await place.index(source, **settings)
    (answer,) = await place.ask(QUESTION, **settings)
    assert answer.citations
    assert is_sound(answer)
    called = {*report.usage.by_step, *answer.usage.by_step}
    assert called <= set(of)
    assert set(place.server.stats()["steps"]) == called
    assert called or "report" in of


async def test_calls_for_vectors_are_in_the_ledger_of_the_run_and_of_each_question(
    place: Place, source: Path
) -> None:
    settings = {"embedding": "openai/e", "embedding_base_url": place.server.base_url}
    report = await place.index(source, **settings)
    with place.runtime(**settings).workspace.read() as generation:
        assert len(generation.vectors.windows()) == len(ROWS)
        assert str(generation.vectors.model()).startswith("e@127.0.0.1")
    counted = place.server.stats()["steps"]["embeddings"]
    entered = report.usage.by_step["embed"]
    assert (entered.calls, entered.input_tokens, entered.output_tokens) == (
        counted["calls"],
        counted["prompt_tokens"],
        0,
    )
    assert (entered.cached_calls, entered.cost_usd) == (0, None)
    assert entered.seconds > 0
    (row,) = [row for row in place.usage() if row.step == "embed"]
    assert row.model.startswith("e@127.0.0.1:")
    assert (row.calls, row.input_tokens) == (entered.calls, entered.input_tokens)
    first, other = await place.ask(QUESTION, "When was Tomas Reyd born?", **settings)
    asked = place.server.stats()["steps"]["embeddings"]
    spent = [answer.usage.by_step["embed"] for answer in (first, other)]
    assert all(each.calls for each in spent)
    assert sum(each.calls for each in spent) == asked["calls"] - counted["calls"]
    assert (
        sum(each.input_tokens for each in spent)
        == asked["prompt_tokens"] - counted["prompt_tokens"]
    )
    assert first.passages[0].document == "bridge"
    assert is_sound(first)
    assert is_sound(other)


MORE = (
    "# Sluice Lane\n\nJonas Oke inspected Sluice Lane Bridge in 2021. Petra Valk, a diver from "
    "Norrick, assisted him."
)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return corpus_in(tmp_path)


async def indexed(corpus: Path, place: Place) -> tuple[IndexReport, dict[str, Report]]:
    report = await place.index(corpus)
    with place.runtime().workspace.read() as generation:
        return report, {one.community: one for one in generation.communities.reports()}


async def test_one_document_more_asks_about_itself_alone(corpus: Path, place: Place) -> None:
    first, before = await indexed(corpus, place)
    place.server.reset()
    (corpus / "sluice-lane.md").write_text(MORE, "utf-8")
    report, after = await indexed(corpus, place)
    steps = report.usage.by_step
    assert steps["extract"].calls == 1
    assert report.usage.calls <= 1 + 3, {name: step.calls for name, step in steps.items()}
    assert report.usage.input_tokens < first.usage.input_tokens / 5, (
        "the corpus is small: a report is a tenth of it"
    )
    assert place.server.stats()["calls"] == report.usage.calls
    told = {(one.title, one.summary) for one in before.values()}
    written = [one for one in after.values() if (one.title, one.summary) not in told]
    assert len(written) <= 3 < len(after) / 5, [one.title for one in written]


async def test_a_relation_is_shown_by_both_names_where_a_change_touches_one(
    place: Place, tmp_path: Path
) -> None:
    met = (
        "Ada Korb met Captain Vell in {0}, when the harbour was small, the winter long and the old "
        "town almost empty."
    )
    letters = [{"id": f"d{number}", "text": met.format(1900 + number)} for number in range(8)]
    kept = {"id": "kept", "text": "Ada Korb kept Holm Light."}
    await place.index(write_rows(tmp_path / "rows.jsonl", [*letters, kept]))
    (first,) = place.server.sent("relate")
    place.server.reset()
    await place.index(
        write_rows(
            tmp_path / "rows.jsonl", [*letters, kept | {"text": "Ada Korb keeps Holm Light."}]
        )
    )
    assert place.server.sent("relate") == [], "what is stated of it has not changed"
    await place.index(write_rows(tmp_path / "rows.jsonl", [*letters[1:], kept]))
    (again,) = place.server.sent("relate")
    assert "Ada Korb -[met]-> Captain Vell" in first[-1]["content"]
    assert "Ada Korb -[met]-> Captain Vell" in again[-1]["content"]


async def test_calls_to_the_model_stay_side_by_side_over_batches(place: Place) -> None:
    rows = [
        {"id": str(n), "title": f"Place {n}", "text": f"Ada Korb{n} went to Velin Town{n} in May."}
        for n in range(160)
    ]
    source = write_rows(place.workspace.with_name("many.jsonl"), rows)
    place.server.settle(latency_ms=300)  # long enough for as many calls to go out on a slow machine
    report = await place.index(source)
    stats = place.server.stats()
    assert stats["most_in_flight"] == 16
    assert report.documents.added == 160
    # Nothing here is long or said often: one call for each chunk, none for entities and
    # communities.
    assert {step: counted["calls"] for step, counted in stats["steps"].items()} == {"extract": 160}
    place.server.reset()
    again = await place.index(source)
    assert (again.published, place.server.stats()["calls"]) == (False, 0)
