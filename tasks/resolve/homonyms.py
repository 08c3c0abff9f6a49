"""Which of the things that bear one name does a document mean?

Its title or its definition says so; else it is the one whose neighbours the document names, or whose qualifier stands
in a sentence with the name. Without a clear best the name stays a thing of its own.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from math import sqrt

from prompts.language.words import fold
from tasks.resolve.keys import Joined
from tasks.resolve.reading import Read

_NEAR = 0.3  # how much being named by the document about a thing counts beside a relation to it
_CLEAR = 1.25  # how much better the best of several homonyms must fit


class Homonyms:
    """Names that several qualified things bear ("Mercury (planet)", "Mercury (element)"), and what tells them apart."""

    def __init__(self, read: Read, joined: Joined) -> None:
        self.read = read
        self.joined = joined
        self.by_title: dict[str, list[str]] = defaultdict(list)
        for document, title in sorted(read.titles.items()):
            self.by_title[title].append(document)
        self.neighbours: dict[str, Mapping[str, float]] = {}
        self.spread: Counter[str] = Counter()
        if any(len(keys) > 1 for keys in read.qualified.values()):
            for counted in read.counts.values():
                self.spread.update({joined.find(key) for key in counted})

    def target(self, document: str, key: str) -> tuple[str, str]:
        """The key that a key stands for in a document, and why."""
        candidates = self.read.qualified.get(key, ())
        title = self.read.titles.get(document, "")
        if title in candidates:
            return title, "the document's title names it with a qualifier"
        if (document, key) in self.read.assigned:
            return self.read.assigned[document, key], "the document defines which thing of the name it means"
        if len(candidates) < 2 or title == key:
            return key, ""
        fits = sorted(((self._fit(document, key, candidate), candidate) for candidate in candidates), reverse=True)
        if fits[0][0] > _CLEAR * fits[1][0]:
            return fits[0][1], "the document names what belongs to this one of the name"
        return key, ""

    def _fit(self, document: str, bare: str, candidate: str) -> float:
        own = self._neighbours(candidate)
        others = [self._neighbours(other) for other in self.read.qualified[bare] if other != candidate]
        here = {self.joined.find(key) for key in self.read.counts[document] if key != bare}
        tied = {self.joined.find(key) for place, key in self.read.ties.get(bare, ()) if place == document}
        shared = total = 0.0
        for key in sorted(own):
            # The more documents name a neighbour, the less it tells; so does one that another of the name has too.
            weight = 1 / max(1, self.spread[key])
            telling = own[key] - max(other.get(key, 0.0) for other in others)
            shared += weight * max(0.0, telling) * ((key in here) + (key in tied))
            total += weight * own[key]
        words = candidate[len(bare) + 2 : -1].split()
        said = any(word in fold(quote) for quote in self.read.quotes.get((document, bare), ()) for word in words)
        return shared / sqrt(total or 1.0) + said

    def _neighbours(self, key: str) -> Mapping[str, float]:
        """The groups that belong to a qualified thing: tied to it by a relation, or named by the document about it."""
        if key not in self.neighbours:
            found: dict[str, float] = {}
            for document in (*self.by_title.get(key, ()), *self.read.about.get(key, ())):
                found |= dict.fromkeys(map(self.joined.find, self.read.counts.get(document, ())), _NEAR)
            found |= dict.fromkeys((self.joined.find(other) for _, other in self.read.ties.get(key, ())), 1.0)
            for own in (self.joined.find(key), key[: key.rindex(" (")]):
                found.pop(own, None)
            self.neighbours[key] = found
        return self.neighbours[key]
