"""Decompose: split a question into parts, and answer these side by side, or one after another.

Every part is answered like any question, with evidence that is searched for it.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from prompts.decompose import Decompose, filled, needs
from prompts.engine.helper import helped
from storage.answer_records import SubQuestion
from tasks.answer import Answered, Note
from tasks.batches import gather_or_cancel
from tasks.citations import Source, number_of
from tasks.retrying import BRIEF
from tasks.step import step

_MARKER = re.compile(r"\s{0,9}\[\d+(?:, \d+)*\]")
_MARKER_NUMBER = re.compile(r"(?<=\[)\d+(?=[\],])|(?<=, )\d+(?=[\],])")


@dataclass(frozen=True)
class PartAnswer:
    """A sub-question with its links filled in, its answer, and the sources that this cites."""

    question: str
    answered: Answered
    cited: Sequence[Source] = ()

    @classmethod
    def of(cls, question: str, answered: Answered, sources: Sequence[Source]) -> "PartAnswer":
        """Keep those of the sources that the answer cites."""
        places = {
            (citation.document, citation.start, citation.end) for citation in answered.citations
        }
        cited = [source for source in sources if any(source.holds(*place) for place in places)]
        return cls(question, answered, cited)

    @property
    def subquestion(self) -> SubQuestion:
        answer = ", ".join(self.answered.values) or self.answered.text
        evidence = tuple(dict.fromkeys(citation.chunk for citation in self.answered.citations))
        return SubQuestion(question=self.question, answer=answer, evidence=evidence)

    def note(self, sources: Sequence[Source]) -> Note:
        """Return the answer as a note, with the numbers of these sources in its markers."""
        numbers = {
            citation.marker.strip("[]"): number_of(
                sources, citation.document, citation.start, citation.end
            )
            for citation in self.answered.citations
        }
        text = _MARKER_NUMBER.sub(
            lambda match: f"{numbers.get(match[0]) or '–'}", self.answered.text
        )
        return Note(f"Answer to: {self.question}", text)


# Searches for evidence for a sub-question, and answers it.
AnswerPart = Callable[[str], Awaitable[PartAnswer]]


@step("decompose", BRIEF, asks_model=True)
async def decompose(
    question: str,
    knowledge: Sequence[str],
    plain: bool,
    decomposer: Decompose,
    *,
    wanted: bool = False,
) -> list[str]:
    """Split a question into sub-questions, in which `{n}` is the answer of the n-th.

    A simple question comes back alone. `wanted`: the user asked for the parts, so that no profile
    spares the call.
    """
    instead = "the question is answered whole"
    return await helped(
        decomposer, lambda step: step.run(question, knowledge, plain), instead, wanted=wanted
    )


async def answer_parts(parts: Sequence[str], answer_part: AnswerPart) -> list[PartAnswer]:
    """Answer the parts; each waits for the answers that it needs.

    If one of these is missing, its question is filled in instead.
    """
    answers: list[asyncio.Future[PartAnswer]] = [
        asyncio.get_running_loop().create_future() for _ in parts
    ]

    async def answered(place: int) -> PartAnswer:
        known = {number: await answers[number - 1] for number in needs(parts[place])}
        answer = await answer_part(
            filled(parts[place], {number: _short(part) for number, part in known.items()})
        )
        answers[place].set_result(answer)
        return answer

    return await gather_or_cancel(answered(place) for place in range(len(parts)))


def _short(part: PartAnswer) -> str:
    """Return what is filled into a later question: values, text, or the unanswered question."""
    if part.answered.fallback == "abstained":
        return f"({part.question.rstrip('?？ ')})"
    return ", ".join(part.answered.values) or " ".join(_MARKER.sub("", part.answered.text).split())
