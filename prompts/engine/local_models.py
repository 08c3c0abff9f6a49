"""Models of sentence-transformers on this machine: embedders, and cross-encoders that rerank or judge support.

torch and sentence-transformers take ten seconds and 700 MB to load, so they are imported when a model is first used.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from prompts.engine.calls import rough_tokens
from prompts.engine.embedders import (
    Embedder,
    EmbeddingForm,
    Floats,
    Lazy,
    Token,
    VectorCache,
    word_tokens,
)
from prompts.engine.errors import ModelUnavailable
from prompts.engine.providers import Backend
from prompts.engine.rerankers import STEP, Reranker
from prompts.engine.spending import Spent
from prompts.text.segment import sentences

_NEEDS = {"onnx": "optimum-onnx[onnxruntime]", "openvino": "optimum-intel[openvino]"}
# OpenVINO computes in 16 bits where a processor can: ranks change, and vectors that torch has made lie elsewhere.
_EXACT = {"model_kwargs": {"ov_config": {"INFERENCE_PRECISION_HINT": "f32"}}}
_WINDOW, _STRIDE = 6, 4  # sentences of a passage read at once: most cross-encoders read 512 tokens


def load_model(
    kind: Literal["SentenceTransformer", "CrossEncoder"], name: str, backend: Backend, allow_download: bool,
    **settings: object,
) -> Any:  # fmt: skip
    """A model by its name on the Hub (`sentence-transformers/ORG/NAME` too) or by its folder.

    Fetched from the Hub only with `allow_download`; ModelUnavailable where it is not on this machine, or where what its
    backend needs is not installed.
    """
    import sentence_transformers

    inner = name.removeprefix("sentence-transformers/")
    hub = inner if "/" in inner else name
    folder = Path(name).expanduser()
    if backend == "openvino":
        settings |= _EXACT
    try:
        return getattr(sentence_transformers, kind)(
            str(folder) if folder.is_dir() else hub, backend=backend, local_files_only=not allow_download, **settings
        )
    except Exception as error:
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        if backend != "torch":
            raise ModelUnavailable(
                f"The model {name!r} cannot be computed by {backend}: {words}",
                f"Install {_NEEDS[backend]}, or leave TRELLIS_MODEL_BACKEND at torch.",
            ) from error
        if not isinstance(error, OSError | ValueError):
            raise
        raise ModelUnavailable(
            f"The model {name!r} is not on this machine: {words}",
            f"Fetch it once with `hf download {hub}` (or allow downloads), or name a folder that holds it. The model "
            "of a server needs its provider's prefix, or an address.",
        ) from error


class SentenceTransformerEmbedder(Embedder):
    """Any model of sentence-transformers. Prompts that nobody sets are the model's own for queries and documents."""

    tells_queries = True

    def __init__(
        self, model: str, cache: VectorCache | None = None, form: EmbeddingForm | None = None,
        *, backend: Backend = "torch", allow_download: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(model, cache, form)
        self._model: Lazy[Any] = Lazy(lambda: load_model("SentenceTransformer", model, backend, allow_download))

    @property
    def max_tokens(self) -> int:
        return int(self._model.get().get_max_seq_length() or 256)

    @property
    def width(self) -> int:
        return int(self._model.get().get_embedding_dimension())

    def _passage_prompt(self) -> str:
        return self._prompt(self.form.passage_prompt, "document", "passage", "corpus")

    def _prompt(self, ours: str | None, *names: str) -> str:
        """Ours, where it is set; else the model's own of the first of these names, or the one for every text."""
        model = self._model.get()
        own = (model.prompts.get(name) for name in (*names, model.default_prompt_name))
        return next(filter(None, own), "") if ours is None else ours

    def _tokens(self, text: str) -> list[Token]:
        tokenizer = self._model.get().tokenizer
        if not getattr(tokenizer, "is_fast", False):
            return super()._tokens(text)
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return word_tokens([start for start, _ in encoded["offset_mapping"]], encoded.word_ids())

    def _encode(self, texts: list[str], query: bool) -> Floats:
        model = self._model.get()
        encode = model.encode_query if query else model.encode_document
        prompt = self._prompt(self.form.query_prompt, "query") if query else self._passage_prompt()
        return np.asarray(encode(texts, prompt=prompt, batch_size=64, show_progress_bar=False), np.float32)


class CrossEncoder:
    """A cross-encoder that is loaded at its first use."""

    def __init__(self, name: str, *, backend: Backend = "torch", allow_download: bool = False) -> None:
        self.name = name
        self._model: Lazy[Any] = Lazy(lambda: load_model("CrossEncoder", name, backend, allow_download))

    @property
    def labels(self) -> dict[str, int]:
        """The number of each label, in lower case."""
        return {str(label).lower(): number for label, number in self._model.get().config.label2id.items()}

    def logits(self, pairs: list[tuple[str, str]]) -> npt.NDArray[np.float64]:
        """Of each pair of texts a row, of each label a column."""
        import torch

        logits = self._model.get().predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)
        return np.asarray(logits, np.float64).reshape(len(pairs), -1)

    def relevance(self, query: str, passages: Sequence[str]) -> npt.NDArray[np.float64]:
        """How relevant each passage is to the query, 0 to 1, by a model with one output."""
        return np.asarray(1 / (1 + np.exp(-self.logits([(query, passage) for passage in passages])[:, 0])))


