"""Pictures are described by the model of the role `describe`, and by no other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from flows.index import IndexOptions, build_index
from flows.operations.forecast import forecast
from prompts.engine.errors import BudgetSpent
from prompts.engine.spending import SpendBudget
from tests.models.running import Place

DESCRIPTION = (
    "[Picture, described by openai/m: Bar chart of Bridges of Orla. The highest bar is 412.]"
)


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A picture without words, whose title names it."""
    image = Image.new("RGB", (200, 150), "white")
    for number, height in enumerate((40, 90, 120)):
        ImageDraw.Draw(image).rectangle((20 + 60 * number, 150 - height, 60 + 60 * number, 150))
    image.save(tmp_path / "bridges of Orla.png")
    return tmp_path / "bridges of Orla.png"


def described_by(place: Place) -> dict[str, Any]:
    model = {"model": "openai/m", "base_url": place.server.base_url, "api_key": "k"}
    offline = {"lm": "offline", "lm_base_url": None, "lm_api_key": None}
    return {**offline, "roles": {"describe": model}}


async def test_a_picture_is_described_once_and_found(place: Place, chart: Path) -> None:
    settings = described_by(place)
    plan = await forecast([chart], IndexOptions(), place.runtime(**settings))
    assert [(one.step, one.calls) for one in plan.steps] == [("picture", 1)]
    assert (plan.documents.added, place.server.calls("picture")) == (1, 0)
    report = await place.index(chart, **settings)
    assert report.usage.by_step["picture"].calls == 1
    (document,) = place.graph()["documents"]
    assert (document["title"], document["text"]) == ("Bridges of Orla", DESCRIPTION)
    (answer,) = await place.ask("Which bar is the highest?", **settings)
    assert answer.citations[0].document == chart.name
    again = await place.index(chart, **settings)
    assert (again.documents.unchanged, place.server.calls("picture")) == (1, 1)
    plan = await forecast([chart], IndexOptions(), place.runtime(**settings))
    assert (plan.steps, plan.documents.unchanged) == ((), 1)
    (sent,) = place.server.sent("picture")
    content: Any = sent[-1]["content"]
    assert [part["type"] for part in content] == ["text", "image_url"]
    assert "bridges of Orla" in content[0]["text"].replace("Bridges", "bridges")
    assert content[1]["image_url"]["url"].startswith("data:image/jpeg;base64,")


async def test_no_other_model_is_shown_a_picture(place: Place, chart: Path) -> None:
    (chart.parent / "a.txt").write_text("Tomas Reyd designed Orla Bridge.")
    report = await place.index(chart.parent)
    assert [skipped.path for skipped in report.skipped] == [str(chart)]
    assert place.server.calls("picture") == 0


async def test_a_spent_budget_ends_before_a_picture_is_sent(place: Place, chart: Path) -> None:
    runtime = place.runtime(**described_by(place))
    runtime = replace(runtime, models=runtime.models.within(SpendBudget(tokens=100)))
    with pytest.raises(BudgetSpent):
        await build_index([chart], IndexOptions(), runtime)
    assert place.server.calls("picture") == 0


async def test_a_picture_without_a_usable_answer_is_reported(place: Place, chart: Path) -> None:
    (chart.parent / "a.txt").write_text("Tomas Reyd designed Orla Bridge.")
    place.server.misbehave({"kind": "malformed", "step": "picture"})
    report = await place.index(chart.parent, **described_by(place))
    assert report.documents.added == 1
    reasons = " ".join(skipped.reason for skipped in report.skipped)
    assert "the picture has no description" in reasons
    assert "the model did not describe it" in reasons
