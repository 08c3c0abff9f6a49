"""Assemble the mentions of each group of names into the graph, with edits.

A subset of groups gives the same records as all of them. Each edit is applied to the result of the
edits before it; one whose names no text holds changes nothing.
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
    Fact,
    FactMention,
    Mention,
    Occurrence,
    Relation,
    RelationMention,
)
from storage.provenance import DocumentName, PairDecision, ResolvedTo
from storage.records import DeadLetter, content_id
from tasks.resolve.keys import Resolved, main_kind, name_key, qualifier_of

# The kind, name and description that people gave a group.
Given = Mapping[str, str]


def edited(resolved: Resolved, edits: Sequence[Edit]) -> tuple[Resolved, Mapping[str, Given]]:
    """Return the groups after all edits, and what people gave them."""
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
        target = _group_of(edit.subject, keys, by_name)
        other = _group_of(edit.other, keys, by_name) if edit.other else None
        if target is None:
            continue
        known = given.get(target, {})
        if edit.action == "change":
            fields = {"kind": edit.kind, "name": edit.name, "description": edit.description}
            changed = {name: value for name, value in fields.items() if value is not None}
            given[target] = {**known, **changed}
        elif edit.action == "split":
            leaving = _leaving(edit, members[target])
            first = min((key for _, key in leaving), default="")
            move(leaving, target, f"{first} / {edit.id}", f"split by hand (edit {edit.id})")
        elif other is not None and other != target:
            move(set(members[other]), other, target, f"merged by hand (edit {edit.id})")
            given[target] = {"name": edit.subject.name, **known}
    return Resolved(keys, reasons), given


def _group_of(
    subject: Subject, keys: Mapping[DocumentName, str], by_name: Mapping[str, set[DocumentName]]
) -> str | None:
    places = by_name.get(name_key(subject.name), set())
    counted = Counter(
        keys[place] for place in places if not subject.documents or place[0] in subject.documents
    )
    return min(counted, key=lambda group: (-counted[group], group)) if counted else None


def _leaving(edit: Edit, places: set[DocumentName]) -> set[DocumentName]:
    """Return the places that a split takes away: not all, for then nothing would be left."""
    names = {name_key(name) for name in edit.names}
    leaving = {place for place in places if place[1] in names or place[0] in edit.documents}
    return leaving if leaving != places else set()


# --- records ---


def claims_of(
    extractions: Sequence[Extraction],
    documents: Mapping[str, str],
    keys: Mapping[DocumentName, str],
    wanted: Collection[str] | None,
) -> tuple[Claim, ...]:
    """Return the claims about the wanted groups (None: all), by id; `documents` by chunk.

    The same words claimed in two overlapping chunks are one claim. An object that turns out to be
    the subject is dropped.
    """
    claims: dict[str, Claim] = {}
    for extraction in extractions:
        document = documents[extraction.chunk]
        for mention in extraction.claims:
            group = keys[document, name_key(mention.subject)]
            of = keys[document, name_key(mention.object)] if mention.object else None
            if not (wanted is None or group in wanted or of in wanted):
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


def facts_of(
    extractions: Sequence[Extraction],
    documents: Mapping[str, str],
    keys: Mapping[DocumentName, str],
    wanted: Collection[str] | None,
) -> tuple[Fact, ...]:
    """Return the typed facts about the wanted groups (None: all), by id; `documents` by chunk.

    The same words in two overlapping chunks are one fact. A relation whose ends turn out to be one
    thing is dropped.
    """
    facts: dict[str, Fact] = {}
    for extraction in extractions:
        document = documents[extraction.chunk]
        for mention in extraction.facts:
            group = keys[document, name_key(mention.subject)]
            of = keys[document, name_key(mention.object)] if mention.object else None
            if of == group or not (wanted is None or group in wanted or of in wanted):
                continue
            subject, other = entity_id(group), None if of is None else entity_id(of)
            said = other or _said(mention)
            time = (mention.valid_from or "", mention.valid_to or "")
            place = (document, str(mention.start), str(mention.end))
            name = content_id("fct", subject, mention.type, said, *time, *place)
            own = mention._asdict() | {"id": name, "subject": subject, "object": other}
            if name not in facts or mention.chunk < facts[name].chunk:
                facts[name] = Fact(**own, said=said)
    return tuple(facts[key] for key in sorted(facts))


def _said(mention: FactMention) -> str:
    """Return what an attribute says of its subject, the same for every wording."""
    if mention.number is not None:
        return f"{mention.number:.12g} {mention.unit}"
    if mention.yes is not None:
        return str(mention.yes)
    return mention.day or " ".join(fold(mention.value).split())


_TITLED = ("Mr ", "Mr. ", "Dr ", "Dr. ", "Prof ", "Prof. ", "Professor ", "Sir ")

_Triple = tuple[str, str, str]  # the groups of source and target, the key of the predicate


@dataclass(frozen=True)
class ResolvedGraph(GraphRows):
    """Entities, relations and claims, every place that names them, and why names were joined.

    `evidence` holds the distinct sentences that describe each entity, in the order of documents;
    `statements` the same for each relation that has several. `dead_letters` are decisions that a
    model refused.

    With `touched`, the rows are only those of these entities, as far as they still exist; entities
    in `lost` may have lost something. Without it, they are the whole graph. `names` holds those of
    other entities that the relations lead to. `size` (in entities), `places` and the `decisions`
    of the model always cover the whole graph.
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
        """Return what later steps need of a graph whose rows are stored."""
        return ResolvedGraph(
            touched=self.touched,
            lost=self.lost,
            size=self.size,
            places=self.places,
            decisions=self.decisions,
        )


