"""Dedupe: turn raw mentions into entities and relations, each once (LightRAG, `Dedupe`).

The graph is a pure function of the mentions, of a model's verdicts on near names, and of edits, so
that incremental and full runs agree. All names are resolved each time; records are made only for
what differs from `LastResolution`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from prompts.engine.embedders import Embedder
from prompts.engine.errors import ModelRefused
from prompts.resolve import PAIRS_IN_ONE_CALL, UNDECIDED, Decided, Pair, Resolve
from storage.graph import Edit
from storage.provenance import DocumentName, PairDecision, ResolvedTo
from storage.records import Chunk, DeadLetter, content_id
from tasks.batches import gather_or_cancel
from tasks.resolve.assemble import Given, ResolvedGraph, assemble, edited, entity_id
from tasks.resolve.keys import Resolved
from tasks.resolve.names import Extractions, names_read, open_pairs, resolve
from tasks.retrying import PATIENT
from tasks.step import step


@dataclass(frozen=True)
class LastResolution:
    """The resolution of the last generation; without `places` the whole graph is made anew.

    `documents` are those whose extractions have changed since, `failed` the entities whose
    description is retried, `decisions` the model's, by the hash of pair, model and prompt.
    """

    places: Mapping[DocumentName, ResolvedTo] | None
    documents: Collection[str] = ()
    failed: Collection[str] = ()
    decisions: Mapping[str, PairDecision] = field(default_factory=dict)


@step("dedupe", PATIENT, asks_model=True)
async def dedupe(
    extractions: Extractions,
    chunks: Sequence[Chunk],
    resolver: Resolve,
    edits: Sequence[Edit] = (),
    before: LastResolution | None = None,
    embedder: Embedder | None = None,
) -> ResolvedGraph:
    """Resolve all mentions of a generation into its graph.

    `resolver` decides on names that `embedder` finds near, unless its model is too small for that;
    earlier decisions are reused.
    """
    documents = {chunk.id: chunk.document for chunk in chunks}
    read = names_read(extractions, documents, {chunk.document: chunk.title for chunk in chunks})
    asks = not resolver.is_offline and not resolver.policy.spared("resolve")
    near = open_pairs(read, extractions, documents, embedder) if asks and embedder else []
    pairs = {pair: content_id("dec", resolver.author, pair.model_dump_json()) for _, pair in near}
    known = before.decisions if before else {}
    decided = {
        pair: Decided(same=known[key][0], reason=known[key][1])
        for pair, key in pairs.items()
        if key in known
    }
    asked = [pair for pair in pairs if pair not in decided]
    batches = [asked[at : at + PAIRS_IN_ONE_CALL] for at in range(0, len(asked), PAIRS_IN_ONE_CALL)]
    answers = await gather_or_cancel([_decide(batch, resolver) for batch in batches])
    decided |= {pair: decision for batch, _ in answers for pair, decision in batch.items()}
    resolved, given = edited(
        resolve(read, ((keys, decided.get(pair, UNDECIDED)) for keys, pair in near)), edits
    )
    return replace(
        _graph(extractions, documents, resolved, given, before),
        dead_letters=tuple(letter for _, letter in answers if letter),
        decisions={
            pairs[pair]: (decision.same, decision.reason) for pair, decision in decided.items()
        },
    )


async def _decide(
    pairs: Sequence[Pair], resolver: Resolve
) -> tuple[dict[Pair, Decided], DeadLetter | None]:
    try:
        return dict(zip(pairs, await resolver.run(pairs), strict=True)), None
    except ModelRefused as error:
        item = content_id("prs", *(pair.model_dump_json() for pair in pairs))
        return {}, DeadLetter(item=item, step="resolve", error=error.message, remedy=error.remedy)


def _graph(
    extractions: Extractions,
    documents: Mapping[str, str],
    resolved: Resolved,
    given: Mapping[str, Given],
    before: LastResolution | None,
) -> ResolvedGraph:
    """Make the records of all groups, or of those that may have changed; `documents` by chunk."""
    places = _places(resolved, given)
    size = len({group for group, _ in places.values()})
    if before is None or before.places is None:
        graph = assemble(extractions.extractions(None), documents, resolved, given)
        return replace(graph, size=size, places=places)
    lost, touched = _touched(before, before.places, places)
    naming = {document for (document, _), group in resolved.keys.items() if group in touched}
    chunks = [chunk for chunk, document in documents.items() if document in naming]
    graph = assemble(extractions.extractions(chunks), documents, resolved, given, touched)
    lost_ids, ids = (tuple(sorted(map(entity_id, names))) for names in (lost, touched))
    return replace(graph, size=size, places=places, touched=ids, lost=lost_ids)


def _places(resolved: Resolved, given: Mapping[str, Given]) -> dict[DocumentName, ResolvedTo]:
    """Return the group of each name with all that was decided on it, to be compared later."""
    edits = {group: repr(sorted(fields.items())) for group, fields in given.items()}
    return {
        place: (group, resolved.reasons.get(place, "") + edits.get(group, ""))
        for place, group in resolved.keys.items()
    }


def _touched(
    before: LastResolution,
    earlier: Mapping[DocumentName, ResolvedTo],
    places: Mapping[DocumentName, ResolvedTo],
) -> tuple[set[str], set[str]]:
    """Return the groups that have lost something, and all, old and new, that may differ."""
    changed = set(before.documents)
    lost = {then[0] for at, then in earlier.items() if at[0] in changed or places.get(at) != then}
    new = {now[0] for at, now in places.items() if at[0] in changed or earlier.get(at) != now}
    if before.failed:
        new |= {group for group, _ in places.values() if entity_id(group) in before.failed}
    return lost, lost | new
