"""Baselines that the other methods are compared with.

- naive: the nearest passages by words and vectors, all of them; SS of GraphRAG's paper.
- ts: map and reduce over the source texts; TS of the same paper.
- hyde: the passages nearest to a hypothetical one (arXiv 2212.10496).
- rq: passages for the rewritten question and its parts (RQ-RAG, arXiv 2404.00610).
- direct: a model alone.
"""

from collections.abc import Sequence
from dataclasses import replace

from flows.modes.global_search import result_of
from flows.modes.query_mode import QueryMode
from flows.question import ModeResult, PassageSearch, Resources
from prompts.answer import Direct
from prompts.decompose import Decompose, needs
from prompts.read_reports import Offered, Partial
from prompts.rewrite import Hypothesize
from prompts.text.relevance import CollectionTopic
from storage.answer_records import Mode, Passage
from storage.errors import UsageError
from storage.records import by_key
from tasks.answer import AnswerContext, answer_directly
from tasks.decompose import decompose
from tasks.read_reports.points import ReportTexts, partial_answers, text_of, with_sentences
from tasks.retrieve.search import retrieve
from tasks.rewrite import hypothesize


async def nearest(resources: Resources, k: int) -> list[Passage]:
    """Find the nearest passages by words and vectors."""
    return await resources.search.passages(resources.question.queries, k, graph=False)


async def naive(resources: Resources) -> ModeResult:
    """Take the nearest passages without graph or filter."""
    search = resources.search
    passages = await nearest(resources, search.candidates(search.depth))
    reranked = await search.reranked(resources.question.text, passages, search.depth)
    return replace(_of_passages(reranked.passages, search), reranking=reranked.trace)


async def hyde(resources: Resources) -> ModeResult:
    """Find the passages nearest to a hypothetical one. Raises UsageError without a model."""
    question, search, models = resources.question, resources.search, resources.models
    _need_model("hyde", models.is_offline("rewrite"))
    text = await hypothesize(question.text, Hypothesize(models))
    near = search.cosines(text)
    best = sorted(near, key=lambda chunk: (-near[chunk], chunk))[: search.depth]
    passages = [search.passage(name, near[name]) for name in best]
    if not passages:  # the embedder cannot read the text: search by its words
        passages = await retrieve(
            search.index.without_graph(), [text], [{}], search.depth, question.only
        )
    return _of_passages(passages, search)


async def rewritten(resources: Resources) -> ModeResult:
    """Find passages for the rewritten question, its queries and its parts, without the graph."""
    question, search, models = resources.question, resources.search, resources.models
    parts = await decompose(question.text, [], question.plain, Decompose(models), wanted=True)
    wanted = list(dict.fromkeys([*question.queries, *(part for part in parts if not needs(part))]))
    return _of_passages(await search.passages(wanted, search.depth, graph=False), search)


async def source_texts(resources: Resources) -> ModeResult:
    """Map and reduce over all texts that the question may look into, at that cost."""
    question, search, models = resources.question, resources.search, resources.models
    only = question.only
    chunks = [chunk for chunk in search.index.chunks if only is None or chunk.document in only]
    pool, sentences = with_sentences([], chunks)
    by_chunk = by_key((piece.chunk, (text_of(piece), piece)) for piece in sentences)
    offered = {
        chunk.id: Offered(chunk.title, "", by_chunk[chunk.id])
        for chunk in chunks
        if chunk.id in by_chunk
    }
    texts, topic = ReportTexts(offered, pool), CollectionTopic(question.relevance)
    points = await partial_answers(texts, question.text, topic, Partial(models))
    return result_of(points, texts, topic, search, f"{len(chunks)} passages read")


async def direct(resources: Resources) -> ModeResult:
    """Ask the model alone: `ungrounded`, without citations. Raises UsageError without a model."""
    _need_model("direct", resources.models.is_offline("answer"))
    stated = await answer_directly(resources.question.text, Direct(resources.models))
    return ModeResult(AnswerContext(()), stated=stated)


def _of_passages(passages: Sequence[Passage], search: PassageSearch) -> ModeResult:
    return ModeResult(AnswerContext(search.sources(passages)), passages)


def _need_model(mode: Mode, offline: bool) -> None:
    if offline:
        raise UsageError(
            f"Mode {mode} needs a model that writes, and none is set.",
            "Set TRELLIS_LM, or use mode auto, which needs none.",
        )


NAIVE = QueryMode("naive", naive, retrieve=nearest)
HYDE = QueryMode("hyde", hyde)
RQ = QueryMode("rq", rewritten)
TS = QueryMode("ts", source_texts)
DIRECT = QueryMode("direct", direct)
