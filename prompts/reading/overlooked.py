"""Does an empty answer say that a passage names nothing, or that nobody read it?

A model that thinks too long, or slips out of form in the mildest way, ends its list before the first record. Taken at
its word, such a passage would count as read, and a graph would lack it without a trace. So a long passage that the
offline reader finds names in is never taken for one that has none.
"""

from prompts.language.words import WORD, is_han
from prompts.reading.passage import extract_offline, topic_of

# Shorter ones, headings and signatures say little; names that stand alone may be a wrong guess of the offline reader.
LEAST_WORDS, LEAST_SIGNS, LEAST_NAMES = 40, 80, 3
SHOWN = 5


def overlooked(title: str, passage: str) -> list[str]:
    """Some names of a passage that an answer without any cannot be true of; none where it may be."""
    long = len(passage) >= LEAST_SIGNS if is_han(passage) else len(WORD.findall(passage)) >= LEAST_WORDS
    if not long:
        return []
    names = [one.name for one in extract_offline(title, passage).entities if one.name != topic_of(title)]
    return names[:SHOWN] if len(names) >= LEAST_NAMES else []