def entity_id(group: str) -> str:
    """Return the id of the entity that a group of names becomes."""
    return content_id("ent", group)


def assemble(
    extractions: Sequence[Extraction],
    documents: Mapping[str, str],
    resolved: Resolved,
    given: Mapping[str, Given],
    wanted: Collection[str] | None = None,
) -> ResolvedGraph:
    """Make the records of the wanted groups (None: all) and of all relations that touch them.

    `documents` by chunk. The weight of a relation, in (0, 1], is its strength divided by the
    largest strength among these (GraphRAG, section 2.3).
    """
    mentions, statements = _grouped(extractions, documents, resolved.keys, wanted)
    degree = Counter(end for triple in statements for end in triple[:2])
    ids = {group: entity_id(group) for group in {*mentions, *degree}}
    # fsum is exact: the order of documents cannot change the last digit of a weight.
    strengths = {
        triple: fsum(statement.weight for statement in group)
        for triple, group in statements.items()
    }
    heaviest = max(strengths.values(), default=1.0) or 1.0
    relations = {
        triple: _relation(triple, group, strengths[triple] / heaviest, ids)
        for triple, group in statements.items()
    }
    typed = _kinds_of_facts(extractions, documents, resolved.keys)
    entities = [
        _entity(ids[key], of, degree[key], given.get(key, {}), typed.get(key, Counter()))
        for key, of in mentions.items()
    ]
    return ResolvedGraph(
        entities=tuple(sorted(entities, key=lambda entity: entity.id)),
        aliases=_aliases(mentions, ids, entities, resolved, documents),
        entity_occurrences=_occurrences((ids[key], of) for key, of in mentions.items()),
        relations=tuple(sorted(relations.values(), key=lambda relation: relation.id)),
        relation_occurrences=_occurrences(
            (relations[triple].id, of) for triple, of in statements.items()
        ),
        claims=claims_of(extractions, documents, resolved.keys, wanted),
        facts=facts_of(extractions, documents, resolved.keys, wanted),
        evidence={ids[key]: _stated(of, documents) for key, of in mentions.items()},
        statements={
            relations[triple].id: stated
            for triple, of in statements.items()
            if len(stated := _stated(of, documents)) > 1
        },
        strengths={relations[triple].id: strengths[triple] for triple in statements},
    )


