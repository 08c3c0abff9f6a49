"""What does a model say without any document?"""

from prompts.direct import Direct
from prompts.language.asked import Ask
from prompts.reading.claims import Reading, abstain
from tasks.step import step


@step("direct")
async def answer_directly(taken: Ask, answerer: Direct) -> Reading:
    """An ungrounded reading; abstained where the model says nothing."""
    written = await answerer.run(taken.text)
    said = written.answer.strip()
    if not said:
        return abstain(taken)
    return Reading(values=tuple(dict.fromkeys(written.values)), support="ungrounded", lead=said)
