"""Definitions: what a sentence says its subject to be, and whether two definitions can be of one thing.

"Paris was a prince of Troy" → a person; "John Harlow (1805–1872) was an English surveyor" → a person of those years.
What is not said is left open: only what is said twice and differently tells things apart.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from prompts.text.names import KIND_OF
from prompts.text.words import STOPWORDS, fold, group_of, is_han

CLASS_OF = group_of("english", "classes")
CLASS_OF |= {
    # A museum is a house and those who run it: a place may be one, and so may an organisation.
    word: "institution" if kind == "organisation" else kind
    for word, kind in KIND_OF.items()
    if word not in CLASS_OF
}
_ONE = (frozenset({"institution", "place"}), frozenset({"institution", "organisation"}))
_ZH_HEADS = sorted(group_of("chinese", "classes").items(), key=lambda head: -len(head[0]))

_BRACKET = r"(?:\s*[(（](?P<bracket>[^()（）]{0,120})[)）])?"
_IS = re.compile(
    rf"{_BRACKET}\s*,?\s*(?:(?:is|was|are|were|remains)\s+(?:also\s+)?)?"
    r"(?:an?|the|one of (?:the|two|several))\s+(?P<what>[^.;:()]{3,160})", re.I
)  # fmt: skip
_ZH_IS = re.compile(rf"{_BRACKET}\s*[，,]?\s*(?:是|为|係)(?P<what>[^。；;，,]{{2,60}})")
_BORN = re.compile(rf"{_BRACKET}[^.;]{{0,60}}?\b(?:born|b\.)\s+[^.;()]{{0,30}}?(?P<year>\d{{4}})", re.I)
_ZH_BORN = re.compile(r"(?:生于\s*(\d{4})|(\d{4})年[^，。]{0,8}(?:出生|生于|生[）)，]))")
_CUT = re.compile(
    r"\b(?:of|in|on|at|by|with|from|to|for|about|that|which|who|whose|where|near|between|located|situated|based|native|"
    r"made|written|directed|produced|published|released|built|founded|known|born|set|held|and|or|as|when|during|after)\b|,"
)
_YEAR = re.compile(r"(?<!\d)(1\d{3}|20\d{2})(?!\d)")


@dataclass(frozen=True, slots=True)
class Defined:
    """What a thing is said to be: its class and the word for it, the years of its life or making."""

    kind: str = ""
    head: str = ""
    years: tuple[int, ...] = ()

    @property
    def fullness(self) -> int:
        """How much is said; where documents differ, the fuller word is heard first."""
        return bool(self.kind) + 2 * bool(self.years)


@lru_cache(maxsize=50_000)
def defined_as(name: str, sentence: str) -> Defined | None:
    """The definition of the name that opens the sentence (an article may stand first), or None."""
    at = opening(name, sentence)
    if at < 0:
        return None
    if is_han(sentence):
        return _defined_zh(sentence, at)
    life = _BORN.match(sentence, at)
    match = _IS.match(sentence, at)
    bracket = (match or life or {"bracket": ""})["bracket"] or ""
    years = tuple(map(int, _YEAR.findall(bracket)))[:2] or ((int(life["year"]),) if life else ())
    if match is None:
        return Defined("person", "", years) if life else None
    what = match["what"]
    phrase = _CUT.split(what, maxsplit=1)[0].split()
    head = fold(phrase[-1]) if phrase else ""
    kind = CLASS_OF.get(head, CLASS_OF.get(head.removesuffix("s"), ""))
    if not kind and life:
        kind = "person"
    if kind == "work":
        years = tuple(map(int, _YEAR.findall(" ".join(phrase)))) or years
    return Defined(kind, head, years)


def opening(name: str, sentence: str) -> int:
    """Where the name that opens a sentence ends, or -1; 0 where the sentence is a description without its subject."""
    start = 4 if sentence.startswith(("The ", "the ")) and not name.startswith(("The ", "the ")) else 0
    if sentence.startswith(name, start):
        return start + len(name)
    return 0 if sentence.startswith(("A ", "An ")) and name not in sentence else -1


def _defined_zh(sentence: str, at: int) -> Defined | None:
    match = _ZH_IS.match(sentence, at)
    born = _ZH_BORN.search(sentence[at : at + 60])
    bracket = (match["bracket"] if match else "") or ""
    years = tuple(map(int, _YEAR.findall(bracket)))[:2] or ((int(born[1] or born[2]),) if born else ())
    if match is None:
        return Defined("person", "", years) if born else None
    what = match["what"].strip()
    head, kind = next(((word, kind) for word, kind in _ZH_HEADS if what.endswith(word)), ("", ""))
    return Defined(kind, head, years)


def contradict(first: Defined, second: Defined) -> str:
    """In what two definitions cannot be of one thing, or nothing."""
    if first.kind and second.kind and first.kind != second.kind and frozenset({first.kind, second.kind}) not in _ONE:
        return f"one is a {first.head or first.kind}, the other a {second.head or second.kind}"
    same = first.kind and first.kind == second.kind
    if same and first.kind == "work" and first.head != second.head:
        return f"one is a {first.head}, the other a {second.head}"
    if same and first.kind in {"person", "work"} and first.years and second.years and first.years[0] != second.years[0]:
        return f"{first.years[0]} and {second.years[0]}"
    return ""


# --- what a text begins with -----------------------------------------------------------------------------------------

_ANY_BRACKET = r"\((?:[^()]|\([^()]*\))*\)"
_KNOWN = (
    r",?\s+(?:(?:also|better|commonly|formerly|usually|sometimes|often|originally)\s+)?"
    r"(?:known|called|titled|spelt|spelled|born|née)\b[^.;]{0,120}?"
)
_OPENING = re.compile(
    r"\W{0,2}(?P<name>[^\W_][^,;()\n\"“”]{0,90}?)[\"”]?\s*"
    rf"(?P<more>(?:\s*,?\s*{_ANY_BRACKET}|{_KNOWN})*)\s*,?\s+(?:is|was|are|were)\s+(?P<article>an?|the|one)?\b"
)
_LOOKED_AT = 600  # characters
_MOST_WORDS = 12
_SENTENCE_END = re.compile(r"[a-z]{3,}\. ")
_SAYS_ELSE = frozenset({"he", "she", "it", "they", "who", "which", "that"})


def opening_subject(text: str) -> str:
    """The name that an English text begins with and says the nature of, or empty.

    A sentence that begins with a pronoun or a function word, or names nothing with a capital, tells no name.
    """
    match = _OPENING.match(text[:_LOOKED_AT])
    if match is None or not (match["article"] or match["more"].strip()):
        return ""
    name = " ".join(match["name"].split())
    words = name.split()
    folded = [word.lower() for word in words]
    name_words = words[1:] if folded[0] in {"the", "a", "an"} else words
    is_sentence = bool(_SENTENCE_END.search(name)) or not _SAYS_ELSE.isdisjoint(folded)
    begins_plain = name_words is words and folded[0] in STOPWORDS and not text.startswith(('"', "“"))
    if is_sentence or begins_plain or len(words) > _MOST_WORDS:
        return ""
    return name if any(word[0].isupper() or word[0].isdigit() for word in name_words) else ""
