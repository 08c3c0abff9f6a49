"""For which full name of its document does a short one stand: a surname, a title with it, initials, a head noun?"""

from collections import defaultdict

from prompts.language.defined import CLASS_OF
from prompts.language.kinds import KIND_OF, TITLES, kind_of_words
from prompts.language.written import PERSONAL_TITLES, ZH_TITLE, initials_of
from tasks.resolve.reading import Read

_ONE_OF_MANY = frozenset({"person", "thing"})
_ABBREVIATION = range(3, 7)  # letters
_CHINESE_NAME = range(2, 5)  # characters
_ARTICLES = ("The ", "the ", "A ", "a ", "An ", "an ")
_NO_PART_OF_A_NAME = frozenset("of and in the with for at on to".split())
_TITLES = TITLES | PERSONAL_TITLES
# They stand before first names, which many bear.
_RULERS = frozenset(
    "king queen prince princess duke earl count baron lord emperor pope cardinal bishop archbishop".split()
)


class Shortened:
    """The full names of one document, by the words that can stand for them."""

    def __init__(self, document: str, read: Read) -> None:
        self.document = document
        self.read = read
        self.kinds = read.kinds
        self.keys = read.counts[document]
        self.by_last: dict[str, list[str]] = defaultdict(list)
        self.by_first: dict[str, list[str]] = defaultdict(list)
        for key in sorted(self.keys):
            words = key.split() if " " in key else ()
            if 2 <= len(words) <= 4 and words[-1].isalpha() and _NO_PART_OF_A_NAME.isdisjoint(words):
                if len(words) == 2 and words[0] in _TITLES:
                    continue
                self.by_last[words[-1]].append(key)
                self.by_first[words[0]].append(key)
        self.title = read.titles.get(document, "").partition(" (")[0]
        self.title_last = self.title.rpartition(" ")[2] if " " in self.title else ""

    def full_name(self, key: str) -> tuple[str, str]:
        """The full name that a short one stands for here, and why; the short one itself where that is not clear."""
        if " " in key:
            found = self._of_words(key)
        elif key in self.by_last or key in self.by_first:
            found = self._of_a_word(key)
        elif not key.isascii():
            found = self._with_chinese_title(key)
        elif len(key) in _ABBREVIATION and any(name.isupper() for name in self.read.written[key]):
            found = self._abbreviated(key)
        else:
            found = None
        return found or (key, "")

    def _of_a_word(self, key: str) -> tuple[str, str] | None:
        kind = self.kinds.get(key, "thing")
        full = [name for name in self.by_last.get(key, ()) if self._may_end(key, kind, name)]
        if kind in _ONE_OF_MANY and key == self.title_last and self.title in full:
            return self.title, "the last word of the document's title"
        if len(full) == 1:
            return full[0], "the only full name in the document that ends with it"
        if kind == "person" and not full and not self._is_common(key):
            full = [name for name in self.by_first.get(key, ()) if self.kinds.get(name) == "person"]
            full = [name for name in full if not self._owns(name)]
            if len(full) == 1:
                return full[0], "the only full name in the document that begins with it"
        return None

    def _may_end(self, key: str, kind: str, name: str) -> bool:
        other = self.kinds.get(name, "thing")
        if other not in _ONE_OF_MANY:
            return key in KIND_OF and self._in_one_place(key, name) and not self._owns(name)
        # "Kestrel" beside "MV Kestrel" and "Kestrel Bridge" may be either; persons share names with what they found.
        if kind not in _ONE_OF_MANY or self._is_common(key) or (other != "person" and key in self.by_first):
            return False
        return not self._owns(name) or kind == "person"

    def _is_common(self, key: str) -> bool:
        """Whether a word is no name but says what somebody is ("the porter", "father")."""
        if key in CLASS_OF or key in _TITLES:
            return True
        return any(name.startswith(_ARTICLES) for name in self.read.written[key])

    def _owns(self, name: str) -> bool:
        """Whether a name says whose its thing is: "Caroline's Husband" is neither Caroline nor a Mr. Husband."""
        return all("'s " in written or "’s " in written for written in self.read.written[name])

    def _in_one_place(self, key: str, name: str) -> bool:
        near = self.read.near
        return (self.document, key) not in near or bool(near[self.document, key] & near[self.document, name])

    def _of_words(self, key: str) -> tuple[str, str] | None:
        """A title with a surname ("President Castellan"), or initials with it ("R. Castellan")."""
        *given, last = key.split()
        if len(given) == 1 and given[0] in PERSONAL_TITLES:
            full = self._persons(last, key)
            if not full and given[0] not in _RULERS and last in self.keys and not self._is_common(last):
                return self._of_a_word(last) or (last, "a title stands before the name")
            reason = "a title, with the last name of the only person of that name in the document"
        elif all(len(word) == 1 for word in given):
            full = [name for name in self._persons(last, key) if fits_initials(given, name.split()[:-1])]
            reason = "the initials and the last name of the only such person in the document"
        else:
            return None
        return (full[0], reason) if len(full) == 1 and self._is_person(key) else None

    def _persons(self, last: str, but: str) -> list[str]:
        return [name for name in self.by_last.get(last, ()) if name != but and self._is_person(name)]

    def _is_person(self, name: str) -> bool:
        words = [word for word in name.split() if word not in PERSONAL_TITLES]
        return self.kinds.get(name, "thing") in _ONE_OF_MANY and len(words) > 0 and not kind_of_words(words)

    def _abbreviated(self, key: str) -> tuple[str, str] | None:
        full = [name for name in self.keys if name.count(" ") >= len(key) - 1 and initials_of(name) == key]
        return (full[0], "the only name in the document that it abbreviates") if len(full) == 1 else None

    def _with_chinese_title(self, key: str) -> tuple[str, str] | None:
        title = ZH_TITLE.search(key)
        surname = key[: title.start()] if title else ""
        if len(surname) not in {1, 2}:
            return None
        full = [
            name for name in self.keys
            if name.startswith(surname) and len(name) in _CHINESE_NAME and len(name) > len(surname)
            and self.kinds.get(name) == "person" and not ZH_TITLE.search(name)
        ]  # fmt: skip
        reason = "a title, with the surname of the only person of that name in the document"
        return (full[0], reason) if len(full) == 1 else None


def fits_initials(initials: list[str], given: list[str]) -> bool:
    """Whether given names can have these initials: the first one's first, the others in their order."""
    if not given or initials[0] != given[0][0] or len(given[0]) == 1:
        return False
    left = iter(given)
    return all(any(name[0] == initial for name in left) for initial in initials)
