"""Dedupe: from raw mentions to entities and relations, each thing and each statement once (LightRAG `Dedupe`).

A pure function of the mentions, of the decisions on similar names and of what people edited: no order, no history, so
that an incremental run and a full one agree. Which names mean the same is decided in `tasks.resolve`, always for all of
them; the records that follow from it are made only for what differs from `LastResolution`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from prompts.engine.errors import ModelRefused
from prompts.resolve import PAIRS_IN_ONE_CALL, Decided, Pair, Resolve
from storage.graph import Edit
from storage.provenance import DocumentName, PairDecision, ResolvedTo
from storage.records import Chunk, DeadLetter, content_id
from tasks.batches import gather_or_cancel
from tasks.resolve.assemble import Given, ResolvedGraph, assemble, edited, entity_id
from tasks.resolve.keys import Resolved
from tasks.resolve.mentions import Extractions
from tasks.resolve.rules import Prepared, prepare, resolve
from tasks.retrying import PATIENT
from tasks.step import step


@dataclass(frozen=True)
class LastResolution:
    """The resolution of the last generation; `documents` are those with extractions that came, went or changed.

    `places` None: the whole graph is made anew. `failed` are entities whose description is to be tried again,
    `decisions` a model's, by the hash of pair, model and prompt.
    """

    places: Mapping[DocumentName, ResolvedTo] | None
    documents: Collection[str] = ()
    failed: Collection[str] = ()
    decisions: Mapping[str, PairDecision] = field(default_factory=dict)


def _prepared(extractions: Extractions, chunks: Mapping[str, Chunk]) -> Prepared:
    documents = {chunk.id: chunk.document for chunk in chunks.values()}
    written = {chunk.document for chunk in chunks.values() if chunk.kind != "triples"}
    titles = {chunk.document: chunk.title for chunk in chunks.values()}
    return prepare(extractions, documents, titles, exact=titles.keys() - written)


def _graph(
    extractions: Extractions,
    prepared: Prepared,
    decided: Mapping[Pair, Decided],
    edits: Sequence[Edit],
    before: LastResolution | None,
) -> ResolvedGraph:
    resolved, given = edited(resolve(prepared, decided), edits)
    places = _places(resolved, given)
    touched = None if before is None or before.places is None else _touched(before, before.places, places)
    wanted = touched[1] if touched else None
    found = extractions.extractions(_naming(wanted, resolved, prepared.documents))
    graph = assemble(found, prepared.documents, resolved, given, wanted)
    graph = replace(graph, size=len({group for group, _ in places.values()}), places=places)
    if touched is None:
        return graph
    lost, groups = (tuple(sorted(map(entity_id, names))) for names in touched)
    return replace(graph, touched=groups, lost=lost)


def _places(resolved: Resolved, given: Mapping[str, Given]) -> dict[DocumentName, ResolvedTo]:
    """Where each name went and all that was decided on it: what differs here is what changed."""
    written = {group: repr(sorted(fields.items())) for group, fields in given.items()}
    return {
        place: (group, resolved.reasons.get(place, "") + written.get(group, ""))
        for place, group in resolved.keys.items()
    }


def _naming(groups: Collection[str] | None, resolved: Resolved, documents: Mapping[str, str]) -> list[str] | None:
    """The chunks of documents that name one of the groups (None: all); `documents` by chunk."""
    if groups is None:
        return None
    naming = {document for (document, _), group in resolved.keys.items() if group in groups}
    return [chunk for chunk, document in documents.items() if document in naming]


def _touched(
    before: LastResolution, earlier: Mapping[DocumentName, ResolvedTo], places: Mapping[DocumentName, ResolvedTo]
) -> tuple[set[str], set[str]]:
    """The groups that something was taken from, and all, of then and of now, that may differ."""
    lost = {then[0] for place, then in earlier.items() if place[0] in before.documents or places.get(place) != then}
    groups = lost | {
        went[0] for place, went in places.items() if place[0] in before.documents or earlier.get(place) != went
    }
    if before.failed:
        groups |= {group for group, _ in places.values() if entity_id(group) in before.failed}
    return lost, groups


@step("dedupe", PATIENT, asks_model=True)
async def dedupe(
    extractions: Extractions,
    chunks: Sequence[Chunk],
    resolver: Resolve,
    edits: Sequence[Edit] = (),
    before: LastResolution | None = None,
) -> ResolvedGraph:
    """Resolve all mentions of a generation into its graph; `resolver` decides on similar names.

    What a model decided `before` is not asked again.
    """
    prepared = _prepared(extractions, {chunk.id: chunk for chunk in chunks})
    known = before.decisions if before else {}
    pairs = {pair: content_id("dec", resolver.author, pair.model_dump_json()) for _, pair in prepared.open}
    decided = {pair: Decided(same=known[key][0], reason=known[key][1]) for pair, key in pairs.items() if key in known}
    open_ones = [pair for pair in pairs if pair not in decided]
    batches = [open_ones[at : at + PAIRS_IN_ONE_CALL] for at in range(0, len(open_ones), PAIRS_IN_ONE_CALL)]
    answers = await gather_or_cancel([_decide(batch, resolver) for batch in batches])
    decided |= {pair: decision for batch, _ in answers for pair, decision in batch.items()}
    graph = _graph(extractions, prepared, decided, edits, before)
    asked = {} if resolver.is_offline else decided
    decisions = {pairs[pair]: (decision.same, decision.reason) for pair, decision in asked.items()}
    letters = tuple(letter for _, letter in answers if letter)
    return replace(graph, dead_letters=letters, decisions=decisions)


async def _decide(pairs: Sequence[Pair], resolver: Resolve) -> tuple[dict[Pair, Decided], DeadLetter | None]:
    """The decisions; none, which joins nothing, and a dead letter where the model refuses."""
    try:
        return dict(zip(pairs, await resolver.run(pairs), strict=True)), None
    except ModelRefused as error:
        item = content_id("prs", *(pair.model_dump_json() for pair in pairs))
        return {}, DeadLetter(item=item, step="resolve", error=error.message, remedy=error.remedy)
