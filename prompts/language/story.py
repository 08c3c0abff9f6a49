"""Who and what acts in a story without having a name? ("the clerk", "Scrooge's nephew", "the warehouse")

Only where people talk: in other prose such nouns name nothing in particular.
"""

import re

from prompts.language.names import NameSpan

_PEOPLE = (
    "nephew|niece|wife|husband|son|daughter|father|mother|brother|sister|uncle|aunt|widow|cousin|grandfather|grandmother|"
    "clerk|boy|girl|child|children|girls|boys|master|mistress|servant|stranger|gentleman|gentlemen|lady|ladies|woman|man|"
    "singer|soldier|sailor|captain|doctor|priest|teacher|schoolmaster|porter|guest|guests|visitor|neighbour|neighbor|"
    "merchant|beggar|butler|cook|landlord|officer|policeman|lamplighter|charwoman|undertaker|spirit|ghost|phantom|family|"
    "partner|king|queen|prince|princess|witch|giant|crowd"
)
_PLACES = (
    "office|house|counting-house|room|chamber|warehouse|church|school|schoolroom|shop|inn|tavern|city|town|village|street|"
    "streets|garden|kitchen|tower|castle|palace|forest|mine|ship|harbour|island|prison|hospital|market|bed|door|bell|clock"
)
_ADJECTIVES = "old|young|little|plump|poor|former|elder|eldest|younger|youngest"
_SPOKEN = re.compile(r"\b(?:said|says|cried|asked|replied|answered|exclaimed|whispered|returned)\b")
_KIN = re.compile(rf"\b[A-Z][a-z]+(?:['’]s) (?:(?:{_ADJECTIVES}) )?(?:{_PEOPLE}|self|office|house|counting-house)\b")
_DEFINITE = re.compile(rf"\b(?:the|his|her|their|my|our) ((?:(?:{_ADJECTIVES}) )?(?:{_PEOPLE}|{_PLACES}))\b", re.I)
_PLACE_HEAD = re.compile(rf"(?:{_PLACES})$")
_QUOTES = 2  # marks of speech that make a story


def actors(text: str) -> list[NameSpan]:
    """The first place of each nameless person and place in a story, in order."""
    if text.count('"') + text.count("“") < _QUOTES or not _SPOKEN.search(text):
        return []
    found = [(match.group(), match.start()) for match in _KIN.finditer(text)]
    found += [(match.group(1), match.start(1)) for match in _DEFINITE.finditer(text)]
    first: dict[str, NameSpan] = {}
    for name, at in sorted(found, key=lambda item: item[1]):
        kind = "place" if _PLACE_HEAD.search(name) else "person"
        first.setdefault(name.lower(), NameSpan(name, at, at + len(name), kind))
    return list(first.values())