def _grouped(
    extractions: Sequence[Extraction],
    documents: Mapping[str, str],
    keys: Mapping[DocumentName, str],
    wanted: Collection[str] | None,
) -> tuple[dict[str, list[Mention]], dict[_Triple, list[RelationMention]]]:
    """Return the mentions of each wanted group, and the statements of each triple with one."""
    mentions: dict[str, list[Mention]] = defaultdict(list)
    statements: dict[_Triple, list[RelationMention]] = defaultdict(list)
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
    ordered = sorted(
        (documents[each.chunk], each.start, each.description) for each in group if each.description
    )
    return tuple(dict.fromkeys(text for *_, text in ordered))


def _occurrences(
    groups: Iterable[tuple[str, Sequence[Mention] | Sequence[RelationMention]]],
) -> tuple[Occurrence, ...]:
    places = {(item, of.chunk, of.start, of.end) for item, group in groups for of in group}
    return tuple(Occurrence(*place) for place in sorted(places))


def _kinds_of_facts(
    extractions: Sequence[Extraction],
    documents: Mapping[str, str],
    keys: Mapping[DocumentName, str],
) -> dict[str, Counter[str]]:
    """Count for each group the kinds that its typed facts show it to have."""
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for extraction in extractions:
        document = documents[extraction.chunk]
        for fact in extraction.facts:
            kinds[keys[document, name_key(fact.subject)]][fact.kind] += 1
            if fact.object:
                kinds[keys[document, name_key(fact.object)]][fact.object_kind] += 1
    return kinds


def _entity(
    entity: str, mentions: Sequence[Mention], degree: int, given: Given, typed: Counter[str]
) -> Entity:
    names = Counter(mention.name for mention in mentions)

    def rank(name: str) -> tuple[bool, bool, int, int, str]:
        is_plain = not name.startswith(_TITLED)
        return bool(qualifier_of(name)), is_plain, names[name], len(name), name

    kind = main_kind(Counter(mention.kind for mention in mentions) + typed)
    made = {"name": max(names, key=rank), "kind": kind, "description": "", **given}
    return Entity(entity, **made, mentions=len(mentions), degree=degree)


def _aliases(
    groups: Mapping[str, Sequence[Mention]],
    ids: Mapping[str, str],
    entities: Sequence[Entity],
    resolved: Resolved,
    documents: Mapping[str, str],
) -> tuple[Alias, ...]:
    """Return the other names of each entity, and why they joined it."""
    shown = {entity.id: entity.name for entity in entities}
    aliases: list[Alias] = []
    for group, mentions in groups.items():
        entity, name = ids[group], shown[ids[group]]
        reasons: dict[str, set[str]] = defaultdict(set)
        for mention in mentions:
            place = documents[mention.chunk], name_key(mention.name)
            reasons[mention.name].add(resolved.reasons.get(place, ""))
        # The reason for joining two names may stand with the one that is shown.
        of_shown = reasons.pop(name, set())
        for other, own in reasons.items():
            joined = name_key(other) != name_key(name)
            known = sorted(filter(None, own)) or sorted(filter(None, of_shown))
            reason = known[0] if joined and known else "the same name, written differently"
            aliases.append(Alias(entity=entity, name=other, reason=reason))
    return tuple(sorted(aliases, key=lambda alias: (alias.entity, alias.name)))


@lru_cache(maxsize=1_000_000)
def predicate_key(predicate: str) -> str:
    """Return the form under which predicates are compared: their folded stems."""
    words = fold(predicate).replace("_", " ").replace("/", " ").split()
    return " ".join(map(stem, words))


def _relation(
    triple: _Triple, group: Sequence[RelationMention], weight: float, ids: Mapping[str, str]
) -> Relation:
    source, target, key = ids[triple[0]], ids[triple[1]], triple[2]
    wordings = Counter(statement.predicate for statement in group)
    descriptions = (statement.description for statement in group if statement.description)
    return Relation(
        id=content_id("rel", source, target, key),
        source=source,
        target=target,
        predicate=max(wordings, key=lambda wording: (wordings[wording], wording)),
        description=min(descriptions, key=lambda text: (len(text), text), default=""),
        weight=weight,
        count=len(group),
        keys=tuple(sorted({key for statement in group for key in statement.keys})),
    )
