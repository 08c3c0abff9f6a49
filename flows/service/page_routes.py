"""Further routes of /api/v1, made for the page: conversations, pictures, edits, feedback, history
and doctor.
"""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from flows.modes.registry import mode_names
from flows.operations import edit as editing
from flows.operations import retry as retrying
from flows.operations.doctor import Examination, examination
from flows.service.access import CALLER, Caller, needs, within_filter
from flows.service.asking import AskedQuestion, ConversationId
from flows.service.examples import example_questions
from flows.service.picture import Picture, picture
from flows.service.rest import EDIT, Here, Limit, usual_sources
from flows.service.workspaces import DEFAULT
from storage.conversations import Conversation, Conversations, ListedConversation
from storage.errors import UsageError
from storage.evaluation_records import EvaluationQuestion, Feedback
from storage.graph import Edit
from storage.records import Record, content_id, utc_now
from storage.workspace_db import RunRow

MOST_NODES = 500
router = APIRouter(prefix="/api/v1", dependencies=[Depends(needs("ask"))])


class WorkspaceSummary(Record):
    """The head of the page.

    `generation` is None before the first index run, `model` where questions are answered without
    one. `sources` counts the sources of an index run without sources of its own.
    """

    generation: int | None
    documents: int
    sources: int
    modes: tuple[str, ...]
    prefect: str | None
    model: str | None


@router.get("/about", tags=["workspace"])
@within_filter
def about(service: Here, workspace: str = DEFAULT) -> WorkspaceSummary:
    """Return the current generation, the modes, and the model that answers."""
    runtime = service.workspaces.runtime(workspace)
    current = next((info for info in runtime.workspace.generations() if info.current), None)
    documents, sees_all = current.counts.get("documents", 0) if current else 0, True
    if current and CALLER.get().where is not None:
        sees_all = False
        with service.workspaces.hold(workspace) as session:
            documents = len(session.index.documents)
    return WorkspaceSummary(
        generation=current.number if current else None,
        prefect=service.prefect if sees_all else None,
        documents=documents,
        modes=mode_names(),
        sources=len(usual_sources(service, workspace)) if sees_all else 0,
        model=None if runtime.models.is_offline("answer") else runtime.models.name("answer"),
    )


@router.get("/examples", tags=["questions"])
@within_filter
async def examples(service: Here, workspace: str = DEFAULT) -> tuple[str, ...]:
    """Return questions that this index can be asked."""
    return await service.workspaces.read(workspace, example_questions)


@router.get("/runs", tags=["workspace"])
def runs(service: Here, workspace: str = DEFAULT, limit: Limit = 50) -> list[RunRow]:
    """List the latest changes (index runs, retries, edits, …), newest first; `summary` is JSON."""
    return service.workspaces.workspace(workspace).database.runs.list(limit)


@router.get("/questions", tags=["questions"], dependencies=[Depends(needs("admin"))])
def questions(service: Here, workspace: str = DEFAULT) -> list[AskedQuestion]:
    """List the latest questions of all users since the service started, newest first."""
    return [row for row in service.questions.latest if row.workspace == workspace]


@router.get("/doctor", tags=["workspace"], dependencies=EDIT)
async def doctor(service: Here, workspace: str = DEFAULT) -> Examination:
    """Test every model, the embedding, the workspace and Prefect."""
    work = examination(service.workspaces.runtime(workspace).settings, service.prefect or "")
    # Its own event loop, because it computes for seconds.
    return await asyncio.to_thread(asyncio.run, work)


@router.post("/dead-letters/retry", tags=["workspace"], dependencies=EDIT)
async def retry(service: Here, workspace: str = DEFAULT) -> retrying.RetryReport:
    """Retry the failed items and publish those that succeed."""
    return await service.workspaces.change(workspace, retrying.retry)


# --- conversations ---


@dataclass(frozen=True)
class OwnConversations:
    """The conversations of a workspace that belong to the calling user."""

    service: Here
    caller: Annotated[Caller, Depends(needs("ask"))]
    workspace: Annotated[str, Query()] = DEFAULT

    @property
    def store(self) -> Conversations:
        # As a reader, for which a file that cannot be opened has no conversations.
        runtime = self.service.workspaces.runtime(self.workspace, reading=True)
        return runtime.workspace.database.conversations


Own = Annotated[OwnConversations, Depends()]


class Title(Record):
    """A new title of a conversation."""

    title: str = Field(min_length=1, max_length=200, pattern=r"\S")


@router.get("/conversations", tags=["conversations"])
@within_filter
def conversations(own: Own) -> list[ListedConversation]:
    """List your conversations, that with the latest question first."""
    return own.store.listed(own.caller.user)


@router.get("/conversations/{conversation}", tags=["conversations"])
@within_filter
def conversation(conversation: ConversationId, own: Own) -> Conversation:
    """Return one of your conversations with its questions and answers."""
    return own.store.get(own.caller.user, conversation)


