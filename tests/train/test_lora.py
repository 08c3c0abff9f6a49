"""DPO and SFT with LoRA on a tiny model: what it learns, saves, and answers in a role."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.train import TrainOptions, train_step
from prompts.engine.models import CallSettings, ModelChoice, Models
from prompts.route import Route
from prompts.text.question import parse_question
from storage.training_records import DataCard
from tasks.train.lora import Dialogue, TrainingOptions, train_lora
from tasks.train.router import dialogues_of
from tests.train.conftest import INSTRUCTIONS, THINGS, needs_extra, preferences
from tests.workspaces import opened, write_rows

pytestmark = needs_extra
FAST = TrainingOptions(learning_rate=5e-3, steps=30, rank=8, alpha=16, batch=4, save_every=10)


def silent(_done: int, _total: int) -> None:
    """Nobody watches."""


def log_probability(model: Any, tokenizer: Any, dialogue: Dialogue, answer: str) -> float:
    """Sum the log probabilities of an answer's tokens after its prompt."""
    import torch

    prompt = [{"role": message.role, "content": message.content} for message in dialogue.prompt]
    asked = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)
    whole = tokenizer.apply_chat_template(
        [*prompt, {"role": "assistant", "content": answer}], tokenize=False
    )
    begin = len(tokenizer(asked, add_special_tokens=False)["input_ids"])
    tokens = torch.tensor([tokenizer(whole, add_special_tokens=False)["input_ids"]])
    with torch.no_grad():
        logs = torch.log_softmax(model(tokens).logits[0, :-1].double(), dim=-1)
    return float(sum(logs[place - 1, tokens[0, place]] for place in range(begin, tokens.shape[1])))


def dpo_loss(base: str, adapter: Path, dialogues: Sequence[Dialogue], beta: float) -> float:
    """Return the mean of -log σ(β (log π/ref of the wanted - log π/ref of the unwanted))."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(base)
    trained, reference = (AutoModelForCausalLM.from_pretrained(name) for name in (adapter, base))
    losses = []
    for dialogue in dialogues:
        gains = [
            log_probability(trained, tokenizer, dialogue, answer)
            - log_probability(reference, tokenizer, dialogue, answer)
            for answer in (dialogue.wanted, dialogue.unwanted or "")
        ]
        losses.append(-torch.nn.functional.logsigmoid(torch.tensor(beta * (gains[0] - gains[1]))))
    return float(sum(losses) / len(losses))


def test_dpo_prefers_the_chosen_answer_and_its_loss_is_that_of_the_formula(
    base: str, instructed: Models, tmp_path: Path
) -> None:
    dialogues = dialogues_of(preferences(), Route(instructed))
    curve = train_lora(dialogues[:14], dialogues[14:], base, tmp_path / "adapter", FAST, silent)
    assert curve.steps == 30
    assert curve.loss[1] < curve.loss[0]
    assert curve.margin is not None
    assert curve.margin[1] > curve.margin[0] + 0.5
    by_hand = dpo_loss(base, tmp_path / "adapter", dialogues[14:], FAST.beta)
    assert curve.held_out_loss == pytest.approx(by_hand, rel=1e-3)


async def test_an_adapter_of_sft_answers_as_the_model_of_a_role(
    base: str, instructed: Models, tmp_path: Path
) -> None:
    dialogues = [
        replace(pair, unwanted=None) for pair in dialogues_of(preferences()[:8], Route(instructed))
    ]
    adapter = tmp_path / "adapter"
    curve = train_lora(dialogues, (), base, adapter, replace(FAST, learning_rate=2e-2), silent)
    assert curve.loss[1] < 0.8 * curve.loss[0]
    models = Models(
        {"route": ModelChoice(f"transformers/{adapter}")}, calls=CallSettings(max_tokens=128)
    )
    route = Route(replace(models, instructions=INSTRUCTIONS))
    asked = parse_question("Compare the mills of 1931 and 1935.")  # In other words than trained
    routed = await route.run(asked, ["Log", "Accounts"], tabular=False)
    assert routed.structure == "table"
    assert routed.confidence == 1.0
    ((step, model, spent),) = models.meter.rows()
    assert (step, model) == ("route", f"transformers/{adapter}")
    assert spent.input_tokens > spent.output_tokens > 5


def test_a_killed_training_goes_on_from_its_checkpoint(
    base: str, instructed: Models, tmp_path: Path
) -> None:
    dialogues = dialogues_of(preferences()[:4], Route(instructed))
    options = replace(FAST, steps=16, save_every=5)
    told: list[int] = []

    def killed(done: int, _total: int) -> None:
        told.append(done)
        if done == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_lora(dialogues, (), base, tmp_path / "adapter", options, killed)
    # A kill may leave a checkpoint without its state, or with half of it.
    checkpoints = next((tmp_path / "adapter").glob("checkpoints-*"))
    for number, written in ((11, None), (12, '{"epoch": 1')):
        (checkpoints / f"checkpoint-{number}").mkdir()
        if written:
            state = checkpoints / f"checkpoint-{number}" / "trainer_state.json"
            state.write_text(written, encoding="utf-8")
    again: list[int] = []
    curve = train_lora(
        dialogues, (), base, tmp_path / "adapter", options, lambda done, _: again.append(done)
    )
    assert again == list(range(11, 17))
    assert curve.steps == 16
    assert not list((tmp_path / "adapter").glob("checkpoints-*"))


async def test_a_rewriter_is_trained_from_rows_with_a_card_and_only_once(
    base: str, tmp_path: Path
) -> None:
    rows = [
        {"id": f"{place}", "question": f"And the {thing}?", "rewritten": f"Who keeps the {thing}?"}
        for place, thing in enumerate(THINGS)
    ]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    runtime = opened(tmp_path / "ws", instructions=INSTRUCTIONS)
    out, training = tmp_path / "out", TrainingOptions(steps=2, batch=2)
    options = TrainOptions("rewriter", rows=(path,), base=base, folder=out, training=training)
    report = await train_step(options, runtime)
    assert report.use == f"TRELLIS_LM_REWRITE=transformers/{out}"
    assert report.curve is not None
    assert report.curve.steps == 2
    card = DataCard.model_validate_json((out / "card.json").read_bytes())
    assert (card.base, card.counts, card.options["steps"]) == (base, {"en rows": report.rows}, "2")
    written = (out / "adapter_model.safetensors").stat().st_mtime_ns
    assert await train_step(options, runtime) == report
    assert (out / "adapter_model.safetensors").stat().st_mtime_ns == written
