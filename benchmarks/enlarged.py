"""A corpus of any size from published passages: the real ones first, then the same with other
names.

Beyond the supply a passage is a real one in which every name is replaced by a drawn one, so that
names go on as they began: how many are new, how often the known ones return, and of which words new
ones are made. Names of one, two, three and more words are drawn apart. The next draw is new with
the probability that the growth of the real ones gives (distinct names ~ mentions^β, Heaps; β by
least squares over the last three quarters of the real mentions), else it is a known one in
proportion to how often it was named, less β (the two-parameter Chinese restaurant, Pitman and Yor
1997). A new name is put together of words that are drawn the same way from the words of names; a
new word is the head of one and the tail of another. The subject of a passage is one that no other
passage has. Sentences keep all other words, so that beyond the supply the vocabulary outside of
names does not grow.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.runner import Cell, DataMissingError
from benchmarks.sets import Row, read_rows
from tests.server.words import names, sentences

SUPPLY = tuple(
    f"multihop/{name}.jsonl.gz"
    for name in (
        "2wiki_corpus_6119",
        "2wiki_train100_corpus",
        "hotpot_train100_corpus",
        "musique_train100_corpus",
    )
)
MOST_WORDS = 4  # in the name of a class of its own; longer ones are drawn together
_SEED, _TRIES = 7, 30
_CALENDAR = frozenset(
    "January February March April May June July August September October November December Monday "
    "Tuesday Wednesday Thursday Friday Saturday Sunday".split()
)


def enlarged(data: Path, count: int) -> tuple[list[Row], dict[str, dict[str, Cell]]]:
    """So many passages {id, title, text}, the first of any larger number too, and how their names
    are spread.
    """
    rng = random.Random(_SEED)  # noqa: S311 -- to be repeatable, not secret
    supply = list(
        {
            row["title"]: row for file in SUPPLY for row in read_rows(data / file) if row["title"]
        }.values()
    )
    rng.shuffle(supply)
    if not supply:
        raise DataMissingError(f"{data} has no passage.")
    spread = _Spread()
    real = [(row["title"], row["text"], names_of(row["title"], row["text"])) for row in supply]
    rows = [
        {"id": str(place), "title": title, "text": text}
        for place, (title, text, _) in enumerate(real[:count])
    ]
    statistics = {}
    for place, (title, _, found) in enumerate(real, 1):
        spread.add(title.partition(" (")[0], found)
        if place in {len(real) // 4, len(real) // 2, len(real)}:
            statistics[f"{place:,} real"] = spread.statistics(place)
    spread.fit()
    steps = {count, *(size for size in (len(real) * 2, len(real) * 4) if size < count)}
    while len(rows) < count:
        title, text = spread.renamed(*rng.choice(real), rng)
        rows.append({"id": str(len(rows)), "title": title, "text": text})
        if len(rows) in steps:
            statistics[f"{len(rows):,}, {len(rows) - len(real):,} of them made"] = (
                spread.statistics(len(rows))
            )
    return rows, statistics


def names_of(title: str, text: str) -> list[str]:
    """The names of a passage, each once, the title's first."""
    found = [
        title.partition(" (")[0],
        *(name for sentence in sentences(text) for name in names(sentence)),
    ]
    return [name for name in dict.fromkeys(found) if name not in _CALENDAR]


