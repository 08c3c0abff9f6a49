"""Embedders: which model turns texts into vectors, each text only once, long texts in windows."""

import hashlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from prompts.engine.errors import ModelMisconfigured, ModelRefused
from prompts.engine.providers import Backend, ModelChoice, embedding_endpoint, is_provider
from prompts.engine.spending import Meter
from prompts.text.regex import regex
from prompts.text.segment import script_of

if TYPE_CHECKING:  # tokenizers and safetensors load only when a text is embedded
    from prompts.engine.minilm import MiniLM

Floats = npt.NDArray[np.float32]
Made = TypeVar("Made")

BUNDLED = "all-MiniLM-L6-v2"
CHOICES = (
    "Choose `bundled` (all-MiniLM-L6-v2, the default), `none` (lexical retrieval only), a model of "
    "sentence-transformers as `ORG/NAME` or a folder, `openai/NAME` (`mistral/…`, `ollama/…`), or any model's name "
    "together with the base URL of an OpenAI-compatible server."
)
_SENTENCE_END = regex(r"[.!?][\"')\]”’]*(?=\s)|[。！？；][”’」』）]*|\n")
_SPACE = regex(r"\s")
_MOST_RECENT = 8_192  # vectors: those of the sentences of some hundred questions
# Without a tokenizer: four letters, one ideograph or one sign a token: a little more than real tokenizers make.
_ROUGH_TOKEN = regex(r"[\u2e80-\u9fff\uac00-\ud7af]|[^\W_]{1,4}|[^\w\s]|_")


class VectorCache(Protocol):
    """Vectors kept between runs, by embedder name and `text_hash`."""

    def get_many(self, model: str, hashes: Sequence[str]) -> Mapping[str, Floats]: ...

    def put_many(self, model: str, vectors: Mapping[str, Floats]) -> None: ...


