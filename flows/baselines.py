"""How do the methods answer that others are compared with?

- direct: a model alone.
- naive: the passages nearest by words and vectors, all of them; SS of GraphRAG's paper.
- ts: map and reduce over the source texts; TS of the same paper.
- hyde: the passages nearest to a hypothetical one (arXiv 2212.10496).
- rq: passages for the rewritten question and its parts (RQ-RAG, arXiv 2404.00610).
"""

from collections.abc import Sequence

from flows.asking_view import View
from flows.by_reports import answered, passages_of, told
from flows.contexts import Context
from flows.searching import searched
from prompts.decompose import Decompose
from prompts.direct import Direct
from prompts.engine.models import Models
from prompts.hypothesize import Hypothesize
from prompts.partial import Offered, Partial
from prompts.reading.claims import plain
from prompts.reading.gist import Gist
from storage.errors import SettingsError
from storage.records import Mode, Passage, RouteDecision
from tasks.decompose import decompose
from tasks.direct import answer_directly
from tasks.evidence import Pool
from tasks.hypothesize import hypothesize
from tasks.partial import Shown, partial_answers, text_of, with_sentences
from tasks.retrieve.search import retrieve
from tasks.route import depth
from tasks.structurize.step import Structured


async def directly(view: View, queries: Sequence[str], models: Models) -> Context:
    """The model's own answer: `ungrounded`, without any citation. Raises SettingsError where there is no model."""
    _need_model("direct", models, models.is_offline("answer"))
    reading = await answer_directly(view.taken, Direct(models))
    empty = Structured("chunk", (), (), Pool((), ()))
    return Context((), empty, _by_mode("direct"), reading=reading)


async def plainly(view: View, queries: Sequence[str], models: Models) -> Context:
    """The nearest passages as they are found: no graph, no filter. A structure that the caller asks for is made."""
    passages = await view.search(queries, depth(view.taken, view.options.k))
    if view.options.structure is not None:
        return await searched(view, passages, models)
    return _of_passages(view, passages, "naive")


async def hypothetically(view: View, queries: Sequence[str], models: Models) -> Context:
    """The passages nearest to a hypothetical one. Raises SettingsError where there is no model to write it."""
    _need_model("hyde", models, models.is_offline("rewrite"))
    text = await hypothesize(view.question, Hypothesize(models))
    documents = view.options.documents
    near = view.session.dense([text], documents, view.embedder)[0]
    best = sorted(near, key=lambda chunk: (-near[chunk], chunk))[: view.options.k]
    chunks = [view.chunk(name) for name in best]
    passages = [
        Passage(document=one.document, title=one.title, chunk=one.id, score=round(near[one.id], 6), text=one.text)
        for one in chunks
    ]
    if not passages:  # an embedder that cannot read the text: by its words
        index = view.session.index.without_graph()
        passages = await retrieve(index, [text], [{}], view.options.k, documents)
    return _of_passages(view, passages, "hyde")


async def by_parts(view: View, queries: Sequence[str], models: Models) -> Context:
    """The passages for the rewritten question, its search queries and its parts, without the graph."""
    parts = [part for part in await decompose(view.taken, [], Decompose(models)) if "{" not in part]
    wanted = list(dict.fromkeys([*queries, *parts]))
    index = view.session.index.without_graph()
    near = view.session.dense(wanted, view.options.documents, view.embedder)
    passages = await retrieve(index, wanted, near, view.options.k, view.options.documents)
    return _of_passages(view, passages, "rq")


async def by_texts(view: View, queries: Sequence[str], models: Models) -> Context:
    """Map and reduce over all texts that the question may look into: it reads everything, and costs as much."""
    only = view.options.documents
    chunks = [chunk for chunk in view.session.index.chunks if only is None or chunk.document in only]
    pool, sentences = with_sentences(Pool((), ()), chunks)
    of_chunk: dict[str, list[tuple[str, int]]] = {}
    for piece in sentences:
        of_chunk.setdefault(pool.places[piece.number].chunk, []).append((text_of(piece), piece.number))
    by_number = {piece.number: piece for piece in sentences}
    offered = {
        chunk.id: Offered(chunk.title, "", [(text, by_number[number]) for text, number in of_chunk[chunk.id]])
        for chunk in chunks
        if chunk.id in of_chunk
    }
    shown = Shown(offered, pool)
    gist = Gist(view.relevance)
    points = await partial_answers(shown, f"{view.question}\n{view.session.number}", gist, Partial(models))
    return Context(
        passages=passages_of(points, shown, view),
        structured=Structured("catalogue", (), (f"{len(chunks)} passages read",), pool),
        route=_by_mode("ts"),
        reading=await answered(points, shown, view, models, gist),
        subquestions=tuple(told(point, shown) for point in points),
    )


def _of_passages(view: View, passages: Sequence[Passage], mode: Mode) -> Context:
    pool = view.pool(passages)
    described = f"{len(passages)} passages"
    return Context(passages, Structured("chunk", tuple(plain(pool.evidence)), (described,), pool), _by_mode(mode))


def _by_mode(mode: Mode) -> RouteDecision:
    return RouteDecision(type="chunk", confidence=1.0, margin=1.0, reason=f"the mode {mode} does not choose")


def _need_model(mode: Mode, models: Models, offline: bool) -> None:
    if offline:
        raise SettingsError("mode", mode, "another mode, or set TRELLIS_LM: a model has to write here")
