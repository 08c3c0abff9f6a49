"""Tiny models with random weights, made where a test needs one: nothing is downloaded."""

from collections.abc import Sequence
from pathlib import Path

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the bridge is old new . it was green".split()


def tiny_cross_encoder(
    folder: Path,
    labels: Sequence[str],
    biases: Sequence[float] | None = None,
    words: Sequence[str] = (),
) -> str:
    """The folder of a cross-encoder that knows these words; with `biases` it answers these."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    torch.manual_seed(7)
    folder.mkdir(exist_ok=True)
    known = list(dict.fromkeys([*WORDS, *words]))
    (folder / "vocab.txt").write_text("\n".join(known), encoding="utf-8")
    BertTokenizer(
        vocab=str(folder / "vocab.txt"), vocab_file=str(folder / "vocab.txt")
    ).save_pretrained(folder)
    numbered = dict(enumerate(labels))
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=len(known),
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=8,
            initializer_range=0.5,  # scores far apart: a batch changes their last digits
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
