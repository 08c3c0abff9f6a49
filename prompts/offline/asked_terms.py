"""What a question asks for, as excerpts are held against it: its terms by weight, its names, the kind that is asked.

The terms of a Chinese question weigh more where their word is rare in Chinese.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import dropwhile, takewhile

from prompts.text.amounts import MONTH, amount_of
from prompts.text.languages import Language
from prompts.text.misspelling import known_spelling
from prompts.text.names_zh import frequency, tagged
from prompts.text.question import parse_question
from prompts.text.regex import regex
from prompts.text.words import HAN_RUN, STOPWORDS, WORD, fold, is_han, simplified, stem, terms

SHOWN = 0.4  # of its weight: what a term counts that an excerpt shows already

ACRONYM = 5  # letters
ORDINARY = 300  # how often the segmenter's dictionary counts a Chinese word that every text may use
# Words behind the segmenter's dictionary; what a word of one sign counts; the rarity of a term across two words.
COUNTED, SIGN, ACROSS = 6_000_000, 0.4, 3.0

Rarity = Callable[[str], float]

# A figure, in digits or in a word that says little else ("one" and 一 do).
FIGURE = (
    r"(?<![A-Za-z-])\d[\d,.]*|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|hundred|half)\b"
    r"|[二两三四五六七八九十百千万亿]"
)
# What stands in a text where a question asks for it.
_SHOWS = {
    kind: regex(pattern, re.I)
    for kind, pattern in {
        "number": rf"(?:{FIGURE})",
        "date": rf"\b1\d{{3}}\b|\b20\d\d\b|\b{MONTH}\b\W{{1,2}}\d|\d\W{{1,2}}{MONTH}\b|[年月日]",
        "reason": r"\b(?:because|since|due to|so that|therefore|reason|cause[sd]?|leads? to|weil|denn|car)\b"
        r"|因为|由于|因此|所以|导致|以便|为了",
        "steps": r"`|^\W*\d+[.)、]|(?:步骤|首先|然后|方式|通过)|\b(?:first|then|use|run|by)\b",
        "list": r"[,;、；,][^.。]*(?:[,;、；,]|\band\b|\bor\b|和)"
        r"|[:：]\s*+[^\s,]{1,80}+[^.。,\n]{0,300}+[,\n]|[•▪] ?\w| h [A-Z]",
        "yes or no": "",
        "way": "",
    }.items()
}
_WHY = regex(r"\bwhy\b|\bhow come\b|为什么|为何|为啥|原因", re.I)
_HOW = regex(r"\bhow (?:do|does|did|is|are|was|were|can|could|should|would)\b|怎么|怎样|如何", re.I)
_LIST = regex(
    r"\bwhat (?:are|were)\b|\b(?:which|what)(?: [\w-]+){1,3} (?:are|were|can|may|must|should)\b"
    r"|\b(?:which|what)(?: (?!do\b|does\b|did\b)[\w-]+){0,2} (?!is\b|was\b|does\b|has\b)[a-z]+[^su\W]s\b"
    r"|\binclude[ds]?\b|\blist\b"
    r"|哪些|哪[两三四五六七八几]|几[类种个]",
    re.I,
)
# Words of colloquial English, and what is asked of the program, say nothing of the documents, however rare they are.
_COLLOQUIAL = frozenset(
    map(
        stem,
        "dont doesnt didnt cant wont isnt arent whats hows wheres whos anything something thing things "
        "summarise summarize describe explain tell compare outline please".split(),
    )
)
# "How many" asks for a figure of the noun that ends what follows it.
_MARKER = regex(r"^\W*\d+[.)、]")  # of a list item, which is no figure
_COUNTED = regex(r"\bhow many\W+([^?.,;:()]{1,80})", re.I)
_COUNTED_HAN = regex(r"多少|几")
# Words between a figure and what is counted, words up to a figure after it, and signs between them in Chinese.
WORDS_BETWEEN, WORDS_AFTER, SIGNS_BETWEEN = 3, 2, 8
_ASKING_HAN = regex(
    r"什么|怎么样?|怎样|如何|为[何啥]|哪[些个位里]|多少|要不要|能不能|是不是|会不会|有没有|是否|干[嘛吗]|[出起下]来的?"
)
_NAME_TAGS = frozenset({"nr", "nrt", "ns", "nt", "nz"})  # of the Chinese segmenter
_KIND_OF_FORM = {"howto": "steps", "yesno": "yes or no", "list": "list"}
_KIND_OF_ANSWER = {"number": "number", "money": "number", "date": "date", "person": "person"}
_NAMED = regex(r"(?<!^)(?<![.!?] )\b[A-ZÀ-Þ][\w'’-]+")
# The least rarity of a name, as a share of the greatest: one that all of a collection is about tells no text of it
# from another.
TELLING = 0.25


@dataclass(frozen=True, slots=True)
class AskedTerms:
    """A question as it is compared: what its terms weigh (1 together), its names as terms, the kind asked for."""

    weights: Mapping[str, float]
    names: tuple[frozenset[str], ...]
    kind: str
    focus: Mapping[str, float]
    language: Language
    # The names, but for acronyms, which a text may spell out; the words of a Chinese question by how rare they are in
    # Chinese; whether the passages are in other languages.
    things: tuple[frozenset[str], ...] = ()
    has_telling_name: bool = False  # one of these that tells texts apart
    words: Mapping[str, float] = field(default_factory=dict)
    foreign: bool = False
    counted: str = ""  # what "how many" counts: the stem of a noun, or a Chinese word

    def near(self, terms: frozenset[str]) -> float:
        """How many of the words beside the question word stand among terms, the nearest counting most."""
        return sum(near for term, near in self.focus.items() if term in terms)

    def weigh(self, terms: frozenset[str], shown: frozenset[str] = frozenset()) -> float:
        """What terms of the question weigh together, those shown already less."""
        return sum(self.weights[term] * (SHOWN if term in shown else 1.0) for term in terms)

    def fits(self, text: str) -> bool:
        """Whether what is asked for, a number or a date say, stands in a text."""
        if not self.kind:
            return False
        if self.kind == "person":
            names = [word for word, tag, _ in tagged(text) if tag[:2] == "nr"] if is_han(text) else []
            names += _NAMED.findall(text)
            return any(not set(self.language.terms(name)) <= self.weights.keys() for name in names)
        text = _MARKER.sub("", text) if self.kind == "number" else text
        if self.kind == "number" and self.counted:
            return counts_han(self.counted, text) if self.han else counts(self.counted, text)
        return _SHOWS[self.kind].search(text) is not None

    @property
    def han(self) -> bool:
        """Whether the question is Chinese."""
        return self.language.code == "zh"


def asked_of(question: str, language: Language, rarity: Rarity, known: frozenset[str]) -> AskedTerms:
    """`known` are the terms of the passages: a term that the collection lacks stands for the one most like it."""
    unknown = rarity("\0")
    content = _ASKING_HAN.sub(" ", question)
    within = _within_words(content)
    weights: dict[str, float] = {}
    spelled: dict[str, str] = {}
    for term in language.content_terms(content):
        if term in _COLLOQUIAL or (HAN_RUN.match(term) and (len(term) == 1 or not {term} & (within | known))):
            continue
        unheard = term not in known and rarity(term) >= unknown and not HAN_RUN.match(term)
        spelled[term] = known_spelling(term, known) if unheard else term
        weights.setdefault(spelled[term], min(rarity(term), rarity(spelled[term])))
    words = han_words(content) if is_han(question) else {}
    if words:
        weights = {term: weight * math.sqrt(_rarest(term, words)) for term, weight in weights.items()}
    total = sum(weights.values()) or 1.0
    named = () if is_han(question) else language.names(question)
    names = {
        name.text: frozenset(spelled.get(term, term) for term in held)
        for name in named
        if (held := [term for term in language.terms(name.text) if term not in _COLLOQUIAL])
    }
    things = [name for text, name in names.items() if not (text.isupper() and len(text) <= ACRONYM)]
    if is_han(question):
        tags = [(word, kind) for word, kind, _ in tagged(content) if len(word) > 1 and frequency(word) < ORDINARY]
        things = [frozenset(terms(word)) for word, kind in tags if kind in _NAME_TAGS]
    return AskedTerms(
        {term: weight / total for term, weight in weights.items()},
        tuple(names.values()),
        language.asks_for(question) or _kind_asked(question),
        {} if is_han(question) else focus_of(question, language, frozenset().union(*names.values())),
        language,
        tuple(things),
        any(max(map(rarity, name), default=0.0) >= TELLING * unknown for name in things),
        words,
        counted=_counted_han(question) if is_han(question) else _counted(question),
    )


def _counted(question: str) -> str:
    """What an English question counts: "how many *CPU ms* does": the stem of the last word before a plain one."""
    match = _COUNTED.search(question)
    words = dropwhile(STOPWORDS.__contains__, WORD.findall(match[1].lower()) if match else ())
    return next((stem(word) for word in reversed(list(takewhile(lambda word: word not in STOPWORDS, words)))), "")


def _counted_han(question: str) -> str:
    """What a Chinese question counts: the last noun near after "多少" or "几", else the last of its words there."""
    match = _COUNTED_HAN.search(question)
    near = list(takewhile(lambda word: word[1][0] not in "xupy", tagged(question[match.end() :])[:3])) if match else []
    nouns = [word for word, tag, _ in near if tag[0] == "n" or tag == "eng"]
    words = sorted(nouns or [word for word, _, _ in near], key=lambda word: len(word) > 1)
    return simplified(fold(words[-1])) if words else ""


def counts(noun: str, text: str) -> bool:
    """Whether a figure stands just before a noun ("37 small boats"), after it ("the boats are 37"), or in its row."""
    cells = text.split("|")
    if len(cells) > 2 and any(amount_of(cell.strip("` *")) for cell in cells):
        return noun in map(stem, WORD.findall(text.lower()))
    words = [(match.start(), stem(match[0].lower())) for match in WORD.finditer(text)]
    figures = [match.start() for match in re.finditer(FIGURE, text, re.I)]
    for place, (_, word) in enumerate(words):
        first = words[max(0, place - WORDS_BETWEEN - 1)][0]
        last = words[min(place + WORDS_AFTER, len(words) - 1)][0]
        if word == noun and any(first <= figure <= last for figure in figures):
            return True
    return False


def counts_han(noun: str, text: str) -> bool:
    """Whether a figure stands just before or after a Chinese noun, in one clause with it."""
    between = rf"[^，。；,;\n]{{0,{SIGNS_BETWEEN}}}"
    noun = re.escape(noun)
    pattern = rf"(?:{FIGURE}){between}{noun}|{noun}{between}(?:{FIGURE})"
    return re.search(pattern, simplified(fold(text))) is not None


def _kind_asked(question: str) -> str:
    if _WHY.search(question):
        return "reason"
    parsed = parse_question(question)
    if parsed.form != "howto" and _HOW.search(question):
        return "way"
    kind = _KIND_OF_ANSWER.get(parsed.expects) or _KIND_OF_FORM.get(parsed.form)
    return kind or ("list" if _LIST.search(question) else "")


def han_words(question: str) -> dict[str, float]:
    """The words of a Chinese question and how rare each is in Chinese, by the segmenter's dictionary."""
    return {
        simplified(fold(word)): (SIGN if len(word) == 1 else 1.0) * math.log(COUNTED / (frequency(word) + 2))
        for word, kind, _ in tagged(question)
        if WORD.search(word) and not (HAN_RUN.match(word) and kind[0] in "ruydpc")
    }