class _Drawn:
    """What was drawn so far, and draws that go on like it."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.counts: Counter[str] = Counter()
        self.growth: list[int] = []  # distinct ones after each token, until `fit`
        self.beta = 0.0

    def add(self, token: str) -> None:
        self.tokens.append(token)
        self.counts[token] += 1
        if not self.beta:
            self.growth.append(len(self.counts))

    def fit(self) -> None:
        """β from the last three quarters, in which the growth has settled."""
        points = [
            (at + 1, self.growth[at]) for at in range(len(self.growth) // 4, len(self.growth), 50)
        ]
        self.beta = min(0.99, exponent(points)) if len(points) > 2 else 0.5
        self.growth = []

    def is_new(self, rng: random.Random) -> bool:
        return not self.tokens or rng.random() < self.beta * len(self.counts) / len(self.tokens)

    def known(self, rng: random.Random) -> str:
        """One of the known, in proportion to its count less β."""
        while True:
            token = rng.choice(self.tokens)
            if rng.random() * self.counts[token] < self.counts[token] - self.beta:
                return token


class _Spread:
    """Names by how many words they have, their words by place (first, inner, last), and the
    subjects of passages.
    """

    def __init__(self) -> None:
        self.names: dict[int, _Drawn] = defaultdict(_Drawn)
        self.words: dict[str, _Drawn] = defaultdict(_Drawn)
        self.subjects: set[str] = set()

    def add(self, subject: str, found: Sequence[str]) -> None:
        self.subjects.add(subject)
        for name in found:
            drawn = self.names[_class_of(name)]
            if name not in drawn.counts:
                for place, word in _placed(name):
                    if not word.islower():
                        self.words[place].add(word)
            drawn.add(name)

    def fit(self) -> None:
        for drawn in (*self.names.values(), *self.words.values()):
            drawn.fit()

    def renamed(
        self, title: str, text: str, found: Sequence[str], rng: random.Random
    ) -> tuple[str, str]:
        """Title and text with other names, the longest replaced first; a word of a name alone
        becomes the word that stands in its place in the new one.
        """
        bare, bracket, rest = title.partition(" (")
        new = {bare: self._named(bare, rng, subject=True)}
        parts = dict(_parts(bare, new[bare]))
        for name in sorted(dict.fromkeys(found), key=len, reverse=True):
            if name not in new and name not in parts:
                new[name] = self._named(name, rng)
                parts = {**dict(_parts(name, new[name])), **parts}
        new = parts | new
        self.add(new[bare], [new[name] for name in found])
        pattern = re.compile(
            rf"\b(?:{'|'.join(map(re.escape, sorted(new, key=len, reverse=True)))})(?!\w)"
        )
        return f"{new[bare]}{bracket}{rest}", pattern.sub(lambda match: new[match.group()], text)

    def _named(self, old: str, rng: random.Random, subject: bool = False) -> str:
        drawn = self.names[_class_of(old)]
        for _ in range(_TRIES):
            name = self._new(old, rng) if drawn.is_new(rng) else drawn.known(rng)
            if not subject or name not in self.subjects:
                return name
        while (name := self._new(old, rng)) in self.subjects:
            pass
        return name

    def _new(self, old: str, rng: random.Random) -> str:
        """A name of as many words; those that join ("of", "the") stay."""
        return " ".join(
            word if word.islower() else self._word(place, rng) for place, word in _placed(old)
        )

    def _word(self, place: str, rng: random.Random) -> str:
        drawn = self.words[place]
        if not drawn.is_new(rng):
            return drawn.known(rng)
        head, tail = drawn.known(rng), drawn.known(rng).lower()
        return head[: max(2, len(head) // 2 + rng.randrange(2))] + tail[len(tail) // 2 :]

    def statistics(self, passages: int) -> dict[str, Cell]:
        counts = Counter[str]()
        for drawn in self.names.values():
            counts.update(drawn.counts)
        total = counts.total()
        top = [count for _, count in counts.most_common(1000)]
        return {
            "names a passage": total / passages,
            "distinct a passage": len(counts) / passages,
            "once": sum(count == 1 for count in counts.values()) / len(counts),
            "of the first 10": sum(top[:10]) / total,
            "100": sum(top[:100]) / total,
            "1,000": sum(top) / total,
        }


def _class_of(name: str) -> int:
    return min(MOST_WORDS, name.count(" ") + 1)


def _placed(name: str) -> Iterator[tuple[str, str]]:
    """The words of a name, each with the class that it is drawn from."""
    words = name.split(" ")
    for place, word in enumerate(words):
        kind = "inner" if 0 < place < len(words) - 1 else "first" if not place else "last"
        yield ("alone" if len(words) == 1 else kind), word


def _parts(old: str, new: str) -> Iterator[tuple[str, str]]:
    pairs = list(zip(old.split(" "), new.split(" "), strict=False))
    return (pair for pair in pairs[1:] and [pairs[0], pairs[-1]] if not pair[0].islower())


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the line of least squares through the logarithms of (size, cost)."""
    import numpy as np

    sizes, costs = np.log(np.asarray(points, dtype=float)).T
    return float(np.polyfit(sizes, costs, 1)[0])
