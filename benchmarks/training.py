"""What can be trained without a large model: a router on wordings or vectors, and a filter's labels
on SICK.
"""

import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.runner import DATA, Cell, Run, measure
from prompts.engine.embedders import Embedder
from prompts.engine.local_models import CrossEncoder
from prompts.engine.models import Models
from prompts.engine.opening import open_embedder
from prompts.filter import Filter
from prompts.route import features
from prompts.text.question import parse_question
from storage.training_records import FilterRow, PreferenceRow
from tasks.train.filter import LABELS, labels_by, macro_f1, train_cross_encoder
from tasks.train.linear import Floats, evened, fit, solve
from tasks.train.lora import TrainingOptions
from tasks.train.router import STRUCTURES
from tasks.train.rows import language_of_row, read_rows

SICK = "qa/sick_nli.jsonl.gz"
_SIZE = 64  # of the random encoder's vectors


@measure(files=[SICK], optional=True)
def training(run: Run) -> None:
    """How well do a router and a filter do that are trained without a GPU?

    The router: on router_dev, compared on router_questions: a linear classifier of wordings, of the
    bundled model's vectors, and both beside each other. --data adds the labels of SICK: every fifth
    pair held out; the rules, a linear head over the bundled vectors (u·v and |u-v|), and, with the
    extra `train`, a cross-encoder of two layers that begins with random weights.
    """
    import asyncio

    embedder = open_embedder("bundled")
    run.table("router", _routers(run, embedder))
    if run.options.data is None:
        return
    rows = [row for row in read_rows(run.file(SICK), "filter")[0] if isinstance(row, FilterRow)][
        : run.limit
    ]
    known = [row for place, row in enumerate(rows) if place % 5]
    asked = [row for place, row in enumerate(rows) if not place % 5]
    gold = [row.label for row in asked]
    given = {
        "rules": asyncio.run(labels_by(asked, Filter(Models.offline()))),
        "head": _head(known, asked, embedder),
    }
    if find_spec("accelerate") is not None:
        given["cross-encoder"] = _cross_encoder(known, asked)
    most = max(set(gold), key=gold.count)
    given["always " + most] = [most] * len(gold)
    run.table(
        f"SICK, {len(known)} pairs",
        {name: dict(macro_f1(gold, labels)) for name, labels in given.items()},
    )


def _routers(run: Run, embedder: Embedder) -> dict[str, dict[str, Cell]]:
    known, asked = (
        [
            row
            for row in read_rows(DATA / f"{name}.jsonl", "router")[0]
            if isinstance(row, PreferenceRow)
        ]
        for name in ("router_dev", "router_questions")
    )
    known = known[: run.limit]
    examples = evened([(row.question, language_of_row(row), row.chosen) for row in known])
    weights = np.array([example.weight for example in examples])
    gold = np.array([[row.chosen == label for label in STRUCTURES] for row in known], float)
    fitted = fit(examples, STRUCTURES)
    by_words = np.array([_scores(fitted.weights, row.question) for row in asked])
    vectors = [
        np.asarray(embedder.embed([row.question for row in rows]), float) for rows in (known, asked)
    ]
    by_vectors = vectors[1] @ solve(vectors[0], gold, weights, 70.0)
    tables = {"words": by_words, "vectors": by_vectors, "both": by_words + by_vectors}
    right = {
        name: [
            STRUCTURES[place] == row.chosen
            for place, row in zip(scores.argmax(axis=1), asked, strict=True)
        ]
        for name, scores in tables.items()
    }
    chinese = np.array([language_of_row(row) == "zh" for row in asked])
    return {
        name: {
            "questions": len(own),
            "right": float(np.mean(own)),
            "en": float(np.array(own)[~chinese].mean()),
            "zh": float(np.array(own)[chinese].mean()),
        }
        for name, own in right.items()
    }


def _scores(weights: object, question: str) -> Floats:
    table: dict[str, tuple[float, ...]] = dict(weights)  # type: ignore[call-overload]  # a mapping
    known = [table[name] for name in sorted(features(parse_question(question))) if name in table]
    return (
        np.sum(known, axis=0) / np.sqrt(max(len(known), 1)) if known else np.zeros(len(STRUCTURES))
    )


def _head(known: Sequence[FilterRow], asked: Sequence[FilterRow], embedder: Embedder) -> list[str]:
    gold = np.array([[row.label == label for label in LABELS] for row in known], float)
    weights = solve(_paired(known, embedder), gold, np.ones(len(known)), 70.0)
    return [LABELS[place] for place in (_paired(asked, embedder) @ weights).argmax(axis=1)]


def _paired(rows: Sequence[FilterRow], embedder: Embedder) -> Floats:
    first = np.asarray(embedder.embed([row.passage for row in rows]), float)
    second = np.asarray(embedder.embed([row.question for row in rows]), float)
    scale = np.sqrt(first.shape[1])
    return np.hstack(
        [first * second * scale, np.abs(first - second) * scale, np.ones((len(rows), 1))]
    )


def _cross_encoder(known: Sequence[FilterRow], asked: Sequence[FilterRow]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        base, trained = Path(folder, "base"), Path(folder, "trained")
        base.mkdir()
        random_encoder(base, [f"{row.passage} {row.question}" for row in known])
        options = TrainingOptions(learning_rate=1e-3, epochs=10, batch=32, save_every=500)
        train_cross_encoder(known, str(base), trained, options, lambda *_: None)
        encoder = CrossEncoder(str(trained))
        names = {place: name for name, place in encoder.labels.items()}
        logits = encoder.logits([(row.passage, row.question) for row in asked])
        return [names[int(place)] for place in logits.argmax(axis=1)]


def random_encoder(folder: Path, texts: Sequence[str]) -> None:
    """An encoder of two layers with random weights that knows the words of the texts."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    torch.manual_seed(7)
    words = sorted({word for text in texts for word in text.lower().split()})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    BertTokenizer(
        vocab=str(folder / "vocab.txt"), vocab_file=str(folder / "vocab.txt")
    ).save_pretrained(folder)
    shape = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=_SIZE,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=2 * _SIZE,
        max_position_embeddings=512,
    )
    BertForSequenceClassification(shape).save_pretrained(folder)
