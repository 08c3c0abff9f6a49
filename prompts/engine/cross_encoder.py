"""Cross-encoders of sentence-transformers that say what supports a claim."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from prompts.engine.embedders import Lazy
from prompts.engine.errors import ModelUnavailable
from prompts.text.segment import sentences

_WINDOW, _STRIDE = 6, 4  # sentences of a passage read at once: most cross-encoders read 512 tokens


class CrossEncoderScorer:
    """Reads a claim together with each stretch of the evidence; the best stretch counts.

    An NLI model (labels with an `entailment`) reads the evidence first and gives the probability of entailment; a
    model with one output reads the claim first, as rerankers do, and its logit goes through a sigmoid.

    Raises ModelUnavailable at the first claim where the model is not on this machine.
    """

    def __init__(self, name: str, allow_download: bool = False) -> None:
        self.name = name
        self._model: Lazy[Any] = Lazy(lambda: _load(name, allow_download))

    def __call__(self, claim: str, evidence: Sequence[str]) -> float:
        stretches = [stretch for text in evidence for stretch in _stretches(text)]
        if not stretches:
            return 0.0
        labels = {str(label).lower(): number for label, number in self._model.get().config.label2id.items()}
        if "entailment" in labels:
            logits = self._logits([(stretch, claim) for stretch in stretches])
            powers = np.exp(logits - logits.max(axis=1, keepdims=True))
            return float((powers / powers.sum(axis=1, keepdims=True))[:, labels["entailment"]].max())
        if len(labels) != 1:
            raise ModelUnavailable(
                f"The cross-encoder {self.name!r} has the labels {sorted(labels)}, none of them `entailment`.",
                "Name a model for natural language inference, or a reranker with one output.",
            )
        return float(1 / (1 + np.exp(-self._logits([(claim, stretch) for stretch in stretches]).max())))

    def _logits(self, pairs: list[tuple[str, str]]) -> np.ndarray[Any, np.dtype[np.float64]]:
        import torch

        logits = self._model.get().predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)
        return np.asarray(logits, np.float64).reshape(len(pairs), -1)


def _stretches(text: str) -> list[str]:
    spans = sentences(text)
    starts = range(0, max(1, len(spans) - (_WINDOW - _STRIDE)), _STRIDE) if spans else ()
    return [text[spans[at][0] : spans[min(at + _WINDOW, len(spans)) - 1][1]] for at in starts]


def _load(name: str, allow_download: bool) -> Any:
    from sentence_transformers import CrossEncoder

    try:
        return CrossEncoder(name, local_files_only=not allow_download)
    except (OSError, ValueError) as error:
        raise ModelUnavailable(
            f"The model {name!r} is not on this machine: {str(error).splitlines()[0]}",
            f"Fetch it once with `hf download {name}` (or allow downloads), or name a folder that holds it.",
        ) from error
