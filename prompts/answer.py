"""What is the answer, and which evidence shows each part of it?

On a model: written from numbered evidence, each sentence with its markers. Offline: read from the evidence by the question's
form, in the words of the source; nothing is added.
"""

import re
from collections.abc import Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.language.question import Ask
from prompts.reading.claims import Claim, Desk, Reading
from prompts.reading.compare import compare
from prompts.reading.lookup import affirm, look_up, look_up_all
from prompts.reading.overview import about, connect, steps, summarise, themes

_MARKER = re.compile(r"\s*\[(\d+(?:\s*,\s*\d+)*)\]")


class AnswerWritten(BaseModel):
    """An answer with markers, its bare values, and whether the evidence supports it."""

    answer: str = Field(description="Each sentence ends with the numbers of its evidence, as [1] or [1, 2]. Empty if not answerable.")
    values: list[str] = Field(default_factory=list, description="The bare answers when entities, figures, dates or yes/no are asked.")
    answerable: bool = Field(description="False when the evidence does not say.")


class AnswerQuestion(dspy.Signature):
    """Answer from the numbered evidence alone, in the question's language, figures exactly as written. If it does not say, do not
    answer."""

    question: str = dspy.InputField()
    found: list[str] = dspy.InputField(desc="Answers to the sub-questions.")
    evidence: list[str] = dspy.InputField()
    written: AnswerWritten = dspy.OutputField()


class AnswerStep(Step):
    """A question and its evidence → an answer whose claims name their evidence."""

    step = "answer"
    role = "answer"
    task = AnswerQuestion
    streams = "answer"

    async def run(self, desk: Desk, found: Sequence[tuple[str, str]]) -> Reading:
        """`found` are (sub-question, answer) pairs."""
        if self.is_offline:
            return answer_offline(desk.ask, desk)
        offered = {piece.number: piece for piece in [*desk.elements, *desk.evidence]}
        prediction = await self.acall(
            question=desk.ask.text,
            found=[f"{question} {answer}" for question, answer in found],
            evidence=[f"[{number}] {piece.title}: {piece.text}" for number, piece in sorted(offered.items())],
        )
        return read_written(prediction.written, set(offered), desk.ask)


def read_written(written: AnswerWritten, offered: set[int], ask: Ask) -> Reading:
    """Claims from a written answer; a marker that names no offered evidence is dropped, and with it an uncited claim's support."""
    if not written.answerable or not written.answer.strip():
        return Reading(support="abstained", lead="文档中没有说明。" if ask.chinese else "The documents do not say.")
    claims, at = [], 0
    for match in _MARKER.finditer(written.answer):
        numbers = tuple(n for n in map(int, re.findall(r"\d+", match.group(1))) if n in offered)
        text = written.answer[at : match.start()].strip(" \n.。") or "…"
        at = match.end()
        claims.append(Claim(text, numbers))
    rest = written.answer[at:].strip(" \n.。")
    uncited = bool(rest) or any(not claim.evidence for claim in claims)
    if rest:
        claims.append(Claim(rest, ()))
    support = "partial" if uncited else "none"
    return Reading(claims=tuple(claims), values=tuple(dict.fromkeys(written.values)), support=support)


def answer_offline(ask: Ask, desk: Desk) -> Reading:
    """The reading that the question's form calls for."""
    if ask.form == "compare":
        return compare(desk)
    if ask.form == "list":
        return look_up_all(desk)
    if ask.form == "fact":
        return look_up(desk)
    readers = {
        "yesno": affirm, "howto": steps, "summary": summarise, "global": themes, "about": about, "connect": connect,
    }
    return readers[ask.form](desk)
