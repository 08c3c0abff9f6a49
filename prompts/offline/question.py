"""What does a question ask: which terms, how much each weighs, which names, and a number, a date, a list or a reason?

Only words are compared: English stems, other languages by their beginnings, Chinese by two characters at a time.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import process
from rapidfuzz.distance import OSA

from prompts.text.names import name_spans
from prompts.text.names_zh import tagged
from prompts.text.words import HAN_RUN, content_terms, is_han, stem, terms

SHOWN = 0.4  # of its weight: what a term counts that an excerpt shows already

Rarity = Callable[[str], float]

# What a question asks for, by its words, and what then stands in a text: (question, text).
_KINDS = {
    "number": (
        r"\bhow (?:many|much|long|old|far|tall|high|big|large|often|fast|deep|wide)\b|\bwhat (?:percentage|share)\b"
        r"|\bwie ?(?:viele?|lang|alt|hoch)\b|\bcombien\b|多少|几[个种类本次位章层]|多[长高大久远快]",
        r"(?<![A-Za-z])\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|hundred|half)\b|[一二两三四五六七八九十百千万]",
    ),
    "date": (
        r"\bwhen\b|\b(?:what|which) (?:year|date|day|month)\b|\bwann\b|\bquand\b|何时|什么时候|哪一?[年天月日]|何年",
        r"\b1\d{3}\b|\b20\d\d\b|\b(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sep|Oct|Nov|Dec)[a-z]*\b|[年月日]",
    ),
    "person": (r"\bwho(?:m|se)?\b|\bwe[rmn]\b|\bqui\b|谁|哪位|何人", r""),
    "reason": (
        r"\bwhy\b|\bhow come\b|\bwarum\b|\bwieso\b|\bpourquoi\b|为什么|为何|为啥|原因",
        r"\b(?:because|since|due to|so that|therefore|reason|cause[sd]?|leads? to|weil|denn|car)\b"
        r"|因为|由于|因此|所以|导致|以便|为了",
    ),
    "steps": (
        r"\bhow (?:do|does|did|can|could|should|would|to|is|are|was|were)\b|\bset up\b"
        r"|\bwie (?:kann|muss|geht)\b|\bcomment\b|怎么|怎样|如何",
        r"`|^\W*\d+[.)、]|(?:步骤|首先|然后|方式|通过)|\b(?:first|then|use|run|by)\b",
    ),
}
_KINDS["list"] = (
    r"\bwhat (?:are|were)\b|\b(?:which|what)(?: [\w-]+){1,3} (?:are|were|can|may|must|should)\b"
    r"|\b(?:which|what)(?: [\w-]+){0,2} (?!is\b|was\b|does\b|has\b)[a-z]+[^su\W]s\b|\binclude[ds]?\b|\blist\b"
    r"|哪些|哪[两三四五六七八几]|几[类种个]",
    r"[,;、；,][^.。]*(?:[,;、；,]|\band\b|\bor\b|和)|[:：]\s*\S+[^.。]*[,\n]|[•▪] ?\w| h [A-Z]",
)
_KINDS["yes or no"] = (
    r"^\W*(?:did|does|do|is|are|was|were|has|have|can|could|will|would|should|must)\b|吗[?？]?\s*$|是否|要不要|能不能",
    r"",
)
_PATTERNS = {kind: (re.compile(asks, re.I), re.compile(says, re.I)) for kind, (asks, says) in _KINDS.items()}
_NAMED = re.compile(r"(?<!^)(?<![.!?] )\b[A-ZÀ-Þ][\w'’-]+|[\u4e00-\u9fff]{2,}")
# Function words of German and French, and of colloquial English: they say nothing, however rare they are.
_FUNCTION = frozenset(
    stem(word)
    for word in """
    der die das den dem des ein eine einen einem einer ist sind war hat haben wird werden wie wer wen wem wann wo warum
    wieso welche welcher welches welchen was und oder nicht mit von zu zum zur im für auf bei aus nach gibt es man ich
    le la les un une du de des est sont qui que quoi quel quelle quels quelles comment pourquoi quand combien et ou dans
    pour sur avec au aux ce cette il elle
    dont doesnt didnt cant wont isnt arent whats hows wheres whos im ive anything something get got gets please want
    tell know mean means happen happens thing things
    """.split()
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it is compared: what its terms weigh (1 together), its names as terms, the kind asked for."""

    weights: Mapping[str, float]
    names: tuple[frozenset[str], ...]
    kind: str
    focus: Mapping[str, float]
    han: bool
    figures: frozenset[str] = frozenset()
    # Whether a name of several words has one that the collection does not know: it speaks of another thing then.
    strange: bool = False

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
        if self.kind != "person":
            return _PATTERNS[self.kind][1].search(text) is not None
        return any(not set(terms(name)) <= self.weights.keys() for name in _NAMED.findall(text))