@router.patch("/conversations/{conversation}", tags=["conversations"])
@within_filter
def rename_conversation(conversation: ConversationId, body: Title, own: Own) -> Conversation:
    """Give one of your conversations another title."""
    own.store.rename(own.caller.user, conversation, body.title.strip())
    return own.store.get(own.caller.user, conversation)


@router.delete("/conversations/{conversation}", tags=["conversations"])
@within_filter
def delete_conversation(conversation: ConversationId, own: Own) -> list[ListedConversation]:
    """Delete one of your conversations; return the others."""
    own.store.remove(own.caller.user, conversation)
    return own.store.listed(own.caller.user)


@router.delete("/conversations", tags=["conversations"])
@within_filter
def delete_conversations(own: Own) -> None:
    """Delete all your conversations in a workspace."""
    own.store.remove_all(own.caller.user)


# --- the graph ---


@router.get("/picture", tags=["graph"])
@within_filter
async def graph_picture(
    service: Here,
    name: str | None = None,
    other: str | None = None,
    workspace: str = DEFAULT,
    most: Annotated[int, Query(ge=1, le=MOST_NODES)] = 150,
) -> Picture:
    """Draw the neighbourhood of an entity, its paths to `other`, or the most connected entities."""
    return await service.workspaces.read(
        workspace, lambda session: picture(session, name, most, other)
    )


Name = Annotated[str, Field(min_length=1, max_length=editing.LONGEST_NAME)]


class EditBody(Record):
    """A correction of the graph, like those of `trellis graph`; names may be ids. merge: `name` and
    `other` are one entity. split: these `names`, or these `documents`, mean another entity. change:
    set kind, name or description.
    """

    action: Literal["merge", "split", "change"]
    name: Name
    other: Name | None = None
    names: tuple[Name, ...] = Field(default=(), max_length=1000)
    documents: tuple[str, ...] = Field(default=(), max_length=1000)
    kind: Name | None = None
    new_name: Name | None = None
    description: (
        Annotated[str, Field(min_length=1, max_length=editing.LONGEST_DESCRIPTION)] | None
    ) = None

    def change(self) -> editing.Editing:
        """Return the edit to apply. Raises UsageError if fields are missing or contradictory."""
        if self.action == "merge" and self.other:
            return partial(editing.merge, self.name, self.other)
        if self.action == "split" and bool(self.names) != bool(self.documents):
            return partial(editing.split, self.name, self.names, self.documents)
        if self.action == "change" and (self.kind or self.new_name or self.description):
            return partial(editing.change, self.name, self.kind, self.new_name, self.description)
        raise UsageError(
            f"That is no {self.action}: it says too little, or too much.",
            "merge wants other; split names or documents; change kind, new_name or description.",
        )


class ShownEdit(Edit):
    """An edit with its description in words."""

    words: str


@router.get("/edits", tags=["graph"])
async def edits(service: Here, workspace: str = DEFAULT) -> list[ShownEdit]:
    """List the corrections, which every index run applies again."""
    stored = await service.workspaces.read(
        workspace, lambda session: session.generation.edits.edits()
    )
    return [ShownEdit(**dict(edit), words=editing.edit_in_words(edit)) for edit in stored]


@router.post("/edits", tags=["graph"], dependencies=EDIT)
async def edit(body: EditBody, service: Here, workspace: str = DEFAULT) -> editing.EditReport:
    """Correct the graph and publish it."""
    return await service.workspaces.change(
        workspace, lambda runtime: editing.edit(body.change(), runtime)
    )


@router.delete("/edits/{number}", tags=["graph"], dependencies=EDIT)
async def undo(number: int, service: Here, workspace: str = DEFAULT) -> editing.EditReport:
    """Undo a correction and keep later ones."""
    return await service.workspaces.change(workspace, lambda runtime: editing.undo(number, runtime))


# --- feedback ---


class FeedbackBody(Record):
    """A user's rating of an answer; `note` says what it should have been."""

    question: str = Field(min_length=1, max_length=20_000)
    answer: str = Field(max_length=200_000)
    helpful: bool
    note: str = Field(default="", max_length=20_000)
    documents: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    generation: int
    conversation: ConversationId | None = None


@router.post("/feedback", tags=["questions"])
@within_filter
def keep_feedback(body: FeedbackBody, own: Own) -> Feedback:
    """Keep a rating for evaluations, and in your conversation; it replaces an earlier one of the
    same answer.
    """
    name = content_id("fbk", body.question, body.answer, *body.history)
    feedback = Feedback(**body.model_dump(exclude={"conversation"}), id=name, at=utc_now())
    own.service.workspaces.workspace(own.workspace).database.feedback.put(feedback)
    if body.conversation:
        rated = (body.question, body.answer)
        own.store.rate(own.caller.user, body.conversation, rated, body.helpful)
    return feedback


@router.get("/feedback", tags=["questions"])
def feedback(service: Here, workspace: str = DEFAULT) -> list[EvaluationQuestion]:
    """List the rated questions as rows of a question set for `trellis evaluate`."""
    kept = service.workspaces.workspace(workspace).database.feedback.list()
    return [row.as_question for row in kept]
