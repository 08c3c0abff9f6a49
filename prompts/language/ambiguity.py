"""What in a question could be read in several ways, as far as the words tell? Pronouns and relative dates.

What the graph knows as several things is told elsewhere (`tasks.ambiguity`), since only an index knows it.
"""

import re
from dataclasses import dataclass

from prompts.language.conversation import Standing
from prompts.language.words import is_han

_RELATIVE = re.compile(
    r"\b(?:(?:last|next|this|the (?:past|coming|current)) "
    r"(?:year|month|week|quarter|season|decade|century|summer|winter|spring|autumn)(?!\s+(?-i:[A-Z]))|"
    r"yesterday|tomorrow|(?:\w+|\d+) (?:years?|months?|weeks?|days?) ago)\b",
    re.I,
)
_RELATIVE_ZH = re.compile(
    r"去年|今年|明年|前年|后年|上个?月|本月|下个?月|上个?季度|本季度|昨天|明天|近[一二三四五两几\d]+年|"
    r"(?<!哪)[\d一二三四五六七八九十几两]+[年天](?:前|之前)(?![往去])"
)
_DATED = re.compile(r"(?<!\d)(?:1[0-9]|20)\d{2}(?!\d)")
# A relative date counts from one of these.
_COUNTED = ("counted from the date of the documents", "counted from today")
_COUNTED_ZH = ("从文档的日期算起", "从今天算起")


@dataclass(frozen=True, slots=True)
class Doubt:
    """A stretch of the question and how it may be read, the reading taken first; none where nothing is known that it
    may stand for."""

    text: str
    readings: tuple[str, ...] = ()


def doubts(standing: Standing) -> tuple[Doubt, ...]:
    """What the rules find doubtful in a question that was read by its conversation."""
    found = [Doubt(text, readings) for text, readings in standing.several]
    found += [Doubt(text) for text in standing.missing]
    chinese = is_han(standing.text)
    relative = None if _DATED.search(standing.text) else (_RELATIVE_ZH if chinese else _RELATIVE).search(standing.text)
    if relative is not None:
        found.append(Doubt(relative.group(), _COUNTED_ZH if chinese else _COUNTED))
    return tuple({doubt.text.lower(): doubt for doubt in reversed(found)}.values())[::-1]
