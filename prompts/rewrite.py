"""Rewrite: what is searched for in place of a question (ERM4, Query Rewriter+: p → (s, Q)).

That is a complete question with its search queries; a hypothetical passage (HyDE, arXiv
2212.10496); or keys for the graph: low ones name things, high ones what is asked of them (LightRAG,
section 3.2).
"""

from collections.abc import Iterable, Sequence
from typing import Annotated

import dspy
from pydantic import BaseModel, Field, StringConstraints

from prompts.engine.messages import first_fitting, rough_tokens
from prompts.engine.step import Step
from prompts.offline.keywords import keywords_offline
from prompts.text.languages import names_of
from prompts.text.words import is_han

MAX_READINGS, MAX_QUERIES = 4, 4
# A longer question also tells something: a model finds what it asks.
LONG_WORDS, LONG_HAN = 50, 100
ALONE = "a short question without a history stands on its own"
LOW = "low effort: a question without a history is searched for as it is"


MAX_KEYS = 8
LONGEST = 120  # characters: what is longer is a sentence and no key
LOW_KEYS = "low effort: names and words of the question are its keys"


class Ambiguous(BaseModel):
    """Words of the question that could mean several things."""

    text: str = Field(description="Exactly as in the question.")
    readings: list[str] = Field(description="What they could mean, the one taken first.")


class Rewriting(BaseModel):
    """One unambiguous question and the search queries for its aspects."""

    reasoning: str = Field(default="", description="What is left open, and what fills it.")
    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(
        description="The question, complete."
    )
    queries: list[str] = Field(default_factory=list, description=f"At most {MAX_QUERIES}.")
    ambiguities: list[Ambiguous] = Field(default_factory=list)


class RewriteQuestion(dspy.Signature):
    """Rewrite the user's question so that it can be understood and searched for without the
    conversation before it.

    It asks for the same thing, no more and no less. Put what the conversation says in place of
    pronouns, of "the second one", of what is left out ("And in 2021?"); what was said last is
    meant first. Keep names, figures, dates, negations, and a wish for the form of the answer; of
    several questions keep all. Drop greetings and asides. Do not answer. A question that stands
    alone is given back as it is.

    queries: short searches in the words of the documents, each for another aspect: the first link
    of a chain, each thing compared. None where the question itself is enough.

    ambiguities: words that fit several things and that the conversation does not settle. Write the
    question in the likeliest reading. Mostly there are none.
    """

    history: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    rewriting: Rewriting = dspy.OutputField()


class Rewrite(Step):
    """A question with its history → one question, its queries, and what in it is ambiguous.

    A model is asked where there is a history, or the question is long.
    """

    step = "rewrite"
    role = "rewrite"
    writes_in = "question"
    task = RewriteQuestion

    async def run(self, question: str, history: Sequence[str]) -> Rewriting:
        """The model's question, its first queries, and the ambiguities."""
        if self.is_offline or not (history or self._asks_alone(question)):
            return Rewriting(question=with_previous_question(question, history))
        shown = recent(history, self.policy.limits.rate)
        written: Rewriting = (await self.acall(question=question, history=shown)).rewriting
        queries = dict.fromkeys(" ".join(query.split()) for query in written.queries)
        return Rewriting(
            question=written.question,
            queries=[query for query in queries if query][:MAX_QUERIES],
            ambiguities=[
                Ambiguous(
                    text=ambiguity.text,
                    readings=list(dict.fromkeys(ambiguity.readings))[:MAX_READINGS],
                )
                for ambiguity in written.ambiguities
                if ambiguity.text.strip()
            ],
        )

    def _asks_alone(self, question: str) -> bool:
        """Whether a model is asked about a question without a history."""
        if is_long(question) and self.policy.effort != "low":
            return True
        return not self.spares(LOW if self.policy.effort == "low" else ALONE)


def is_long(question: str) -> bool:
    """Whether a question is so long that it also tells something."""
    return len(question) > LONG_HAN if is_han(question) else len(question.split()) > LONG_WORDS


def recent(history: Sequence[str], most: int) -> list[str]:
    """The last turns in at most `most` tokens, oldest first; at least one, if there is any."""
    return first_fitting(
        [" ".join(turn.split()) for turn in reversed(history)], rough_tokens, most
    )[::-1]


def with_previous_question(question: str, history: Sequence[str]) -> str:
    """The question as it is searched for without a model.

    The last question that names something precedes one that does not, so that the words of both
    are searched for. Only a model replaces pronouns.
    """
    if not history or names_of(question):
        return question.strip()
    turns = [" ".join(turn.split()) for turn in history]
    asked = [turn for turn in turns if turn.endswith(("?", "？"))] or turns[:1]
    before = next((earlier for earlier in reversed(asked) if names_of(earlier)), asked[-1])
    return f"{before} {question.strip()}"


class WriteHypothesis(dspy.Signature):
    """Write the passage in which somebody would find the answer to the question.

    Only its likeness counts: real passages near to it are searched for. Write three to five plain
    sentences of the sort of text in which the answer would stand (an encyclopedia for a fact, a
    manual for a procedure, minutes or a report for an organisation's matter), with the names of
    the question and the terms and kinds of figures that such a text uses. State an answer as if it
    were known, a plausible one where you do not know it.
    """

    question: str = dspy.InputField()
    passage: str = dspy.OutputField()


class Hypothesize(Step):
    """A question → a hypothetical passage. There is no offline version."""

    step = "hypothesize"
    role = "rewrite"
    writes_in = "question"
    task = WriteHypothesis

    async def run(self, question: str) -> str:
        passage: str = (await self.acall(question=question)).passage
        return " ".join(passage.split())


class Keys(BaseModel):
    """The keys of a question, the most telling first."""

    low: list[str] = Field(default_factory=list)
    high: list[str] = Field(default_factory=list)


class FindKeys(dspy.Signature):
    """Give the keys by which a knowledge graph is searched for a question.

    low: the things that it names, in full, as documents would write them; also figures, dates and
    terms that single something out. An abbreviation and its full form are two keys. high: what is
    asked of these things, and the themes behind it, as an index would have them: "burial place",
    "loss of work". One to five of each, those that matter most first; none where there is nothing
    to name.
    """

    question: str = dspy.InputField()
    found: Keys = dspy.OutputField()


class Keywords(Step):
    """A question → its keys, by one short answer of a model."""

    step = "keywords"
    role = "rewrite"
    writes_in = "question"
    task = FindKeys

    async def run(self, question: str) -> Keys:
        """The model's keys, each once, the first `MAX_KEYS` of each sort."""
        if self.is_offline or (self.policy.effort == "low" and self.spares(LOW_KEYS)):
            low, high = keywords_offline(question)
            return Keys(high=_bounded(high), low=_bounded(low))
        keys: Keys = (await self.acall(question=question)).found
        return Keys(high=_bounded(keys.high), low=_bounded(keys.low))


def _bounded(keys: Iterable[str]) -> list[str]:
    """The first distinct keys that are not too long."""
    folded = dict.fromkeys(" ".join(key.split()) for key in keys)
    return [key for key in folded if 0 < len(key) <= LONGEST][:MAX_KEYS]
