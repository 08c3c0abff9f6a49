"""The rule by which an answer to a question of Loong over financial reports is exactly right.

Loong (Wang et al. 2024, arXiv 2406.17419) has a language model judge answers. The rule here is
ours, and deterministic:

- level 1 and 2 (spotlight locating, comparison): every figure of the gold answer is among the
  answer's values, equal in number and sign (thousands separators, currency and "in thousands"
  aside), in the gold's order where several are listed. Where the gold is a name, the first value is
  that name (folded, without its legal form), and no other is given. An answer without bare values
  is read by its first line: its figures, years aside, are the values, or the one of the documents'
  names that it holds.
- level 3 (clustering): the same things in each class; classes without things count as absent.
- level 4 (chain of reasoning): every figure of the gold, rounded as the gold rounds, stands in the
  answer in the gold's order, and the words of direction go the same way.
"""

import ast
import json
import re
from collections.abc import Sequence

from prompts.text.amounts import amounts_in
from prompts.text.words import fold, is_han
from storage.evaluation_records import EvaluationQuestion
from storage.records import Record

# Loong's names of its levels.
LEVELS = ("spotlight_locating", "comparison", "clustering", "chain_of_reasoning")

_YEAR = re.compile(r"(?:19|20)\d{2}")
_MARKER = re.compile(r"\[\d+\]")
_WORD = re.compile(r"[^\W_]+")
# What a company's legal form adds to its name.
_FORMS = frozenset(
    "inc incorporated corp corporation co company ltd limited partnership llc lp plc trust group "
    "holdings the".split()
)
_UP = re.compile(r"increas|grew|grow|rose|rise|upward|higher|增|升|上涨|提高")
_DOWN = re.compile(r"decreas|declin|drop|fell|fall|downward|lower|reduc|减|降|下滑")
_SAME = re.compile(r"consistent|unchanged|stable|constant|same|不变|稳定|持平")
# Relative tolerance of figures that were written with all their digits.
_CLOSE = 1e-9


class WrittenFigure(Record):
    """A figure as written, with its number in full units."""

    text: str
    number: float


def is_right(question: EvaluationQuestion, values: Sequence[str], text: str) -> bool:
    """Whether an answer, by its bare values and its text, is exactly right by the rule above.

    The question's first answer is the gold one, its `kind` Loong's name of the level, its `names`
    those of its documents.
    """
    gold = question.answers[0]
    if question.kind == "clustering":
        return _same_classes(gold, question.names, text)
    if question.kind == "chain_of_reasoning":
        return _in_order(_golden(gold), text) and _directions(gold, text)
    figures, first = _golden(gold), _MARKER.sub("", text.partition("\n")[0])
    if figures and not _is_name(gold, question.names):
        return _listed(figures, values or [figure.text for figure in _golden(first)])
    if values:
        return len(values) == 1 and _called(gold, values[0])
    return _called(gold, first) and sum(_called(name, first) for name in question.names) <= 1


def _called(name: str, answer: str) -> bool:
    """Whether what was said is, or holds, the name that Loong gives a company (its state aside:
    "CORP /DE/").
    """
    plain = re.sub(r"[\\/][A-Z]{2}[\\/]?$", "", name).rstrip()
    return same_name(plain, answer) or holds_name(answer, plain)


def _is_name(text: str, names: Sequence[str]) -> bool:
    """Whether a gold answer is one of the names as a whole; "甲: 3,176.81" lists a figure."""
    return any(fold(text).strip(" .") == fold(name).strip(" .") for name in names)


def _golden(text: str) -> list[WrittenFigure]:
    """The figures of a gold answer, less years."""
    plain = re.sub(r"(?<!\d)(?:19|20)\d{2}\s*年|第?[一二三四1-4]季度", " ", text)
    return [figure for figure in figures_in(plain) if not _YEAR.fullmatch(figure.text.strip(" 年"))]


def _bare(text: str) -> float | None:
    """A figure as written, its scale aside."""
    figures = figures_in(re.sub(r"\(?in (?:thousands|millions)\)?|[十百千]?[万亿]+|百万", "", text))
    return figures[0].number if figures else None


def _equal(gold: WrittenFigure, text: str) -> bool:
    """Whether a text is the gold's figure: as written, with its scale, or rounded as the gold
    rounds it.
    """
    figures = figures_in(text)
    written, asked = _bare(text), _bare(gold.text)
    if not figures or written is None or asked is None:
        return False
    if _close(written, asked) or _close(figures[0].number, gold.number):
        return True
    decimals = len(gold.text.partition(".")[2].rstrip("亿万元 %)")) if "." in gold.text else 0
    scale = gold.number / asked if asked else 1.0
    return scale >= 1e4 and round(figures[0].number / scale, decimals) == asked


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= _CLOSE * max(abs(one), abs(other))


def _listed(figures: Sequence[WrittenFigure], values: Sequence[str]) -> bool:
    return len(figures) == len(values) and all(map(_equal, figures, values))


def _in_order(figures: Sequence[WrittenFigure], text: str) -> bool:
    numbers = iter([figure.text for figure in figures_in(text)])
    return all(any(_equal(gold, number) for number in numbers) for gold in figures)


def _directions(gold: str, answer: str) -> bool:
    """Whether every direction that the gold speaks of is one of the answer's."""
    own, other = fold(gold), fold(answer)
    return all(
        not pattern.search(own) or pattern.search(other) is not None
        for pattern in (_UP, _DOWN, _SAME)
    )


def _same_classes(gold: str, names: Sequence[str], text: str) -> bool:
    golden, own = _classes(gold), _classes(text.split("\n", 1)[0])
    if golden is None or own is None:
        return False
    return _folded(golden, names) == _folded(own, names)


def _classes(text: str) -> dict[str, list[str]] | None:
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError):
            continue
        if isinstance(value, dict):
            return {str(name): [str(thing) for thing in things] for name, things in value.items()}
    return None


def _folded(classes: dict[str, list[str]], names: Sequence[str]) -> dict[str, frozenset[str]]:
    """The classes by their folded names, each thing by Loong's name for it."""
    return {
        fold(name).strip(): frozenset(
            next((one for one in names if _called(one, thing)), thing) for thing in things
        )
        for name, things in classes.items()
        if things
    }


def figures_in(text: str) -> list[WrittenFigure]:
    """The figures of a text."""
    return [
        WrittenFigure(text=text[part.start : part.end].strip(), number=part.number)
        for part in amounts_in(text)
    ]


def same_name(one: str, other: str) -> bool:
    """Whether two names are one, case, punctuation and the legal form aside; of Chinese ones one
    may hold the other.
    """
    if is_han(one) and is_han(other):
        first, second = fold(one), fold(other)
        return first in second or second in first
    first_words, second_words = _words(one), _words(other)
    return bool(first_words) and (
        first_words == second_words or [] != _bare_words(first_words) == _bare_words(second_words)
    )


def holds_name(text: str, name: str) -> bool:
    """Whether a text has a name as whole words."""
    if is_han(name):
        return fold(name) in fold(text)
    words = _bare_words(_words(name)) or _words(name)
    return bool(words) and f" {' '.join(words)} " in f" {' '.join(_words(text))} "


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text).replace("'", "").replace("’", ""))


def _bare_words(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in _FORMS]
