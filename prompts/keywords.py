"""Keywords: the keys by which the graph is searched; low ones name things, high ones what is asked of them.

Source: LightRAG (arXiv 2410.05779), section 3.2, query keyword extraction.
"""

from collections.abc import Iterable

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.offline.keywords import keywords_offline

MAX_KEYS = 8
LONGEST = 120  # signs: what is longer is a sentence and no key
LOW = "low effort: names and words of the question are its keys"


class Keys(BaseModel):
    """The keys of a question, the most telling first."""

    high: list[str] = Field(
        default_factory=list, description=f"Themes and relations that it asks about, at most {MAX_KEYS}."
    )
    low: list[str] = Field(default_factory=list, description=f"Specific things in it, at most {MAX_KEYS}.")


class FindKeys(dspy.Signature):
    """Find the keys by which a knowledge graph is searched for a question.

    The graph holds things (people, places, organisations, works, events, terms) under their names, and relations
    between things under short phrases for what they are about.

    High keys are compared with the relations: what is asked of the things, and the themes behind it. Write each as a
    short phrase, as an index would have it: "burial place", "loss of fishing grounds". Go beyond the words of the
    question where the theme has a usual name: "who taught her" is "teacher and pupil", "is it bad for the lungs" is
    "effects on breathing". Start with the key that matters most.

    Low keys are compared with the names of things: every name in the question, in full and as a document would write
    it; figures, dates and technical terms that single something out; the kind of thing that is looked for ("lock",
    "harbour master") where nothing is named. Give an abbreviation and its full form as two keys, if you know it. Do not
    put what only links words ("relationship", "difference") here.

    Two to five keys of each sort are usual, one will do for a short question. A wide question may have no low keys, a
    bare name no high ones; greetings and requests without content have none. Keep the language of the question.

    Examples. "How did the closing of Holm Quay change the lives of ferrymen?" high: "closure of a quay", "livelihood of
    ferrymen", "loss of work". low: "Holm Quay", "ferrymen". "Which WHO rules apply to well water?" high: "standards for
    drinking water", "water safety". low: "WHO", "World Health Organization", "well water".

    例：“青石渡口改建对两岸商户有什么影响？”high：“渡口改建”“对商户的影响”“客流变化”；low：“青石渡口”“商户”。"""

    question: str = dspy.InputField()
    found: Keys = dspy.OutputField()


class Keywords(Step):
    """A question → its keys, by one short answer of a model."""

    step = "keywords"
    role = "rewrite"
    task = FindKeys

    async def run(self, question: str) -> Keys:
        """The model's keys, each once, the first `MAX_KEYS` of each sort."""
        if self.is_offline or (self.policy.effort == "low" and self.spares(LOW)):
            low, high = keywords_offline(question)
            return Keys(high=high, low=low)
        found: Keys = (await self.acall(question=question)).found
        return Keys(high=_bounded(found.high), low=_bounded(found.low))


def _bounded(keys: Iterable[str]) -> list[str]:
    """Distinct keys of a bearable length, the first ones."""
    folded = dict.fromkeys(" ".join(key.split()) for key in keys)
    return [key for key in folded if 0 < len(key) <= LONGEST][:MAX_KEYS]
