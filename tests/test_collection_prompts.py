"""What do models read of a collection? Each prompt as its golden file has it, and answers that are not as asked."""

from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils.dummies import DummyLM

from prompts.direct import AnswerDirectly, Direct
from prompts.engine.models import Models
from prompts.engine.step import Step
from prompts.engine.wire import conversation
from prompts.explore import MOST_FOLLOW_UPS, Explore, ExploreReports
from prompts.hypothesize import Hypothesize, WriteHypothesis
from prompts.language.question import ask
from prompts.partial import AnswerPartly, Offered, Partial
from prompts.rate import Rate, RateReports
from prompts.reading.evidence import Evidence
from prompts.reading.gist import Gist
from prompts.reading.relevance import Relevance
from tasks.evidence import Place, Pool
from tasks.partial import Shown, partial_answers

GOLDEN = Path(__file__).parent / "golden"
QUESTION = "What harm does salt do to wells?"
SALT = Evidence(3, "wells", "Wells", "Salt has reached the wells of the brewery this year.")
WIND = Evidence(4, "ships", "Ships", "Wind kept the ferries in the harbour for nine days.")
OFFERED = Offered("Water, Brewery", "About water.", [("Salt is in the wells.", SALT), ("Wind.", WIND)])
GIST = Gist(Relevance(ask(QUESTION), {}))
ASKED: dict[type[dspy.Signature], dict[str, Any]] = {
    RateReports: {"question": QUESTION, "reports": ["[0] Water, Brewery: Salt is in the wells.", "[1] Ships: Wind."]},
    AnswerPartly: {"question": QUESTION, "reports": [OFFERED.written()]},
    ExploreReports: {"question": QUESTION, "focus": "the brewery", "reports": [OFFERED.written()]},
    WriteHypothesis: {"question": QUESTION},
    AnswerDirectly: {"question": QUESTION},
}


@pytest.mark.parametrize("step", [Rate, Partial, Explore, Hypothesize, Direct])
def test_a_prompt_reads_like_the_golden_one(step: type[Step]) -> None:
    messages = conversation(step.step, step.task, step.wire, (), ASKED[step.task])
    rendered = "\n".join(f"--- {message.role}\n{message.content}" for message in messages) + "\n"
    assert rendered == (GOLDEN / f"prompt_{step.task.__name__}.txt").read_text(encoding="utf-8")


def answering(step: Step, output: dict[str, Any]) -> None:
    """A model that answers this alone."""
    step.lm = DummyLM([output] * 3, adapter=dspy.JSONAdapter())


async def test_the_model_sees_the_openings_and_its_ratings_come_in_order() -> None:
    step = Rate(Models.offline())
    answering(step, {"rated": {"ratings": [{"report": 1, "rating": 2}, {"report": 0, "rating": 9}]}})
    assert await step.run([SALT, WIND], GIST) == [0.9, 0.2]


async def test_offline_a_report_counts_by_what_lies_near_it_and_by_its_words() -> None:
    step = Rate(Models.offline())
    near, words, neither = (
        Evidence(0, "a", "Ferries", "Wind.", prior=0.9), Evidence(1, "b", "Salt", "Salt harms wells."),
        Evidence(2, "c", "Ferries", "Wind."),
    )  # fmt: skip
    rated = await step.run([near, words, neither], GIST)
    assert rated[0] > rated[1] > rated[2] == 0.0


async def points(*written: dict[str, object]) -> list[tuple[str, tuple[int, ...]]]:
    step = Partial(Models.offline())
    answering(step, {"partial": {"points": list(written)}})
    places = tuple(
        Place(document=piece.document, title=piece.title, chunk="chk", start=0, end=len(piece.text))
        for piece in (SALT, WIND)
    )
    pieces = tuple(
        Evidence(number, piece.document, piece.title, piece.text) for number, piece in enumerate((SALT, WIND))
    )
    offered = Offered("Water", "", [(piece.text, piece) for piece in pieces])
    shown = Shown({"com_a": offered}, Pool(pieces, places))
    return [(point.text, point.findings) for point in await partial_answers(shown, "seed", GIST, step)]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ([{"text": "Salt.", "score": 90, "findings": [0, 0, 7]}], [("Salt.", (0,))]),
        ([{"text": "Salt.", "score": 90, "findings": []}], []),
        ([{"text": "Invented.", "score": 90, "findings": [99]}], []),
        ([{"text": "No help.", "score": 0, "findings": [0]}], []),
        ([{"text": "Rust.", "score": 50, "findings": [1]}, {"text": "Salt.", "score": 80, "findings": [0]}],
         [("Salt.", (0,)), ("Rust.", (1,))]),
        ([], []),
    ],
)  # fmt: skip
async def test_of_what_a_model_writes_stays_what_helps_and_is_shown(
    written: list[dict[str, object]], kept: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert await points(*written) == kept


async def test_follow_ups_are_few_the_best_first_and_none_without_worth() -> None:
    step = Explore(Models.offline())
    asked = [{"question": f"q{score}", "score": score} for score in (0, 30, 90, 60, 10)]
    answering(step, {"explored": {"points": [], "follow_ups": asked}})
    found = (await step.run("the brewery", [OFFERED], GIST)).follow_ups
    assert [one.score for one in found] == [90, 60, 30]
    assert len(found) == MOST_FOLLOW_UPS
