"""How do the documents write a word or a phrase: as a name, with capitals, or as ordinary words? And do they know it?

A question in lower case says nothing about what in it is a name; the documents do.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from prompts.language.words import fold, terms
from storage.records import Chunk
from tasks.retrieve.lexical import Lexicon

# So many passages that hold the rarest word of a phrase tell how it is written.
SAMPLE = 48
MOST_CAPITAL = 0.5


class Writing:
    """The documents as a witness of spelling; immutable, so safe to share between threads."""

    def __init__(self, lexicon: Lexicon, chunks: Sequence[Chunk]) -> None:
        """`chunks` in the order of the lexicon."""
        self._lexicon = lexicon
        self._chunks = chunks
        self._capitals = lru_cache(maxsize=20_000)(self._count)

    def knows(self, word: str) -> bool:
        """Whether a word occurs in the documents, in any form; what does not may be misspelt."""
        return any(term in self._lexicon.column for term in terms(word)) or not terms(word)

    def is_name(self, spellings: Iterable[str]) -> bool | None:
        """Whether a phrase, in one of these spellings, mostly has capitals where the documents hold it; None where they
        hold it nowhere."""
        small = capital = 0
        for spelling in spellings:
            found = self._capitals(spelling)
            small, capital = small + found[0], capital + found[1]
        return capital >= MOST_CAPITAL * (small + capital) if small + capital else None

    def _count(self, spelling: str) -> tuple[int, int]:
        """How often the phrase stands in lower case, and how often with a capital."""
        pattern = re.compile(rf"(?<!\w){re.escape(spelling)}(?!\w)", re.I)
        small = capital = 0
        for chunk in self._holding(spelling):
            for match in pattern.finditer(chunk.text):
                small, capital = (small + 1, capital) if match.group().islower() else (small, capital + 1)
        return small, capital

    def _holding(self, spelling: str) -> list[Chunk]:
        columns = [self._lexicon.column.get(term) for term in terms(fold(spelling))]
        known = [column for column in columns if column is not None]
        if not known or len(known) < len(columns):
            return []
        matrix = self._lexicon.matrix
        rarest = max(known, key=lambda column: self._lexicon.idf[column])
        places = matrix.indices[matrix.indptr[rarest] : matrix.indptr[rarest + 1]]
        spread = places[:: max(1, len(places) // SAMPLE)][:SAMPLE]
        return [self._chunks[int(place)] for place in spread]
