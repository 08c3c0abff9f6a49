"""Where does an English text write a title of several words, which capitals alone would cut ("Dinner at the Ritz")?

The title of the text itself, wherever the text repeats it, and what stands between quotation marks with a capital at
every word but the function words.
"""

import re

_QUALIFIER = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_QUOTED = re.compile(r"[\"“]\s?((?:[A-Z][\w'’-]*)(?:[ :&-]+[\w'’!-]+){1,7})\s?[\"”]")
_SMALL = 3  # a word of so few letters may be written small within a title, whatever the language
_SMALL_TOO = frozenset({"from", "with"})


def title_spans(text: str, title: str) -> list[tuple[int, int]]:
    """(start, end) of titles, in order, without overlaps."""
    found = [match.span(1) for match in _QUOTED.finditer(text) if _is_title(match.group(1))]
    bare = _QUALIFIER.sub("", title).strip()
    if len(bare.split()) > 1:
        # Some texts put a blank after a hyphen or a quotation mark: only the words are compared.
        words = r"[\s]+".join(map(re.escape, bare.split()))
        # "Orla Sound" is no name of its own where "Orla Sound Authority" stands.
        found += [match.span() for match in re.finditer(rf"(?<!\w){words}(?!\w)(?! [A-Z])", text)]
    chosen: list[tuple[int, int]] = []
    for start, end in sorted(set(found), key=lambda span: (span[0], -span[1])):
        if not chosen or chosen[-1][1] <= start:
            chosen.append((start, end))
    return chosen


def _is_title(quoted: str) -> bool:
    words = quoted.split()
    return len(words) > 1 and all(
        word[0].isupper() or word[0].isdigit() or len(word) <= _SMALL or word in _SMALL_TOO for word in words
    )
