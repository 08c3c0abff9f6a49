"""One document more costs its own passages on a model, and little else."""

from pathlib import Path

import pytest

from storage.graph_records import Report
from storage.run_records import IndexReport
from tests.copying import corpus_in
from tests.models.running import Place
from tests.workspaces import write_rows

MORE = (
    "# Sluice Lane\n\nJonas Oke inspected Sluice Lane Bridge in 2021. Petra Valk, a diver from Norrick, assisted him."
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
    assert report.usage.input_tokens < first.usage.input_tokens / 5, "the corpus is small: a report is a tenth of it"
    assert place.server.stats()["calls"] == report.usage.calls
    told = {(one.title, one.summary) for one in before.values()}
    written = [one for one in after.values() if (one.title, one.summary) not in told]
    assert len(written) <= 3 < len(after) / 5, [one.title for one in written]


async def test_calls_to_the_model_stay_side_by_side_over_batches(place: Place) -> None:
    rows = [
        {"id": str(n), "title": f"Place {n}", "text": f"Ada Korb{n} went to Velin Town{n} in May."} for n in range(160)
    ]
    source = write_rows(place.workspace.with_name("many.jsonl"), rows)
    place.server.settle(latency_ms=300)  # long enough for as many calls to go out on a slow machine
    report = await place.index(source)
    stats = place.server.stats()
    assert stats["most_in_flight"] == 16
    assert report.documents.added == 160
    # Nothing here is long or said often: one call for each chunk, none for entities and communities.
    assert {step: counted["calls"] for step, counted in stats["steps"].items()} == {"extract": 160}
    place.server.reset()
    again = await place.index(source)
    assert (again.published, place.server.stats()["calls"]) == (False, 0)
