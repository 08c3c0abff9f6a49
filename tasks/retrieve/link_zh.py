"""Which known names does a Chinese question hold? It has no spaces, so every stretch of it is looked up."""

from collections.abc import Iterable

from prompts.language.words import HAN_RUN, fold

# Longer Chinese names are rare, and each length costs a look-up at every place of the question.
LONGEST = 24
Found = tuple[int, int, str]


class HanNames:
    """The keys that hold Chinese, for finding them in unspaced text; immutable."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._key_of: dict[str, str] = {}
        for key in keys:
            bare = key.replace(" ", "")
            if len(bare) > 1 and HAN_RUN.search(bare):
                self._key_of.setdefault(bare, key)
        self._longest = min(LONGEST, max(map(len, self._key_of), default=0))

    def find(self, question: str) -> list[Found]:
        """(start, end, key) of the longest names, none overlapping another, in the order of the question."""
        bare, places = _unspaced(question)
        found: list[tuple[int, int, str]] = []
        for start in range(len(bare)):
            for end in range(start + 2, min(start + self._longest, len(bare)) + 1):
                key = self._key_of.get(bare[start:end])
                if key is not None and _whole(bare, start, end):
                    found.append((start, end, key))
        found.sort(key=lambda one: (one[0] - one[1], one[0]))
        taken: list[Found] = []
        for start, end, key in found:
            if all(end <= other[0] or start >= other[1] for other in taken):
                taken.append((start, end, key))
        return [(places[start], places[end - 1] + 1, key) for start, end, key in sorted(taken)]


def _unspaced(question: str) -> tuple[str, list[int]]:
    """The folded question without white space and hyphens, and for each of its characters the place in the question."""
    pairs = [
        (folded, place)
        for place, character in enumerate(question)
        if not character.isspace() and character not in "-·_"
        for folded in fold(character)
    ]
    return "".join(folded for folded, _ in pairs), [place for _, place in pairs]


def _whole(bare: str, start: int, end: int) -> bool:
    """Whether a stretch cuts no Latin word or figure in two."""
    return not (_joined(bare, start) or _joined(bare, end))


def _joined(bare: str, place: int) -> bool:
    """Whether the characters around a place belong to one Latin word or figure."""
    if not 0 < place < len(bare):
        return False
    return all(character.isascii() and character.isalnum() for character in bare[place - 1 : place + 1])
