"""Into which smaller questions does the question fall? (StructRAG, section 2.4)"""

from collections.abc import Sequence

from prompts.decompose import Decompose
from prompts.language.asked import Ask
from tasks.step import step


@step("decompose")
async def decompose(ask: Ask, descriptions: Sequence[str], decomposer: Decompose) -> list[str]:
    """Sub-questions in order, `{n}` for the answer of the n-th; a simple question comes back alone."""
    return await decomposer.run(ask, descriptions)
