"""By what does a question compare things: a figure, a date, or how many of something there are?"""

import re
from dataclasses import dataclass

from prompts.language.asked import DIRECTION
from storage.graph import Direction

_MOST = re.compile(
    r",?\s*\b(?:that |who |which )?(?:has|have|had|with|having)\s+(?:the\s+)?"
    r"(?P<most>most|more|fewest|fewer|least|less|(?:largest|highest|greatest|smallest|lowest) number of)\s+"
    r"(?P<what>[\w -]+)",
    re.I,
)
_EVENT = re.compile(
    r",?\s*\b(?:was |were |is |did )?(?P<event>born|died?|founded|released|published|built|established|opened|formed|"
    r"created|married)\s+(?:the\s+)?(?P<when>first|earlier|earliest|last|later|latest)\b",
    re.I,
)
_OF_MEASURE = re.compile(
    r"\b(?:has |have |had |with )?(?:the )?(?P<most>largest|highest|greatest|biggest|smallest|lowest|longest|shortest|"
    r"larger|higher|greater|bigger|smaller|lower|longer|shorter|earliest|latest|earlier|later|most recent)"
    r"\s+(?P<what>[a-z][\w -]*)",
    re.I,
)
_ADJECTIVE = re.compile(
    r"\b(?:is |was |are |were )?(?:the )?(?P<most>old(?:est|er)|young(?:est|er)|tall(?:est|er)|long(?:est|er)|"
    r"heav(?:iest|ier)|(?:large|bigge|highe|small)(?:st|r)|short(?:est|er)|deep(?:est|er))\b",
    re.I,
)
# What the bare adjective compares, and whether most of it is the highest figure.
_OF_ADJECTIVE: dict[str, tuple[str, Direction]] = {
    "old": ("birth date", "min"),
    "young": ("birth date", "max"),
    "tall": ("height", "max"),
    "long": ("length", "max"),
    "short": ("length", "min"),
    "heav": ("weight", "max"),
    "deep": ("depth", "max"),
    "high": ("height", "max"),
    "larg": ("size", "max"),
    "bigg": ("size", "max"),
    "smal": ("size", "min"),
}


@dataclass(frozen=True, slots=True)
class Measure:
    """The words that name what is compared, which end of it is asked for, and the question without all that.

    `counts` says that it is compared by how many there are.
    """

    words: str
    direction: Direction
    rest: str
    counts: bool = False


def measure_of(question: str) -> Measure | None:
    """What a question compares things by; None where it does not compare.

    Names should be blanked out before: what follows a measure is taken for its name.
    """
    for pattern, words in ((_MOST, "{what}"), (_EVENT, "{event} date"), (_OF_MEASURE, "{what}"), (_ADJECTIVE, "")):
        found = pattern.search(question)
        if found is None:
            continue
        rest = question[: found.start()] + " " * (found.end() - found.start()) + question[found.end() :]
        if words:
            said = found.groupdict()
            degree = (said.get("most") or said.get("when") or "").lower().split()[0]
            return Measure(words.format(**said).strip(), _direction(degree), rest, counts=pattern is _MOST)
        compared = found["most"].lower()
        named, direction = next(made for start, made in _OF_ADJECTIVE.items() if compared.startswith(start))
        return Measure(named, direction, rest)
    return None


def _direction(degree: str) -> Direction:
    if degree in {"fewer", "fewest", "less"}:
        return "min"
    return "min" if DIRECTION.get(degree, "max") == "min" else "max"
