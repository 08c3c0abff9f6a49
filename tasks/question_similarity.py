"""Whether two questions ask the same of the same things: names, figures and relations must agree (ERM4, trigger).

Questions that differ in one name, one year or one relation are close in meaning and need different evidence: cosine
alone does not tell them apart. So each question is taken apart once, and two are compared part by part.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from prompts.text.amounts import MONTH_OF
from prompts.text.question import parse_question
from prompts.text.regex import regex
from prompts.text.thesaurus import likeness, meanings, sex_of
from prompts.text.words import CJK, STOPWORDS, WORD, content_terms, fold, is_han, lines_of, terms, word_terms
from storage.records import content_id
from tasks.retrieve.search import SearchIndex
from tasks.traverse.entity_names import NamedEntity, Spellings
from tasks.traverse.relation_cues import cues_around, cues_in

_ORDINALS = dict(
    zip("first second third fourth fifth sixth seventh eighth ninth tenth".split(), map(str, range(1, 11)), strict=True)
)
_NUMBER = regex(r"\d+(?:[.,]\d+)*|第[一二三四五六七八九十百]+|[a-z]+")
_HAN_DIGITS = {digit: str(value) for value, digit in enumerate("一二三四五六七八九十", 1)}
# Words that ask, say the kind of thing asked for, or say little beside the relation that they stand with.
_NO_RELATION = frozenset(
    """where place citi town villag countri state locat spot site live stay address resid home when date year day time
    month why how caus reason follow practic made make have belong""".split()
)
_KIN = frozenset({"parent", "child", "spouse", "sibling"})
_VAGUE = frozenset({"name", "text"})
_ZH_ASKING = regex(
    "哪一年|哪年|何年|什么时候|何时|哪天|哪一天|年份|时间|日期|哪位|哪个人|何人|是谁|谁|哪里|哪儿|何处|什么地方|哪座城市|"
    "哪个城市|哪个国家|哪个地方|多少|几[个座名位张口艘条所间支种]?|有多?[大高长重远深宽久快]|多[大高长重远深宽久快]|"
    "哪[一]?[个家座位部本首所支种条些]|什么|怎么|为什么|为何|叫什么名字|叫什么|名字|位于|坐落|地处|设在|所在|请问|现任|现在|"
    "目前|如今|一共|总共|共有|分别|这[部本位座首个家所条]|那[部本位座首个家口条]|担任|主要|东西|"
    "[的了是在由于和与里中上内有被把为从呢吗过着地得时个座位次名人之到给叫年能可以会并又也都这那所其将第 ]"
)
_NOT_HAN = regex(rf"[^{CJK}0-9a-z]+")
MOST_TEXTS = 20_000
WORDS_OF_NAMELESS = 2
_Meaning = tuple[frozenset[str], str]  # what a word may mean, and the sex that it tells


@dataclass(frozen=True)
class ComparedQuestion:
    """A question taken apart for comparison. `relations` lead away from its first name; of a Chinese question they are
    the meanings of its words, and `words` the characters that are left."""

    text: str
    mentions: tuple[NamedEntity, ...] = ()
    names: frozenset[str] = frozenset()
    figures: frozenset[str] = frozenset()
    relations: tuple[_Meaning, ...] = ()
    words: tuple[str, ...] = ()
    han: bool = False
    expects: str = "text"


def taken_apart(text: str, mentions: Sequence[NamedEntity]) -> ComparedQuestion:
    """The parts of a question; `mentions` are what it names, in its order."""
    han = is_han(text)
    if han:
        relations, words = _read_han(text)
    else:
        content = (word_terms(word) for word in WORD.findall(fold(text)) if word not in STOPWORDS)
        relations, words = _relations(text, mentions), tuple(dict.fromkeys(term for terms in content for term in terms))
    return ComparedQuestion(
        text=text, mentions=tuple(mentions), names=frozenset(name for mention in mentions for name in mention.entities),
        figures=_figures(text), relations=relations, words=words, han=han, expects=parse_question(text).expects,
    )  # fmt: skip


def differs(left: ComparedQuestion, right: ComparedQuestion) -> bool:
    """Whether two questions ask something else: in another language, of other names or figures, for another kind of
    thing, or for another relation.

    A part that only one of them tells of, such as the kind of thing asked for, is no difference.
    """
    return (
        left.han != right.han
        # Chinese names are found here and not there: they are compared as text, with the rest.
        or (not left.han and left.names != right.names)
        or left.figures != right.figures
        or len({left.expects, right.expects} - _VAGUE) == 2
        or _other_relation(left, right)
    )


def alike(left: ComparedQuestion, right: ComparedQuestion) -> float:
    """Likeness of two questions by their words and relations (0-1): for texts that the embedder cannot read.

    What one of them says alone counts a quarter: it may be a word that asks.
    """
    mine, yours = ({*question.words, *map(str, question.relations)} for question in (left, right))
    shared = len(mine & yours)
    return shared / (shared + len(mine ^ yours) / 4) if shared else 0.0


def keys(question: ComparedQuestion) -> tuple[str, ...]:
    """By what a question is looked up: one that asks the same shares a key with it.

    Names must agree, so all of them together are one key; where they are not found alike (Chinese) or there are none,
    each word is one.
    """
    if question.names and not question.han:
        return (content_id("n", *sorted(question.names)),)
    words = content_terms(question.text) or list(question.words)
    return tuple(f"w_{term}" for term in dict.fromkeys(words))


class QuestionFeatures:
    """Questions taken apart by the names of a generation, and what it holds about them."""

    def __init__(self, index: SearchIndex, spellings: Spellings) -> None:
        self._index = index
        self._spellings = spellings
        self.asked = lru_cache(MOST_TEXTS)(self._asked)
        self.surroundings = lru_cache(MOST_TEXTS)(self._digest)

    def _asked(self, text: str) -> ComparedQuestion:
        mentions = self._spellings.named(text)
        return taken_apart(text, [mention for mention in mentions if not mention.doubtful] or mentions)

    def _digest(self, text: str) -> str:
        """Of all chunks that hold the rarest name in a question, or its rarest words where it names nothing.

        Where it changes, there is something new about the question, or something less.
        """
        compared, lexicon = self.asked(text), self._index.lexicon
        names = [terms(text[mention.start : mention.end]) for mention in compared.mentions]
        if not any(names):
            words = sorted(content_terms(text), key=lambda term: (-lexicon.idf_of(term), term))
            names = [[term for term in words if len(lexicon.holding(term))][:WORDS_OF_NAMELESS]]
        places = ([set(lexicon.holding(term).tolist()) for term in name] for name in names if name)
        holding = min((set.intersection(*sets) for sets in places), key=len, default=set())
        return content_id("near", *sorted(self._index.chunks[place].id for place in holding))


def _relations(text: str, mentions: Sequence[NamedEntity]) -> tuple[_Meaning, ...]:
    """The relations that the words around the first name ask for, in the order in which they lead away from it.

    Neighbouring words of one meaning are one ("educational institution"); relatives lead on one by one.
    """
    blank = "".join(
        " " if any(mention.start <= at < mention.end for mention in mentions[1:]) else c for at, c in enumerate(text)
    )
    cues = cues_around(blank, mentions[0].start, mentions[0].end).orders()[0] if mentions else cues_in(text)
    relations: list[_Meaning] = []
    for cue in cues:
        meant = meanings(cue.key)
        if not meant or cue.asking or cue.key in _NO_RELATION:
            continue
        if not relations or not relations[-1][0] & meant or meant & _KIN:
            relations.append((meant, sex_of(cue.key)))
    return tuple(relations)


def _other_relation(left: ComparedQuestion, right: ComparedQuestion) -> bool:
    if left.han:
        return left.relations != right.relations or bool(
            {*left.words} - {*right.words} and {*right.words} - {*left.words}
        )
    if len(left.relations) != len(right.relations):
        return True
    for (first, sex), (second, other) in zip(left.relations, right.relations, strict=True):
        if not first & second or len({sex, other} - {""}) == 2:
            return True
    # Of questions that name nothing each word of one is like one of the other's.
    return not left.names and not any(
        all(any(likeness(word, other) > 0 for other in theirs.words) for word in mine.words)
        for mine, theirs in ((left, right), (right, left))
    )


@lru_cache(MOST_TEXTS)
def _figures(text: str) -> frozenset[str]:
    """Numbers, ordinals and months, in one writing; "May" only with a figure beside it."""
    figures: set[str] = set()
    folded = fold(text)
    for match in _NUMBER.finditer(folded):
        word = match.group()
        if word[0].isdigit():
            figures.add(word.replace(",", ""))
        elif word[0] == "第":
            figures.add("".join(_HAN_DIGITS.get(digit, digit) for digit in word[1:]))
        elif word in _ORDINALS:
            figures.add(_ORDINALS[word])
        elif word in MONTH_OF and (word not in {"may", "march"} or text[match.start()].isupper()):
            figures.add(f"m{MONTH_OF[word]}")
    return frozenset(figures)


# --- Chinese ----------------------------------------------------------------------------------------------------------


@cache
def _meaning_of() -> dict[str, str]:
    """One meaning a line: a word of the one question may stand for a word of the other."""
    by_word: dict[str, str] = {}
    for line in lines_of("question_meanings_zh"):
        for word in line.split():
            by_word.setdefault(word, line.split()[0])
    return by_word


@cache
def _meaning_words() -> re.Pattern[str]:
    return re.compile("|".join(sorted(map(re.escape, _meaning_of()), key=lambda word: (-len(word), word))))


def _read_han(text: str) -> tuple[tuple[_Meaning, ...], tuple[str, ...]]:
    """The meanings of a Chinese question's words, and its other characters without words that ask and fillers.

    Chinese has no spaces and its names are often not in the graph: they are compared as characters.
    """
    bare = _NOT_HAN.sub("", fold(text))
    meant = sorted({_meaning_of()[word] for word in _meaning_words().findall(bare)})
    rest = _ZH_ASKING.sub("", _meaning_words().sub("", bare))
    return tuple((frozenset({meaning}), "") for meaning in meant), tuple(dict.fromkeys(rest))
