"""Who and what has a conversation named, when, and as what? What a pronoun or a part of a question may stand for.

A kind is told by the name's own words, by its place in the sentence, or by what the answered question asked for.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from prompts.language.kinds import kind_of_words
from prompts.language.mentions_zh import name_spans_told
from prompts.language.names import NameSpan, name_spans
from prompts.language.question import ask
from prompts.language.words import fold_name, is_han

_ASKS = re.compile(
    r"[?？]\s*$|^(?:and |but )?"
    r"(?:who|what|when|where|why|which|how|whose|whom|is|was|are|were|do|does|did|has|have|can|"
    r"tell me|describe|compare|list|name|give|explain|summari[sz]e|show)\b|"
    r"^(?:请|介绍|比较|说明|总结|概括|列出)|[吗呢]$",
    re.I,
)
_DEED = (
    "wrote|married|studied|designed|founded|painted|composed|invented|taught|became|held|built|died|lived|worked|led|"
    "directed|won|joined|said"
)
_OFFICE = "director|mayor|founder|author|head|president|king|queen|owner|chairman|ceo|architect|engineer|leader|captain"
_PERSON_AFTER = re.compile(
    rf"\s+(?:(?:was|is)\s+(?:born|married|the (?:\w+ )?(?:{_OFFICE})\b)|(?:{_DEED})\b|"
    r"(?:born|die|marry|study|become|teach|write|paint|compose|live|retire)\b)"
)
_PERSON_BEFORE = re.compile(
    r"\b(?:\w+ed|written|built|led|held|made|drawn|by whom) by (?:the \w+ )?$|\b(?:wife|husband|father|mother|son|"
    r"daughter|brother|sister|teacher|student) of $"
)
_PLACE_BEFORE = re.compile(r"\b(?:in|at|to|near|capital of|mayor of|city of|town of) (?:the )?$")
_WHO = re.compile(r"(?:by |to |from |with )?who(?:m|se)?\b", re.I)
_PARTNER = re.compile(r"\b[A-Z][\w’'-]+ & $")
_OFFICES = frozenset([*_OFFICE.split("|"), "cfo", "coo", "cto", "manager", "minister"])
_REQUESTS = frozenset(
    "summarise summarize describe list compare explain name give show find tell outline define".split()
)
_JOINED = re.compile(r"\s*(?:,|，|、|和|与|and|&)\s*(?:the )?", re.I)
_WHICH = re.compile(r"\b(?:which|what) (\w+)\b|哪一?[家个部本首](\w\w)")
# What a question with "which company" asks for.
KIND_ASKED = {
    **dict.fromkeys(
        "company firm business organisation organization institution club team 公司 企业 机构".split(), "organisation"
    ),
    **dict.fromkeys("film book novel song album play painting 电影 小说".split(), "work"),
}
_OF_KIND = {"person": "person", "place": "place"}


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a turn. `kind` is empty where nothing tells it; `asked`: it stands in a question."""

    text: str
    kind: str
    turn: int
    asked: bool
    start: int
    end: int
    # The question before asked for it: it is what the answer is about.
    is_answer: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing said: a question or an answer, with what it names in order; `turn` counts questions from 0."""

    text: str
    is_question: bool
    names: tuple[Mention, ...]


def is_question(text: str) -> bool:
    """Whether an earlier turn asks."""
    return _ASKS.search(text.strip()) is not None


def turn_of(text: str, before: Sequence[Turn]) -> Turn:
    """A turn read in the light of those before it."""
    asks = is_question(text)
    asked = next((turn for turn in reversed(before) if turn.is_question), None)
    number = sum(turn.is_question for turn in before) - (0 if asks else 1)
    known = {fold_name(name.text) for turn in before for name in turn.names if turn is asked}
    kinds = {fold_name(name.text): name.kind for turn in before for name in turn.names if name.kind}
    wanted = "" if asks or asked is None else _wanted(asked.text)
    names = []
    for span in named(text):
        key = fold_name(span.text)
        answers = bool(wanted) and key not in known
        kind = kinds.get(key) or _kind(text, span)
        if answers and ((wanted == "person" and kind in {"", "place"}) or wanted in {"organisation", "work"}):
            kind = wanted  # "London was the author" is rarer than a person called like a place
        names.append(
            Mention(
                text=span.text, kind=kind or (wanted if answers else ""), turn=max(number, 0), asked=asks,
                start=span.start, end=span.end, is_answer=answers,
            )
        )  # fmt: skip
    return Turn(text, asks, tuple(names))


def _wanted(question: str) -> str:
    """The kind of thing that a question asks for, where its words tell."""
    if _WHO.match(question):
        return "person"
    taken = ask(question)
    noun = _WHICH.search(question.lower())
    return _OF_KIND.get(taken.expects, "") or (KIND_ASKED.get(noun[1] or noun[2], "") if noun else "")


@lru_cache(maxsize=2_000)
def named(text: str) -> tuple[NameSpan, ...]:
    """The names in a turn of a conversation, in order."""
    if is_han(text):
        return tuple(name_spans_told(text))
    spans = _joined(text, [_bare(span) for span in name_spans(text, [(0, len(text))])])
    return tuple(span for span in spans if not (span.start == 0 and span.text.lower() in _REQUESTS))


def _joined(text: str, spans: Sequence[NameSpan]) -> list[NameSpan]:
    """Names with an ampersand between them as the one of a firm: "Marsh & Co"."""
    found: list[NameSpan] = []
    for span in spans:
        first = _PARTNER.search(text, 0, span.start)
        if first is not None and not (found and found[-1].end > first.start()):
            found.append(NameSpan(text[first.start() : span.end], first.start(), span.end, "organisation"))
        elif found and text[found[-1].end : span.start] == " & ":
            start = found[-1].start
            found[-1] = NameSpan(text[start : span.end], start, span.end, "organisation")
        else:
            found.append(span)
    return found


def _bare(span: NameSpan) -> NameSpan:
    """A name without the office before it: "CEO of Meridian Shipping"."""
    office, joint, name = span.text.partition(" of ")
    if not joint or office.lower().split()[-1] not in _OFFICES or not name[:1].isupper():
        return span
    return NameSpan(
        name, span.start + len(office) + len(joint), span.end, kind_of_words(name.lower().split()) or "thing"
    )


def groups_of(turn: Turn) -> list[tuple[Mention, ...]]:
    """Names that a turn joins by "and" or commas: two or more that may be meant together."""
    groups: list[tuple[Mention, ...]] = []
    for name in turn.names:
        if groups and _JOINED.fullmatch(turn.text[groups[-1][-1].end : name.start]):
            groups[-1] = (*groups[-1], name)
        else:
            groups.append((name,))
    return [group for group in groups if len(group) > 1]


def as_one(group: Sequence[Mention], chinese: bool) -> Mention:
    """Names meant together, written as one."""
    texts = [name.text for name in group]
    if chinese:
        return replace(group[0], text="和".join(["、".join(texts[:-1]), texts[-1]]))
    return replace(group[0], text=" and ".join([", ".join(texts[:-1]), texts[-1]]))


def _kind(text: str, span: NameSpan) -> str:
    if span.kind != "thing":
        return span.kind
    before = text[: span.start]
    if _PERSON_AFTER.match(text, span.end) or _PERSON_BEFORE.search(before):
        return "person"
    return "place" if _PLACE_BEFORE.search(before) else ""
