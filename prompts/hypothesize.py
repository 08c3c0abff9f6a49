"""Hypothesize: what a passage that answers the question might say (HyDE, arXiv 2212.10496)."""

import dspy

from prompts.engine.step import Step


class WriteHypothesis(dspy.Signature):
    """Write the passage that somebody who looks for the answer to a question hopes to find.

    Nobody reads it: it is turned into a vector, and real passages near to it are searched for. So it has to look like
    them. Write three to five plain sentences of the sort of text in which the answer would stand: an entry of an
    encyclopedia for a fact, a manual for a procedure, minutes or a report for a matter of an organisation, a review for
    an opinion. State the answer as if it were known, with the terms, names and kinds of figures that such a text would
    use, and with what usually stands beside them. Repeat the names of the question. If you do not know the answer, make
    one up that is plausible: wording counts here, not truth. Write in the language of the question, without any remark
    about the task.

    Example. "Why was the Holm ferry given up?": "The Holm ferry ceased operation after the opening of the road tunnel,
    when passenger numbers fell sharply. The ferry company reported losses for several years and sold its boats. The
    last crossing took place in autumn; the landing stage was later used by anglers."

    例：“青石渡口有多少船？”写作“青石渡口现有渡船若干艘，由县航运站统一调度，其中机动船用于载客，其余用于载货。渡船每年进坞检修一次。”"""

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
