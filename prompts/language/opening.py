"""What does a text say at its beginning that it is about? "Marufabad (…) is a village in …" is about Marufabad."""

import re

from prompts.language.words import STOPWORDS

_BRACKET = r"\((?:[^()]|\([^()]*\))*\)"
_KNOWN = (
    r",?\s+(?:(?:also|better|commonly|formerly|usually|sometimes|often|originally)\s+)?"
    r"(?:known|called|titled|spelt|spelled|born|née)\b[^.;]{0,120}?"
)
_OPENING = re.compile(
    r"\W{0,2}(?P<name>[^\W_][^,;()\n\"“”]{0,90}?)[\"”]?\s*"
    rf"(?P<more>(?:\s*,?\s*{_BRACKET}|{_KNOWN})*)\s*,?\s+(?:is|was|are|were)\s+(?P<article>an?|the|one)?\b"
)
_LOOKED_AT = 600  # characters
_MOST_WORDS = 12
_SENTENCE_END = re.compile(r"[a-z]{3,}\. ")
_SAYS_ELSE = frozenset({"he", "she", "it", "they", "who", "which", "that"})


def opening_subject(text: str) -> str:
    """The name that an English text begins with and says the nature of, or empty.

    A sentence that begins with a pronoun or a function word, or names nothing with a capital, tells no name.
    """
    found = _OPENING.match(text[:_LOOKED_AT])
    if found is None or not (found["article"] or found["more"].strip()):
        return ""
    name = " ".join(found["name"].split())
    words = name.split()
    folded = [word.lower() for word in words]
    told = words[1:] if folded[0] in {"the", "a", "an"} else words
    is_sentence = bool(_SENTENCE_END.search(name)) or not _SAYS_ELSE.isdisjoint(folded)
    begins_plain = told is words and folded[0] in STOPWORDS and not text.startswith(('"', "“"))
    if is_sentence or begins_plain or len(words) > _MOST_WORDS:
        return ""
    return name if any(word[0].isupper() or word[0].isdigit() for word in told) else ""
