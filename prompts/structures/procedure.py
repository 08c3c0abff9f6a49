"""Steps of a procedure, and the condition under which each is done.

Numbered lists are steps as they stand; where a text has none, its sentences that say their place ("First, …", "then",
"然后") are. A condition is a clause that opens a step ("If the alarm sounds, …", "如果…，").
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from prompts.reading.evidence import Evidence

_CONDITION = re.compile(
    r"(?P<condition>(?:if|when|whenever|unless|until|once|before|after|in case|only if|as soon as|where)\b"
    r"[^,;:，]{3,160})[,:，]\s*(?P<rest>\S.*)|"
    r"(?P<when>(?:如果|若|假如|当|一旦|除非|在)[^，,：:；;。]{2,60})[，,：:]\s*(?P<then>\S.*)",
    re.I | re.S,
)
_ZH_PLACE = re.compile(r"在.*(?:前|后|时|情况下)$")
_PLACED = re.compile(
    r"(?:first(?:ly)?|second(?:ly)?|third(?:ly)?|then|next|after that|afterwards|finally|lastly|to begin with)\b"
    r"[,:]?\s|"
    r"(?:首先|其次|再次|然后|接着|接下来|随后|之后|最后|第[一二三四五六七八九十]步)[，,：:]?",
    re.I,
)
LEAST_PLACED = 2  # sentences that say their place: one alone is no procedure


def steps_of(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The steps in order: `label` their number, `attribute` the condition (or "step"), `value` what is done.

    `value` and the condition are parts of the text as written; a step that is nothing but a condition stays whole.
    """
    listed = [piece for piece in evidence if piece.attribute == "step"]
    if not listed:
        placed = [piece for piece in evidence if not piece.label and _PLACED.match(piece.text)]
        listed = [
            replace(piece, label=str(number))
            for number, piece in enumerate(placed if len(placed) >= LEAST_PLACED else (), 1)
        ]
    return [_conditioned(piece) for piece in listed]


def _conditioned(piece: Evidence) -> Evidence:
    text = piece.text.strip()
    found = _CONDITION.match(text)
    if not found:
        return replace(piece, attribute="step", value=text)
    condition, done = found["condition"] or found["when"], found["rest"] or found["then"]
    if found["when"] and condition.startswith("在") and not _ZH_PLACE.match(condition):
        return replace(piece, attribute="step", value=text)
    return replace(piece, attribute=condition, value=done)
