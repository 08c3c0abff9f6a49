"""Hypothesize: the text that is searched for in place of the question (HyDE)."""

from prompts.hypothesize import Hypothesize
from tasks.step import step


@step("hypothesize")
async def hypothesize(question: str, writer: Hypothesize) -> str:
    """A hypothetical passage that answers the question; EngineError where the model fails."""
    return await writer.run(question)
