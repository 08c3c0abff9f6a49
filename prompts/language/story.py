"""Who and what acts in a story without having a name? ("the clerk", "Scrooge's nephew", "the warehouse")

Only where people talk: in other prose such nouns name nothing in particular.
"""

import re

from prompts.language.names import NameSpan

_KINDRED = (
    "nephew|niece|wife|husband|son|daughter|father|mother|brother|sister|uncle|aunt|widow|cousin|grandfather|grandmother|"
    "family|partner|master|mistress|child|children|guests"
)
_PEOPLE = (
    "clerk|boy|girl|girls|boys|servant|stranger|gentleman|gentlemen|lady|ladies|woman|man|"
    "singer|soldier|sailor|captain|doctor|priest|teacher|schoolmaster|porter|guest|visitor|neighbour|neighbor|"
    "merchant|beggar|butler|cook|landlord|officer|policeman|lamplighter|charwoman|undertaker|spirit|ghost|phantom|"
    "king|queen|prince|princess|witch|giant|crowd"
)
_PLACES = (
    "office|house|counting-house|room|chamber|warehouse|church|school|schoolroom|shop|inn|tavern|city|town|village|street|"
    "streets|garden|kitchen|tower|castle|palace|forest|mine|ship|harbour|island|prison|hospital|market|bed|bell|clock"
)
_ADJECTIVES = "old|young|little|plump|poor|former|elder|eldest|younger|youngest"
_SPOKEN = re.compile(r"\b(?:said|says|cried|asked|replied|answered|exclaimed|whispered|returned)\b")
_KIN = re.compile(
    r"\b(?!(?:There|Here|It|That|This|What|Who|Where|He|She|Let)\b)[A-Z][a-z]+(?:['’]s) "
    rf"(?:(?:{_ADJECTIVES}) )?(?:{_PEOPLE}|{_KINDRED}|self|office|house|counting-house)\b"
)
# "The uncle" is somebody; "his uncle" is another one in every house.
_DEFINITE = re.compile(
    rf"\b(?:the (?:very )?((?:(?:{_ADJECTIVES}) )?(?:{_PEOPLE}|{_KINDRED}|{_PLACES}))|"
    rf"(?:his|her|their|my|our) ((?:(?:{_ADJECTIVES}) )?(?:{_PEOPLE}|{_PLACES})))\b",
    re.I,
)
_PLACE_HEAD = re.compile(rf"(?:{_PLACES})$")
_OPENING_QUOTE = re.compile(r"(?<!\w)[\"“'‘](?=\w)")
_QUOTES = 2  # openings of speech that make a story


def actors(text: str) -> list[NameSpan]:
    """The first place of each nameless person and place in a story, in order."""
    if len(_OPENING_QUOTE.findall(text)) < _QUOTES or not _SPOKEN.search(text):
        return []
    found = [(match.group(), match.start()) for match in _KIN.finditer(text)]
    for match in _DEFINITE.finditer(text):
        group = match.lastindex or 0
        found.append((match.group(group), match.start(group)))
    first: dict[str, NameSpan] = {}
    for name, at in sorted(found, key=lambda item: item[1]):
        kind = "place" if _PLACE_HEAD.search(name) else "person"
        first.setdefault(name.lower(), NameSpan(name, at, at + len(name), kind))
    return list(first.values())
