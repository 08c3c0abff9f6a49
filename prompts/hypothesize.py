"""What might a passage that answers the question say? (HyDE, arXiv 2212.10496: it is searched for, never quoted)"""

import dspy

from prompts.engine.step import Step


class WriteHypothesis(dspy.Signature):
    """Write a passage of three or four sentences, as an encyclopedia would have it, that answers the question. It is
    used to find real passages: plausible wording counts, not truth."""

    question: str = dspy.InputField()
    passage: str = dspy.OutputField()


class Hypothesize(Step):
    """A question → a hypothetical passage; there is no offline version, since it would be invented."""

    step = "hypothesize"
    role = "rewrite"
    task = WriteHypothesis

    async def run(self, question: str) -> str:
        """The passage, white space folded."""
        passage: str = (await self.acall(question=question)).passage
        return " ".join(passage.split())
