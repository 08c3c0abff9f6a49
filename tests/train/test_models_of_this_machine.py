"""Models of this machine in a role: what they refuse, and a trained cross-encoder."""

from pathlib import Path

import pytest

from prompts.answer import NumberedText
from prompts.engine.errors import ContextOverflow, ModelMisconfigured, ModelUnavailable
from prompts.engine.models import CallSettings, ModelChoice, Models
from prompts.filter import Filter, FilterRequest
from prompts.route import Route
from storage.training_records import FilterRow
from tasks.train.filter import labels_by, train_cross_encoder
from tasks.train.lora import TrainingOptions
from tests.engine.tiny_models import tiny_cross_encoder
from tests.train.conftest import INSTRUCTIONS, needs_extra
from tests.train.tiny_language_model import tiny_language_model

WORDS = "the bridge is old new green red was not".split()


def ask(folder: Path, timeout: float | None = None) -> None:
    """Ask the model of a folder for a route."""
    choice, calls = ModelChoice(f"transformers/{folder}"), CallSettings(timeout=timeout)
    Route(Models({"route": choice}, calls=calls, instructions=INSTRUCTIONS)).module(
        question="Who?", core_content=[]
    )


def test_a_missing_model_is_named_and_nothing_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="cannot be loaded"):
        ask(tmp_path / "nothing")


def test_a_model_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    tiny_language_model(tmp_path / "plain", ["Who?"], chats=False)
    with pytest.raises(ModelMisconfigured, match="no chat template"):
        ask(tmp_path / "plain")


def test_a_prompt_longer_than_the_model_reads_is_refused(tmp_path: Path) -> None:
    tiny_language_model(tmp_path / "short", ["Who?"], context=64)
    with pytest.raises(ContextOverflow, match="reads at most 64 tokens; the prompt has"):
        ask(tmp_path / "short")


def test_an_answer_that_the_time_cuts_is_none(tmp_path: Path) -> None:
    tiny_language_model(tmp_path / "slow", ["Who?"])
    with pytest.raises(ModelUnavailable, match=r"not complete within 0 s.*TRELLIS_TIMEOUT"):
        ask(tmp_path / "slow", timeout=1e-9)  # a token takes longer on any machine


def judged(passage: str, question: str, label: str) -> FilterRow:
    return FilterRow.model_validate(
        {"id": passage + question, "question": question, "passage": passage, "label": label}
    )


@needs_extra
async def test_a_cross_encoder_learns_the_labels_and_is_the_filters_model(tmp_path: Path) -> None:
    base = tiny_cross_encoder(tmp_path / "base", ["a", "b"], words=WORDS)
    rows = [
        judged(f"the bridge was {colour} {word}", f"is the bridge {colour}", label)
        for colour in ("red", "green", "old", "new")
        for word, label in (("not", "contradiction"), ("the", "entailment"), ("is", "neutral"))
    ]
    told: list[int] = []
    options = TrainingOptions(learning_rate=3e-2, steps=60, batch=12)
    folder = tmp_path / "trained"
    curve = train_cross_encoder(rows, base, folder, options, lambda done, _: told.append(done))
    assert told == list(range(1, 61))
    assert curve.loss[1] < curve.loss[0] / 2
    judge = Filter(Models({"filter": ModelChoice(f"cross-encoder/{folder}")}))
    given = await labels_by(rows, judge)
    assert sum(label == row.label for label, row in zip(given, rows, strict=True)) >= 10
    passages = [
        NumberedText(4, "", "the bridge was red not"),
        NumberedText(7, "", "the bridge was red the"),
    ]
    request = FilterRequest("is the bridge red", passages)
    assert judge.judges(request)
    assert set(await judge.run(request, passages)) == {4, 7}
