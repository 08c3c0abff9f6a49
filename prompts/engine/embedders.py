"""Embedders turn texts into vectors, each text only once."""

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from prompts.engine.errors import ModelMisconfigured, ModelRefused
from prompts.engine.minilm import DIMENSION, MAX_TOKENS, MiniLM, bundled_folder
from prompts.engine.spending import Meter
from prompts.engine.windows import Token, estimated_tokens, windows_of
from prompts.text.segment import script_of

Floats = npt.NDArray[np.float32]

BUNDLED = "all-MiniLM-L6-v2"
_MOST_RECENT = 8_192  # vectors: the sentences of a few hundred questions
_LOADING = threading.Lock()  # one thread loads the bundled model, the others wait for it


class VectorCache(Protocol):
    """Vectors kept between runs, by embedder name and `text_hash`."""

    def get_many(self, model: str, hashes: Sequence[str]) -> Mapping[str, Floats]: ...

    def put_many(self, model: str, vectors: Mapping[str, Floats]) -> None: ...


def text_hash(text: str) -> str:
    """The key of a text in a VectorCache: its SHA-256, hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class EmbeddingForm:
    """How a model is used.

    The prompts are put before queries and passages (None: the model's own). The first `dimension`
    numbers of a vector are kept (None: all), which models trained for it allow (Matryoshka, arXiv
    2205.13147). `input_types` are what a server is told of queries and of passages (none: nothing).
    """

    query_prompt: str | None = None
    passage_prompt: str | None = None
    dimension: int | None = None
    input_types: Sequence[str] = ()

    def named(self, model: str) -> str:
        """The name of the vector space, which queries and passages share."""
        numbers = f" [{self.dimension} numbers]" if self.dimension else ""
        prompt = f" [{self.passage_prompt!r}]" if self.passage_prompt is not None else ""
        told = f" [{self.input_types[1]}]" if self.input_types else ""
        return f"{model}{numbers}{prompt}{told}"


class Embedder(ABC):
    """Makes unit vectors of texts; each distinct text goes to the model at most once.

    `name` identifies the vector space: vectors under one name can be compared. Texts go to the
    model in batches of `batch_size`, whose vectors are in the cache before the next batch.
    """

    has_query_prompt = False  # whether the model may have a prompt of its own for queries
    batch_size = 256

    def __init__(
        self, model: str, cache: VectorCache | None, form: EmbeddingForm | None = None
    ) -> None:
        self.form = form or EmbeddingForm()
        self.name = self.form.named(model)
        self.cache = cache
        self._recent: dict[str, Floats] = {}

    @property
    @abstractmethod
    def max_tokens(self) -> int:
        """The tokens of a text that one vector represents, special tokens included."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of dimensions of the model's own vectors."""

    @abstractmethod
    def _encode(self, texts: list[str], query: bool) -> Floats: ...

    @property
    def dimension(self) -> int:
        """The number of dimensions of a vector."""
        return self.form.dimension or self.width

    def _passage_prompt(self) -> str:
        return self.form.passage_prompt or ""

    def _tokens(self, text: str) -> list[Token]:
        return estimated_tokens(text)

    def _count(self, texts: int, missing: int) -> None:  # noqa: B027 -- most pay for nothing
        """Enter how many distinct texts were asked for, and how many had no vector yet."""

    def metered(self, meter: Meter) -> "Embedder":
        """The same embedder, which enters its calls into this ledger under the step `embed`."""
        return self

    def reads(self, text: str) -> bool:
        """Whether a vector of this text means anything; other texts are retrieved lexically."""
        return text.strip() != ""

    def windows(self, text: str, max_tokens: int | None = None) -> list[tuple[int, int]]:
        """Consecutive [start, end) spans that cover `text`, each of at most `max_tokens`."""
        limit = min(max_tokens or self.max_tokens, self.max_tokens) - 2  # a token at either end
        room = limit - len(self._tokens(self._passage_prompt()))
        return windows_of(text, self._tokens(text), room)

    def embed(self, texts: Sequence[str], query: bool = False, *, keep: bool = True) -> Floats:
        """Unit vectors, len(texts) x dimension. Longer texts are cut: see `windows`.

        `query`: the texts are queries, which get another prompt in some models. New vectors go
        into the cache, or without `keep` only into the memory of the process.
        """
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        hashes = {text: self._key(text, query) for text in dict.fromkeys(texts)}
        recent = self._recent
        vectors = {key: recent[key] for key in hashes.values() if key in recent}
        if self.cache:
            unknown = [key for key in hashes.values() if key not in vectors]
            vectors |= self.cache.get_many(self.name, unknown)
        missing = [text for text, key in hashes.items() if key not in vectors]
        asked = len(missing)
        while missing:  # `batch_size` may become less meanwhile
            part = missing[: self.batch_size]
            missing = missing[len(part) :]
            # A lone surrogate has no UTF-8; one character in its place keeps all offsets.
            encoded = self._encode([it.encode("utf-8", "replace").decode() for it in part], query)
            unit_vectors = _unit(self._cut(encoded), len(part), self.name)
            fresh = {hashes[text]: it for text, it in zip(part, unit_vectors, strict=True)}
            if keep and self.cache:
                self.cache.put_many(self.name, fresh)
            elif not keep:
                recent |= fresh
                for key in list(recent)[:-_MOST_RECENT]:
                    recent.pop(key, None)
            vectors |= fresh
        self._count(len(hashes), asked)
        widths = {vector.shape[-1] for vector in vectors.values()}
        if widths != {self.dimension}:
            raise ModelMisconfigured(
                f"{self.name!r} makes vectors of {self.dimension} numbers; cached are some of "
                f"{sorted(widths)}.",
                "The name now stands for another model: name that one, or empty the cache and index"
                " with --full.",
            )
        return np.stack([vectors[hashes[text]] for text in texts]).astype(np.float32, copy=False)

    def _key(self, text: str, query: bool) -> str:
        """The key in the cache; queries have other ones where prompts may differ."""
        form = self.form
        prompted = self.has_query_prompt or form.query_prompt or form.passage_prompt
        if not query or not (prompted or form.input_types):
            return text_hash(text)
        told = f" {form.input_types[0]}" if form.input_types else ""
        return text_hash(f"query {form.query_prompt!r}{told}\n{text}")

    def _cut(self, vectors: Floats) -> Floats:
        wanted = self.form.dimension
        if wanted is None or vectors.ndim != 2:
            return vectors
        if wanted > vectors.shape[1]:
            raise ModelMisconfigured(
                f"{self.name!r} makes vectors of {vectors.shape[1]} numbers, so none of {wanted}.",
                f"Set TRELLIS_EMBEDDING_DIMENSION to {vectors.shape[1]} at most, or leave it.",
            )
        return vectors[:, :wanted]


def cosines(embedder: Embedder, question: str, texts: Sequence[str]) -> list[float]:
    """The cosine of a question with each text; zeros where the embedder cannot read it."""
    if not embedder.reads(question):
        return [0.0] * len(texts)
    vectors = embedder.embed(texts, keep=False)
    asked = embedder.embed([question], query=True, keep=False)[0]
    return [float(cosine) for cosine in vectors @ asked]


@cache
def _bundled() -> MiniLM:
    return MiniLM(bundled_folder())


class BundledMiniLM(Embedder):
    """all-MiniLM-L6-v2 from the installed package: English, no download, no torch."""

    width = DIMENSION
    max_tokens = MAX_TOKENS

    def __init__(self, cache: VectorCache | None = None, form: EmbeddingForm | None = None) -> None:
        super().__init__(BUNDLED, cache, form)

    @cached_property
    def _model(self) -> MiniLM:
        with _LOADING:
            return _bundled()

    def reads(self, text: str) -> bool:
        """Whether a text is mostly in Latin script, or has digits and no letters."""
        script = script_of(text)
        return script == "latin" or (script == "none" and any(map(str.isdigit, text)))

    def _encode(self, texts: list[str], query: bool) -> Floats:
        return self._model.encode(texts)

    def _tokens(self, text: str) -> list[Token]:
        return self._model.tokens(text.encode("utf-8", "replace").decode())


class NoEmbedder(Embedder):
    """Reads no text, so that retrieval is lexical only."""

    width = 0
    max_tokens = 0

    def __init__(self) -> None:
        super().__init__("none", None)

    def reads(self, text: str) -> bool:
        return False

    def windows(self, text: str, max_tokens: int | None = None) -> list[tuple[int, int]]:
        return [(0, len(text))]

    def _encode(self, texts: list[str], query: bool) -> Floats:
        raise ModelMisconfigured(
            f"{len(texts)} texts were to be embedded with the embedding {self.name!r}.",
            "Ask `reads` first.",
        )


def _unit(vectors: Floats, count: int, name: str) -> Floats:
    """The rows at unit length; ModelRefused without one finite row for each text."""
    if vectors.ndim != 2 or len(vectors) != count:
        problem = f"with an array of shape {vectors.shape}"
    else:
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        broken = ~(np.isfinite(lengths) & (lengths > 0))
        if not broken.any():
            return np.asarray(vectors / lengths, np.float32)
        problem = f"{int(broken.sum())} of them with a vector that is zero or no number"
    raise ModelRefused(
        f"The embedding model {name!r} answered {count} texts, {problem}.",
        "Check that the model is one for embeddings, and the log of its server.",
    )
