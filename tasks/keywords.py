"""Keywords: the keys by which the graph is searched for a question (LightRAG, section 3.2)."""

from prompts.keywords import Keys, Keywords
from tasks.step import step


@step("keywords")
async def find_keys(question: str, finder: Keywords) -> Keys:
    """The low and high keys."""
    return await finder.run(question)
