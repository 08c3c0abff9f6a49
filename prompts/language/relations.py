"""Which relations does a sentence state between the names in it? Typed by the words that connect them.

One pass from left to right: the first name (or the text's topic, where the sentence opens with a pronoun) is the
subject; each further name is tied to it, or to the name just before, by the phrase in between.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from prompts.language.names import NameSpan
from prompts.language.words import CJK

PRONOUN = re.compile(
    r"\s*[\"“'(*_#>-]*\s*(?:(?:in|by|since|until|after|before|on|at|during|from)\s+[\w ,]{1,30}?,?\s+)?"
    r"(he|she|it|they|his|her|its|their|the (?:company|bridge|film|song|book|novel|album|town|village|city|river|"
    r"institute|museum|school|ship|ferry|brewery|firm|band|series|show|project|building|plant|station|author|engineer))\b",
    re.I,
)
_POSSESSIVE = {"his", "her", "its", "their"}
_PREPOSITIONS = frozenset(
    """
    in at on of by from to with for near under over into between through across as within outside against
    after before since until during and behind beside
    """.split()
)
_DROPPED = re.compile(
    r"\b(?:was|were|is|are|has|have|had|been|be|being|also|the|a|an|its|his|her|their|later|then|first|now|still|both|"
    r"who|which|that|mainly|originally|currently|finally|again|soon|once|and|but|however|respectively|jointly|very|own)\b",
    re.I,
)
_BRACKETED = re.compile(r"\([^()]*\)|\[[^\]]*\]")
_FIGURES = re.compile(
    r"\b(?:in\s+)?(?:\d[\d.,/–-]*(?:th|st|nd|rd)?|January|February|March|April|May|June|July|August|September|"
    r"October|November|December)\b"
)
_SPACES = re.compile(r"[\s,;:.\"“”‘’'—–*_|()\[\]-]+")
_LIST_GAP = re.compile(r"^\s*(?:,|,?\s*(?:and|or|&)|、|和|与|及|以及)\s*(?:the\s+|an?\s+)?$", re.I)
# "funded by X, produced by Y": the second participle is said of the subject too; "born" is said of whom it follows.
_OF_SUBJECT = re.compile(r"\s*,?\s*(?:(?:and|who|which)\b|(?<=[, ])(?!born|called|named)\w+(?:ed|en|wn) by\b)")
_NEW_SUBJECT = re.compile(r"[;:]|\b(?:while|whereas|although|because|when|where|but|if)\b|[；。]", re.I)
_ZH_CLAUSE = re.compile(rf"[{CJK}*][，,]")
_ZH_LISTING = frozenset("和 与 及 或 以及 等 跟 同".split())
_ZH_DROPPED = re.compile(
    r"[的了于是由在，,、。；;：:（）()\s\"“”《》【】*#]|我们|它|以及|并且|而且|同时|其中|一个|一种|通过"
)
_ZH_PRONOUN = re.compile(r"\s*(?:他|她|它|其|该[公司桥馆校厂院社所船])")
_ADJECTIVAL = (
    "ian",
    "ish",
    "ese",
    "can",
    "ean",
    "ench",
    "zech",
    "ic",
    "erman",
    "utch",
    "reek",
    "iss",
    "Scots",
    "elsh",
    "aqi",
    "aeli",
)
_IS_A = re.compile(r"\b(?:is|was|are|were) an? (?:\d{4} )?$")  # "is a 1990 Hong Kong action film"
# "After leaving Yale University, he joined …": the sentence turns back to the text's topic.
_BACK_TO_TOPIC = re.compile(r",\s*(?:he|she|it|they)\s")
_POSSESSED = re.compile(r"['’]s\b")
_LOWER_WORD = re.compile(r"[ -]([a-z]+)")
_VERBS = {"was", "is", "are", "were", "has", "had", "who", "which", "and", "or"}
MAX_GAP = 90


@dataclass(frozen=True, slots=True)
class Statement:
    """`source` -[`predicate`]-> `target`, said by the sentence at `start`..`end`."""

    source: str
    target: str
    predicate: str
    start: int
    end: int


def _phrase(gap: str) -> str:
    """The connecting words, no articles, auxiliaries, dates, brackets: "was later designed by the" → "designed by"."""
    text = _FIGURES.sub(" ", _BRACKETED.sub(" ", gap))
    words = _SPACES.sub(" ", _DROPPED.sub(" ", text)).strip().lower()
    return words if any(map(str.isalnum, words)) else ""


def _is_preposition(phrase: str) -> bool:
    return all(word in _PREPOSITIONS for word in phrase.split())


def _is_adjective(text: str, name: NameSpan, end: int) -> bool:
    """Whether a name only qualifies the noun after it ("a Russian drama film"): it takes part in no relation."""
    following = _LOWER_WORD.match(text, name.end, end)
    if following is None or following.group(1) in _PREPOSITIONS | _VERBS:
        return False
    return name.text.endswith(_ADJECTIVAL) or _IS_A.search(text, max(0, name.start - 14), name.start) is not None


def _bounded(phrase: str) -> str:
    words = phrase.split()
    return " ".join(words if len(words) <= 8 else [*words[:4], "…", *words[-3:]])


def statements(text: str, start: int, end: int, names: list[NameSpan], topic: str) -> Iterator[Statement]:
    """The relations that the sentence `text[start:end]` states among `names` and the topic."""
    subject, position, predicate = _opening(text, start, end, names, topic)
    previous = subject
    for name in names:
        if name.start < position or (name.start > position and _is_adjective(text, name, end)):
            continue
        gap = text[position : name.start]
        position = name.end
        if _LIST_GAP.match(gap) and predicate:
            pass  # "designed A, B and C": the predicate holds on
        elif topic and (back := _BACK_TO_TOPIC.search(gap)):
            subject, predicate = topic, _bounded(_phrase(gap[back.end() :]))
        elif _NEW_SUBJECT.search(gap) or len(gap) > MAX_GAP or not previous:
            subject, previous, predicate = name.text, name.text, ""
            continue
        else:
            subject, predicate = _advance(gap, subject, previous, predicate)
        if predicate and subject and subject != name.text:
            yield Statement(subject, name.text, predicate, start, end)
        previous = name.text


def _opening(text: str, start: int, end: int, names: list[NameSpan], topic: str) -> tuple[str, int, str]:
    """Subject, the place after it, and a predicate that already holds ("Its director …" has none yet)."""
    pronoun = PRONOUN.match(text, start, end)
    if topic and pronoun and (not names or pronoun.end() <= names[0].start):
        possessive = pronoun.group(1).lower() in _POSSESSIVE
        return topic, pronoun.start(1) if possessive else pronoun.end(), ""
    if topic and names and _ZH_PRONOUN.match(text, start, names[0].start):
        return topic, start, ""
    if not names:
        return "", end, ""
    return names[0].text, names[0].end, ""


def _advance(gap: str, subject: str, previous: str, predicate: str) -> tuple[str, str]:
    """Whom the next name belongs to, and by which predicate."""
    if _POSSESSED.match(gap):
        return previous, _bounded(_phrase(gap[2:])) or "of"
    if any("\u4e00" <= c <= "\u9fff" for c in gap):
        return previous, _zh_phrase(gap)
    phrase = _phrase(gap)
    if not phrase:
        return previous, ""
    if _is_preposition(phrase) and predicate and not gap.lstrip().startswith("of"):
        stem_words = [word for word in predicate.split() if word not in _PREPOSITIONS]
        return subject, _bounded(" ".join([*stem_words[:3], phrase.split()[-1]]))
    if _OF_SUBJECT.match(gap):
        return subject, _bounded(phrase)
    return previous, _bounded(phrase)


def _zh_phrase(gap: str) -> str:
    """The connecting words; nothing where a clause ended between, or two things are only listed."""
    if _ZH_CLAUSE.search(gap):
        return ""
    words = _ZH_DROPPED.sub("", gap)
    if words in _ZH_LISTING:
        return ""
    return words if 0 < len(words) <= 12 and re.search(f"[{CJK}]", words) else ""
