"""Similar questions: whether two questions may ask the same of the same things (ERM4, trigger).

Questions that differ in one name or one year are close in meaning, but need different evidence. So
cosine is compared only for questions with the same names and figures.
"""

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import lru_cache

from prompts.text.amounts import MONTH_OF
from prompts.text.question import parse_question
from prompts.text.words import (
    HAN_STOP,
    STOPWORDS,
    WORD,
    content_terms,
    fold,
    is_han,
    terms,
    word_terms,
)
from storage.records import content_id
from tasks.retrieve.search import SearchIndex
from tasks.traverse.entity_names import NamedEntity, Spellings

_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_FIGURE_OF = {word: str(number) for number, word in enumerate(_ORDINALS, 1)}
_FIGURE_OF |= {word: f"m{number}" for word, number in MONTH_OF.items() if word != "may"}
_HAN_DIGITS = {digit: str(value) for value, digit in enumerate("一二三四五六七八九十", 1)}
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
# Stop words that change what is asked.
_TELLING = frozenset(
    "not no never without before after more most less least than from to over under own".split()
)
# Words that only ask for a person, a number or a date, which `expects` holds.
_ASKING = frozenset("person people year date number amount name have many much".split())
# Words that only ask or fill in Chinese, in addition to its stop characters.
_ASKING_HAN = re.compile(
    "哪一?[年天位个座家所]?|什么(?:时候|地方)?|何[时处年地]|多少|有多(?=[大高长重远深])|几[个座位]?|请问|[人位由于座]"
)
_VAGUE = frozenset({"name", "text"})
MOST_TEXTS = 20_000
WORDS_OF_NAMELESS = 2


@dataclass(frozen=True)
class ComparedQuestion:
    """The names of a question in order, its figures, and its other words.

    For Chinese, which has no blanks, `words` are sorted characters, with those of names.
    """

    text: str
    mentions: tuple[NamedEntity, ...] = ()
    names: tuple[tuple[str, ...], ...] = ()
    figures: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    is_han: bool = False
    expects: str = "text"


def taken_apart(text: str, mentions: Sequence[NamedEntity]) -> ComparedQuestion:
    """Take a question apart; `mentions` are the names in it, in order."""
    figures, words = list[str](), list[str]()
    for word in WORD.findall(fold(_without(text, mentions))):
        if _NUMBER.fullmatch(word) or word in _FIGURE_OF:
            figures.append(_FIGURE_OF.get(word, word.replace(",", "")))
        elif word in _TELLING or word not in STOPWORDS | _ASKING:
            words += word_terms(word)
    if han := is_han(text):
        said = [
            sign
            for sign in _ASKING_HAN.sub("", fold(text))
            if sign.isalnum() and sign not in HAN_STOP
        ]
        characters = [_HAN_DIGITS.get(sign, sign) for sign in said]
        figures = [sign for sign in characters if sign.isdigit()]
        words = sorted(sign for sign in characters if not sign.isdigit())
    return ComparedQuestion(
        text=text,
        mentions=tuple(mentions),
        names=() if han else tuple(tuple(sorted(one.entities)) for one in mentions),
        figures=tuple(sorted(figures)),
        words=tuple(words),
        is_han=han,
        expects=parse_question(text).expects,
    )


def _without(text: str, mentions: Sequence[NamedEntity]) -> str:
    for mention in mentions:
        blank = " " * (mention.end - mention.start)
        text = text[: mention.start] + blank + text[mention.end :]
    return text


def may_ask_the_same(left: ComparedQuestion, right: ComparedQuestion) -> bool:
    """Whether two questions agree in names, figures, words like "not", and the kind of the answer.

    Names, such words, and the words that both have must come in the same order and number. The kind
    may be known for one of them only.
    """
    return (
        left.is_han == right.is_han
        and left.names == right.names
        and left.figures == right.figures
        and _among(left.words, _TELLING) == _among(right.words, _TELLING)
        and _among(left.words, right.words) == _among(right.words, left.words)
        and len({left.expects, right.expects} - _VAGUE) < 2
    )


def _among(words: Sequence[str], known: Container[str]) -> list[str]:
    return [word for word in words if word in known]


def same_words(left: ComparedQuestion, right: ComparedQuestion) -> bool:
    """Whether two questions have the same words, in whatever order."""
    return sorted(left.words) == sorted(right.words)


def keys(question: ComparedQuestion) -> tuple[str, ...]:
    """Return the keys under which a question is stored: questions that ask the same share one.

    All names are one key; a Chinese question, or one without names, has a key for each word.
    """
    if question.names:
        return (content_id("n", *(name for names in question.names for name in names)),)
    words = content_terms(question.text) or list(question.words)
    return tuple(f"w_{term}" for term in dict.fromkeys(words))


class QuestionFeatures:
    """Compares questions by the names of a generation, and by what it holds about them."""

    def __init__(self, index: SearchIndex, spellings: Spellings) -> None:
        self._index = index
        self._spellings = spellings
        self.asked = lru_cache(MOST_TEXTS)(self._asked)
        self.surroundings = lru_cache(MOST_TEXTS)(self._surroundings)

    def _asked(self, text: str) -> ComparedQuestion:
        mentions = self._spellings.named(text)
        return taken_apart(
            text, [mention for mention in mentions if not mention.doubtful] or mentions
        )

    def _surroundings(self, text: str) -> str:
        """Hash all chunks that hold the rarest name of a question, or its rarest words.

        The hash changes when the index has more or less about the question.
        """
        compared, lexicon = self.asked(text), self._index.lexicon
        names = [terms(text[mention.start : mention.end]) for mention in compared.mentions]
        if not any(names):
            words = sorted(content_terms(text), key=lambda term: (-lexicon.idf_of(term), term))
            names = [[term for term in words if len(lexicon.holding(term))][:WORDS_OF_NAMELESS]]
        places = ([set(lexicon.holding(term).tolist()) for term in name] for name in names if name)
        holding = min((set.intersection(*sets) for sets in places), key=len, default=set())
        return content_id("near", *sorted(self._index.chunks[place].id for place in holding))
