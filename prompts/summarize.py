"""What is one entity, in a few sentences, from all that was said of it? (GraphRAG 2.3; LightRAG `Prof`)

Cheap first: few short statements are a description already; a model is asked where there are many, or long ones.
"""

import re

import dspy

from prompts.engine.calls import rough_tokens
from prompts.language.words import fold
from prompts.tailoring.step import TailoredStep

MAX_SENTENCES = 3
MAX_LENGTH = 500
# What is joined instead of summarised: a summary may have four sentences as well, and would be no shorter.
MOST_JOINED = 4
MOST_JOINED_TOKENS = 120
# What follows a name where a statement says what it is.
_DEFINES = re.compile(r"\s*(?:[(（][^()（）]*[)）])?\s*,?\s*(?:is|was|are|were|是|为)(?![a-z])")


class SummarizeEntity(dspy.Signature):
    """Say what the entity is, from the statements alone, in the statements' language. Keep every figure and date; name
    contradictions."""

    name: str = dspy.InputField()
    statements: list[str] = dspy.InputField()
    description: str = dspy.OutputField(desc="At most four sentences that stand on their own.")


class Summarize(TailoredStep):
    """The statements about an entity → one description."""

    step = "summarize"
    role = "summarize"
    task = SummarizeEntity
    own_language = "the statements' language"

    def sure(self, name: str, statements: tuple[str, ...]) -> str | None:
        """The description that needs no model; None where one is to be asked."""
        if self.is_offline:
            return summarize_offline(name, statements)
        return " ".join(ranked(name, statements)) if is_short(statements) else None

    async def run(self, name: str, statements: tuple[str, ...]) -> str:
        if self.is_offline:
            return summarize_offline(name, statements)
        prediction = await self.acall(name=name, statements=list(statements))
        return str(prediction.description)


def is_short(statements: tuple[str, ...]) -> bool:
    """Whether distinct statements together are no longer than a summary of them would be."""
    return len(statements) <= MOST_JOINED and sum(map(rough_tokens, statements)) <= MOST_JOINED_TOKENS


def ranked(name: str, statements: tuple[str, ...]) -> list[str]:
    """Statements by how much they say about the entity: those that define it, then those that open with its name."""

    bare = fold(name.split(" (", maxsplit=1)[0])

    def rank(item: tuple[int, str]) -> tuple[int, int]:
        place, statement = item
        text = fold(statement).lstrip("#*-> \"'")
        opens = text.startswith(bare)
        defines = opens and _DEFINES.match(text, len(bare)) is not None
        return -(2 * defines + opens), place

    return [statement for _, statement in sorted(enumerate(statements), key=rank)]


def summarize_offline(name: str, statements: tuple[str, ...]) -> str:
    """The sentences that say most about the entity, up to a length."""
    chosen: list[str] = []
    for statement in ranked(name, statements):
        if chosen and (sum(map(len, chosen)) + len(statement) > MAX_LENGTH or len(chosen) == MAX_SENTENCES):
            break
        chosen.append(statement)
    return " ".join(chosen)
