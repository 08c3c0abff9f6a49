"""Words of a text for matching: folded, stemmed by language, Chinese as pairs of characters."""

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple, Protocol, TypeVar

import Stemmer
from opencc import OpenCC

CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
HAN_RUN = re.compile(f"[{CJK}]+")
# Signs that are part of a word: "C#", "C++", "Na+", ".NET".
_LETTERS = f"[^\\W_{CJK}]+"
LEADING = r"(?:(?<![\w.])\.(?=[^\W_]))?"
_ONE_LETTER = r"(?:(?<=^[A-Za-z])|(?<=[\s(][A-Za-z]))"
TRAILING = rf"(?<=[^\W\d_])\+\+|[#♯♭+−](?![A-Za-z0-9_+])|{_ONE_LETTER}#(?=\d)"
WORD = re.compile(f"{LEADING}{_LETTERS}(?:['’.-]{_LETTERS})*(?:{TRAILING})?|[{CJK}]+")
# A word of a name, without hyphens; or a sign that stands by itself ("x < 5", "-5 V").
_GRADE = rf"{_ONE_LETTER}(?:[-–](?=[\s?!.,;:)]|$)|\*(?=\s|$))|[-–−]+(?=\s*$)"
_MINUS = r"[-–](?=\.?\d)(?:(?<=^.)|(?<=[\s<>=(].))"
NAME_WORD = re.compile(
    f"{LEADING}{_LETTERS}(?:['’.]{_LETTERS})*(?:{TRAILING}|{_GRADE})?|[{CJK}]+|{_MINUS}|[+−<>=≤≥≠±×÷^%‰°′″§$€£¥]"
)
# The version of the rules for names and terms; an index made by another version is made again.
WORDS_VERSION = 2
_POINT = re.compile(r"(?<=[^\W\d_])\.|(?<=\d)\.(?!\d)")
_SIGNED = re.compile(r"^\.|[#♯♭+−]$")
_APOSTROPHE_S = re.compile(r"['’]s\b")
_LEAST_BARE = 3  # Letters from which a word means the same without its sign
_LONGEST_ENDING = 3  # Letters after an apostrophe
_CODE = re.compile(r"[^\W\d_]-\d|\d-[^\W\d_]")
_JOINT = re.compile(r"['’.\-]")
_OTHER_WORD = re.compile(r"[^\W\d_\u4e00-\u9fff]+")
_PLAIN = re.compile(r"[A-Za-z]+(?: [A-Za-z]+)*")
_ARTICLES = ("the", "a", "an")
_MARKS = str.maketrans("", "", "™®©℠")
_RAISED = re.compile(r"(?<=\d)(?=[⁺⁻]?[⁰¹²³⁴-⁹])")
_LINE_MARK = re.compile(r"^\s*[>=+]+\s+(?=[^\W\d_])")  # Of a quotation, heading or list
_BRACKETED = re.compile(r"[(（][^()（）]*[)）]")


# --- lists of words ------------------------------------------------------------------------------


_DATA = files("prompts.text") / "data"


@cache
def word_lists(name: str) -> dict[str, Any]:
    """Read the word lists of `data/NAME.toml`."""
    return tomllib.loads((_DATA / f"{name}.toml").read_text(encoding="utf-8"))


def words_in(name: str, key: str) -> frozenset[str]:
    """Return a word list."""
    return frozenset(word_lists(name)[key].split())


def groups_in(name: str, key: str) -> dict[str, list[str]]:
    """Return the word lists of a table by their keys."""
    return {group: words.split() for group, words in word_lists(name)[key].items()}


def group_of(name: str, key: str) -> dict[str, str]:
    """Return the group of each word, the first of several."""
    return {
        word: group for group, words in reversed(groups_in(name, key).items()) for word in words
    }


