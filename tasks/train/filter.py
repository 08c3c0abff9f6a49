"""A filter with explanations and three labels (ERM4): its rows, a cross-encoder, and macro-F1."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from prompts.answer import NumberedText, evidence_text
from prompts.engine.errors import ModelRefused
from prompts.filter import (
    HYPOTHESES,
    NOT_JUDGED,
    Filter,
    FilterRequest,
    Judgement,
    Judgements,
    Label,
)
from storage.answer_records import Passage
from storage.evaluation_records import EvaluationQuestion
from storage.training_records import FilterRow, Row, TrainingCurve
from tasks.batches import gather_or_cancel
from tasks.step import step
from tasks.train.lora import (
    Dialogue,
    TrainingOptions,
    checkpoints_of,
    curve_of,
    encoder_arguments,
    last_checkpoint,
    need_extra,
    quieten,
    table_of,
    telling,
)
from tasks.train.rewriter import Find
from tasks.train.rows import append, stored

LABELS: tuple[Label, ...] = get_args(Label)
JUDGED, AGAINST_GOLD = "judged", "judged, against the gold"


@step("filter", asks_model=True)
async def judge_passages(
    questions: Sequence[EvaluationQuestion],
    path: Path,
    judge: Filter,
    find: Find,
    most: int,
    tell: Callable[[int, int], None],
) -> list[FilterRow]:
    """Label the first `most` passages of each question with a model, and store the labels.

    A label is against the gold where a passage of a gold document is called neutral, or another
    one entailment; `agreeing` drops such rows. Stored questions are not asked again.
    """
    rows = stored(path, FilterRow)
    done = {row.id.rpartition("#")[0] for row in rows}

    async def judged(question: EvaluationQuestion) -> None:
        passages = (await find([question.question]))[:most]
        texts = [
            NumberedText(number, passage.title, passage.text)
            for number, passage in enumerate(passages, 1)
        ]
        verdicts = await judge.run(FilterRequest(question.question, texts, "weak"), texts)
        new = [
            FilterRow(
                id=f"{question.id}#{number}",
                question=question.question,
                title=passage.title,
                passage=passage.text,
                label=verdicts[number].label,
                explanation=verdicts[number].explanation,
                source=_agreement(verdicts[number].label, passage, question),
            )
            for number, passage in enumerate(passages, 1)
            if number in verdicts
        ]
        append(path, new)
        rows.extend(new)
        tell(len({row.question for row in rows}), len(questions))

    await gather_or_cancel(judged(question) for question in questions if question.id not in done)
    return sorted(rows, key=lambda row: row.id)


def _agreement(label: Label, passage: Passage, question: EvaluationQuestion) -> str:
    is_gold = passage.document in question.gold_documents
    against = question.gold_documents and label == ("neutral" if is_gold else "entailment")
    return AGAINST_GOLD if against else JUDGED


def agreeing(rows: Sequence[FilterRow]) -> list[FilterRow]:
    """Keep the rows whose label is not against the gold."""
    return [row for row in rows if row.source != AGAINST_GOLD]


def dialogues_of(rows: Sequence[FilterRow], judge: Filter) -> list[Dialogue]:
    """Return what the filter's model reads of each row, and its answer: explanation and label."""
    dialogues = []
    for example in examples_of(rows):
        answer = judge.output_format.write(judge.module.signature, example)
        dialogues.append(Dialogue(judge.module.messages(example), answer))
    return dialogues


def examples_of(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return each row as inputs and outputs of the filter."""
    return [
        {
            "question": row.question,
            "hypothesis": HYPOTHESES[row.hypothesis],
            "passages": evidence_text([NumberedText(1, row.title, row.passage)]),
            "judged": Judgements(
                judgements=[Judgement(passage=1, explanation=row.explanation, label=row.label)]
            ),
        }
        for row in rows
        if isinstance(row, FilterRow)
    ]


def same_label(wanted: Mapping[str, Any], given: Mapping[str, Any]) -> float:
    """Return 1 where the filter gives its one passage the label of the example, else 0."""
    labels = [judgement.label for judgement in given["judged"].judgements]
    return float(labels[:1] == [wanted["judged"].judgements[0].label])


async def labels_by(rows: Sequence[FilterRow], judge: Filter) -> list[str]:
    """Return the label that a filter gives each row's passage alone.

    It is neutral without a model, and empty where the model's answer cannot be read.
    """

    async def label(row: FilterRow) -> str:
        texts = [NumberedText(1, row.title, row.passage)]
        request = FilterRequest(row.question, texts, row.hypothesis)
        if not judge.judges(request):
            return NOT_JUDGED.label
        try:
            verdicts = await judge.run(request, texts)
        except ModelRefused:
            return ""
        return verdicts[1].label if 1 in verdicts else ""

    return await gather_or_cancel(label(row) for row in rows)


def macro_f1(gold: Sequence[str], given: Sequence[str]) -> dict[str, float]:
    """Return the mean F1 of the labels in the gold, and the share that is right."""
    pairs = list(zip(gold, given, strict=True))
    scores = []
    for label in sorted(set(gold)):
        hits = sum(is_gold == is_given == label for is_gold, is_given in pairs)
        scores.append(2 * hits / [*gold, *given].count(label))
    right = sum(is_gold == is_given for is_gold, is_given in pairs)
    return {"macro-F1": sum(scores) / max(len(scores), 1), "accuracy": right / max(len(gold), 1)}


def train_cross_encoder(
    rows: Sequence[FilterRow],
    base: str,
    folder: Path,
    options: TrainingOptions,
    tell: Callable[[int, int], None],
) -> TrainingCurve:
    """Train an encoder into a cross-encoder with the three labels, from its last checkpoint on.

    It reads the passage first and the question second, as models for natural language inference do.
    UsageError without the extra, ModelUnavailable without the encoder.
    """
    need_extra()
    from sentence_transformers.cross_encoder import (
        CrossEncoderTrainer,
        CrossEncoderTrainingArguments,
    )
    from sentence_transformers.cross_encoder.losses import CrossEntropyLoss

    from prompts.engine.local_models import load_model

    names: Mapping[str, object] = {
        "num_labels": len(LABELS),
        "model_kwargs": {"ignore_mismatched_sizes": True},  # A head for other labels is replaced
        "config_kwargs": {
            "id2label": dict(enumerate(LABELS)),
            "label2id": {label: number for number, label in enumerate(LABELS)},
        },
    }
    model = load_model("CrossEncoder", base, "torch", allow_download=False, **names)
    checkpoints = folder / checkpoints_of(rows, base, options)
    table: list[dict[str, object]] = [
        {
            "passage": f"{row.title}\n{row.passage}".strip(),
            "question": row.question,
            "label": LABELS.index(row.label),
        }
        for row in rows
    ]
    arguments = CrossEncoderTrainingArguments(**encoder_arguments(options, checkpoints))
    trainer = CrossEncoderTrainer(
        model=model,
        args=arguments,
        train_dataset=table_of(table),
        loss=CrossEntropyLoss(model),
        callbacks=[telling(tell)],
    )
    quieten(trainer)
    trainer.train(resume_from_checkpoint=last_checkpoint(checkpoints))
    model.save_pretrained(str(folder))
    shutil.rmtree(checkpoints, ignore_errors=True)
    return curve_of(trainer.state)
