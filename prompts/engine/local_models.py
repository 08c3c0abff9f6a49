"""Models of sentence-transformers on this machine: embedders and cross-encoders.

torch and sentence-transformers take ten seconds to load, so they are imported at their first use.
"""

import threading
import time
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy

from prompts.engine.embedders import Embedder, EmbeddingForm, Floats, VectorCache
from prompts.engine.errors import ModelUnavailable
from prompts.engine.messages import rough_tokens
from prompts.engine.providers import Backend
from prompts.engine.rerankers import Reranker
from prompts.engine.windows import Token, word_tokens
from prompts.text.segment import sentences

_WINDOW, _STRIDE = 6, 4  # sentences of a passage read at once: most cross-encoders read 512 tokens


_LOADING = threading.Lock()  # one thread loads a model, the others wait for it
Kind = Literal["SentenceTransformer", "CrossEncoder"]


def load_model(
    kind: Kind,
    name: str,
    backend: Backend,
    allow_download: bool,
    **settings: object,
) -> Any:
    """A model by its name on the Hub (`sentence-transformers/ORG/NAME` too) or by its folder.

    Raises ModelUnavailable where it is not on this machine and may not be downloaded, or where the
    backend is not installed.
    """
    import sentence_transformers  # it takes seconds to load

    inner, folder = name.removeprefix("sentence-transformers/"), Path(name).expanduser()
    hub = inner if "/" in inner else name
    if backend == "openvino":  # it would compute in 16 bits, which changes ranks
        settings["model_kwargs"] = {"ov_config": {"INFERENCE_PRECISION_HINT": "f32"}}
    try:
        return getattr(sentence_transformers, kind)(
            str(folder) if folder.is_dir() else hub,
            backend=backend,
            local_files_only=not allow_download,
            **settings,
        )
    except Exception as error:
        words = str(error).partition("\n")[0] or type(error).__name__
        raise ModelUnavailable(
            f"The model {name!r} cannot be loaded by {backend}: {words}",
            f"Fetch it once with `hf download {hub}` (or allow downloads), or name a folder that "
            "holds it. The backends onnx and openvino need optimum-onnx[onnxruntime] and "
            "optimum-intel[openvino].",
        ) from error


@cache
def _loaded(kind: Kind, name: str, backend: Backend, allow_download: bool) -> Any:
    return load_model(kind, name, backend, allow_download)


class SentenceTransformerEmbedder(Embedder):
    """Any model of sentence-transformers, with its own prompts unless others are set."""

    has_query_prompt = True

    def __init__(
        self,
        model: str,
        cache: VectorCache | None = None,
        form: EmbeddingForm | None = None,
        *,
        backend: Backend = "torch",
        allow_download: bool = False,
    ) -> None:
        super().__init__(model, cache, form)
        self._loaded_by = model, backend, allow_download

    @cached_property
    def _model(self) -> Any:
        with _LOADING:
            return _loaded("SentenceTransformer", *self._loaded_by)

    @property
    def max_tokens(self) -> int:
        return int(self._model.get_max_seq_length() or 256)

    @property
    def width(self) -> int:
        return int(self._model.get_embedding_dimension())

    def _passage_prompt(self) -> str:
        return self._prompt(self.form.passage_prompt, "document", "passage", "corpus")

    def _prompt(self, ours: str | None, *names: str) -> str:
        """Our prompt, or the model's first one of these names, or its default."""
        model = self._model
        own = (model.prompts.get(name) for name in (*names, model.default_prompt_name))
        return next(filter(None, own), "") if ours is None else ours

    def _tokens(self, text: str) -> list[Token]:
        tokenizer = self._model.tokenizer
        if not getattr(tokenizer, "is_fast", False):
            return super()._tokens(text)
        encoded = tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        return word_tokens([start for start, _ in encoded["offset_mapping"]], encoded.word_ids())

    def _encode(self, texts: list[str], query: bool) -> Floats:
        encode = self._model.encode_query if query else self._model.encode_document
        prompt = self._prompt(self.form.query_prompt, "query") if query else self._passage_prompt()
        vectors = encode(texts, prompt=prompt, batch_size=64, show_progress_bar=False)
        return np.asarray(vectors, np.float32)


class CrossEncoder:
    """A cross-encoder, loaded at its first use, and once for all copies."""

    def __init__(
        self, name: str, *, backend: Backend = "torch", allow_download: bool = False
    ) -> None:
        self.name = name
        self._loaded_by = name, backend, allow_download

    @cached_property
    def _model(self) -> Any:
        with _LOADING:
            return _loaded("CrossEncoder", *self._loaded_by)

    @property
    def labels(self) -> dict[str, int]:
        """The number of each label, in lower case."""
        ids = self._model.config.label2id.items()
        return {str(label).lower(): number for label, number in ids}

    def logits(self, pairs: list[tuple[str, str]]) -> npt.NDArray[np.float64]:
        """A row for each pair of texts, a column for each label."""
        import torch  # it takes seconds to load

        logits = self._model.predict(
            pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False
        )
        return np.asarray(logits, np.float64).reshape(len(pairs), -1)


class CrossEncoderReranker(CrossEncoder, Reranker):
    """Scores passages from 0 to 1; a long one by its best stretch.

    Raises ModelUnavailable at the first question where the model has several outputs.
    """

    def __init__(
        self, name: str, *, backend: Backend = "torch", allow_download: bool = False
    ) -> None:
        CrossEncoder.__init__(self, name, backend=backend, allow_download=allow_download)
        Reranker.__init__(self, name)

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        started, labels = time.monotonic(), self.labels
        if len(labels) != 1:
            raise ModelUnavailable(
                f"The cross-encoder {self.name!r} has the labels {sorted(labels)}: it ranks "
                "nothing.",
                "Name a reranker, which has one output.",
            )
        room = int(self._model.max_seq_length or 512) - rough_tokens(query)
        pieces = [
            [text] if rough_tokens(text) <= room else stretches(text) or [text] for text in passages
        ]
        every = [piece for group in pieces for piece in group]
        logits = self.logits([(query, piece) for piece in every])[:, 0]
        values = iter(scipy.special.expit(logits).tolist())
        best = [max(next(values) for _ in group) for group in pieces]
        self._enter(query, every, started, 0.0)
        return best


class CrossEncoderScorer(CrossEncoder):
    """The probability that the best stretch of the evidence entails a claim.

    Raises ModelUnavailable at the first claim where the model has no label `entailment`.
    """

    def __call__(self, claim: str, evidence: Sequence[str]) -> float:
        parts = [stretch for text in evidence for stretch in stretches(text)]
        if not parts:
            return 0.0
        labels = self.labels
        if "entailment" not in labels:
            raise ModelUnavailable(
                f"The cross-encoder {self.name!r} has the labels {sorted(labels)}, none of them "
                "`entailment`.",
                "Name a model for natural language inference.",
            )
        logits = self.logits([(part, claim) for part in parts])
        return float(scipy.special.softmax(logits, axis=1)[:, labels["entailment"]].max())


def stretches(text: str) -> list[str]:
    """Overlapping stretches of a text, a few sentences each."""
    spans = sentences(text)
    starts = range(0, max(1, len(spans) - (_WINDOW - _STRIDE)), _STRIDE) if spans else ()
    ends = [spans[min(at + _WINDOW, len(spans)) - 1][1] for at in starts]
    return [text[spans[at][0] : end] for at, end in zip(starts, ends, strict=True)]
