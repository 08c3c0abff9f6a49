"""What the mentions of each thing add up to: entities, relations and claims, as people edited them.

All of them, or those of the things that a change touches; each is the same either way. An edit is
applied to what the edits before it have made; one whose names no text holds changes nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum

from prompts.text.words import fold, stem
from storage.graph import Edit, GraphRows, Subject
from storage.graph_records import (
    Alias,
    Claim,
    Entity,
    Extraction,
    Mention,
    Occurrence,
    Relation,
    RelationMention,
)
from storage.provenance import DocumentName, PairDecision, ResolvedTo
from storage.records import DeadLetter, content_id
from tasks.resolve.keys import Resolved, main_kind, name_key, qualifier_of

Given = Mapping[
    str, str
]  # what people say a group is: its kind, name and description, where they say one


def edited(resolved: Resolved, edits: Sequence[Edit]) -> tuple[Resolved, Mapping[str, Given]]:
    """The groups after all edits, and what people say of them, by group."""
    if not edits:
        return resolved, {}
    keys, reasons, given = dict(resolved.keys), dict(resolved.reasons), dict[str, Given]()
    by_name: dict[str, set[DocumentName]] = defaultdict(set)
    members: dict[str, set[DocumentName]] = defaultdict(set)
    for place, group in keys.items():
        by_name[place[1]].add(place)
        members[group].add(place)

    def move(places: set[DocumentName], before: str, after: str, reason: str) -> None:
        members[before] -= places
        members[after] |= places
        keys.update(dict.fromkeys(places, after))
        reasons.update(dict.fromkeys(places, reason))

    for edit in edits:
        target, other = (
            _group_of(subject, keys, by_name) for subject in (edit.subject, edit.other)
        )
        if target is None:
            continue
        known = given.get(target, {})
        if edit.action == "change":
            changed = {name: getattr(edit, name) for name in ("kind", "name", "description")}
            given[target] = {
                **known,
                **{name: value for name, value in changed.items() if value is not None},
            }
        elif edit.action == "split":
            leaving = _leaving(edit, members[target])
            first = min((key for _, key in leaving), default="")
            move(leaving, target, f"{first} / {edit.id}", f"split by hand (edit {edit.id})")
        elif other is not None and other != target:
            move(set(members[other]), other, target, f"merged by hand (edit {edit.id})")
            given[target] = {"name": edit.subject.name, **known}
    return Resolved(keys, reasons), given


def _group_of(
    subject: Subject | None,
    keys: Mapping[DocumentName, str],
    by_name: Mapping[str, set[DocumentName]],
) -> str | None:
    """The group that most places of the subject are in."""
    if subject is None:
        return None
    places = by_name.get(name_key(subject.name), set())
    counted = Counter(
        keys[place] for place in places if not subject.documents or place[0] in subject.documents
    )
    return min(counted, key=lambda group: (-counted[group], group)) if counted else None


def _leaving(edit: Edit, places: set[DocumentName]) -> set[DocumentName]:
    """The places that a split takes away; none where nothing would be left."""
    names = {name_key(name) for name in edit.names}
    leaving = {place for place in places if place[1] in names or place[0] in edit.documents}
    return leaving if leaving != places else set()


# --- records --------------------------------------------------------------------------------------


def claims_of(
    extractions: Sequence[Extraction],
    documents: Mapping[str, str],
    keys: Mapping[DocumentName, str],
    wanted: Collection[str] | None,
) -> tuple[Claim, ...]:
    """The claims about the wanted groups (None: all) by id; what two overlapping chunks claim of
    the same words is one. `documents`: by chunk.

    An object that turns out to be the subject is none.
    """
    claims: dict[str, Claim] = {}
    for extraction in extractions:
        document = documents[extraction.chunk]
        for mention in extraction.claims:
            group, of = (
                keys[document, name_key(name)] if name else None
                for name in (mention.subject, mention.object)
            )
            if group is None or not (wanted is None or group in wanted or of in wanted):
                continue
            subject, other = entity_id(group), None if of in (None, group) else entity_id(of)
            words = (
                mention.kind,
                mention.status,
                mention.since or "",
                mention.until or "",
                mention.description,
            )
            place = (document, str(mention.start), str(mention.end))
            name = content_id("clm", subject, other or "", *words, *place)
            claim = Claim.model_validate(
                {**mention._asdict(), "id": name, "subject": subject, "object": other}
            )
            if claim.id not in claims or claim.chunk < claims[claim.id].chunk:
                claims[claim.id] = claim
    return tuple(claims[key] for key in sorted(claims))


_TITLED = ("Mr ", "Mr. ", "Dr ", "Dr. ", "Prof ", "Prof. ", "Professor ", "Sir ")

_Triple = tuple[str, str, str]  # the groups of source and target, and the predicate's key


@dataclass(frozen=True)
class ResolvedGraph(GraphRows):
    """Entities and relations with every place that names them, why names were joined, and claims.

    `evidence` holds, for each entity, the distinct sentences that describe it, in the order of the
    documents, and `statements` the same for each relation that has several. `dead_letters` are
    decisions that a model refused.

    With `touched` these are only the entities of that list which there (still) are, with what
    touches them; of those in `lost` something may have gone. None says that it is all of the graph.
    `names`, by id, are those of entities outside that their relations lead to. `strengths`, by
    relation, are the sums behind the weights. `size` in entities, `places` and `decisions` (a
    model's) are always the whole graph's.
    """

    evidence: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    statements: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dead_letters: tuple[DeadLetter, ...] = ()
    touched: tuple[str, ...] | None = None
    lost: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    places: Mapping[DocumentName, ResolvedTo] = field(default_factory=dict)
    decisions: Mapping[str, PairDecision] = field(default_factory=dict)

    def without_rows(self) -> "ResolvedGraph":
        """What the steps after it need of a graph whose rows are stored."""
        kept = ("touched", "lost", "size", "places", "decisions")
        return ResolvedGraph(**{name: getattr(self, name) for name in kept})


def entity_id(group: str) -> str:
    """The id of the entity that a group of names becomes."""
    return content_id("ent", group)


def assemble(
    extractions: Sequence[Extraction],
    documents: Mapping[str, str],
    resolved: Resolved,
    given: Mapping[str, Given],
    wanted: Collection[str] | None = None,
) -> ResolvedGraph:
    """The records of the wanted groups and of all relations that touch one (None: of everything),
    by their ids.

    `documents`: by chunk. Relation weights are strengths divided by the largest of those there are
    (GraphRAG, section 2.3), so 0 < weight ≤ 1.
    """
    mentions, statements = _sorted(extractions, documents, resolved, wanted)
    ids = {
        group: entity_id(group)
        for group in {*mentions, *(end for triple in statements for end in triple[:2])}
    }
    # fsum is exact, so that the order of the documents cannot change the last digit of a weight.
    strengths = {
        triple: fsum(statement.weight for statement in group)
        for triple, group in statements.items()
    }
    heaviest = max(strengths.values(), default=1.0) or 1.0
    degree = Counter(end for triple in statements for end in triple[:2])
    relations = {
        triple: _relation(triple, group, strengths[triple] / heaviest, ids)
        for triple, group in statements.items()
    }
    entities = [
        _entity(ids[key], of, degree[key], given.get(key, {})) for key, of in mentions.items()
    ]
    return ResolvedGraph(
        entities=tuple(sorted(entities, key=lambda entity: entity.id)),
        aliases=_aliases(mentions, ids, entities, resolved, documents),
        entity_occurrences=_occurrences(
            {
                (ids[key], mention.chunk, mention.start, mention.end)
                for key, of in mentions.items()
                for mention in of
            }
        ),
        relations=tuple(sorted(relations.values(), key=lambda relation: relation.id)),
        relation_occurrences=_occurrences(
            {
                (relations[triple].id, statement.chunk, statement.start, statement.end)
                for triple, of in statements.items()
                for statement in of
            }
        ),
        claims=claims_of(extractions, documents, resolved.keys, wanted),
        evidence={ids[key]: _stated(of, documents) for key, of in mentions.items()},
        statements={
            relations[triple].id: stated
            for triple, of in statements.items()
            if len(of) > 1 and len(stated := _stated(of, documents)) > 1
        },
        strengths={relations[triple].id: strengths[triple] for triple in statements},
    )


def _sorted(
    extractions: Sequence[Extraction],
    documents: Mapping[str, str],
    resolved: Resolved,
    wanted: Collection[str] | None,
) -> tuple[dict[str, list[Mention]], dict[_Triple, list[RelationMention]]]:
    """The mentions of the wanted groups, and the statements that touch one."""
    mentions: dict[str, list[Mention]] = defaultdict(list)
    statements: dict[_Triple, list[RelationMention]] = defaultdict(list)
    keys = resolved.keys
    for extraction in extractions:
        document = documents[extraction.chunk]
        for mention in extraction.mentions:
            group = keys[document, name_key(mention.name)]
            if wanted is None or group in wanted:
                mentions[group].append(mention)
        for statement in extraction.relations:
            source = keys[document, name_key(statement.source)]
            target = keys[document, name_key(statement.target)]
            if source != target and (wanted is None or source in wanted or target in wanted):
                statements[source, target, predicate_key(statement.predicate)].append(statement)
    return mentions, statements


def _stated(
    group: Sequence[Mention] | Sequence[RelationMention], documents: Mapping[str, str]
) -> tuple[str, ...]:
    """What is said of a thing or a relation, each wording once, in the order of the documents."""
    described = (each for each in group if each.description)
    ordered = sorted((documents[each.chunk], each.start, each.description) for each in described)
    return tuple(dict.fromkeys(text for *_, text in ordered))


def _occurrences(places: Iterable[tuple[str, str, int, int]]) -> tuple[Occurrence, ...]:
    return tuple(map(Occurrence._make, sorted(places)))


def _entity(entity: str, mentions: Sequence[Mention], degree: int, given: Given) -> Entity:
    names = Counter(mention.name for mention in mentions)
    name = max(
        names,
        key=lambda name: (
            bool(qualifier_of(name)),
            not name.startswith(_TITLED),
            names[name],
            len(name),
            name,
        ),
    )
    kind = main_kind(Counter(mention.kind for mention in mentions))
    made = {"name": name, "kind": kind, "description": "", **given}
    return Entity(entity, **made, mentions=len(mentions), degree=degree)


def _aliases(
    groups: Mapping[str, Sequence[Mention]],
    ids: Mapping[str, str],
    entities: Sequence[Entity],
    resolved: Resolved,
    documents: Mapping[str, str],
) -> tuple[Alias, ...]:
    shown = {entity.id: entity.name for entity in entities}
    aliases: list[Alias] = []
    for key, mentions in groups.items():
        entity, name = ids[key], shown[ids[key]]
        by_name: dict[str, set[str]] = {}
        for mention in mentions:
            reasons = by_name.setdefault(mention.name, set())
            if reason := resolved.reasons.get((documents[mention.chunk], name_key(mention.name))):
                reasons.add(reason)
        # Of two names that were joined the reason may stand with the one that is shown.
        of_shown = by_name.pop(name, set())
        for other, reasons in by_name.items():
            reason = (
                "" if name_key(other) == name_key(name) else min(reasons or of_shown, default="")
            )
            aliases.append(
                Alias(
                    entity=entity, name=other, reason=reason or "the same name, written differently"
                )
            )
    return tuple(sorted(aliases, key=lambda alias: (alias.entity, alias.name)))


@lru_cache(maxsize=1_000_000)
def predicate_key(predicate: str) -> str:
    """The form under which predicates are compared: folded stems."""
    return " ".join(
        stem(word) for word in fold(predicate).replace("_", " ").replace("/", " ").split()
    )


def _relation(
    triple: _Triple, group: Sequence[RelationMention], weight: float, ids: Mapping[str, str]
) -> Relation:
    source, target, key = ids[triple[0]], ids[triple[1]], triple[2]
    wordings = Counter(statement.predicate for statement in group)
    described = min(
        (
            (len(statement.description), statement.description)
            for statement in group
            if statement.description
        ),
        default=(0, ""),
    )
    return Relation(
        id=content_id("rel", source, target, key),
        source=source,
        target=target,
        predicate=max(wordings, key=lambda wording: (wordings[wording], wording)),
        description=described[1],
        weight=weight,
        count=len(group),
        keys=tuple(sorted({key for statement in group for key in statement.keys})),
    )
