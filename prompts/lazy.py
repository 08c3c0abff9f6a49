"""Reads for the mode `lazy`: the questions that a wide question consists of, and the sentences that
help with one of them.

Source: LazyGraphRAG (Microsoft Research, posts of 25 November 2024 and 5 June 2025): sub-queries
with matching concepts, and a relevance test of sentences. The claims of relevant sentences are read
by `prompts/read_reports.py: Partial`.
"""

from collections.abc import Sequence
from typing import Annotated

import dspy
from pydantic import BaseModel, Field, StringConstraints

from prompts.engine.adapter import StepAdapter
from prompts.engine.messages import first_fitting, rough_tokens
from prompts.engine.step import Step
from prompts.text.evidence import Evidence
from prompts.text.relevance import CollectionTopic

MOST_QUESTIONS = 5  # LazyGraphRAG asks three to five
MOST_BY_RULES = 3  # sentences of a passage
LOW = "low effort: the question is searched for as it is"


class LazyQuestion(BaseModel):
    """One of the questions, and the words that its answer would be told in."""

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(
        description="Complete in itself."
    )
    search: str = Field(default="", description="Words and names to search for, on one line.")


class LazyQuestions(BaseModel):
    """The questions whose answers make up a full one."""

    questions: list[LazyQuestion] = Field(
        min_length=1, description=f"At most {MOST_QUESTIONS}, the weightiest first."
    )


class DivideQuestion(dspy.Signature):
    """Divide a question about a whole collection of documents into the questions whose answers
    make up a full one.

    Give two to five that together cover it and do not overlap: its aspects, the things compared,
    reasons and effects, what is said for and against. Each asks of the whole collection too, and
    is understood without the others. A question with one narrow aim stays as it is, alone. Do not
    answer, and ask for nothing that was not asked.

    search: how a passage with an answer would put it: other words for the matter, examples, the
    terms of people who speak of it, in the language of the documents. The names are what the
    documents speak of nearby; take over, as written, those that belong to the question, mostly few.
    """

    names: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    divided: LazyQuestions = dspy.OutputField()


class Divide(Step):
    """A wide question and names of the documents → questions, each with words to search for."""

    step = "subquestions"
    role = "decompose"
    writes_in = "question"
    task = DivideQuestion
    output_format = StepAdapter(items=True)

    async def run(self, question: str, names: Sequence[str]) -> list[LazyQuestion]:
        """The model's first questions; without one, and at low effort, the question alone."""
        whole = [LazyQuestion(question=question)]
        if self.is_offline or (self.policy.effort == "low" and self.spares(LOW)):
            return whole
        shown = first_fitting(names, rough_tokens, self.policy.limits.rate)
        divided: LazyQuestions = (await self.acall(question=question, names=shown)).divided
        asked: dict[str, str] = {}
        for one in divided.questions:
            asked.setdefault(" ".join(one.question.split()), " ".join(one.search.split()))
        first = list(asked.items())[:MOST_QUESTIONS]
        return [LazyQuestion(question=one, search=search) for one, search in first]


class Marked(BaseModel):
    """The numbers of the sentences that help, none where none does."""

    sentences: list[int] = Field(default_factory=list)


class MarkSentences(dspy.Signature):
    """Mark the sentences that help to answer a question about a whole collection of documents.

    A sentence helps where an answer would use it: it states, explains, exemplifies, measures or
    denies something that is asked. One that only shares words with the question, greets, announces
    or asks does not help, nor does one about another matter. Read each sentence with those before
    it: what is spoken of may be named there. Passages were found by their words, and many hold
    nothing.

    sentences are the numbers in brackets of all that help, in any passage. Where nothing helps,
    give none.
    """

    passages: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    marked: Marked = dspy.OutputField()


class Assess(Step):
    """A question and sentences by passage → those that help, by one call for all passages.

    A cross-encoder in the role `filter` labels whole passages, so that rules stand in here.
    """

    step = "relevance"
    role = "filter"
    task = MarkSentences
    output_format = StepAdapter(items=True)

    @property
    def is_offline(self) -> bool:
        return super().is_offline or self.models.encoder(self.role) is not None

    async def run(
        self, passages: Sequence[Sequence[Evidence]], topic: CollectionTopic
    ) -> list[Evidence]:
        """The sentences that help, in the order of the passages, none of which is empty."""
        if self.is_offline:
            return [piece for passage in passages for piece in helpful_by_rules(passage, topic)]
        question, number = topic.relevance.question.text, 1
        shown: list[str] = []
        for passage in passages:
            shown.append(passage_text(passage, number))
            number += len(passage)
        marked: Marked = (await self.acall(question=question, passages=shown)).marked
        chosen = set(marked.sentences)
        pieces = [piece for passage in passages for piece in passage]
        return [piece for number, piece in enumerate(pieces, 1) if number in chosen]


def passage_text(passage: Sequence[Evidence], first: int = 1) -> str:
    """The title of a passage, and its sentences with numbers from `first`, a line each."""
    title = " ".join((passage[0].title or passage[0].document).split())
    lines = [f"[{n}] {' '.join(piece.text.split())}" for n, piece in enumerate(passage, first)]
    return "\n".join([title, *lines])


def helpful_by_rules(passage: Sequence[Evidence], topic: CollectionTopic) -> list[Evidence]:
    """The few sentences of a passage that have most of the question's words, in their order."""
    worth = {piece.number: topic.worth(piece) for piece in passage}
    best = sorted(worth, key=lambda number: (-worth[number], number))[:MOST_BY_RULES]
    return [piece for piece in passage if piece.number in best and worth[piece.number] > 0]
