"""What is missing in a question? PolyG's types: (s,*,*), (s,p,*), (s,*,o), (s,p,o), or several of these nested.

Rules settle most questions; a model is asked only where they are unsure.
"""

import re
from collections.abc import Sequence
from typing import Literal

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.language.words import HAN_RUN, fold

TypeName = Literal["s**", "sp*", "s*o", "spo", "nested"]
SURE = 0.6
_SLOT = "\u25a1"  # stands for a name while the rest of the question is read


class QuestionTyped(BaseModel):
    """The type, how sure (0-1), and why."""

    type: TypeName
    confidence: float = Field(ge=0, le=1)
    reason: str = Field(description="A few words.")


class ClassifyQuestion(dspy.Signature):
    """Say what the question leaves open. s**: everything about one named thing. sp*: what stands in stated relations
    to one named thing. s*o: how two named things are connected. spo: whether, or by what, two or more named things
    stand in a stated relation or share something. nested: first find unnamed things, then ask about those."""

    question: str = dspy.InputField()
    names: list[str] = dspy.InputField(desc="What the question names.")
    typed: QuestionTyped = dspy.OutputField()


class Classify(Step):
    """A question and the names in it → its type; a model is asked where the rules are unsure."""

    step = "classify"
    role = "classify"
    task = ClassifyQuestion

    async def run(self, question: str, names: Sequence[str]) -> QuestionTyped:
        """`names` as they stand in the question."""
        by_rule = classify_offline(question, names)
        if self.is_offline or by_rule.confidence >= SURE:
            return by_rule
        typed: QuestionTyped = (await self.acall(question=question, names=list(names))).typed
        return typed


_QUOTED = re.compile(r"(?<!\w)'(?=\S)(?!s\b)([^']+(?:'(?=[a-z])[^']*)*)'|[\"“]([^\"”]+)[\"”]|《([^》]+)》")
_MARKS = ("'", '"', "“", "”")
_LINK = r"(?:connect(?:ion|ed|s)?|link(?:ed|s)?|relat(?:ed?|es|ion|ionship)|associat(?:ion|ed)|ti(?:e|ed|es)|interact)"
# The connection itself is what is asked for.
_CONNECTED = re.compile(
    rf"^(?:how|in what way)\b.*\b{_LINK}\b|"
    r"^what (?:(?:is|was|are|were) the )?(?:\w+ (?:of|or|and) )*"
    r"(?:connection|link|relation|relationship|association|tie)s?\b|"
    r"^what (?:connects|links|ties|relates)\b|"
    rf"\b(?:describe|explain|show|find|tell me)\b(?: me)?(?: about)? the (?:\w+ of )?(?:\w+ )?{_LINK}\b|"
    rf"\bhave to do with\b|\b(?:path|chain)s? (?:between|from)\b|"
    r"(?:什么|有何|怎样的?|如何)(?:关系|联系|关联)|是什么关系"
)
_OPEN = re.compile(
    r"\b(?:tell|know|learn|find out|information|details?|introduction|regarding|says?) (?:me |more )*"
    r"(?:about|regarding|on)\b|"
    r"\b(?:describe|descriptions?|overview|introduc(?:e|tion)|characteristics|characterize|background|explain|"
    r"features of|concepts? of|summar(?:y|ise|ize))\b|\b(?:everything|information|details)\b.*\babout\b|"
    r"\b(?:details|information|something)\b|what (?:can|do) you (?:tell|know)|^(?:who|what) (?:is|was|are|were) □\W*$|"
    r"介绍|概述|关于□|讲讲|说说"
)
_AROUND = re.compile(rf"^(?:who|what) (?:is|are) (?:connected|linked|related) (?:to|with) {_SLOT}\W*$")
# Words between an open request and its name that bring in nothing new.
PLAIN = frozenset(
    """
    about regarding of the a an on in for to and what how who which is are was were it its works work does do
    tell me more please give share provide could would can you us i would like d help main general important
    detailed comprehensive broad brief significant key specific full complete background information details detail
    description overview introduction summary account characteristics features feature concept concepts phenomenon
    describe explain summarise summarize present introduce know learn everything all anything something constitutes
    explaining explained author scholar writer researcher paper book article publisher company person film place thing
    series topic idea find out now there
    """.split()
)
_RELATIVE = re.compile(r"\b(?:who|whose|that|which)\b")
_GROUP = re.compile(
    r"\b(?:the|those|any) (?:\w+ ){0,2}?(?:individuals|people|persons?|those|writers?|authors?|researchers?|members?|"
    r"creators?|founders?|owners?|directors?|\w+(?:ers|ors|ists|ees|ants|ates|men|women))\b[^□]*□|"
    r"\bthe \w+(?: \w+)? (?:of|who|that|whose|behind|for) (?:(?!between)\w+ ){0,3}?□"
)
_SHARED = re.compile(
    r"\b(?:both|common|shared?|sharing|same|each other|mutual|overlap|jointly|together|between|either|also)\b|"
    r"共同|都|相同"
)
_ASKS_IF = re.compile(
    r"^(?:did|does|do|was|were|is|are|has|have|had|can|could|will|would)\b(?! you\b)|是不是|是否|吗\W*$"
)
_FIRST_FIND = re.compile(
    r"\bby (?:\w+ ){0,3}(?:who|those)\b|"
    r"\b(?:person|one|those|someone|man|woman|writer|author) \w* ?(?:who|that|responsible)\b"
)
_COMPARED = re.compile(
    r"\b(?:older|younger|larger|smaller|bigger|longer|shorter|taller|higher|earlier|later|first|more|fewer|most|"
    r"fewest|oldest|youngest|largest|smallest|longest|shortest|highest|lowest|latest|earliest)\b"
)


