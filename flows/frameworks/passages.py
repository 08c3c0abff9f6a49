"""The search of a workspace as retrievers of other frameworks offer it."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from flows.query import retrieve_passages
from flows.question import AUTO, LISTED, AskOptions
from flows.session import SESSIONS, Session
from prompts.engine.bridge import waiting
from storage.answer_records import Effort, Mode, Passage
from storage.records import Record, Scalar

Metadata = dict[str, Scalar | list[str]]


class FoundPassage(Record):
    """A passage and where it stands: `text` is `[start:end]` of the stored text of `document`.

    `metadata` has document, title, start, end, page, heading, score and `also`, the other documents
    with the same text, beside what the source says of the document. A page from outside the index
    has no `start` and `end`.
    """

    id: str
    text: str
    score: float
    metadata: Metadata


class PassageQuery(BaseModel):
    """How passages are searched for: the options of `ask` that a search has.

    The workspace (None: that of the settings) is opened by the first question and stays open; the
    retriever follows each new generation, unless `as_of` names one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    workspace: str | Path | None = None
    """The folder of state."""
    k: int = Field(default=LISTED, ge=1, le=100)
    """How many passages."""
    mode: Mode = AUTO
    """The mode whose search is used."""
    documents: tuple[str, ...] | None = None
    """Search only the documents with these ids."""
    where: str | None = None
    """Search only the documents that pass this filter, for example: year >= 2020."""
    as_of: int | None = Field(default=None, ge=1)
    """The number of an older generation."""
    effort: Effort | None = None
    """How much work the models do."""


async def afind(question: str, query: PassageQuery) -> list[FoundPassage]:
    """Return the best passages for a question, best first.

    Raises TrellisError (no index, unknown document, a filter that nothing meets) and EngineError.
    """
    options = AskOptions(
        mode=query.mode,
        k=query.k,
        documents=query.documents,
        where=() if query.where is None else (query.where,),
        effort=query.effort,
    )
    async with SESSIONS.use(query.workspace, query.as_of) as session:
        found = await retrieve_passages(question, options, session)
        return [_found(passage, session) for passage in found.passages]


find = waiting(afind)


def _found(passage: Passage, session: Session) -> FoundPassage:
    own: Metadata = {
        "document": passage.document,
        "title": passage.title,
        "score": passage.score,
        "also": list(passage.also),
    }
    if passage.chunk not in session.index.position:
        return FoundPassage(id=passage.chunk, text=passage.text, score=passage.score, metadata=own)
    chunk = session.index.chunk(passage.chunk)
    document = session.documents([chunk.document])[chunk.document]
    own |= {
        "start": chunk.start,
        "end": chunk.end,
        "page": document.page_of(chunk.start),
        "heading": chunk.heading,
    }
    return FoundPassage(
        id=chunk.id, text=chunk.text, score=passage.score, metadata={**document.metadata, **own}
    )
