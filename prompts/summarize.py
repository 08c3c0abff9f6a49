"""What is one entity, in a few sentences, from all that was said of it? (GraphRAG 2.3; LightRAG `Prof`)"""

import re

import dspy

from prompts.engine.step import Step
from prompts.language.words import fold

MAX_SENTENCES = 3
MAX_LENGTH = 500


class SummarizeEntity(dspy.Signature):
    """Say what the entity is, from the statements alone, in their language.

    Keep every figure and date; name contradictions.
    """

    name: str = dspy.InputField()
    statements: list[str] = dspy.InputField()
    description: str = dspy.OutputField(desc="At most four sentences that stand on their own.")


class Summarize(Step):
    """The statements about an entity → one description."""

    step = "summarize"
    role = "summarize"
    task = SummarizeEntity

    async def run(self, name: str, statements: tuple[str, ...]) -> str:
        if self.is_offline:
            return summarize_offline(name, statements)
        prediction = await self.acall(name=name, statements=list(statements))
        return str(prediction.description)


def summarize_offline(name: str, statements: tuple[str, ...]) -> str:
    """The sentences that say most about the entity: those that define it first, then those that open with its name."""

    def rank(item: tuple[int, str]) -> tuple[int, int]:
        place, statement = item
        text, bare = fold(statement).lstrip("#*-> \"'"), fold(name.split(" (", maxsplit=1)[0])
        defines = (
            re.match(re.escape(bare) + r"\s*(?:[(（][^()（）]*[)）])?\s*,?\s*(?:is|was|are|were|是|为)(?![a-z])", text)
            is not None
        )
        return -(2 * defines + text.startswith(bare)), place

    chosen: list[tuple[int, str]] = []
    length = 0
    for place, statement in sorted(enumerate(statements), key=rank):
        if chosen and (length + len(statement) > MAX_LENGTH or len(chosen) == MAX_SENTENCES):
            break
        chosen.append((place, statement))
        length += len(statement)
    return " ".join(statement for _, statement in sorted(chosen, key=rank))
