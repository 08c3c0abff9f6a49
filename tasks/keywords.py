"""By which keys is the graph searched for a question? (LightRAG, section 3.2)"""

from prompts.keywords import Keys, Keywords
from tasks.step import step


@step("keywords")
async def find_keys(question: str, finder: Keywords, rewritten: bool = False) -> Keys:
    """The low and high keys; `rewritten`: a model has been asked about this question already."""
    return await finder.run(question, rewritten=rewritten)
