"""Models that sentence-transformers runs: embedders of any name, and cross-encoders that say what supports a claim."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from prompts.engine.embedders import CachingEmbedder, Floats, Lazy, Token, VectorCache, word_tokens
from prompts.engine.errors import ModelUnavailable
from prompts.text.segment import sentences

_WINDOW, _STRIDE = 6, 4  # sentences of a passage read at once: most cross-encoders read 512 tokens


class SentenceTransformerEmbedder(CachingEmbedder):
    """Any model of sentence-transformers, by name or folder; fetched from the Hub only with `allow_download`."""

    def __init__(self, model: str, cache: VectorCache | None = None, *, allow_download: bool = False) -> None:
        # a limit on the safe side until the model, which knows, is loaded: see `windows`
        super().__init__(model, 256, cache)
        self._model: Lazy[Any] = Lazy(lambda: _load("SentenceTransformer", model, allow_download))

    @property
    def dimension(self) -> int:
        return int(self._loaded().get_embedding_dimension())

    def windows(self, text: str, max_tokens: int | None = None) -> list[tuple[int, int]]:
        self._loaded()
        return super().windows(text, max_tokens)

    def _loaded(self) -> Any:
        model = self._model.get()
        self.max_tokens = int(model.get_max_seq_length() or 256)
        return model

    def _tokens(self, text: str) -> list[Token]:
        tokenizer = self._loaded().tokenizer
        if not getattr(tokenizer, "is_fast", False):
            return super()._tokens(text)
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return word_tokens([start for start, _ in encoded["offset_mapping"]], encoded.word_ids())

    def _encode(self, texts: list[str]) -> Floats:
        vectors = self._loaded().encode(texts, batch_size=64, show_progress_bar=False, normalize_embeddings=True)
        return np.asarray(vectors, np.float32)


class CrossEncoderScorer:
    """Reads a claim together with each stretch of the evidence; the best stretch counts.

    An NLI model (labels with an `entailment`) reads the evidence first and gives the probability of entailment; a
    model with one output reads the claim first, as rerankers do, and its logit goes through a sigmoid.

    Raises ModelUnavailable at the first claim where the model is not on this machine.
    """

    def __init__(self, name: str, allow_download: bool = False) -> None:
        self.name = name
        self._model: Lazy[Any] = Lazy(lambda: _load("CrossEncoder", name, allow_download))

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

        given = self._model.get().predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)
        return np.asarray(given, np.float64).reshape(len(pairs), -1)


def _stretches(text: str) -> list[str]:
    spans = sentences(text)
    starts = range(0, max(1, len(spans) - (_WINDOW - _STRIDE)), _STRIDE) if spans else ()
    return [text[spans[at][0] : spans[min(at + _WINDOW, len(spans)) - 1][1]] for at in starts]


def _load(kind: Literal["SentenceTransformer", "CrossEncoder"], name: str, allow_download: bool) -> Any:
    import sentence_transformers

    try:
        return getattr(sentence_transformers, kind)(name, local_files_only=not allow_download)
    except (OSError, ValueError) as error:
        raise ModelUnavailable(
            f"The model {name!r} is not on this machine: {str(error).splitlines()[0]}",
            f"Fetch it once with `hf download {name}` (or allow downloads), or name a folder that holds it.",
        ) from error