@cache
def lines_of(name: str) -> tuple[str, ...]:
    """Return the lines of `data/NAME.txt`."""
    return tuple((_DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines())


def known_languages() -> Mapping[str, Mapping[str, str]]:
    """Return what `data/languages.toml` says of languages, by their codes."""
    return word_lists("languages")


STOPWORDS = words_in("english", "stopwords")
# Function words of Chinese questions and prose.
HAN_STOP = frozenset(
    "的了是在和与及或也都就而被把对为于其之有哪些什么谁怎么如何吗呢吧啊请问多少几个这那它他她们我你"
)
# The Snowball stemmer of each language (ISO 639-1).
_NAMES_OF_STEMMERS = (
    "ar arabic ca catalan cs czech da danish de german el greek en english es spanish et estonian "
    "eu basque fa persian fi finnish fr french ga irish hi hindi hu hungarian hy armenian id "
    "indonesian it italian lt lithuanian ne nepali nl dutch no norwegian pl polish pt portuguese "
    "ro romanian ru russian sr serbian sv swedish ta tamil tr turkish"
).split()
STEMMERS = dict(zip(_NAMES_OF_STEMMERS[::2], _NAMES_OF_STEMMERS[1::2], strict=True))


@cache
def stopwords(language: str) -> frozenset[str]:
    """Return the function words of a language, none where there is no list."""
    listed = known_languages().get(language, {})
    return STOPWORDS if language == "en" else frozenset(listed.get("stopwords", "").split())


# --- folding -------------------------------------------------------------------------------------


def fold(text: str) -> str:
    """Return a text without case, width and accents, as far as Unicode decomposes them."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKD", text.casefold()).replace("♯", "#").replace("ı", "i")
    for mark in filter(unicodedata.combining, set(folded)):
        folded = folded.replace(mark, "")
    return unicodedata.normalize("NFC", folded)


@cache
def _simplified_signs() -> dict[int, str]:
    convert = OpenCC("t2s").convert
    signs = [chr(code) for code in range(0x3400, 0xA000)]
    # Converted twice: one character goes through another.
    pairs = zip(signs, convert(convert("\n".join(signs))).split("\n"), strict=True)
    return {ord(sign): simple for sign, simple in pairs if sign != simple and len(simple) == 1}


def simplified(text: str) -> str:
    """Replace traditional Chinese characters by simplified ones (OpenCC), one for one."""
    return text.translate(_simplified_signs()) if HAN_RUN.search(text) else text


def is_han(text: str) -> bool:
    """Whether a text counts as Chinese.

    A quarter of its letters must be Han characters, or two for each other word: long names in
    Latin letters do not make a question English.
    """
    han = 0 if text.isascii() else sum(len(run) for run in HAN_RUN.findall(text))
    return han > 0 and (
        han * 4 >= sum(c.isalpha() for c in text) or han >= 2 * len(_OTHER_WORD.findall(text))
    )


# --- names ---------------------------------------------------------------------------------------


def plain_name(name: str) -> str | None:
    """Return the name in lower case if `fold_name` changes nothing else, else None."""
    if not _PLAIN.fullmatch(name):
        return None
    lower = name.lower()
    return None if lower.partition(" ")[0] in _ARTICLES else lower


def fold_name(name: str) -> str:
    """Return the form by which names are compared: no brackets, article, possessive, punctuation.

    Signs that tell two names apart remain ("C#", "-5 V", "Section 3.1").
    """
    return plain_name(name) or _folded_name(name)


@lru_cache(maxsize=300_000)
def _folded_name(name: str) -> str:
    name = _RAISED.sub("^", name.translate(_MARKS))  # Else folding makes "106" of "10⁶"
    text = fold(_BRACKETED.sub(" ", name)) or fold(name)
    words = name_words(_APOSTROPHE_S.sub("", _LINE_MARK.sub("", text)))
    return " ".join(word.folded for word in without_article(words))


class NameWord(NamedTuple):
    """A folded word or sign of a name, its place, and whether a blank follows (`apart`)."""

    folded: str
    start: int
    end: int
    apart: bool


def name_words(text: str) -> list[NameWord]:
    """Return the words of a text as `fold_name` compares them."""
    return [
        NameWord(_bare(match.group()), *match.span(), text[match.end() : match.end() + 1].isspace())
        for match in NAME_WORD.finditer(text)
    ]


class _Word(Protocol):
    @property
    def folded(self) -> str: ...
    @property
    def apart(self) -> bool: ...


Word = TypeVar("Word", bound=_Word)


def without_article(words: Sequence[Word]) -> Sequence[Word]:
    """Drop the article of a name; the letter of "A-100" and "A 100" is none."""
    if len(words) < 2 or words[0].folded not in _ARTICLES or not words[0].apart:
        return words
    return words[1:] if words[0].folded == "the" or words[1].folded[0].isalpha() else words


def _bare(word: str) -> str:
    """Fold a word and drop its points, but for those in figures and before the word."""
    folded = fold(word)
    if folded[-1] in "-–−":
        letters = folded.rstrip("-–−")
        folded = letters + "−" * (len(folded) - len(letters))
    return (_POINT.sub("", folded) if "." in folded else folded).replace("’", "'")


def is_signed(word: str) -> bool:
    """Whether a word begins or ends with a sign that is part of it."""
    return _SIGNED.search(word) is not None


# --- terms ---------------------------------------------------------------------------------------


@cache
def _stemmer(language: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(STEMMERS[language])


@lru_cache(maxsize=200_000)
def stem(word: str, language: str = "en") -> str:
    """Return the folded Snowball stem of a word; an English word must be folded already."""
    if language != "en":
        return fold(_stemmer(language).stemWord(word))
    return str(_stemmer(language).stemWord(word)) if word.isascii() and len(word) > 2 else word


@lru_cache(maxsize=200_000)
def word_terms(word: str, language: str = "en") -> tuple[str, ...]:
    """Return a word's terms: its stem and those of its parts, or the bigrams of a Chinese run."""
    if HAN_RUN.match(word):
        word = simplified(word)
        return (word,) if len(word) == 1 else tuple(word[i : i + 2] for i in range(len(word) - 1))
    if is_signed(word):
        bare = word.strip(".+#♯♭−")
        # "C" is another name than "C#", "Notepad" is the same as "Notepad++".
        return (word,) if len(bare) < _LEAST_BARE else (word, *word_terms(bare, language))
    word = _without_affix(_APOSTROPHE_S.sub("", word), language)
    whole = stem(word, language)
    together = (word.replace("-", ""),) if _CODE.search(word) else ()  # "A-100" is also "A100"
    pieces = [piece for piece in _JOINT.split(word) if len(piece) > 1]
    if len(pieces) < 2:
        return (whole, *together)
    return (whole, *together, *(stem(piece, language) for piece in pieces if piece != "s"))


@cache
def _elided() -> frozenset[str]:
    """Return what precedes an apostrophe without being part of the word: "l", "dell"."""
    listed = (known.get("elided", "") for known in known_languages().values())
    return frozenset().union(*map(str.split, listed))


def _without_affix(word: str, language: str) -> str:
    """Drop the article before an apostrophe ("dell'Olmo"), or the ending after it."""
    before, _, after = word.replace("’", "'").partition("'")
    if not after or "'" in after:
        return word
    if before in _elided():
        return after
    is_ending = after.isalpha() and (language == "tr" or len(after) <= _LONGEST_ENDING)
    return before if is_ending and len(before) >= _LEAST_BARE and before[0] < "\u0250" else word


def terms(text: str, language: str = "en") -> list[str]:
    """Return the terms of a text for search, in order, without stop words.

    A language without a stemmer is read as English.
    """
    language = language if language in STEMMERS else "en"
    # Other stemmers read accents; `stem` folds what they return.
    plain = text.casefold().replace("i\u0307", "i")
    folded = fold(text) if language == "en" else unicodedata.normalize("NFC", plain)
    left_out = stopwords(language)
    return [
        term
        for word in WORD.findall(folded)
        if word not in left_out
        for term in word_terms(word, language)
    ]


def content_terms(text: str, language: str = "en") -> list[str]:
    """Return the distinct terms in order, without bigrams of Chinese function words."""
    return [term for term in dict.fromkeys(terms(text, language)) if not _is_han_filler(term)]


def _is_han_filler(term: str) -> bool:
    fillers = sum(sign in HAN_STOP for sign in term)
    return HAN_RUN.match(term) is not None and 2 * fillers >= len(term)
