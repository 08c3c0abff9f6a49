"""The sample corpus on models: roles apart, vectors of a server, what one document more costs."""

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
TEXTS = {
    "bridge": "Orla Bridge was designed by Tomas Reyd. It opened in 1931.",
    "reyd": "Tomas Reyd was born in Velin Town. Tomas Reyd met Ana Korb.",
    "quay": "Velin Quay was built by Ana Korb in Velin Town. It cost 4 million.",
}
QUESTION = "Who designed Orla Bridge?"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = [
        {"id": name, "title": text.partition(" was")[0], "text": text}
        for name, text in TEXTS.items()
    ]
    return write_rows(tmp_path / "docs.jsonl", rows)


def check(answer: Answer) -> None:
    """Citations were checked against the text, and usage adds up."""
    usage, steps = answer.usage, answer.usage.by_step.values()
    assert all(citation.verified for citation in answer.citations)
    assert usage.calls == sum(step.calls for step in steps)
    assert usage.input_tokens == sum(step.input_tokens for step in steps)
    assert usage.output_tokens == sum(step.output_tokens for step in steps)


async def test_the_sample_corpus_and_its_questions_on_models_alone(place: Place) -> None:
    report = await place.index(EXAMPLES / "corpus")
    seen = place.server.stats()
    assert (report.dead_letters, report.skipped) == (0, ())
    spent = report.usage.calls, report.usage.input_tokens, report.usage.output_tokens
    assert spent == (seen["calls"], seen["prompt_tokens"], seen["completion_tokens"])
    calls = {step: counted["calls"] for step, counted in seen["steps"].items()}
    assert {row.step: row.calls for row in place.usage()} == calls
    lines = (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    answers = await place.ask(*(json.loads(line)["question"] for line in lines))
    assert len(answers) == 12
    for answer in answers:
        check(answer)
        assert answer.citations
        assert {"answer", "reduce"} & set(answer.usage.by_step)
    after = place.server.stats()
    assert sum(answer.usage.calls for answer in answers) == after["calls"] - seen["calls"]
    assert (after["others"], set(after["kinds"])) == ([], {"answered"})


@pytest.mark.parametrize(
    "of", [("extract",), ("answer", "filter"), ("report", "summarize", "route")]
)
async def test_roles_on_a_model_beside_roles_offline(
    of: tuple[str, ...], place: Place, source: Path
) -> None:
    model = {"model": "openai/m", "base_url": place.server.base_url, "api_key": "k"}
    roles = dict.fromkeys(of, model)
    settings = {"lm": "offline", "lm_base_url": None, "lm_api_key": None, "roles": roles}
    report = await place.index(source, **settings)
    (answer,) = await place.ask(QUESTION, **settings)
    check(answer)
    assert answer.citations
    called = {*report.usage.by_step, *answer.usage.by_step}
    assert called <= set(of)
    assert set(place.server.stats()["steps"]) == called
    assert called or "report" in of


async def test_calls_for_vectors_are_in_the_ledgers(place: Place, source: Path) -> None:
    settings = {"embedding": "openai/e", "embedding_base_url": place.server.base_url}
    report = await place.index(source, **settings)
    with place.runtime(**settings).workspace.read() as generation:
        assert len(generation.vectors.windows()) == len(TEXTS)
        assert str(generation.vectors.model()).startswith("e@127.0.0.1")
    counted = place.server.stats()["steps"]["embeddings"]
    entered = report.usage.by_step["embed"]
    assert (entered.calls, entered.input_tokens) == (counted["calls"], counted["prompt_tokens"])
    assert (entered.output_tokens, entered.cached_calls, entered.cost_usd) == (0, 0, None)
    (row,) = [row for row in place.usage() if row.step == "embed"]
    assert row.model.startswith("e@127.0.0.1:")
    assert (row.calls, row.input_tokens) == (entered.calls, entered.input_tokens)
    answers = await place.ask(QUESTION, "When was Tomas Reyd born?", **settings)
    asked = place.server.stats()["steps"]["embeddings"]
    spent = [answer.usage.by_step["embed"] for answer in answers]
    assert all(each.calls for each in spent)
    assert sum(each.calls for each in spent) == asked["calls"] - counted["calls"]
    tokens = asked["prompt_tokens"] - counted["prompt_tokens"]
    assert sum(each.input_tokens for each in spent) == tokens
    assert answers[0].passages[0].document == "bridge"
    for answer in answers:
        check(answer)


MORE = (
    "# Sluice Lane\n\nJonas Oke inspected Sluice Lane Bridge in 2021. Petra Valk, a diver from "
    "Norrick, assisted him."
)


async def indexed(corpus: Path, place: Place) -> tuple[IndexReport, dict[str, Report]]:
    report = await place.index(corpus)
    with place.runtime().workspace.read() as generation:
        return report, {one.community: one for one in generation.communities.reports()}


async def test_one_document_more_asks_about_itself_alone(tmp_path: Path, place: Place) -> None:
    corpus = corpus_in(tmp_path)
    first, before = await indexed(corpus, place)
    place.server.reset()
    (corpus / "sluice-lane.md").write_text(MORE, "utf-8")
    report, after = await indexed(corpus, place)
    steps = report.usage.by_step
    assert steps["extract"].calls == 1
    assert report.usage.calls <= 1 + 3, {name: step.calls for name, step in steps.items()}
    assert report.usage.input_tokens < first.usage.input_tokens / 5, "a report is a tenth of it"
    assert place.server.stats()["calls"] == report.usage.calls
    known = {(one.title, one.summary) for one in before.values()}
    written = [one for one in after.values() if (one.title, one.summary) not in known]
    assert len(written) <= 3 < len(after) / 5, [one.title for one in written]


async def test_a_relation_is_described_anew_where_it_changes(place: Place, tmp_path: Path) -> None:
    met = (
        "Ada Korb met Captain Vell in {}, when the harbour was small, the winter long and the old "
        "town almost empty."
    )
    letters = [{"id": f"d{number}", "text": met.format(1900 + number)} for number in range(8)]
    kept = {"id": "kept", "text": "Ada Korb kept Holm Light."}

    async def described(*rows: dict[str, str]) -> list[list[dict[str, str]]]:
        place.server.reset()
        await place.index(write_rows(tmp_path / "rows.jsonl", rows))
        return place.server.sent("relate")

    (first,) = await described(*letters, kept)
    assert "Ada Korb -[met]-> Captain Vell" in first[-1]["content"]
    changed = kept | {"text": "Ada Korb keeps Holm Light."}
    assert await described(*letters, changed) == [], "what is stated of it has not changed"
    (again,) = await described(*letters[1:], kept)
    assert "Ada Korb -[met]-> Captain Vell" in again[-1]["content"]


async def test_calls_are_made_at_once_over_batches(place: Place) -> None:
    texts = [f"Ada Korb{n} went to Velin Town{n} in May." for n in range(160)]
    rows = [{"id": str(n), "title": f"Place {n}", "text": text} for n, text in enumerate(texts)]
    source = write_rows(place.workspace.with_name("many.jsonl"), rows)
    place.server.settle(latency_ms=300)  # long enough for as many calls to go out on a slow machine
    report = await place.index(source)
    stats = place.server.stats()
    assert (stats["most_in_flight"], report.documents.added) == (16, 160)
    # Nothing here is long or said often: one call for each chunk, and no others.
    assert {step: counted["calls"] for step, counted in stats["steps"].items()} == {"extract": 160}
    place.server.reset()
    again = await place.index(source)
    assert (again.published, place.server.stats()["calls"]) == (False, 0)