def text_hash(text: str) -> str:
    """The key of a text in a VectorCache: its SHA-256, hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class EmbeddingForm:
    """What is put before queries and passages (None: what the model says itself), and how many of a vector's first
    numbers are kept (None: all), as models that were trained for it allow (Matryoshka, arXiv 2205.13147)."""

    query_prompt: str | None = None
    passage_prompt: str | None = None
    dimension: int | None = None

    def named(self, model: str) -> str:
        """The name of the vector space: queries lie in that of the passages, whatever stands before them."""
        numbers = f" [{self.dimension} numbers]" if self.dimension else ""
        return f"{model}{numbers}" + (f" [{self.passage_prompt!r}]" if self.passage_prompt is not None else "")


class Embedder(ABC):
    """Texts to unit vectors: each distinct text goes to the model once, or not at all.

    `name` stands for the vector space: vectors of one name can be compared. Vectors are in the cache before they are
    used: all at once, or after so many texts as `kept_after` says.
    """

    tells_queries = False  # whether the model itself may have a prompt for queries

    def __init__(self, model: str, cache: VectorCache | None, form: EmbeddingForm | None = None) -> None:
        self.form = form or EmbeddingForm()
        self.name = self.form.named(model)
        self._cache = cache
        self._recent: dict[str, Floats] = {}

    @property
    def kept_after(self) -> int | None:
        """After how many texts the vectors go into the cache; None: all at once."""
        return None

    @property
    @abstractmethod
    def max_tokens(self) -> int:
        """What one vector reads of a text, special tokens included."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many numbers the model's own vectors have."""

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return self.form.dimension or self.width

    @abstractmethod
    def _encode(self, texts: list[str], query: bool) -> Floats: ...

    def _passage_prompt(self) -> str:
        return self.form.passage_prompt or ""

    def _tokens(self, text: str) -> "list[Token]":
        return [Token(match.start(), True) for match in _ROUGH_TOKEN.finditer(text)]

    def _count(self, texts: int, missing: int) -> None:  # noqa: B027 -- most pay for nothing
        """So many distinct texts were asked for, of which so many had no vector yet."""

    def metered(self, meter: Meter) -> "Embedder":
        """The same embedder, whose calls to a server are entered into this ledger under the step `embed`."""
        return self  # on this machine nothing is paid for

    def reads(self, text: str) -> bool:
        """Whether a vector of this text means anything; where not, the text is retrieved lexically."""
        return text.strip() != ""

    def windows(self, text: str, max_tokens: int | None = None) -> list[tuple[int, int]]:
        """Consecutive [start, end) spans that cover `text`, each readable whole: one where it fits."""
        limit = min(max_tokens or self.max_tokens, self.max_tokens) - 2  # the model adds one token at either end
        return _windows(text, self._tokens(text), limit - len(self._tokens(self._passage_prompt())))

    def embed(self, texts: Sequence[str], query: bool = False, *, keep: bool = True) -> Floats:
        """Unit vectors, len(texts) x dimension. Reads `max_tokens` of each text: cut longer ones by `windows` first.

        `query`: the texts are looked for among passages, which some models are told. `keep` says whether new vectors go
        into the cache; those that do not are kept in the process, the last of them.
        """
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        hashes = {text: self._key(text, query) for text in dict.fromkeys(texts)}
        vectors = {key: vector for key in hashes.values() if (vector := self._recent.get(key)) is not None}
        if self._cache:
            vectors |= self._cache.get_many(self.name, [key for key in hashes.values() if key not in vectors])
        missing = [text for text, key in hashes.items() if key not in vectors]
        asked = len(missing)
        while missing:
            part = missing[: self.kept_after or len(missing)]
            missing = missing[len(part) :]
            # a lone surrogate (from a broken file name or page) has no UTF-8; one sign for it keeps all offsets
            encoded = self._encode([text.encode("utf-8", "replace").decode() for text in part], query)
            unit_vectors = _unit(self._cut(encoded), len(part), self.name)
            fresh = {hashes[text]: vector for text, vector in zip(part, unit_vectors, strict=True)}
            if self._cache and keep:
                self._cache.put_many(self.name, fresh)
            elif not keep:
                self._recent |= fresh
                for key in list(self._recent)[:-_MOST_RECENT]:
                    self._recent.pop(key, None)
            vectors |= fresh
        self._count(len(hashes), asked)
        widths = {vector.shape[-1] for vector in vectors.values()}
        if widths != {self.dimension}:
            raise ModelMisconfigured(
                f"{self.name!r} makes vectors of {self.dimension} numbers; cached are some of {sorted(widths)}.",
                "The name now stands for another model: name that one, or empty the cache and index with --full.",
            )
        return np.stack([vectors[hashes[text]] for text in texts]).astype(np.float32, copy=False)

    def _key(self, text: str, query: bool) -> str:
        """The key in the cache: a query's own where it may read otherwise than a passage of the same words."""
        if not query or not (self.tells_queries or self.form.query_prompt or self.form.passage_prompt):
            return text_hash(text)
        return text_hash(f"query {self.form.query_prompt!r}\n{text}")

    def _cut(self, vectors: Floats) -> Floats:
        wanted = self.form.dimension
        if wanted is None or vectors.ndim != 2:
            return vectors
        if wanted > vectors.shape[1]:
            raise ModelMisconfigured(
                f"{self.name!r} makes vectors of {vectors.shape[1]} numbers, so none of {wanted}.",
                f"Set TRELLIS_EMBEDDING_DIMENSION to {vectors.shape[1]} at most, or leave it empty.",
            )
        return vectors[:, :wanted]


def cosines(embedder: Embedder, question: str, texts: Sequence[str]) -> list[float]:
    """The cosine of a question with each of the texts; 0 where the embedder cannot read it. Nothing is stored."""
    if not embedder.reads(question):
        return [0.0] * len(texts)
    vectors, asked = embedder.embed(texts, keep=False), embedder.embed([question], query=True, keep=False)[0]
    return [float(cosine) for cosine in vectors @ asked]


