"""Traversal by rules: PolyG's type of a question, by the words around the names that it holds."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from prompts.text.question import REQUEST_WORDS
from prompts.text.regex import regex
from prompts.text.words import CJK, fold

QuestionType = Literal["s**", "sp*", "s*o", "spo", "nested"]
# From this confidence on the words tell the type.
SURE = 0.6
_SLOT = "\u25a1"  # stands for a name while the rest of the question is read


@dataclass(frozen=True)
class RuleType:
    """The type, how sure (0-1), and why."""

    type: QuestionType
    confidence: float
    reason: str


_QUOTED = regex(
    r"(?<!\w)'(?=\S)(?!s\b)([^']{1,200}(?:'(?=[a-z])[^']{0,200}){0,4})'|[\"“]([^\"”]{1,200})[\"”]|《([^》]{1,200})》"
)
_LINK = r"(?:connect(?:ion|ed|s)?|link(?:ed|s)?|relat(?:ed?|es|ion|ionship)|associat(?:ion|ed)|ti(?:e|ed|es)|interact)"
# The connection itself is what is asked for.
_CONNECTED = regex(
    rf"^(?:how|in what way)\b.*\b{_LINK}\b|"
    r"^what (?:(?:is|was|are|were) the )?(?:\w+ (?:of|or|and) )*"
    r"(?:connection|link|relation|relationship|association|tie)s?\b|"
    r"^what (?:connects|links|ties|relates)\b|"
    rf"\b(?:describe|explain|show|find|tell me)\b(?: me)?(?: about)? the (?:\w+ of )?(?:\w+ )?{_LINK}\b|"
    rf"\bhave to do with\b|\b(?:path|chain)s? (?:between|from)\b|"
    r"(?:什么|有何|怎样的?|如何)(?:关系|联系|关联)|是什么关系"
)
_OPEN = regex(
    r"\b(?:tell|know|learn|find out|information|details?|introduction|regarding|says?) (?:me |more )*"
    r"(?:about|regarding|on)\b|"
    r"\b(?:describe|descriptions?|overview|introduc(?:e|tion)|characteristics|characterize|background|explain|"
    r"features of|concepts? of|summar(?:y|ise|ize))\b|\b(?:everything|information|details)\b.*\babout\b|"
    r"\b(?:details|information|something)\b|what (?:can|do) you (?:tell|know)|^(?:who|what) (?:is|was|are|were) □\W*$|"
    r"介绍|概述|关于□|讲讲|说说"
)
_RELATIVE = regex(r"\b(?:who|whose|that|which)\b")
_GROUP = regex(
    r"\b(?:the|those|any) (?:\w+ ){0,2}?(?:individuals|people|persons?|those|writers?|authors?|researchers?|members?|"
    r"creators?|founders?|owners?|directors?|\w+(?:ers|ors|ists|ees|ants|ates|men|women))\b[^□]*□|"
    r"\bthe \w+(?: \w+)? (?:of|who|that|whose|behind|for) (?:(?!between)\w+ ){0,3}?□"
)
_SHARED = regex(
    r"\b(?:both|common|shared?|sharing|same|each other|mutual|overlap|jointly|together|between|either|also)\b|"
    r"共同|都|相同"
)
_ASKS_IF = regex(r"^(?:did|does|do|was|were|is|are|has|have|had|can|could|will|would)\b(?! you\b)|是不是|是否|吗\W*$")
_FIRST_FIND = regex(
    r"\bby (?:\w+ ){0,3}(?:who|those)\b|"
    r"\b(?:person|one|those|someone|man|woman|writer|author) \w* ?(?:who|that|responsible)\b"
)
_COMPARED = regex(
    r"\b(?:older|younger|larger|smaller|bigger|longer|shorter|taller|higher|earlier|later|first|more|fewer|most|"
    r"fewest|oldest|youngest|largest|smallest|longest|shortest|highest|lowest|latest|earliest)\b"
)


def slotted(question: str, names: Sequence[str]) -> tuple[str, int]:
    """The folded question with a slot for each of the names and of the quoted stretches, and how many it has."""
    text = question
    for name in sorted(filter(None, set(names)), key=lambda name: (-len(name), name)):
        # Whole words, but Chinese runs on without spaces.
        text = re.sub(rf"(?<![^\W{CJK}]){re.escape(name)}(?![^\W{CJK}])", f" {_SLOT} ", text)
    text = " ".join(fold(_QUOTED.sub(f" {_SLOT} ", text)).split())
    return text, text.count(_SLOT)


def classify_offline(question: str, names: Sequence[str]) -> RuleType:
    """By the words around the names."""
    text, count = slotted(question, names)
    if count > 1:
        return _of_several(text, count)
    if count == 0:
        # A model knows no more of the graph's names.
        return RuleType("sp*", SURE, "names nothing that is known")
    return _of_one(text)


def _of_several(text: str, count: int) -> RuleType:
    if _CONNECTED.search(text):
        if _GROUP.search(text) or _RELATIVE.search(text):
            return RuleType("nested", 0.8, "connects a name with what is to be found")
        sure = 0.9 if count == 2 else 0.5
        return RuleType("s*o", sure, "asks how two things are connected")
    if count > 2 or _FIRST_FIND.search(text):
        return RuleType("nested", 0.7, "something unnamed must be found first")
    if _COMPARED.search(text) and not _ASKS_IF.search(text):
        return RuleType("nested", 0.8, "compares what is to be found of each")
    if _SHARED.search(text) or _ASKS_IF.search(text):
        return RuleType("spo", 0.9, "asks what holds of two things together")
    return RuleType("spo", 0.5, "names two things")


def _of_one(text: str) -> RuleType:
    if not _OPEN.search(text):
        return RuleType("sp*", 0.9, "asks for what stands in a relation to one thing")
    before, _, after = text.partition(_SLOT)
    telling = [word for word in re.findall(r"[^\W_]+", before) if word not in REQUEST_WORDS]
    owned = re.match(r"\s*['’]s (?:\w+ )?(\w+)|\s*的\s*(\w+)", after)
    if len(telling) > 1 or _RELATIVE.search(before.partition(" ")[2]) or (telling and _OPEN.search(text)) or owned:
        return RuleType("nested", 0.7, "asks about what is to be found first")
    return RuleType("s**", 0.9, "asks about one thing")
