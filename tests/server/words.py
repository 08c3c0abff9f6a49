"""The sentences, names, figures and content words of a text, and its vector.

The rules are not the project's, so that a test does not compare the project's code with itself.
"""

import re
import zlib

import numpy as np

_CAPITAL = r"[A-ZÀ-ÖØ-Þ][\w'’\-]+"
_JOIN = r"(?:of|the|de|du|von|van|la|le|del|di|al)"
_SPAN = re.compile(rf"\b{_CAPITAL}(?: (?:{_JOIN} ){{0,2}}{_CAPITAL})*")
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?](?!\s)[^.!?。！？\n]*)*[.!?。！？]*[\"'”’」』)]*")
_FIGURE = re.compile(r"\d[\d,.]*\d%?|\d%?")
_WORD = re.compile(r"[^\W\d_㐀-鿿][^\W_㐀-鿿]+|\d[\d,.]*\d|\d|[㐀-鿿]+")
_HAN = re.compile(r"[㐀-鿿]")
_ZH_QUOTED = re.compile(r"[《「『“‘【（(]([㐀-鿿]{2,4})[》」』”’】）)]")
_ZH_SUBJECT = re.compile(r"(?:^|[，。；、：])([㐀-鿿]{2,4})(?=是|位于)")
# A place or an institution, by its last character.
_ZH_PLACE = re.compile(r"([㐀-鿿]{1,3}(?:大学|公司|[省市县站山河岛]))")
_ZH_TITLE = re.compile(r"《([㐀-鿿\w·：]{2,12})》")
# Words that open a sentence with a capital without being part of a name.
_OPENERS = set(
    "A After All Also Although An And Are As At Because Before Both But By Did Do During For From "
    "He Her His How However If In Is It Its Many Most Next No On One Our Over She Since Some That "
    "The Their Then There These They This Those Though To Two Under Until Was We Were What When "
    "Where Which While Who Whose Why With You".split()
)
_COMMON = set(
    "a about after all also an and any are as at be been before both but by can did do does for "
    "from had has have he her his how if in into is it its many may more most much no not of on "
    "one or other our out over she so some such than that the their them then there these they "
    "this those to two was we were what when where which while who whom whose why will with would "
    "you your".split()
)


def is_chinese(text: str) -> bool:
    """More than a fifth of the characters are Han."""
    return len(_HAN.findall(text)) * 5 > len(text)


def sentences(text: str) -> list[str]:
    """Sentences with a letter or digit, in order; a line break ends one."""
    found = (match.group().strip() for match in _SENTENCE.finditer(text))
    return [sentence for sentence in found if any(map(str.isalnum, sentence))]


def names(sentence: str) -> list[str]:
    """Distinct names as written: capitalised spans, single words only inside a sentence."""
    if is_chinese(sentence):
        found = [
            (m.start(1), m.group(1))
            for rule in (_ZH_TITLE, _ZH_QUOTED, _ZH_SUBJECT, _ZH_PLACE)
            for m in rule.finditer(sentence)
        ]
        return list(dict.fromkeys(name for _, name in sorted(found)))
    kept = []
    for match in _SPAN.finditer(sentence):
        words, at_start = match.group().split(" "), match.start() == 0
        while words and (words[0] in _OPENERS or words[0].islower()):
            words, at_start = words[1:], False
        if len(words) > 1 or (words and not at_start):
            kept.append(" ".join(words))
    return list(dict.fromkeys(kept))


def figures(sentence: str) -> list[str]:
    """Numbers exactly as written, in order."""
    return _FIGURE.findall(sentence)


def terms(text: str) -> list[str]:
    """Every word without regard to case; each pair of neighbours in a run of Han characters."""
    found: list[str] = []
    for word in _WORD.findall(text):
        if _HAN.match(word) and len(word) > 2:
            found += [word[at : at + 2] for at in range(len(word) - 1)]
        else:
            found.append(word.casefold())
    return found


def content_words(text: str) -> set[str]:
    """The terms that carry meaning: figures, pairs of Han characters, no common or short words."""
    rare = set(terms(text)) - _COMMON
    return {it for it in rare if len(it) > 2 or it[0].isdigit() or _HAN.match(it)}


def embed(text: str, dimension: int) -> list[float]:
    """A unit vector: each term adds 1 or -1 at a place by its hash."""
    vector = np.zeros(dimension)
    for term in terms(text):
        hashed = zlib.crc32(term.encode())
        vector[hashed % dimension] += 1 if hashed >> 31 else -1
    length = float(np.linalg.norm(vector))
    if length == 0:
        vector[0], length = 1.0, 1.0
    return [float(value) for value in (vector / length).round(7)]
