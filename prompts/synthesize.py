"""Synthesise: questions for a collection of documents, made from a description of it or from its own passages.

Questions about the whole come by GraphRAG's way (arXiv 2404.16130v2; LightRAG, section 4.1): a description of the
collection, users who would read it, a task of each, questions for each task. Questions about a part are made from
passages, with the sentences that answer them. Every question is then checked against what a search finds for it.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, Field

from prompts.engine.calls import NotAsAsked
from prompts.engine.step import InputField, OutputField, Signature, Step, definitions

PartKind = Literal["single_fact", "multi_hop", "comparison", "unanswerable"]

KINDS = definitions("part_kinds")  # by PartKind


class CorpusDescribed(BaseModel):
    """What a collection is."""

    description: str = Field(description="Four to eight sentences: what sort of documents, from whom, about what.")


class DescribeCorpus(Signature, prompt="describe"):  # noqa: D101 -- its prompt tells
    titles: list[str] = InputField(desc="Titles of some documents.")
    samples: list[str] = InputField(desc="title: the beginning of a document")
    corpus: CorpusDescribed = OutputField()


class CorpusUser(BaseModel):
    """Somebody with tasks."""

    user: str = Field(description="Who: an occupation and what brings it to these documents, in one sentence.")
    tasks: list[str] = Field(description="What this user wants to get done with them, a sentence each.")


class ImagineUsers(Signature, prompt="users"):  # noqa: D101 -- its prompt tells
    description: str = InputField()
    users: int = InputField(desc="How many users.")
    tasks: int = InputField(desc="How many tasks for each.")
    people: list[CorpusUser] = OutputField()


class AskAboutWhole(Signature, prompt="ask_whole"):  # noqa: D101 -- its prompt tells
    description: str = InputField()
    user: str = InputField()
    task: str = InputField()
    known: list[str] = InputField(desc="Questions that there are already.")
    number: int = InputField(desc="How many new ones.")
    questions: list[str] = OutputField()


class PartAsked(BaseModel):
    """A question with its answer and the sentences that give it."""

    reason: str = Field(description="What the passages say that makes this a question of the kind, in a sentence.")
    question: str
    answer: str
    sentences: list[int] = Field(description="The numbers of all sentences that the answer needs, and of no other.")


class AskAboutPassages(Signature, prompt="ask_part"):  # noqa: D101 -- its prompt tells
    kind: str = InputField()
    passages: list[str] = InputField(desc="title, and under it its sentences by number")
    asked: PartAsked = OutputField()


class QuestionChecked(BaseModel):
    """Whether a question can be answered, and why."""

    reason: str = Field(description="What the passages say to the question, in a sentence.")
    verdict: Literal["answerable", "global", "unanswerable"]


class CheckQuestion(Signature, prompt="check_question"):  # noqa: D101 -- its prompt tells
    description: str = InputField()
    question: str = InputField()
    passages: list[str] = InputField(desc="title: passage")
    check: QuestionChecked = OutputField()


class DescribeCollection(Step):
    """Titles and samples → a description of the collection."""

    step = "describe"
    role = "synthesize"
    task = DescribeCorpus

    async def run(self, titles: Sequence[str], samples: Sequence[str]) -> str:
        described: CorpusDescribed = (await self.acall(titles=list(titles), samples=list(samples))).corpus
        return described.description


class FindUsers(Step):
    """A description → users with their tasks."""

    step = "users"
    role = "synthesize"
    task = ImagineUsers

    async def run(self, description: str, users: int, tasks: int) -> list[CorpusUser]:
        people: list[CorpusUser] = (await self.acall(description=description, users=users, tasks=tasks)).people
        return [person.model_copy(update={"tasks": person.tasks[:tasks]}) for person in people[:users]]

    def check(self, outputs: Mapping[str, object], inputs: Mapping[str, object]) -> None:
        """As many as were asked for."""
        people, users, tasks = outputs["people"], inputs["users"], inputs["tasks"]
        many = [len(user.tasks) for user in people if isinstance(user, CorpusUser)] if isinstance(people, list) else []
        if isinstance(users, int) and isinstance(tasks, int) and (len(many) < users or min(many) < tasks):
            raise NotAsAsked(f"give {users} users with {tasks} tasks each; the users given have {many} tasks.")


class AskWhole(Step):
    """A description, a user and a task → questions about the whole collection."""

    step = "ask_whole"
    role = "synthesize"
    task = AskAboutWhole

    async def run(self, description: str, user: str, task: str, known: Sequence[str], number: int) -> list[str]:
        questions: list[str] = (
            await self.acall(description=description, user=user, task=task, known=list(known), number=number)
        ).questions
        return [" ".join(question.split()) for question in questions if question.strip()][:number]


class AskPart(Step):
    """Passages with numbered sentences and a kind → a question with its answer and its sentences."""

    step = "ask_part"
    role = "synthesize"
    task = AskAboutPassages

    async def run(self, kind: PartKind, passages: Sequence[str]) -> PartAsked:
        """Without a question where the passages allow none of this kind."""
        wording = f"{kind}: the question {KINDS[kind]}."
        asked: PartAsked = (await self.acall(kind=wording, passages=list(passages))).asked
        return asked


class CheckAnswerable(Step):
    """A question and what a search finds for it → whether it can be answered."""

    step = "check_question"
    role = "synthesize"
    task = CheckQuestion

    async def run(self, description: str, question: str, passages: Sequence[str]) -> QuestionChecked:
        checked: QuestionChecked = (
            await self.acall(description=description, question=question, passages=list(passages))
        ).check
        return checked
