"""Direct: what a model says without any document."""

from prompts.direct import Direct
from tasks.answer import StatedAnswer
from tasks.step import step


@step("direct")
async def answer_directly(question: str, answerer: Direct) -> StatedAnswer:
    """The model's own words, ungrounded; abstained where it says nothing."""
    written = await answerer.run(question)
    said = written.answer.strip()
    if not said:
        return StatedAnswer("The model does not know.", fallback="abstained", answered_by="model")
    return StatedAnswer(said, tuple(dict.fromkeys(written.values)), "ungrounded", "model")
