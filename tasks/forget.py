"""Traces of a document in texts that models wrote from it, found by its words."""

import re
from collections.abc import Iterable, Sequence

# Words of any script; of Chinese, Japanese and Korean every sign.
_WORD = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u9fff\uac00-\ud7af]+")
_CODE = re.compile(r"\\u([0-9a-fA-F]{4})")
_ESCAPE = re.compile(r"\\[nrtbf\"/\\]")
_RUN = 5  # words in a row that no other document has

_Run = tuple[str, ...]


class Traces:
    """Words, and runs of five words, that texts have and no others do.

    Whoever quotes, names or sums up the texts uses one of them; a sentence that could come from the other texts as well
    tells nothing.
    """

    def __init__(self, texts: Iterable[str], others: Iterable[str]) -> None:
        self.words: set[str] = set()
        self.runs: set[_Run] = set()
        for text in texts:
            words = _words(text)
            self.words.update(words)
            self.runs.update(_runs(words))
        for text in others:
            words = _words(text)
            self.words.difference_update(words)
            self.runs.difference_update(_runs(words))

    def found_in(self, text: str) -> bool:
        """Whether a text, also one inside JSON, holds any of them."""
        words = _words(_ESCAPE.sub(" ", _CODE.sub(lambda code: chr(int(code[1], 16)), text)))
        return not self.words.isdisjoint(words) or not self.runs.isdisjoint(_runs(words))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _runs(words: Sequence[str]) -> Iterable[_Run]:
    return zip(*(words[place:] for place in range(_RUN)), strict=False)
