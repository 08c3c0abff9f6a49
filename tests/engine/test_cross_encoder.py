"""A cross-encoder as a grounding scorer: tiny models made here, nothing is downloaded."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from prompts.engine.cross_encoder import CrossEncoderScorer, _stretches
from prompts.engine.errors import ModelUnavailable

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the bridge is old new . it was green".split()
OLD, GREEN = "the bridge is old.", "it was green. the bridge is new."

pytestmark = pytest.mark.slow  # sentence-transformers takes seconds to import


def tiny(folder: Path, labels: Sequence[str], biases: Sequence[float] | None = None) -> str:
    """A model with random weights; with `biases`, one that answers these logits whatever it reads."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    torch.manual_seed(7)
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    BertTokenizer(vocab=str(folder / "vocab.txt"), vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    numbered = dict(enumerate(labels))
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=len(WORDS),
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=8,
            id2label=numbered,
            label2id={label: number for number, label in numbered.items()},
        )
    )
    if biases is not None:
        with torch.no_grad():
            model.classifier.weight.zero_()
            model.classifier.bias.copy_(torch.tensor(biases))
    model.save_pretrained(folder)
    return str(folder)


def test_a_reranker_gives_a_share_and_the_best_stretch_counts(tmp_path: Path) -> None:
    scorer = CrossEncoderScorer(tiny(tmp_path / "random", ["LABEL_0"]))
    each = [scorer("the bridge is old", [text]) for text in (OLD, GREEN)]
    assert each[0] != each[1]
    assert scorer("the bridge is old", [OLD, GREEN]) == pytest.approx(max(each), abs=1e-6)
    assert scorer("the bridge is old", []) == 0.0
    certain = CrossEncoderScorer(tiny(tmp_path / "certain", ["LABEL_0"], [2.0]))
    assert certain("it was green", [OLD]) == pytest.approx(1 / (1 + math.exp(-2)), abs=1e-6)


def test_a_long_passage_is_read_in_stretches_to_its_end() -> None:
    told = [f"It was green {number}." for number in range(21)]
    stretches = _stretches(" ".join(told))
    assert all(any(sentence in stretch for stretch in stretches) for sentence in told)
    assert max(stretch.count("green") for stretch in stretches) <= 6
    assert _stretches("") == []


def test_of_an_inference_model_entailment_counts(tmp_path: Path) -> None:
    biases = [math.log(0.2), math.log(0.7), math.log(0.1)]
    scorer = CrossEncoderScorer(tiny(tmp_path / "nli", ["contradiction", "ENTAILMENT", "neutral"], biases))
    assert scorer("it was green", [GREEN]) == pytest.approx(0.7, abs=1e-6)


def test_what_no_scorer_can_use_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"(?s)labels.*'good'.*natural language inference"):
        CrossEncoderScorer(tiny(tmp_path / "three", ["bad", "fair", "good"]))("it was green", [GREEN])
    with pytest.raises(ModelUnavailable, match=r"(?s)no-such-model.*hf download"):
        CrossEncoderScorer("trellis/no-such-model")("it was green", [GREEN])
