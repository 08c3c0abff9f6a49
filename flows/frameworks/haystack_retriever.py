"""A retriever for Haystack (extra `haystack`)."""

from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from flows.frameworks.passages import FoundPassage, PassageQuery, afind, find


@component
class TrellisRetriever:
    """Finds passages of a workspace: `TrellisRetriever(workspace="kb", k=5).run(query="…")`.

    Each document has the place of the passage in its `meta`: see `FoundPassage`.
    """

    def __init__(self, **options: Any) -> None:
        """`options` are the fields of `PassageQuery`."""
        self.query = PassageQuery(**options)

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, list[Document]]:
        """Find passages for a question."""
        return {"documents": [_document(passage) for passage in find(query, self.query)]}

    @component.output_types(documents=list[Document])
    async def run_async(self, query: str) -> dict[str, list[Document]]:
        """Find passages for a question without blocking the event loop."""
        return {"documents": [_document(passage) for passage in await afind(query, self.query)]}

    def to_dict(self) -> dict[str, Any]:
        """Return what a pipeline that is saved holds of it."""
        options = self.query.model_dump(mode="json", exclude_defaults=True)
        written: dict[str, Any] = default_to_dict(self, **options)
        return written

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "TrellisRetriever":
        """Make a retriever of what `to_dict` returned."""
        read: TrellisRetriever = default_from_dict(cls, data)
        return read


def _document(passage: FoundPassage) -> Document:
    return Document(id=passage.id, content=passage.text, meta=passage.metadata, score=passage.score)
