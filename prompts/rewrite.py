"""What exactly is asked, and by which queries is the evidence found? (ERM4, Query Rewriter+: p → (s, Q))"""

import logging
from collections.abc import Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.language.ambiguity import Doubt, doubts
from prompts.language.conversation import READ, Standing, stand_alone
from prompts.language.mentions import named
from prompts.language.question import ask
from prompts.language.words import fold, is_han
from prompts.reading.aspects import aspects
from prompts.reading.faithful import unfaithful

MAX_QUERIES = 4
MAX_READINGS = 4
# A longer question says more than it asks: a model finds what that is.
LONG_WORDS, LONG_HAN = 50, 100

# So much of each earlier turn is shown to a model, from both ends: a long answer names its things there.
TURN_SIGNS = 600

logger = logging.getLogger(__name__)


class Ambiguous(BaseModel):
    """Words of the question that could mean several things."""

    text: str = Field(description="Exactly as in the question.")
    readings: list[str] = Field(description="What they could mean, the one taken first.")


class Rewriting(BaseModel):
    """One unambiguous question and the search queries for its aspects."""

    question: str
    queries: list[str] = Field(description=f"At most {MAX_QUERIES}.")
    ambiguities: list[Ambiguous] = Field(default=[], description="Mostly none.")


class RewriteQuestion(dspy.Signature):
    """Rewrite the question so that it stands on its own, with what the history says put in place of pronouns and of
    what is left out, in its own language. Keep its names and figures, add none that are not said. Add search queries
    for different aspects only where one query cannot find everything."""

    question: str = dspy.InputField()
    history: list[str] = dspy.InputField(desc="Earlier questions and answers, oldest first.")
    rewriting: Rewriting = dspy.OutputField()


class Rewrite(Step):
    """A question with its history → one question, its queries, and what in it is ambiguous.

    A model is asked where the question is long, or follows a history and does not stand on its own for sure. An answer
    that changes what is asked is refused: then the rules' question stands, and the log says why.
    """

    step = "rewrite"
    role = "rewrite"
    task = RewriteQuestion

    async def run(self, question: str, history: Sequence[str]) -> Rewriting:
        standing = stand_alone(question, history)
        by_rule = _by_rule(standing)
        if self.is_offline or is_sure(question, history, standing):
            return by_rule
        prediction = await self.acall(question=question, history=[_shown(said) for said in history[-READ:]])
        found: Rewriting = prediction.rewriting
        wrong = unfaithful(found.question, question, history)
        if not wrong and found.question == question and by_rule.question != " ".join(question.split()):
            wrong = "it leaves out what the history says"
        if wrong:
            logger.warning("A rewriting of %r was refused: %s. The rules' own is used.", question, wrong)
            return by_rule
        return _bounded(found, question, by_rule)


def _shown(said: str) -> str:
    folded = " ".join(said.split())
    half = TURN_SIGNS // 2
    return folded if len(folded) <= TURN_SIGNS else f"{folded[:half]} … {folded[-half:]}"


def is_sure(question: str, history: Sequence[str], standing: Standing) -> bool:
    """Whether the rules need no model: a short question without a history, in which nothing could stand for anything,
    or one that names what it asks about and points to nothing before it."""
    is_long = len(question) > LONG_HAN if is_han(question) else len(question.split()) > LONG_WORDS
    if is_long or not history:
        return not is_long
    untouched = standing.text == " ".join(question.split())
    return untouched and not standing.several and not standing.missing and bool(named(standing.text))


def rewrite_offline(question: str, history: Sequence[str] = ()) -> Rewriting:
    """White space folded; pronouns, "that bridge", "the latter" and half questions filled in from the history; one
    further query for each thing compared, link of a chain, part, and year of a period."""
    return _by_rule(stand_alone(question, history))


def _by_rule(standing: Standing) -> Rewriting:
    queries = [standing.text, *aspects(ask(standing.text))]
    return Rewriting(
        question=standing.text,
        queries=list(dict.fromkeys(queries))[:MAX_QUERIES],
        ambiguities=[_ambiguous(doubt) for doubt in doubts(standing)],
    )


def _ambiguous(doubt: Doubt) -> Ambiguous:
    return Ambiguous(text=doubt.text, readings=list(doubt.readings))


def _bounded(found: Rewriting, question: str, by_rule: Rewriting) -> Rewriting:
    """A model's rewriting within the bounds: its first queries, in the question's language; of what it finds ambiguous
    that which the question says and which has several readings. Relative dates are the rules' to tell."""
    chinese = is_han(found.question)
    queries = [query for query in found.queries if query.strip() and is_han(query) == chinese]
    said = [
        Ambiguous(text=one.text, readings=list(dict.fromkeys(one.readings))[:MAX_READINGS])
        for one in found.ambiguities
        if one.text.strip() and fold(one.text) in fold(question) and len(set(one.readings)) > 1
    ]
    known = {fold(one.text) for one in said}
    dated = [one for one in by_rule.ambiguities if fold(one.text) not in known and one.text in found.question]
    return Rewriting(
        question=" ".join(found.question.split()),
        queries=list(dict.fromkeys([found.question, *queries]))[:MAX_QUERIES],
        ambiguities=[*said, *(one for one in dated if one.readings)],
    )
