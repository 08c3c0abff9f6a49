"""Does a question itself say what its pronoun means, or that it means nothing? "The globe gets its coffee".

Then the conversation is not asked. A long question is taken to stand on its own.
"""

import re

from prompts.language.asked import NOUN_KIND, is_plural
from prompts.language.mentions import named
from prompts.language.words import content_terms

LONG = 6  # words of meaning
_EMPTY = (
    "true|possible|impossible|likely|unlikely|correct|necessary|known|worth|important|common|uncommon|usual|unusual|"
    "difficult|easy|hard|dangerous|safe|legal|illegal|normal|rare|good|bad|better|best|wise|fair|reasonable|allowed|"
    "appropriate|acceptable|ethical|strange|surprising|said|called"
)
_EMPTY_IT = re.compile(
    rf"\bit\s+(?:(?:is|was|be|been)\s+)?(?:{_EMPTY}|rain\w*)\b|\b(?:is|was) it (?:that|to)\b|"
    r"\b(?:do|does|did|will|would|can)\s+it\s+(?:take|cost|mean)\s+(?:to|for|that|if|when)\b|"
    r"\bwhat (?:is|was) it (?:like|that)\b|\bwhat (?:does|did) it take\b|\bmake it \w+ to\b",
    re.I,
)
_QUOTED = re.compile(r"\"[^\"]+\"|“[^”]+”|(?<!\w)'[^']+'(?!\w)")
_SAID = re.compile(
    r"\b(?:which|what|the|an?|every|each|any|some|how many)\s+(?:[a-z-]+\s+)?(?P<noun>[a-z][a-z-]{2,})\b", re.I
)
_SUBJECT = re.compile(r"\b(?:do|did|are|were|have|can|will|would|should)\s+(?P<noun>[a-z-]{4,})\b", re.I)
_OWNING = frozenset({"his", "its", "their", "her"})
# "The population of its capital": what stands before "of" is not whose capital it is.
_ONLY_JOINED = re.compile(r"\s*(?:of|for|about|behind|on)?\s*")
_NEW_CLAUSE = re.compile(r",|;|\b(?:and|but|when|if|because|while|after|before|until|once)\b", re.I)
_SUBORDINATE = re.compile(r"^(?:when|before|after|while|although|in|during|since|until|once|if)\b[^,?]*,", re.I)


def is_quoted(text: str, at: int) -> bool:
    """Whether a place stands in quotation marks: there words are a title's."""
    return any(quoted.start() < at < quoted.end() for quoted in _QUOTED.finditer(text))


def stands_for_nothing(text: str, match: re.Match[str]) -> bool:
    """Whether it is no pronoun: the "it" of "is it true", or a word of a title."""
    if (match.start() > 0 and match.group()[0].isupper()) or is_quoted(text, match.start()):
        return True
    empty = [one for one in _EMPTY_IT.finditer(text) if one.start() <= match.start() < one.end()]
    return match["thing"] is not None and bool(empty)


def says_itself(text: str, match: re.Match[str], *, spoken: bool) -> bool:
    """Whether a name or a noun of the question is what the pronoun means.

    `spoken`: there is a conversation, so that in a short question "he" is more likely one of its people than "the
    committee", and "its" the topic's.
    """
    if _named_itself(text, match):
        return True
    if not spoken or len(content_terms(text)) >= LONG:
        return _noun_before(text, match) or (match["several"] is not None and _means_people_at_large(text, match))
    subject = _SUBJECT.search(text, 0, match.start()) if match.group().lower() == "their" else None
    clause = _NEW_CLAUSE.search(text, 0, match.start())
    told = clause is not None and _fits(match, _nouns(text, clause.start()), strictly=True)
    return told or (subject is not None and is_plural(subject["noun"].lower()))


def _named_itself(text: str, match: re.Match[str]) -> bool:
    """Whether a name stands before the pronoun, or at once after a clause that begins with it."""
    fitting = [name for name in named(text) if name.kind != "person" or not match["thing"]]
    if any(name.start < match.start() for name in fitting):
        return True
    begins = _SUBORDINATE.match(text)
    return begins is not None and match.start() < begins.end() and any(name.start >= begins.end() for name in fitting)


def _noun_before(text: str, match: re.Match[str]) -> bool:
    """Whether a noun that may be meant stands before the pronoun: in an earlier clause, or before the verb of its own
    where the pronoun owns ("the globe gets its coffee", "do children send their letters")."""
    clause = _NEW_CLAUSE.search(text, 0, match.start())
    if clause is not None and _fits(match, _nouns(text, clause.start()), strictly=False):
        return True
    if any(is_plural(word) for word in re.findall(r"[a-z-]{4,}", text[: match.start()])):
        return True
    said = list(_SAID.finditer(text, 0, match.start()))
    owns = match.group().lower() in _OWNING
    return owns and bool(said) and _ONLY_JOINED.fullmatch(text, said[-1].end(), match.start()) is None


def _nouns(text: str, end: int) -> list[str]:
    return [found["noun"].lower() for found in _SAID.finditer(text, 0, end)]


def _fits(match: re.Match[str], nouns: list[str], *, strictly: bool) -> bool:
    """Whether one of the nouns is of the pronoun's sort; loosely any noun may be a person or a group."""
    people = {noun for noun in nouns if NOUN_KIND.get(noun.rstrip("s")) == "person"}
    if match["person"]:
        return bool(people) or (bool(nouns) and not strictly)
    if match["several"] and strictly:
        return any(is_plural(noun) for noun in nouns)
    return bool(set(nouns) - people)


def _means_people_at_large(text: str, match: re.Match[str]) -> bool:
    """ "Where did they film the witches of eastwick?": much is said after it."""
    return len(content_terms(text[match.end() :])) > 2
