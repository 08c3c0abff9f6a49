"""What does one generation say of the questions that memory compares? Kept for all questions of a session."""

import logging
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from prompts.language.words import content_terms, terms
from storage.records import content_id
from storage.vectors import VectorReader
from tasks.alike import Mention, Question, taken_apart
from tasks.calibration import DEFAULT, Scale, of_cosines
from tasks.retrieve.search import SearchIndex
from tasks.traverse.names import Spellings

MOST_TEXTS = 20_000
SAMPLE = 300  # passages, for the scale of an embedder that is not known
WORDS_OF_NAMELESS = 2

Value = TypeVar("Value")

logger = logging.getLogger(__name__)


class _Kept(Generic[Value]):
    """What a text gives, worked out once; the oldest goes first."""

    def __init__(self, make: Callable[[str], Value]) -> None:
        self._make = make
        self._found: OrderedDict[str, Value] = OrderedDict()

    def __call__(self, text: str) -> Value:
        found = self._found.get(text)
        if found is None:
            found = self._found[text] = self._make(text)
            if len(self._found) > MOST_TEXTS:
                self._found.popitem(last=False)
        return found


class Notes:
    """Questions taken apart by the names of a generation, and what it holds about them."""

    def __init__(self, index: SearchIndex, vectors: VectorReader) -> None:
        self._index = index
        self._vectors = vectors
        self.asked = _Kept(self._taken_apart)
        self.surroundings = _Kept(self._digest)

    def scale(self, embedder: str) -> Scale:
        """Of the cosines of an embedder: the one known, else measured by the passages of this generation."""
        if embedder == DEFAULT or self._vectors.model() != embedder:
            return of_cosines(embedder, np.zeros((0, 1), np.float32))
        return self._measured

    @cached_property
    def digest(self) -> str:
        """Of all passages of the generation."""
        return content_id("all", *sorted(self._index.position))

    @cached_property
    def _measured(self) -> Scale:
        scale = of_cosines(str(self._vectors.model()), self._unrelated())
        logger.info("Memory compares questions by %s.", scale.name)
        return scale

    def _unrelated(self) -> NDArray[np.float32]:
        """Vectors of passages, at most one a document."""
        model = str(self._vectors.model())
        firsts = [self._index.chunks[places[0]].id for places in self._index.documents.values()]
        windows = {one.chunk: one.text_hash for one in self._vectors.windows(firsts[:: max(len(firsts) // SAMPLE, 1)])}
        found = self._vectors.get(model, list(windows.values()))
        return np.stack(list(found.values())) if found else np.zeros((0, 1), np.float32)

    @cached_property
    def _spellings(self) -> Spellings:
        index = self._index
        return Spellings(index.spellings, [entity.id for entity in index.entities], index.names)

    def _taken_apart(self, text: str) -> Question:
        found = self._spellings.named(text)
        sure = [one for one in found if not one.doubtful] or found
        return taken_apart(text, [Mention(one.start, one.end, frozenset(one.entities)) for one in sure])

    def _digest(self, text: str) -> str:
        """Of all chunks that hold the rarest name in a question, or its rarest words where it names nothing.

        Where it changes, there is something new about the question, or something less.
        """
        asked, lexicon = self.asked(text), self._index.lexicon
        names = [terms(text[one.start : one.end]) for one in asked.mentions]
        if not any(names):
            words = sorted(content_terms(text), key=lambda term: (-lexicon.idf_of(term), term))
            names = [[term for term in words if len(lexicon.holding(term))][:WORDS_OF_NAMELESS]]
        holding = min((self._holding(name) for name in names if name), key=len, default=frozenset())
        return content_id("near", *sorted(self._index.chunks[place].id for place in holding))

    def _holding(self, name: list[str]) -> frozenset[int]:
        found = [frozenset(self._index.lexicon.holding(term).tolist()) for term in name]
        return frozenset.intersection(*found)
