"""Makes questions about a collection of documents, from a description of it or from passages.

Questions about the whole follow GraphRAG (arXiv 2404.16130v2; LightRAG, section 4.1): a description
of the collection, its users, their tasks, questions for each task. Questions about a part come from
passages, with the sentences that answer them. Each is checked against what a search finds for it.
"""

from collections.abc import Sequence
from typing import Literal

import dspy
from pydantic import BaseModel, Field

from prompts.engine.messages import NotAsAsked
from prompts.engine.step import Inputs, Outputs, Step

PartKind = Literal["single_fact", "multi_hop", "comparison", "unanswerable"]

KINDS: dict[PartKind, str] = {
    "single_fact": (
        "asks for one fact that one passage states. The answer is short: a name, a date, a figure, "
        "a term"
    ),
    "multi_hop": (
        "needs two of the passages: one says who or what is meant without the question naming it, "
        "the other says what is asked of it. Neither passage alone answers it. The answer is "
        "short"
    ),
    "comparison": (
        "names two things that different passages speak of and asks how they compare in something "
        "that both passages state. The answer is one of the two, yes or no, or a few words"
    ),
    "unanswerable": (
        "asks for something that a reader of these passages would expect them to say and that "
        "they do not say. It names what it asks about as the passages do. The answer is empty, "
        "and so are the sentences"
    ),
}


class CorpusDescribed(BaseModel):
    """What a collection is."""

    description: str = Field(
        description="Four to eight sentences: what sort of documents, from whom, about what."
    )


class DescribeCorpus(dspy.Signature):
    """Describe a collection of documents from titles and the beginnings of some: what kind of
    documents they are, by whom and for whom, and which matters, people, places and times they are
    about. Describe the collection, not single documents, and say nothing that is not shown.
    """

    titles: list[str] = dspy.InputField()
    samples: list[str] = dspy.InputField()
    corpus: CorpusDescribed = dspy.OutputField()


class CorpusUser(BaseModel):
    """Somebody with tasks."""

    user: str = Field(
        description="Who: an occupation and what brings it to these documents, in one sentence."
    )
    tasks: list[str] = Field(
        description="What this user wants to get done with them, a sentence each."
    )


class ImagineUsers(dspy.Signature):
    """Name people who would use a collection of documents, each with tasks for which they need it.

    Users differ in what they do, know and want; the tasks of one user differ in what they need of
    the collection. Give exactly as many users, and tasks for each, as are asked for.
    """

    description: str = dspy.InputField()
    users: int = dspy.InputField()
    tasks: int = dspy.InputField()
    people: list[CorpusUser] = dspy.OutputField()


class AskAboutWhole(dspy.Signature):
    """Write questions that this user would ask a collection of documents for this task.

    Each needs the collection as a whole: its themes, what is common, contested, typical or missing
    in it. None is answered by a single passage, asks for a single fact or names a document. Each
    stands alone, without the user or the task, and asks for something other than the rest and the
    known ones. Give exactly the number asked for.
    """

    description: str = dspy.InputField()
    user: str = dspy.InputField()
    task: str = dspy.InputField()
    known: list[str] = dspy.InputField()
    number: int = dspy.InputField()
    questions: list[str] = dspy.OutputField()


class PartAsked(BaseModel):
    """A question with its answer and the sentences that give it."""

    reason: str = Field(
        description="What the passages say that makes this a question of the kind, in a sentence."
    )
    question: str
    answer: str
    sentences: list[int] = Field(
        description="The numbers of all sentences that the answer needs, and of no other."
    )


class AskAboutPassages(dspy.Signature):
    """Write one question of the given kind about the passages, with its answer and the numbers of
    the sentences that give it.

    A reader who has not seen the passages must understand the question: it names in full what it
    asks about, never "the passage" or "the author". It asks for what somebody would want to know.
    The answer is what the sentences say, in their words where it is a name or a figure. Where the
    passages allow no such question, leave the question empty.
    """

    passages: list[str] = dspy.InputField()
    kind: str = dspy.InputField()
    asked: PartAsked = dspy.OutputField()


class QuestionChecked(BaseModel):
    """Whether a question can be answered, and why."""

    reason: str = Field(description="What the passages say to the question, in a sentence.")
    verdict: Literal["answerable", "global", "unanswerable"]


class CheckQuestion(dspy.Signature):
    """Say whether a collection of documents can answer a question. You see a description of the
    collection and the passages that a search finds.

    answerable: the passages state the answer. global: the question is about the collection as a
    whole, and the description and passages show that it speaks of the matter. unanswerable:
    neither; that a passage names what is asked about is not enough.
    """

    description: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    check: QuestionChecked = dspy.OutputField()


class DescribeCollection(Step):
    """Titles and samples → a description of the collection."""

    step = "describe"
    role = "synthesize"
    writes_in = "samples"
    task = DescribeCorpus

    async def run(self, titles: Sequence[str], samples: Sequence[str]) -> str:
        described: CorpusDescribed = (
            await self.acall(titles=list(titles), samples=list(samples))
        ).corpus
        return described.description


class FindUsers(Step):
    """A description → users with their tasks."""

    step = "users"
    role = "synthesize"
    writes_in = "description"
    task = ImagineUsers

    async def run(self, description: str, users: int, tasks: int) -> list[CorpusUser]:
        people: list[CorpusUser] = (
            await self.acall(description=description, users=users, tasks=tasks)
        ).people
        return [
            person.model_copy(update={"tasks": person.tasks[:tasks]}) for person in people[:users]
        ]

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """Raise NotAsAsked for fewer users or tasks than were asked for."""
        many = [len(user.tasks) for user in outputs["people"]]
        users, tasks = inputs["users"], inputs["tasks"]
        if len(many) < users or min(many) < tasks:
            raise NotAsAsked(
                f"give {users} users with {tasks} tasks each; the users given have {many} tasks."
            )


class AskWhole(Step):
    """A description, a user and a task → questions about the whole collection."""

    step = "ask_whole"
    role = "synthesize"
    writes_in = "description"
    task = AskAboutWhole

    async def run(
        self, description: str, user: str, task: str, known: Sequence[str], number: int
    ) -> list[str]:
        questions: list[str] = (
            await self.acall(
                description=description, user=user, task=task, known=list(known), number=number
            )
        ).questions
        return [" ".join(question.split()) for question in questions if question.strip()][:number]


class AskPart(Step):
    """Passages with numbered sentences and a kind → a question, its answer and sentences."""

    step = "ask_part"
    role = "synthesize"
    writes_in = "passages"
    task = AskAboutPassages

    async def run(self, kind: PartKind, passages: Sequence[str]) -> PartAsked:
        """The question is empty where the passages allow none of this kind."""
        wording = f"{kind}: the question {KINDS[kind]}."
        asked: PartAsked = (await self.acall(kind=wording, passages=list(passages))).asked
        return asked


class CheckAnswerable(Step):
    """A question and what a search finds for it → whether it can be answered."""

    step = "check_question"
    role = "synthesize"
    task = CheckQuestion

    async def run(
        self, description: str, question: str, passages: Sequence[str]
    ) -> QuestionChecked:
        checked: QuestionChecked = (
            await self.acall(description=description, question=question, passages=list(passages))
        ).check
        return checked
