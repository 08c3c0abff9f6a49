"""As many calls as allowed are in flight while an index is built, and what needs no model costs none."""

from tests.models.running import Place, write_rows

DOCUMENTS = 160
CONCURRENCY = 16
LATENCY = 0.3  # seconds: long enough for as many calls to go out on a slow machine


async def test_calls_to_the_model_stay_side_by_side_over_batches(place: Place) -> None:
    rows = [
        {"id": str(n), "title": f"Place {n}", "text": f"Ada Korb{n} went to Velin Town{n} in May."}
        for n in range(DOCUMENTS)
    ]
    source = write_rows(place.workspace.with_name("many.jsonl"), rows)
    place.server.settle(latency_ms=1000 * LATENCY)
    report = await place.index(source)
    stats = place.server.stats()
    assert stats["most_in_flight"] == CONCURRENCY
    assert report.documents.added == DOCUMENTS
    # Nothing here is long or said often: one call for each chunk, none for entities and communities.
    assert {step: counted["calls"] for step, counted in stats["steps"].items()} == {"extract": DOCUMENTS}
    place.server.reset()
    again = await place.index(source)
    assert (again.published, place.server.stats()["calls"]) == (False, 0)