def asked_of(question: str, rarity: Rarity, known: frozenset[str]) -> Asked:
    """`known` are the terms of the passages: a term that the collection lacks stands for the one most like it."""
    unknown = rarity("\0")
    within = _within_words(question)
    weights: dict[str, float] = {}
    spelled: dict[str, str] = {}
    for term in content_terms(question):
        if term in _FUNCTION or (HAN_RUN.match(term) and term not in within and term not in known):
            continue
        unheard = term not in known and rarity(term) >= unknown and not HAN_RUN.match(term)
        spelled[term] = alike(term, known) if unheard else term
        weights.setdefault(spelled[term], min(rarity(term), rarity(spelled[term])))
    named = [] if is_han(question) else name_spans(question, [(0, len(question))])
    names = [frozenset(spelled.get(term, term) for term in terms(name.text)) for name in named]
    strange = any(
        len(name) > 1 and any(term not in known and rarity(term) >= unknown for term in name) for name in names
    )
    kind = next((kind for kind, (asks, _) in _PATTERNS.items() if asks.search(question)), "")
    focus = {spelled.get(term, term): near for term, near in focus_of(question, frozenset().union(*names)).items()}
    total = sum(weights.values()) or 1.0
    return Asked(
        {term: weight / total for term, weight in weights.items()},
        tuple(filter(None, names)),
        kind,
        focus,
        is_han(question),
        frozenset(term for term in weights if any(sign.isdigit() for sign in term)),
        strange,
    )


@lru_cache(maxsize=4096)
def _within_words(question: str) -> frozenset[str]:
    """The bigrams of a Chinese question that lie in one word: one across two words tells nothing by being unknown."""
    if not HAN_RUN.search(question):
        return frozenset()
    return frozenset(term for word, kind, _ in tagged(question) if kind[0] not in "ruydpc" for term in terms(word))


def alike(term: str, known: frozenset[str]) -> str:
    """The known term that a term is a misspelling or another form of; itself where there is none."""
    if len(term) < 4:
        return term
    begun = [other for other in known if len(other) > 4 and (term.startswith(other) or other.startswith(term))]
    if begun:
        return max(sorted(begun), key=len)
    others = sorted(other for other in known if len(other) > 3)
    slips = 1 if len(term) < 8 else 2
    best = process.extractOne(term, others, scorer=OSA.distance, score_cutoff=slips)
    return best[0] if best else term


_OPEN = re.compile(r"\b(?:what|which|who|whom|whose|when|where|how|w[aeio]\w+|quel\w*|qui|combien)\b", re.I)


def focus_of(question: str, names: frozenset[str]) -> dict[str, float]:
    """The words nearest to the last question word, which say what is asked of the names: "founded in what *year*".

    Chinese question words have no such place, so there are none.
    """
    opened = list(_OPEN.finditer(question))
    if not opened or is_han(question):
        return {}
    after = [term for term in content_terms(question[opened[-1].end() :]) if term not in names][:3]
    before = [term for term in content_terms(question[: opened[-1].start()]) if term not in names][:-4:-1]
    near = {term: (0.5 if after else 1.0) / (1 + place) for place, term in enumerate(before)}
    return near | {term: 1 / (1 + place) for place, term in enumerate(after)}