class CrossEncoderReranker(CrossEncoder, Reranker):
    """Reads the question together with each passage; of a passage longer than the model reads its best stretch counts.

    Raises ModelUnavailable at the first question where the model is not on this machine, or has several outputs.
    """

    def __init__(self, name: str, *, backend: Backend = "torch", allow_download: bool = False) -> None:
        CrossEncoder.__init__(self, name, backend=backend, allow_download=allow_download)
        Reranker.__init__(self, name)

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        started, labels = time.monotonic(), self.labels
        if len(labels) != 1:
            raise ModelUnavailable(
                f"The cross-encoder {self.name!r} has the labels {sorted(labels)}: it ranks nothing.",
                "Name a reranker, which has one output.",
            )
        room = int(self._model.get().max_seq_length or 512) - rough_tokens(query)
        pieces = [[text] if rough_tokens(text) <= room else stretches(text) or [text] for text in passages]
        values = iter(self.relevance(query, [piece for group in pieces for piece in group]).tolist())
        best = [max(next(values) for _ in group) for group in pieces]
        tokens = sum(rough_tokens(query) + rough_tokens(piece) for group in pieces for piece in group)
        self.meter.record(STEP, self.name, Spent(calls=1, input_tokens=tokens, seconds=time.monotonic() - started))
        return best


class CrossEncoderScorer(CrossEncoder):
    """The probability that the best stretch of the evidence entails a claim, by a model for natural language inference.

    Raises ModelUnavailable at the first claim where the model is not on this machine, or has no label `entailment`.
    """

    def __call__(self, claim: str, evidence: Sequence[str]) -> float:
        parts = [stretch for text in evidence for stretch in stretches(text)]
        if not parts:
            return 0.0
        labels = self.labels
        if "entailment" not in labels:
            raise ModelUnavailable(
                f"The cross-encoder {self.name!r} has the labels {sorted(labels)}, none of them `entailment`.",
                "Name a model for natural language inference.",
            )
        logits = self.logits([(part, claim) for part in parts])
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return float((powers / powers.sum(axis=1, keepdims=True))[:, labels["entailment"]].max())


def stretches(text: str) -> list[str]:
    """A text in overlapping stretches of a few sentences."""
    spans = sentences(text)
    starts = range(0, max(1, len(spans) - (_WINDOW - _STRIDE)), _STRIDE) if spans else ()
    return [text[spans[at][0] : spans[min(at + _WINDOW, len(spans)) - 1][1]] for at in starts]
