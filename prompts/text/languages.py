"""Languages: which one a text is in, and what differs between them.

English and Chinese have rules; a further language has a stemmer, and its function words where
`data/languages.toml` holds them.
"""

import unicodedata
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from prompts.text.names import NameSpan, name_spans
from prompts.text.names_zh import name_spans_zh
from prompts.text.segment import script_of
from prompts.text.words import (
    STEMMERS,
    WORD,
    content_terms,
    is_han,
    known_languages,
    stopwords,
    terms,
    words_in,
)

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

SURE = 0.5  # below this probability a text tells no language: names, figures, a heading
_PLAIN_ENGLISH = words_in("english", "plain")
_ENGLISH_SHARE = 1 / 12  # of such words: no detector need be asked
_SAMPLE = 3_000  # characters
_OTHER_SCRIPTS = {"han": "zh", "kana": "ja", "hangul": "ko", "none": "und"}
# Of a question that is too short for the detector: the language that most write in its script.
_OF_SCRIPT = {
    "ARABIC": "ar",
    "HEBREW": "he",
    "THAI": "th",
    "DEVANAGARI": "hi",
    "GREEK": "el",
    "CYRILLIC": "ru",
}
_CAPITAL_NOUNS = frozenset({"de"})  # where every noun has a capital, capitals tell no name


@dataclass(frozen=True)
class Language:
    """What differs between languages, asked by an ISO 639-1 code; Chinese terms are pairs of
    characters.
    """

    code: str
    question: str = field(default="", compare=False)
    unsure: str = field(default="en", compare=False)  # the language of a question that tells none

    @property
    def label(self) -> str:
        """What stands above excerpts: in the question's language, which may be another than that
        of the texts."""
        code = self._asked_in() if self.question else self.code
        return known_languages().get(code, {}).get("label", "From the documents:")

    def _asked_in(self) -> str:
        if self.code == self.unsure == "en" and self.question.isascii():
            return self.code
        detected = language_of(self.question, self.unsure)
        if detected == "und":
            letters = filter(str.isalpha, self.question)
            scripts = (unicodedata.name(letter, "").partition(" ")[0] for letter in letters)
            return next((_OF_SCRIPT[name] for name in scripts if name in _OF_SCRIPT), detected)
        words = frozenset(WORD.findall(self.question.casefold()))
        own, other = (len(words & stopwords(code)) for code in (self.code, detected))
        return self.code if own > other else detected

    def terms(self, text: str) -> list[str]:
        """The terms of a text for matching, in order."""
        return terms(text, self.code)

    def content_terms(self, text: str) -> list[str]:
        """The distinct terms that carry meaning, in order."""
        return content_terms(text, self.code)

    def names(self, text: str) -> tuple[NameSpan, ...]:
        """The names in a text by their looks, in order."""
        return () if self.code in _CAPITAL_NOUNS else names_of(text)


ENGLISH, CHINESE = Language("en"), Language("zh")


@lru_cache(maxsize=20_000)
def names_of(text: str) -> tuple[NameSpan, ...]:
    """The names in a text by their looks; kept, since telling Chinese words apart takes
    milliseconds.
    """
    return tuple(name_spans_zh(text) if is_han(text) else name_spans(text, [(0, len(text))]))


# --- detection ------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def language_of(text: str, unsure: str = "en") -> str:
    """The code of a text's language (zh, ja, ko by their scripts, others by a detector), und where
    no script tells.

    `unsure` is that of what it is a part of, for a text that tells too little, as names and figures
    do.
    """
    script = script_of(text)
    if script in _OTHER_SCRIPTS:
        return _OTHER_SCRIPTS[script]
    words = WORD.findall(text[:_SAMPLE].lower())
    if script == "latin" and sum(word in _PLAIN_ENGLISH for word in words) >= max(
        _ENGLISH_SHARE * len(words), 1
    ):
        return "en"
    try:
        code, probability = _detector().classify(text[:_SAMPLE])
    except OSError:  # it unpacks its model into a file, for which there may be no room
        code, probability = "", 0.0
    if probability >= SURE:
        return str(code)
    return (
        unsure if script == "latin" and unsure in STEMMERS else "und" if script == "other" else "en"
    )


def language_name(text: str) -> str:
    """The English name of a text's language; empty where its function words, or its script, do not
    show it.
    """
    code = language_of(text[:_SAMPLE], "und")
    words = frozenset(WORD.findall(text[:_SAMPLE].casefold()))
    if script_of(text) == "latin" and not words & stopwords(code):
        return ""
    return "English" if code == "en" else known_languages().get(code, {}).get("name", "")


@cache
def _detector() -> "LanguageIdentifier":
    """The detector, loaded where a text is not plainly English; its model is in its package."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@lru_cache(maxsize=4096)
def language_among(question: str, codes: frozenset[str]) -> Language:
    """The language of a question over texts in these: a short question tells its language among
    few.
    """
    if is_han(question):
        return Language("zh", question)
    known = sorted(codes & STEMMERS.keys()) or ["en"]
    if len(known) == 1:
        return Language(known[0], question, known[0])
    words = WORD.findall(question.casefold())
    hits = {code: sum(word in stopwords(code) for word in words) for code in known}
    best = [code for code in known if hits[code] == max(hits.values())]
    detected = language_of(question) if len(best) > 1 else best[0]
    return Language(detected if detected in best else best[0], question)
