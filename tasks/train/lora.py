"""Training a language model with LoRA: DPO on preferences (arXiv 2305.18290), SFT on answers."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from prompts.engine.messages import Message
from prompts.engine.transformers_lm import load_language_model
from storage.errors import UsageError
from storage.training_records import TrainingCurve

_SHOWN = 5  # Steps at either end of a curve


# StructRAG's 1e-5 for DPO; SFT learns an answer from nothing and takes larger steps.
DPO_RATE, SFT_RATE, ENCODER_RATE = 1e-5, 2e-4, 2e-5


@dataclass(frozen=True)
class TrainingOptions:
    """How long and how fast to train.

    Without `learning_rate` each method has its own. `steps` ends before the epochs do, `alpha`
    scales what LoRA adds, and a checkpoint is written every `save_every` steps.
    """

    learning_rate: float | None = None
    epochs: float = 3.0
    beta: float = 0.1
    rank: int = 16
    alpha: int = 32
    batch: int = 4
    steps: int | None = None
    save_every: int = 50
    seed: int = 0

    def in_words(self) -> dict[str, str]:
        """Return the options that are set, by name."""
        return {name: str(value) for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Dialogue:
    """A prompt with the wanted answer, and for a preference the unwanted one."""

    prompt: Sequence[Message]
    wanted: str
    unwanted: str | None = None


def need_extra() -> None:
    """Raise UsageError where the extra is not installed."""
    missing = [
        name for name in ("trl", "peft", "datasets", "accelerate") if find_spec(name) is None
    ]
    if missing:
        raise UsageError(
            f"Training needs {', '.join(missing)}.", "pip install 'trellis-rag[train]'"
        )


def train_lora(
    dialogues: Sequence[Dialogue],
    held_out: Sequence[Dialogue],
    base: str,
    folder: Path,
    options: TrainingOptions,
    tell: Callable[[int, int], None],
) -> TrainingCurve:
    """Train an adapter of the base model: by DPO on preferences, else by SFT.

    It goes on from the last checkpoint of the same training; `tell` gets each step and their
    number. UsageError without the extra, or where a dialogue is longer than the model reads;
    ModelUnavailable without the model.
    """
    need_extra()
    from peft import LoraConfig
    from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

    by_preference = all(dialogue.unwanted is not None for dialogue in dialogues)
    model, tokenizer = load_language_model(base)
    _check_lengths([*dialogues, *held_out], tokenizer, model, base)
    checkpoints = folder / checkpoints_of(dialogues, base, options)
    common = _arguments(options, checkpoints, DPO_RATE if by_preference else SFT_RATE)
    config = (
        DPOConfig(beta=options.beta, max_length=None, **common)
        if by_preference
        else SFTConfig(max_length=None, completion_only_loss=True, **common)
    )
    lora = LoraConfig(
        r=options.rank,
        lora_alpha=options.alpha,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
        lora_dropout=0.0,
    )
    trainer = (DPOTrainer if by_preference else SFTTrainer)(
        model=model,
        args=config,
        train_dataset=table_of(map(_row, dialogues)),
        eval_dataset=table_of(map(_row, held_out)) if held_out else None,
        processing_class=tokenizer,
        peft_config=lora,
        callbacks=[telling(tell)],
    )
    quieten(trainer)
    trainer.train(resume_from_checkpoint=last_checkpoint(checkpoints))
    loss = trainer.evaluate()["eval_loss"] if held_out else None
    trainer.save_model(str(folder))
    tokenizer.save_pretrained(folder)
    shutil.rmtree(checkpoints, ignore_errors=True)
    curve = curve_of(trainer.state)
    return curve if loss is None else curve.model_copy(update={"held_out_loss": float(loss)})


def _arguments(options: TrainingOptions, checkpoints: Path, rate: float) -> dict[str, Any]:
    """Return what the trainers share: regular checkpoints, and no reports to services."""
    import torch

    gpu = torch.cuda.is_available()
    return {
        "output_dir": str(checkpoints),
        "learning_rate": options.learning_rate or rate,
        "num_train_epochs": options.epochs,
        "max_steps": options.steps or -1,
        "per_device_train_batch_size": options.batch,
        "gradient_accumulation_steps": 1,
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_steps": options.save_every,
        "save_total_limit": 1,
        "seed": options.seed,
        "report_to": "none",
        "use_cpu": not gpu,
        "bf16": gpu,
        "gradient_checkpointing": gpu,
        "disable_tqdm": True,
    }


def encoder_arguments(options: TrainingOptions, checkpoints: Path) -> dict[str, Any]:
    """Return the arguments of a cross-encoder's trainer."""
    return _arguments(options, checkpoints, ENCODER_RATE) | {"gradient_checkpointing": False}


