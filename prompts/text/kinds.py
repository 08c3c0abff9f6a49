"""Kinds of named things, by their head noun, the words before them, or the words after them."""

import re
from collections.abc import Sequence

TITLES = frozenset(
    """mr mrs ms miss dr prof professor sir lady lord dame king queen prince st princess duke duchess count countess
    captain colonel general president saint father bishop pope emperor empress baron uncle aunt engineer chief director
    minister""".split()
)
_KIND_WORDS = {
    "organisation": """
        academy agency airlines archive army association authority bank board brewery bureau cannery church club
        college commission committee company co consortium corporation corp council court department foundation
        gmbh group guild hospital house inc institute laboratory league library limited llc ltd ministry museum
        navy observatory office orchestra order parliament party plc press school service services society team
        trust union university works yard shipyard records studios cooperative registry
    """,
    "place": """
        avenue bay beach borough bridge canal cape castle cathedral cemetery channel city coast county cove creek
        dam desert district estuary falls ferry forest fort gulf harbor harbour hill hills island islands isle
        kingdom lake lane lighthouse mount mountain mountains narrows ocean palace park parish peninsula point port
        province quay republic reservoir ridge river road rock sea shire sound square station strait street
        terminal territory tower town township tunnel valley viaduct village weir wharf
    """,
    "work": """
        album anthem ballad book film gazette handbook journal magazine manual novel opera play poem report song
        story symphony trilogy
    """,
    "event": """
        affair award battle championship conference cup election expedition exhibition fair festival flood games
        olympics prize revolution siege storm summit treaty trial tournament war
    """,
}
KIND_OF = {word: kind for kind, words in _KIND_WORDS.items() for word in words.split()}


def kind_of_words(words: Sequence[str]) -> str:
    """The kind that a name's folded words tell by their head noun, or nothing."""
    head = words[: words.index("of", 1)] if "of" in words[1:] else words
    return KIND_OF.get(head[-1]) or (KIND_OF.get(words[0], "") if len(words) > 2 else "")


_ROLES = (
    "actor|actress|artist|author|bishop|brewer|chemist|composer|director|engineer|historian|king|lawyer|man|musician|"
    "novelist|painter|player|poet|politician|producer|professor|queen|scientist|singer|soldier|teacher|woman|writer"
)
_DEEDS = "said|says|married|studied|retired|died|cried|replied|asked|thought|joined|wrote|grew|worked"
_LIFE = r"\(\s*(?:born\b|née\b|b\.\s|[^()]{0,30}\b\d{3,4}\s*[–-]\s*[^()]{0,30}\b\d{4}\b)"
PERSON_AFTER = re.compile(
    rf"\s*{_LIFE}|\s*(?:\([^)]*\)\s*)?,?\s*"
    rf"(?:who\b|(?:was|is)\s+(?:born|an?\s+(?:\w+[ -]){{0,4}}?(?:{_ROLES}))|(?:{_DEEDS})\b)"
)
PLACE_BEFORE = re.compile(
    r"\b(?:born in|died in|near|north of|south of|east of|west of|located in|lives in|moved to|town of|city of)\s+$"
)
