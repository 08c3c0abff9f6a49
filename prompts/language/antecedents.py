"""Whom or what does a pronoun stand for? The best name of the conversation, and those that fit as well.

Right kind first, then the latest turn, then what was asked for before what was only said.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from prompts.language.mentions import Mention, Turn, as_one, groups_of
from prompts.language.words import fold_name, is_han

Refers = Literal["person", "thing", "several"]
# What only one sort of thing has, in the words of both languages.
_HAS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("place", re.compile(r"\b(?:populat\w+|inhabitants?|mayor|climate|capital)\b|人口|市长|气候|省会|首都", re.I)),
    (
        "organisation",
        re.compile(
            r"\b(?:revenues?|turnover|employ\w*|ceo|headquarters?|profits?|staff|shareholders?|income)\b"
            r"|收入|员工|总部|利润|股东|营业额|雇",
            re.I,
        ),
    ),
    ("work", re.compile(r"\b(?:publish\w*|author|chapters?|sequel|pages|genre)\b|出版|作者|章|续集|页", re.I)),
)
_PERSONAL = re.compile(
    r"\b(?:born|die|died|marry|married|studied|study|write|wrote|teach|taught|wife|husband|child|children|parents?|career)\b"
    r"|出生|去世|结婚|毕业|上学|妻子|丈夫|父亲|母亲|儿子|女儿|老师",
    re.I,
)
# What is never "they" by itself.
_ONE = frozenset({"place", "work", "event"})
_NO_PERSON = frozenset({"place", "organisation", "work", "event", "method"})
Key = tuple[int, ...]


def found_for(refers: Refers, question: str, turns: Sequence[Turn]) -> list[Mention]:
    """The best antecedent, with those after it that fit no worse; empty where the conversation names none."""
    if refers == "several":
        groups = [as_one(group, is_han(turn.text)) for turn in reversed(turns) for group in groups_of(turn)]
        if groups:
            return groups[:1]
        refers = "person" if _PERSONAL.search(question) else "thing"
        turns = [replace(turn, names=tuple(name for name in turn.names if name.kind not in _ONE)) for turn in turns]
    key = _person if refers == "person" else _thing(question)
    keyed = [(key(name, latest(turns)), name) for name in distinct(turns)]
    fitting = sorted(
        ((one, name) for one, name in keyed if one is not None), key=lambda pair: (*pair[0], pair[1].start)
    )
    return [name for one, name in fitting if one == fitting[0][0]]


def latest(turns: Sequence[Turn]) -> int:
    """The number of the last turn that names something."""
    return max((name.turn for turn in turns for name in turn.names), default=0)


def distinct(turns: Sequence[Turn]) -> list[Mention]:
    """Every name once, as the latest question that holds it has it, else as it was said last."""
    found: dict[str, Mention] = {}
    for turn in turns:
        for name in turn.names:
            key = fold_name(name.text)
            before = found.get(key)
            if before is None or before.turn < name.turn or (before.asked <= name.asked and before.turn == name.turn):
                found[key] = name
    return list(found.values())


def _person(name: Mention, last: int) -> Key | None:
    """A person for sure, what was answered, the latest; None for what is no person for sure."""
    if name.kind in _NO_PERSON:
        return None
    return int(name.kind != "person"), last - name.turn, int(not name.is_answer), int(not name.asked)


def _thing(question: str) -> Callable[[Mention, int], Key | None]:
    wanted = next((kind for kind, cue in _HAS if cue.search(question)), "")

    def key(name: Mention, last: int) -> Key | None:
        if name.kind == "person":
            return None
        # A place that a bridge or a town is; a name without a kind may be anything.
        fits = int(bool(wanted) and name.kind != wanted) + int(bool(wanted) and name.kind not in {"", wanted})
        return fits, last - name.turn, int(not name.asked)

    return key
