"""Which figures do sentences state: "… there were 7,240,905 shares outstanding", "证券代码：300581"?"""

import re
from collections.abc import Iterator

from prompts.language.words import CJK
from tasks.structurize.grids import STATED_IN_SENTENCE, Above, Entry, Row
from tasks.structurize.units import Caption

_MEASURE = (
    r"km²|m²|m³|km/h|km|cm|mm|m|kg|t|ha|MW|kWh|tonnes?|tons|lit(?:re|er)s|met(?:re|er)s|kilomet(?:re|er)s|miles|feet|"
    r"acres|hectares|employees|people|inhabitants|passengers|vehicles|visitors|vessels|ships|crowns?|dollars|euros?|"
    r"平方公里|平方米|公里|千米|米|公斤|吨|公顷|亩|人次|人|名|艘|座|台|辆|家"
)
_FIGURE = re.compile(
    r"(?<![A-Za-z0-9_.,/§#-])(?:(?:US|HK|[CA])?[$€£¥￥]\s?\(?\s?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?\)?(?:\s(?:thousand|million|billion|trillion)\b)?"
    r"|(?:\(\d{1,3}(?:,\d{3})+(?:\.\d+)?\)|(?:(?<![(\w])-)?\d{1,3}(?:,\d{3})+(?:\.\d+)?)(?:\s?(?:thousand|million|billion|[万亿]?元|[千百]?万|亿|股))?"
    r"|-?\d+(?:\.\d+)?(?:\s?[%％]|\s(?:thousand|million|billion)\b|\s?(?:百万|[万亿])?元|\s?[百千]?万(?!元)|\s?亿(?!元))"
    rf"|(?<![:-])\d+(?:\.\d+)?(?=[\s-]?(?:{_MEASURE})(?![A-Za-z])))"
)
_SENTENCE = re.compile(r"[^.;。；!?！？]*(?:[.;](?!\s|$)[^.;。；!?！？]*)*(?:[.;](?=\s|$)|[。；!?！？]|$)")
_PAIR = re.compile(rf"(?<![{CJK}A-Za-z])([{CJK}]{{2,10}})\s*[：:]\s*([^\s：:，。；|]{{1,40}})(?=\s|$)")
_LONGEST, _LONGEST_COUNTED = 600, 160
_OF = re.compile(rf"[\s-]?(?P<unit>{_MEASURE})(?![A-Za-z])")
_CLAUSE = re.compile(r"[,;，；、]|\b(?:and|but|while|compared|versus|with)\b")
COUNTED = re.compile(r"\s*(?:(?:common |ordinary |outstanding )?(?:shares|units)\b|股)", re.I)


def stated(text: str, start: int, end: int, above: Above) -> Iterator[Row]:
    """The figures of the sentences on a line at `start`..`end`: a row each, whose label is the words around it."""
    for sentence in _SENTENCE.finditer(text, start, end):
        figures = list(_FIGURE.finditer(text, sentence.start(), sentence.end()))
        if not figures:
            continue
        bounds = [sentence.start(), *(figure.end() for figure in figures)]
        for place, figure in enumerate(figures):
            following = figures[place + 1].start() if place + 1 < len(figures) else sentence.end()
            if COUNTED.match(text, figure.end()):  # what is counted is often said after the par value
                following = min(sentence.end(), figure.end() + _LONGEST_COUNTED)
            yield _row(text, (sentence.start(), sentence.end()), bounds[place], figure, following, above)


def _row(text: str, sentence: tuple[int, int], before: int, figure: re.Match[str], following: int, above: Above) -> Row:
    """A figure with the words before and after it, and the sentence as its quote (cut where it is very long)."""
    first, last = _trimmed(text, *sentence)
    first, last = max(first, figure.start() - _LONGEST), min(last, figure.end() + _LONGEST)
    label = " ".join((text[before : figure.start()] + "… " + _said_after(text, figure.end(), following)).split())
    # The time of a figure: named before it, else between it and the next one.
    time = f"{text[before : figure.start()]} {text[figure.end() : following]}"
    return Row(
        label[-300:], first, last, [Entry(figure.start(), figure.end(), "")], above.heading, "",
        time, Caption(), STATED_IN_SENTENCE,
    )  # fmt: skip


def _said_after(text: str, start: int, end: int) -> str:
    """The words after a figure that are still about it; of what is counted all, since "outstanding" comes late."""
    cut = None if COUNTED.match(text, start) else _CLAUSE.search(text, start, end)
    return text[start : cut.start() if cut else end]


def unit_after(text: str, end: int) -> str:
    """What a figure that ends at `end` counts or measures: "310,000 crowns", "42 km"."""
    match = _OF.match(text, end)
    return match["unit"] if match else ""


def pairs(text: str, start: int, end: int, above: Above) -> Iterator[Row]:
    """What a Chinese line names as `名称：值`."""
    first, last = _trimmed(text, start, end)
    for match in _PAIR.finditer(text, start, end):
        if match[1].endswith("单位"):
            continue
        yield Row(
            match[1], first, last, [Entry(match.start(2), match.end(2), "")], above.heading, "", "", Caption(),
            STATED_IN_SENTENCE,
        )  # fmt: skip


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