def _rarest(term: str, words: Mapping[str, float]) -> float:
    """How rare the rarest word is that has a term; a term across two words says little."""
    return max((weight for word, weight in words.items() if term in terms(word)), default=ACROSS)


@lru_cache(maxsize=4096)
def _within_words(question: str) -> frozenset[str]:
    """The bigrams of a Chinese question that lie in one word: one across two words tells nothing by being unknown."""
    if not HAN_RUN.search(question):
        return frozenset()
    return frozenset(term for word, kind, _ in tagged(question) if kind[0] not in "ruydpc" for term in terms(word))


_OPEN = regex(r"\b(?:what|which|who|whom|whose|when|where|how|w[aeio]\w+|quel\w*|qui|combien)\b", re.I)


def focus_of(question: str, language: Language, names: frozenset[str]) -> dict[str, float]:
    """The words nearest to the last question word, which say what is asked of the names: "founded in what *year*"."""
    opened = list(_OPEN.finditer(question))
    if not opened:
        return {}
    after = [term for term in language.content_terms(question[opened[-1].end() :]) if term not in names][:3]
    before = [term for term in language.content_terms(question[: opened[-1].start()]) if term not in names][:-4:-1]
    near = {term: (0.5 if after else 1.0) / (1 + place) for place, term in enumerate(before)}
    return near | {term: 1 / (1 + place) for place, term in enumerate(after)}
