"""What does a question name of the graph, and what does it leave open? (PolyG, section 3: the type of a question)"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompts.classify import SURE, Classify, QuestionTyped, classify_offline
from tasks.step import step
from tasks.traverse.names import Linked, Named

_ASKS_IF = re.compile(
    r"^\W*(?:did|does|do|was|were|is|are|has|have|had)\b(?!.*\bor\b.*\bor\b)|是不是|是否|吗\W*$", re.I
)


@dataclass(frozen=True)
class Question:
    """A question, what of the graph it names, what looks like a name and is none of the graph's, and its type."""

    text: str
    named: tuple[Named, ...]
    unlinked: tuple[str, ...]
    typed: QuestionTyped
    by_model: bool = False

    @property
    def asks_if(self) -> bool:
        """Whether yes or no is asked."""
        return _ASKS_IF.search(self.text) is not None


@step("classify")
async def classify(question: str, linked: Linked, classifier: Classify) -> Question:
    """The question with its names and its type."""
    names = _names_for_type(question, linked.named, linked.unlinked)
    by_model = not classifier.is_offline and classify_offline(question, names).confidence < SURE
    return Question(question, linked.named, linked.unlinked, await classifier.run(question, names), by_model)


def _names_for_type(question: str, named: Sequence[Named], unlinked: Sequence[str]) -> list[str]:
    """The names by which a question is typed.

    Ordinary words, and names that the graph lacks, count only where they make it one about two things.
    """
    sure = [name.text for name in named if not name.doubtful]
    every = [name.text for name in named]
    if len(sure) > 1:
        return sure
    for names in (every, [*sure, *unlinked]):
        typed = classify_offline(question, names)
        if len(names) > 1 and (typed.type == "s*o" or (typed.type == "spo" and _ASKS_IF.search(question))):
            return names
    return sure or every
