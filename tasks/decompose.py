"""Decompose: split a question (`prompts/decompose.py`), and answer its parts side by side, a
chain's one by one.

Every part that a model gave is answered by the steps that answer any question, with evidence
searched for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from prompts.decompose import Decompose, filled, needs
from prompts.engine.helper import helped
from prompts.text.regex import regex
from storage.answer_records import SubQuestion
from tasks.answer import Answered, Note
from tasks.batches import gather_or_cancel
from tasks.citations import Source, number_of
from tasks.retrying import BRIEF
from tasks.step import step

_MARKER = regex(r"\s{0,9}\[\d+(?:, \d+)*\]")
_MARKER_NUMBER = regex(r"(?<=\[)\d+(?=[\],])|(?<=, )\d+(?=[\],])")


@dataclass(frozen=True)
class PartAnswer:
    """A sub-question as it was asked in the end, its answer, and the sources that the answer
    cites.
    """

    question: str
    answered: Answered
    cited: Sequence[Source] = ()

    @classmethod
    def of(cls, question: str, answered: Answered, sources: Sequence[Source]) -> "PartAnswer":
        """With those of the sources that the answer cites."""
        places = {
            (citation.document, citation.start, citation.end) for citation in answered.citations
        }
        return cls(
            question,
            answered,
            [source for source in sources if any(source.holds(*at) for at in places)],
        )

    @property
    def subquestion(self) -> SubQuestion:
        """The part as the trace shows it."""
        answer = ", ".join(self.answered.values) or self.answered.text
        evidence = tuple(dict.fromkeys(citation.chunk for citation in self.answered.citations))
        return SubQuestion(question=self.question, answer=answer, evidence=evidence)

    def note(self, sources: Sequence[Source]) -> Note:
        """The part's answer as a note for answering the whole question, its markers renumbered to
        these sources.
        """
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


# Retrieve for one sub-question and answer it.
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
    """Split a question into sub-questions; `{n}` is the answer of the n-th, and a simple question
    comes back alone.

    `wanted`: the user asked for the parts, whatever the models can do.
    """
    instead = "the question is answered whole"
    return await helped(
        decomposer, lambda step: step.run(question, knowledge, plain), instead, wanted=wanted
    )


async def answer_parts(parts: Sequence[str], answer_part: AnswerPart) -> list[PartAnswer]:
    """An answer for each part, in their order. A part waits for those whose answers it needs.

    Where one of these found nothing the part is asked with the question that was not answered in
    its place.
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
    """An answer as it is filled into a later question: its bare values, else its text; unanswered,
    its question.
    """
    if part.answered.fallback == "abstained":
        return f"({part.question.rstrip('?？ ')})"
    return ", ".join(part.answered.values) or " ".join(_MARKER.sub("", part.answered.text).split())
