"""A retriever for LlamaIndex (extra `llama-index`)."""

from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from flows.frameworks.passages import FoundPassage, PassageQuery, afind, find


class TrellisRetriever(BaseRetriever):
    """Finds passages of a workspace: `TrellisRetriever(workspace="kb", k=5).retrieve("…")`.

    Each node has the place of the passage as metadata: see `FoundPassage`.
    """

    def __init__(self, **options: Any) -> None:
        """`options` are the fields of `PassageQuery`."""
        super().__init__()
        self.query = PassageQuery(**options)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(passage) for passage in find(query_bundle.query_str, self.query)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(passage) for passage in await afind(query_bundle.query_str, self.query)]


def _node(passage: FoundPassage) -> NodeWithScore:
    metadata = passage.metadata
    node = TextNode(
        id_=passage.id,
        text=passage.text,
        metadata=metadata,
        start_char_idx=metadata.get("start"),
        end_char_idx=metadata.get("end"),
        # A model reads the title; places and scores are for the program.
        excluded_llm_metadata_keys=[name for name in metadata if name != "title"],
        excluded_embed_metadata_keys=[name for name in metadata if name != "title"],
    )
    return NodeWithScore(node=node, score=passage.score)
