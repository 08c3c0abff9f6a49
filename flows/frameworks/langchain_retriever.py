"""A retriever for LangChain (extra `langchain`)."""

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from flows.frameworks.passages import FoundPassage, PassageQuery, afind, find


class TrellisRetriever(PassageQuery, BaseRetriever):
    """Finds passages of a workspace: `TrellisRetriever(workspace="kb", k=5).invoke("…")`.

    Each document has the place of the passage as metadata: see `FoundPassage`.
    """

    model_config = ConfigDict(extra="forbid")

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_document(passage) for passage in find(query, self)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_document(passage) for passage in await afind(query, self)]


def _document(passage: FoundPassage) -> Document:
    return Document(id=passage.id, page_content=passage.text, metadata=passage.metadata)