def last_checkpoint(folder: Path) -> str | None:
    """Return the last whole checkpoint of an earlier run of the same training."""
    steps = {
        int(path.name.rpartition("-")[2]): path
        for path in folder.glob("checkpoint-*")
        if _is_whole(path)
    }
    return str(steps[max(steps)]) if steps else None


def _is_whole(checkpoint: Path) -> bool:
    """Whether the trainer's state, which is written last, can be read."""
    try:
        json.loads((checkpoint / "trainer_state.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    return True


def table_of(rows: Iterable[Mapping[str, object]]) -> Any:
    """Make rows a dataset for a trainer."""
    from datasets import Dataset, disable_progress_bars

    disable_progress_bars()
    return Dataset.from_list([dict(row) for row in rows])


def _row(dialogue: Dialogue) -> dict[str, object]:
    prompt = [{"role": message.role, "content": message.content} for message in dialogue.prompt]
    wanted = [{"role": "assistant", "content": dialogue.wanted}]
    if dialogue.unwanted is None:
        return {"prompt": prompt, "completion": wanted}
    return {
        "prompt": prompt,
        "chosen": wanted,
        "rejected": [{"role": "assistant", "content": dialogue.unwanted}],
    }


def _check_lengths(dialogues: Sequence[Dialogue], tokenizer: Any, model: Any, base: str) -> None:
    context = int(getattr(model.config, "max_position_embeddings", 0) or 1 << 30)
    for dialogue in dialogues:
        row: Any = _row(replace(dialogue, unwanted=None))
        turns = [*row["prompt"], *row["completion"]]
        encoded = tokenizer.apply_chat_template(turns, tokenize=True, return_dict=True)
        tokens = len(encoded["input_ids"])
        if tokens > context:
            raise UsageError(
                f"A row has {tokens} tokens with its prompt; {base} reads {context}.",
                "Train a model with a longer context, or shorten the instruction "
                "(TRELLIS_PROMPTS).",
            )


def checkpoints_of(rows: Sequence[object], base: str, options: TrainingOptions) -> str:
    """Name the folder of a training's checkpoints after all that the training depends on."""
    digest = hashlib.sha256(repr((base, options, list(rows))).encode()).hexdigest()
    return f"checkpoints-{digest[:12]}"


def telling(tell: Callable[[int, int], None]) -> Any:
    """Make a trainer's callback that tells of each step."""
    from transformers import TrainerCallback

    class Telling(TrainerCallback):  # type: ignore[misc]  # The library is not typed here
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            tell(state.global_step, state.max_steps)

    return Telling()


def quieten(trainer: Any) -> None:
    """Keep a trainer from printing logs to the command's standard output."""
    from transformers.trainer_callback import PrinterCallback

    trainer.remove_callback(PrinterCallback)


def curve_of(state: Any) -> TrainingCurve:
    """Return the mean loss and margin of the first and of the last steps in a trainer's log."""
    losses, margins = (
        [float(entry[name]) for entry in state.log_history if name in entry]
        for name in ("loss", "rewards/margins")
    )

    def ends(values: Sequence[float]) -> tuple[float, float]:
        first, last = values[:_SHOWN], values[-_SHOWN:]
        return sum(first) / len(first), sum(last) / len(last)

    return TrainingCurve(
        steps=state.global_step, loss=ends(losses), margin=ends(margins) if margins else None
    )