def slotted(question: str, names: Sequence[str]) -> tuple[str, int]:
    """The folded question with a slot for each name, and how many names it has.

    Quoted stretches are names too.
    """
    text = question
    for name in sorted(filter(None, set(names)), key=lambda name: (-len(name), name)):
        text = _replaced(text, name)
    text = _QUOTED.sub(f" {_SLOT} ", text)
    text = " ".join(fold(text).split())
    return text, text.count(_SLOT)


def _replaced(text: str, name: str) -> str:
    """The text with a slot wherever it holds the name as whole words, with the quotation marks around it."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (_joins(text[at - 1 : at]) or _joins(text[end : end + 1])):
            if text[at - 1 : at] in _MARKS and text[end : end + 1] in _MARKS:
                at, end = at - 1, end + 1
            text = f"{text[:at]} {_SLOT} {text[end:]}"
            end = at
        at = text.find(name, end)
    return text


def _joins(character: str) -> bool:
    """Whether a character beside a name makes it a part of a longer word; Chinese runs on without spaces."""
    return (character.isalnum() or character == "_") and not HAN_RUN.match(character)


def classify_offline(question: str, names: Sequence[str]) -> QuestionTyped:
    """By the words around the names."""
    text, count = slotted(question, names)
    if count > 1:
        return _of_several(text, count)
    if count == 0:
        # A model knows no more of the graph's names.
        return QuestionTyped(type="sp*", confidence=SURE, reason="names nothing that is known")
    return _of_one(text)


def _of_several(text: str, count: int) -> QuestionTyped:
    if _CONNECTED.search(text):
        if _GROUP.search(text) or _RELATIVE.search(text):
            return QuestionTyped(type="nested", confidence=0.8, reason="connects a name with what is to be found")
        sure = 0.9 if count == 2 else 0.5
        return QuestionTyped(type="s*o", confidence=sure, reason="asks how two things are connected")
    if count > 2 or _FIRST_FIND.search(text):
        return QuestionTyped(type="nested", confidence=0.7, reason="something unnamed must be found first")
    if _COMPARED.search(text) and not _ASKS_IF.search(text):
        return QuestionTyped(type="nested", confidence=0.8, reason="compares what is to be found of each")
    if _SHARED.search(text) or _ASKS_IF.search(text):
        return QuestionTyped(type="spo", confidence=0.9, reason="asks what holds of two things together")
    return QuestionTyped(type="spo", confidence=0.5, reason="names two things")


def _of_one(text: str) -> QuestionTyped:
    if _AROUND.search(text):
        return QuestionTyped(type="s**", confidence=0.9, reason="asks for all that is tied to one thing")
    if not _OPEN.search(text):
        return QuestionTyped(type="sp*", confidence=0.9, reason="asks for what stands in a relation to one thing")
    before, _, after = text.partition(_SLOT)
    telling = [word for word in re.findall(r"[^\W_]+", before) if word not in PLAIN]
    owned = re.match(r"\s*['’]s (?:\w+ )?(\w+)|\s*的\s*(\w+)", after)
    if len(telling) > 1 or _RELATIVE.search(before.partition(" ")[2]) or (telling and _OPEN.search(text)) or owned:
        return QuestionTyped(type="nested", confidence=0.7, reason="asks about what is to be found first")
    return QuestionTyped(type="s**", confidence=0.9, reason="asks about one thing")