class Lazy(Generic[Made]):
    """A value made at its first use, once, whichever thread comes first; after a failure the next use tries again."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._made: Made | None = None
        self._lock = threading.Lock()

    def get(self) -> Made:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made


class BundledMiniLM(Embedder):
    """all-MiniLM-L6-v2 from the installed package: English, no download, no torch."""

    width = 384
    max_tokens = 256
    kept_after = 256  # so that no caller waits long for another

    def __init__(
        self, cache: VectorCache | None = None, form: EmbeddingForm | None = None,
        load: "Callable[[], MiniLM] | None" = None,
    ) -> None:  # fmt: skip
        super().__init__(BUNDLED, cache, form)
        self._model = Lazy(load or _load_minilm)

    def reads(self, text: str) -> bool:
        """Text mostly in Latin script; figures without letters too."""
        script = script_of(text)
        return script == "latin" or (script == "none" and any(map(str.isdigit, text)))

    def _encode(self, texts: list[str], query: bool) -> Floats:
        return self._model.get().encode(texts)

    def _tokens(self, text: str) -> "list[Token]":
        return self._model.get().tokens(text.encode("utf-8", "replace").decode())


class NoEmbedder(Embedder):
    """Lexical retrieval only: reads no text."""

    width = 0
    max_tokens = 0

    def __init__(self, name: str = "none") -> None:
        super().__init__(name, None)

    def reads(self, text: str) -> bool:
        return False

    def windows(self, text: str, max_tokens: int | None = None) -> list[tuple[int, int]]:
        return [(0, len(text))]

    def _encode(self, texts: list[str], query: bool) -> Floats:
        raise ModelMisconfigured(
            f"{len(texts)} texts were to be embedded with the embedding {self.name!r}.", "Ask `reads` first."
        )


def open_embedder(  # noqa: PLR0913 -- what the settings hold, all but the first by name where it matters
    name: str | None = None, base_url: str | None = None, api_key: str | None = None, cache: VectorCache | None = None,
    *, form: EmbeddingForm | None = None, backend: Backend = "torch", allow_download: bool = False,
) -> Embedder:  # fmt: skip
    """The embedder that the settings name, not loaded yet. Raises ModelMisconfigured for an unknown name.

    A key that is not given is read from the provider's own variable (`OPENAI_API_KEY`), for its own address alone.
    """
    if name == "none":
        return NoEmbedder()
    if name == "bundled" or (name in {None, "", BUNDLED} and not base_url):
        if form and (form.query_prompt or form.passage_prompt):
            raise ModelMisconfigured("The bundled embedding knows no prompts.", "Leave them empty, or name a model.")
        return BundledMiniLM(cache, form)
    if not name:
        raise ModelMisconfigured(f"No embedding model is named for {base_url!r}.", CHOICES)
    served = embedding_endpoint(ModelChoice(name, base_url, api_key), os.environ)
    if served is not None:
        from prompts.engine.embedding_api import ApiEmbedder

        return ApiEmbedder(served, cache, form)
    if is_local_model(name):
        from prompts.engine.local_models import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(name, cache, form, backend=backend, allow_download=allow_download)
    raise ModelMisconfigured(f"There is no embedding {name!r}.", CHOICES)


def is_local_model(name: str) -> bool:
    """Whether a name can be that of a model of sentence-transformers: a folder, or `ORG/NAME` on the Hub.

    `sentence-transformers/ORG/NAME` says it where a provider is called as the organisation is.
    """
    prefix, _, rest = name.partition("/")
    return bool(rest and not is_provider(prefix)) or Path(name).expanduser().is_dir()


def _unit(vectors: Floats, count: int, name: str) -> Floats:
    """The rows at unit length. Raises ModelRefused where there is not one finite, non-zero row a text."""
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


def _load_minilm() -> "MiniLM":
    from prompts.engine.minilm import MiniLM, bundled_folder

    return MiniLM(bundled_folder())


# --- windows ---------------------------------------------------------------------------------------------------------


class Token(NamedTuple):
    """One token of a text: where it starts, and whether a word starts there (a cut there changes no token)."""

    start: int
    opens_word: bool


def word_tokens(starts: Sequence[int], words: Sequence[int | None]) -> list[Token]:
    """Tokens with these starts, each in a word of this number."""
    return [Token(start, place == 0 or words[place] != words[place - 1]) for place, start in enumerate(starts)]


def _windows(text: str, tokens: Sequence[Token], limit: int) -> list[tuple[int, int]]:
    """Consecutive [start, end) spans that cover `text`, each of at most `limit` tokens.

    A span ends after a sentence where one ends in its second half, else at white space, else between two words, else
    (a word of more than `limit` tokens) inside a word.
    """
    if limit < 1:
        raise ValueError(f"A window of {limit} tokens holds no text: raise max_tokens.")
    cuts = [0]
    first = 0
    while len(tokens) - first > limit:
        cut = _cut(text, tokens[first : first + limit + 1], limit)
        cuts.append(cut)
        while first < len(tokens) and tokens[first].start < cut:
            first += 1
    return list(zip(cuts, [*cuts[1:], len(text)], strict=True))


def _cut(text: str, tokens: Sequence[Token], limit: int) -> int:
    begin = tokens[0].start
    later = [token for token in tokens[1:] if token.start > begin]
    words = [token.start for token in later if token.opens_word]
    if not words:
        # one character can be several tokens: then it stands alone
        return later[-1].start if later else begin + 1
    half, latest = tokens[limit // 2].start, words[-1]
    for ends in (_SENTENCE_END, _SPACE):
        if offsets := [match.end() for match in ends.finditer(text, half, latest)]:
            return offsets[-1]
    return latest
