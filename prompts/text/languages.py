"""Languages: detection, and what differs between them.

English and Chinese have rules of their own; a further language has a stemmer, and function words
where `data/languages.toml` lists them.
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

SURE = 0.5  # The least probability of a detected language; names and figures have less
_PLAIN_ENGLISH = words_in("english", "plain")
_ENGLISH_SHARE = 1 / 12  # The share of such words from which a text is English
_SAMPLE = 3_000  # Characters
_OTHER_SCRIPTS = {"han": "zh", "kana": "ja", "hangul": "ko", "none": "und"}
# The main language of a script, for questions that are too short to detect.
_OF_SCRIPT = {
    "ARABIC": "ar",
    "HEBREW": "he",
    "THAI": "th",
    "DEVANAGARI": "hi",
    "GREEK": "el",
    "CYRILLIC": "ru",
}


@dataclass(frozen=True)
class Language:
    """A language by its ISO 639-1 code, with the question that is asked in it.

    `unsure` is the language of a question that shows none.
    """

    code: str
    question: str = field(default="", compare=False)
    unsure: str = field(default="en", compare=False)

    @property
    def label(self) -> str:
        """The line above excerpts, in the question's language, which may differ from the texts'."""
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
        """Return the terms of a text for matching, in order."""
        return terms(text, self.code)

    def content_terms(self, text: str) -> list[str]:
        """Return the distinct terms that carry meaning, in order."""
        return content_terms(text, self.code)


@lru_cache(maxsize=20_000)
def names_of(text: str) -> tuple[NameSpan, ...]:
    """Return the names in a text by their capitals or parts of speech, in order."""
    return tuple(name_spans_zh(text) if is_han(text) else name_spans(text, [(0, len(text))]))


# --- detection ------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def language_of(text: str, unsure: str = "en") -> str:
    """Return the code of a text's language: by its script, else by a detector, else `und`.

    `unsure` is the language around a text that shows too little of its own, such as names.
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
    except OSError:  # There may be no room for the file that it unpacks its model into
        code, probability = "", 0.0
    if probability >= SURE:
        return str(code)
    if script == "latin" and unsure in STEMMERS:
        return unsure
    return "und" if script == "other" else "en"


def language_name(text: str) -> str:
    """Return the English name of a text's language, if its function words or script show it."""
    code = language_of(text[:_SAMPLE], "und")
    words = frozenset(WORD.findall(text[:_SAMPLE].casefold()))
    if script_of(text) == "latin" and not words & stopwords(code):
        return ""
    return "English" if code == "en" else known_languages().get(code, {}).get("name", "")


@cache
def _detector() -> "LanguageIdentifier":
    """Load the detector, whose model comes in its package."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@lru_cache(maxsize=4096)
def language_among(question: str, codes: frozenset[str]) -> Language:
    """Return the language of a question, among those of the texts: a few are told apart easily."""
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
