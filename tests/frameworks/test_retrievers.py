"""The retrievers of LangChain, LlamaIndex and Haystack give the passages of `trellis retrieve`."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from flows.frameworks.passages import FoundPassage, PassageQuery, afind, find
from storage.errors import NoGeneration, NothingMatches
from storage.workspace import Workspace
from tests.workspaces import indexed

QUESTION = "Who designed Orla Bridge?"
ROWS = (
    {
        "id": "bridge",
        "title": "Orla Bridge",
        "text": "Orla Bridge was designed by Tomas Reyd. It opened in 1931.",
        "year": 1931,
    },
    {"id": "copy", "title": "Orla Bridge again", "text": "Orla Bridge was painted in 1950."},
    {
        "id": "桥",
        "title": "奥拉桥",
        "text": "奥拉桥(Orla Bridge)于1931年通车,设计者是托马斯·雷德。",
    },
)
WRONG: dict[str, Any] = {"wokspace": "kb"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return indexed(tmp_path_factory.mktemp("retrieved"), ROWS)


@pytest.fixture(autouse=True)
def _unembedded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")


def expected(workspace: Path, **options: Any) -> list[FoundPassage]:
    return find(QUESTION, PassageQuery(workspace=workspace, **options))


def test_a_passage_is_where_its_metadata_says(workspace: Path) -> None:
    found = expected(workspace)
    with Workspace(workspace).read() as generation:
        texts = {it.id: it.text for it in generation.documents.texts()}
    assert {passage.metadata["document"] for passage in found} == {"bridge", "copy", "桥"}
    for passage in found:
        its = passage.metadata
        start, end = int(str(its["start"])), int(str(its["end"]))
        assert texts[str(its["document"])][start:end] == passage.text
    assert {its.metadata["document"]: its.metadata.get("year") for its in found}["bridge"] == 1931


def test_a_search_keeps_to_its_options(workspace: Path) -> None:
    assert len(expected(workspace, k=1)) == 1
    (only,) = expected(workspace, where="year >= 1900")
    assert only.metadata["document"] == "bridge"
    (named,) = expected(workspace, documents=["桥"], mode="naive")
    assert named.metadata["document"] == "桥"
    with pytest.raises(NothingMatches):
        expected(workspace, where="year >= 2000")
    with pytest.raises(ValueError, match="wokspace"):
        PassageQuery(**WRONG)


def test_a_folder_without_an_index_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoGeneration):
        asyncio.run(afind(QUESTION, PassageQuery(workspace=tmp_path / "none")))


def test_langchain_gets_documents_with_their_places(workspace: Path) -> None:
    pytest.importorskip("langchain_core", reason="needs the extra langchain")
    from flows.frameworks.langchain_retriever import TrellisRetriever

    retriever = TrellisRetriever(workspace=workspace, k=2)
    found = retriever.invoke(QUESTION)
    wanted = [(it.id, it.text, it.metadata) for it in expected(workspace, k=2)]
    assert [(it.id, it.page_content, it.metadata) for it in found] == wanted
    assert asyncio.run(retriever.ainvoke(QUESTION)) == found
    chain = retriever | (lambda documents: [it.metadata["document"] for it in documents])
    assert chain.invoke(QUESTION) == [metadata["document"] for _, _, metadata in wanted]
    with pytest.raises(ValueError, match="wokspace"):
        TrellisRetriever(**WRONG)


def test_llama_index_gets_nodes_with_their_places(workspace: Path) -> None:
    pytest.importorskip("llama_index.core", reason="needs the extra llama-index")
    from llama_index.core.schema import MetadataMode

    from flows.frameworks.llama_index_retriever import TrellisRetriever

    retriever = TrellisRetriever(workspace=workspace, k=2)
    found = retriever.retrieve(QUESTION)
    wanted = [(it.id, it.text, it.metadata, it.score) for it in expected(workspace, k=2)]
    assert [(it.node_id, it.text, it.metadata, it.score) for it in found] == wanted
    first = found[0].node
    assert (first.start_char_idx, first.end_char_idx) == (
        wanted[0][2]["start"],
        wanted[0][2]["end"],
    )
    shown = first.get_content(MetadataMode.LLM)
    assert f"title: {wanted[0][2]['title']}" in shown
    assert "score" not in shown
    again = asyncio.run(retriever.aretrieve(QUESTION))
    assert [it.node_id for it in again] == [it.node_id for it in found]


def test_haystack_gets_documents_with_their_places(workspace: Path) -> None:
    haystack = pytest.importorskip("haystack", reason="needs the extra haystack")
    from flows.frameworks.haystack_retriever import TrellisRetriever

    pipeline = haystack.Pipeline()
    pipeline.add_component("retriever", TrellisRetriever(workspace=str(workspace), k=2))
    wanted = [(it.id, it.text, it.metadata, it.score) for it in expected(workspace, k=2)]
    asked = {"retriever": {"query": QUESTION}}
    loaded = haystack.Pipeline.loads(
        pipeline.dumps(), allowed_modules=[TrellisRetriever.__module__]
    )
    for result in (asyncio.run(pipeline.run_async(asked)), loaded.run(asked)):
        found = result["retriever"]["documents"]
        assert [(it.id, it.content, it.meta, it.score) for it in found] == wanted
