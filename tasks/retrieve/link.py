"""Which entities does a question name? Longest n-gram, folded; then fuzzy for what nothing matched.

"Unlinked" is an answer: a question may name nothing that the graph knows.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz, process

from prompts.language.names import name_spans
from prompts.language.names_zh import name_spans_zh
from prompts.language.words import HAN_RUN, STOPWORDS, WORD, fold_name, is_han
from storage.records import Record
from tasks.dedupe import name_key

_BRACKETS = re.compile(r"\([^()]*\)")
MAX_WORDS = 10
# With these a request begins; there they name nothing, whatever the graph holds.
IMPERATIVES = frozenset(
    "tell describe list name give explain summarise summarize show find compare introduce state define outline".split()
)
FUZZY_CUTOFF = 84.0


class Link(Record):
    """A stretch of the question and an entity that it may mean; `score` is 1 where they are equal, else likeness."""

    text: str
    entity: int
    score: float


@dataclass(frozen=True, slots=True)
class _Name:
    entity: int
    whole: bool


class Names:
    """Every name of every entity, for looking up stretches of a question; immutable."""

    def __init__(self, names: Iterable[tuple[str, int]]) -> None:
        """`names` are (name or alias, entity index); a name may stand for several entities."""
        self.by_key: dict[str, list[int]] = defaultdict(list)
        for name, entity in names:
            for key in {fold_name(name), name_key(name)}:
                if key and entity not in self.by_key[key]:
                    self.by_key[key].append(entity)
        self.by_key = dict(self.by_key)
        self.keys = sorted(self.by_key)
        self.buckets: dict[str, list[str]] = defaultdict(list)
        for key in self.keys:
            self.buckets[key[:1]].append(key)
        self.han = [key for key in self.keys if HAN_RUN.search(key) and len(key) > 1]

    def link(self, question: str) -> list[Link]:
        """The entities that a question names, in the order of the question; longest stretch first, no overlaps."""
        links = self._exact(question)
        if is_han(question):
            links += self._chinese(question)
        linked = " ".join(fold_name(link.text) for link in links)
        for name in self._unmatched(question, linked):
            links += self._fuzzy(name)
        return list({link.entity: link for link in reversed(links)}.values())[::-1]

    def _exact(self, question: str) -> list[Link]:
        words = [(match.group(), match.start(), match.end()) for match in WORD.finditer(question)]
        links: list[Link] = []
        start = 0
        while start < len(words):
            size = next(
                (
                    n
                    for n in range(min(MAX_WORDS, len(words) - start), 0, -1)
                    if self._matches(question, words, start, n)
                ),
                0,
            )
            if size:
                text = question[words[start][1] : words[start + size - 1][2]]
                links += [
                    Link(text=text, entity=entity, score=1.0)
                    for entity in self._candidates(question, words, start, size)
                ]
            start += max(size, 1)
            # The words of a bracket after a linked name qualify that name; they name nothing themselves.
            closing = self._bracket_end(question, words[start - 1][2]) if size else 0
            while start < len(words) and words[start][1] < closing:
                start += 1
        return links

    @staticmethod
    def _bracket_end(question: str, last: int) -> int:
        """Where a bracket that follows at `last` closes, or 0."""
        closing = question.find(")", last)
        return closing if question[last : last + 2].strip().startswith("(") and 0 < closing - last < 60 else 0

    def _candidates(self, question: str, words: Sequence[tuple[str, int, int]], start: int, size: int) -> list[int]:
        """The entities that a stretch means; a bracketed qualifier after it ("Agni (2004 film)") decides."""
        first, last = words[start][1], words[start + size - 1][2]
        closing = self._bracket_end(question, last)
        if closing:
            qualified = self.by_key.get(name_key(question[first : closing + 1]))
            if qualified:
                return qualified
        return self.by_key[fold_name(question[first:last])]

    def _matches(self, question: str, words: Sequence[tuple[str, int, int]], start: int, size: int) -> bool:
        if size == 1:
            word = words[start][0]
            if word.lower() in STOPWORDS or len(word) < 2 or (start == 0 and word.lower() in IMPERATIVES):
                return False
        stretch = [word for word, _, _ in words[start : start + size]]
        if all(word.islower() for word in stretch) and sum(word not in STOPWORDS for word in stretch) < 2:
            return self._is_rare(stretch[0]) and size == 1 and fold_name(stretch[0]) in self.by_key
        return fold_name(question[words[start][1] : words[start + size - 1][2]]) in self.by_key

    def _is_rare(self, word: str) -> bool:
        """A single lower-case word links only when it cannot be an ordinary one: it holds a digit, or is Chinese."""
        return any(c.isdigit() for c in word) or bool(HAN_RUN.match(word))

    def _chinese(self, question: str) -> list[Link]:
        """Names inside unspaced text: the longest names that the question holds, without overlaps."""
        found = sorted((key for key in self.han if key in question.casefold()), key=lambda key: (-len(key), key))
        taken: list[tuple[int, int]] = []
        links: list[Link] = []
        for key in found:
            at = question.casefold().find(key)
            if all(at + len(key) <= start or at >= end for start, end in taken):
                taken.append((at, at + len(key)))
                links += [Link(text=key, entity=entity, score=1.0) for entity in self.by_key[key]]
        return links

    def _unmatched(self, question: str, linked: str) -> list[str]:
        """Names by their looks that no exact match covers."""
        bare = _BRACKETS.sub(" ", question)
        spans = name_spans_zh(bare) if is_han(bare) else name_spans(bare, [(0, len(bare))])
        return [
            span.text
            for span in spans
            if span.text.lower() not in IMPERATIVES and not set(fold_name(span.text).split()) & set(linked.split())
        ]

    def _fuzzy(self, name: str) -> list[Link]:
        key = fold_name(name)
        pool = self.buckets.get(key[:1], []) if len(self.keys) > 20_000 else self.keys
        best = process.extract(key, pool, scorer=fuzz.ratio, score_cutoff=FUZZY_CUTOFF, limit=2)
        return [
            Link(text=name, entity=entity, score=score / 100)
            for found, score, _ in best
            for entity in self.by_key[found]
        ]
