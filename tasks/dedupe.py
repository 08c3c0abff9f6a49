"""Which mentions speak of the same thing? From raw mentions to entities and relations (LightRAG `Dedupe`).

A pure function of the mentions: no order, no history, so that an incremental run and a full one agree. Names are compared
folded; an alias that a text states ("A, also known as B", 中文(English)) joins two names; a surname joins the one full name
in its document. Titles that differ only in brackets ("Mercury (planet)", "Mercury (element)") stay apart.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prompts.extract import ALIAS_PREDICATE
from prompts.language.words import fold, fold_name, stem
from storage.records import (
    Alias, Chunk, Entity, Extraction, Mention, Occurrence, Record, Relation, RelationMention, content_id,
)  # fmt: skip
from tasks.step import step

_HONORIFICS = {"mr", "dr", "prof", "professor", "sir"}
_STRONG_KINDS = {"person", "organisation", "place"}


class Graph(Record):
    """Entities and relations with every place that names them, and why names were joined.

    `evidence` holds, for each entity, the distinct sentences that describe it, in the order of the documents.
    """

    entities: tuple[Entity, ...]
    aliases: tuple[Alias, ...]
    entity_occurrences: tuple[Occurrence, ...]
    relations: tuple[Relation, ...]
    relation_occurrences: tuple[Occurrence, ...]
    evidence: dict[str, tuple[str, ...]]


def name_key(name: str) -> str:
    """The key of a name; a bracketed qualifier counts ("mercury (planet)"), an honorific does not."""
    bare = fold_name(name)
    words = bare.split()
    if len(words) > 1 and words[0] in _HONORIFICS:
        bare = " ".join(words[1:])
    qualifier = _qualifier(name)
    return f"{bare} ({qualifier})" if qualifier else bare


def _qualifier(name: str) -> str:
    """The folded content of the bracket that ends a name, or nothing."""
    if not name.endswith((")", "）")):
        return ""
    opening = max(name.rfind("("), name.rfind("（"))
    return " ".join(fold(name[opening + 1 : -1]).split()) if opening > 0 else ""


@dataclass(slots=True)
class _Joined:
    """Union-find over keys, with the reason of every union; the least key of a group leads it."""

    leader: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def find(self, key: str) -> str:
        root = key
        while self.leader.get(root, root) != root:
            root = self.leader[root]
        while self.leader.get(key, key) != root:
            self.leader[key], key = root, self.leader[key]
        return root

    def join(self, first: str, second: str, reason: str) -> None:
        low, high = sorted((self.find(first), self.find(second)))
        if low != high:
            self.leader[high] = low
        self.reasons.setdefault(first, reason)
        self.reasons.setdefault(second, reason)


@dataclass(frozen=True, slots=True)
class _Resolved:
    """Where each mention went: (document, key) → key of the group, and why where it was not the name itself."""

    keys: Mapping[tuple[str, str], str]
    reasons: Mapping[tuple[str, str], str]


def _keys_by_document(
    extractions: Iterable[Extraction], documents: Mapping[str, str]
) -> tuple[dict[str, Counter[str]], dict[str, Counter[str]]]:
    """For each document its keys with counts, and for each key its kinds with counts."""
    keys: dict[str, Counter[str]] = defaultdict(Counter)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for extraction in extractions:
        for mention in extraction.mentions:
            key = name_key(mention.name)
            keys[documents[extraction.chunk]][key] += 1
            kinds[key][mention.kind] += 1
    return keys, kinds


def _kind(counts: Counter[str]) -> str:
    """The most frequent specific kind; "thing" only where nothing else was seen."""
    named = [(count, kind) for kind, count in counts.items() if kind != "thing"]
    return max(named)[1] if named else "thing"


def resolve(extractions: Sequence[Extraction], chunks: Mapping[str, Chunk]) -> _Resolved:
    """Decide the group of every (document, key)."""
    documents = {chunk.id: chunk.document for chunk in chunks.values()}
    by_document, kinds = _keys_by_document(extractions, documents)
    joined = _Joined()
    for source, target in _stated_aliases(extractions):
        if not _conflict(kinds[source], kinds[target]):
            joined.join(source, target, "the text states that both names mean the same")
    qualified = _qualified_titles(by_document)
    titles = {chunk.document: name_key(chunk.title) for chunk in chunks.values()}
    titled = set(titles.values())
    keys: dict[tuple[str, str], str] = {}
    reasons: dict[tuple[str, str], str] = {}
    for document, counted in by_document.items():
        full_names = _full_names(counted, kinds)
        for key in counted:
            target, reason = _target(key, titles.get(document, ""), qualified, full_names, kinds, titled)
            if target != key:
                reasons[document, key] = reason
            elif key in joined.reasons:
                reasons[document, key] = joined.reasons[key]
            keys[document, key] = joined.find(target)
    return _Resolved(keys, reasons)


def _conflict(first: Counter[str], second: Counter[str]) -> bool:
    one, two = _kind(first), _kind(second)
    return one != two and one in _STRONG_KINDS and two in _STRONG_KINDS


def _stated_aliases(extractions: Iterable[Extraction]) -> list[tuple[str, str]]:
    pairs = {
        (name_key(relation.source), name_key(relation.target))
        for extraction in extractions
        for relation in extraction.relations
        if relation.predicate == ALIAS_PREDICATE
    }
    return sorted(pair for pair in pairs if pair[0] != pair[1])


def _qualified_titles(by_document: Mapping[str, Counter[str]]) -> dict[str, list[str]]:
    """Bare key → the keys that add a qualifier to it."""
    found: dict[str, set[str]] = defaultdict(set)
    for counted in by_document.values():
        for key in counted:
            if key.endswith(")"):
                found[key[: key.rindex(" (")]].add(key)
    return {bare: sorted(keys) for bare, keys in found.items()}


def _full_names(counted: Counter[str], kinds: Mapping[str, Counter[str]]) -> dict[str, list[str]]:
    """Surname → the full names in one document that end with it and may be persons."""
    found: dict[str, list[str]] = defaultdict(list)
    for key in counted:
        words = key.split()
        if 2 <= len(words) <= 4 and _kind(kinds[key]) in {"person", "thing"} and words[-1].isalpha():
            found[words[-1]].append(key)
    return found


def _target(
    key: str, title: str, qualified: Mapping[str, list[str]], full_names: Mapping[str, list[str]],
    kinds: Mapping[str, Counter[str]], titled: set[str],
) -> tuple[str, str]:  # fmt: skip
    """The key that a key stands for in a document, and why."""
    if title.startswith(f"{key} ("):
        return title, "the document's title names it with a qualifier"
    if len(qualified.get(key, ())) == 1 and key not in titled:
        return qualified[key][0], "only one thing of this name is described"
    matches = full_names.get(key, ())
    if len(matches) == 1 and _kind(kinds[key]) in {"person", "thing"}:
        return matches[0], "the only full name in the document that ends with it"
    return key, ""


def build_graph(extractions: Sequence[Extraction], chunks: Mapping[str, Chunk]) -> Graph:
    """Group mentions into entities and statements into relations.

    `chunks` maps chunk ids to chunks, for every chunk that occurs. Relation weights are counts divided by the largest
    count (GraphRAG, section 2.3), so 0 < weight ≤ 1.
    """
    resolved = resolve(extractions, chunks)
    groups: dict[str, list[tuple[Mention, str]]] = defaultdict(list)
    for extraction in extractions:
        document = chunks[extraction.chunk].document
        for mention in extraction.mentions:
            groups[resolved.keys[document, name_key(mention.name)]].append((mention, document))
    ids = {key: content_id("ent", key) for key in groups}
    relations, relation_places = _relations(extractions, chunks, resolved, ids)
    degree: Counter[str] = Counter()
    for relation in relations:
        degree.update((relation.source, relation.target))
    entities = [_entity(ids[key], mentions, degree[ids[key]]) for key, mentions in groups.items()]
    places = {
        (ids[key], mention.chunk, mention.start, mention.end) for key, mentions in groups.items() for mention, _ in mentions
    }
    return Graph(
        entities=tuple(sorted(entities, key=lambda entity: entity.id)),
        aliases=_aliases(groups, ids, entities, resolved),
        entity_occurrences=_occurrences(places),
        relations=relations,
        relation_occurrences=relation_places,
        evidence={ids[key]: _evidence(mentions) for key, mentions in groups.items()},
    )


def _evidence(mentions: list[tuple[Mention, str]]) -> tuple[str, ...]:
    ordered = sorted(mentions, key=lambda pair: (pair[1], pair[0].start, pair[0].name))
    return tuple(dict.fromkeys(mention.description for mention, _ in ordered if mention.description))


def _occurrences(places: Iterable[tuple[str, str, int, int]]) -> tuple[Occurrence, ...]:
    return tuple(Occurrence(item=item, chunk=chunk, start=start, end=end) for item, chunk, start, end in sorted(places))


def _entity(entity: str, mentions: list[tuple[Mention, str]], degree: int) -> Entity:
    names = Counter(mention.name for mention, _ in mentions)
    name = max(names, key=lambda name: (bool(_qualifier(name)), names[name], len(name), name))
    kind = _kind(Counter(mention.kind for mention, _ in mentions))
    return Entity(id=entity, name=name, kind=kind, mentions=len(mentions), degree=degree)


def _aliases(
    groups: Mapping[str, list[tuple[Mention, str]]], ids: Mapping[str, str], entities: Sequence[Entity], resolved: _Resolved
) -> tuple[Alias, ...]:
    shown = {entity.id: entity.name for entity in entities}
    found: dict[tuple[str, str], str] = {}
    for key, mentions in groups.items():
        for mention, document in mentions:
            if mention.name != shown[ids[key]]:
                reason = resolved.reasons.get((document, name_key(mention.name)), "the same name, written differently")
                found.setdefault((ids[key], mention.name), reason)
    return tuple(Alias(entity=entity, name=name, reason=found[entity, name]) for entity, name in sorted(found))


def predicate_key(predicate: str) -> str:
    """The form under which predicates are compared: folded stems without filling words."""
    return " ".join(stem(word) for word in fold(predicate).replace("_", " ").replace("/", " ").split())


def _relations(
    extractions: Sequence[Extraction], chunks: Mapping[str, Chunk], resolved: _Resolved, ids: Mapping[str, str]
) -> tuple[tuple[Relation, ...], tuple[Occurrence, ...]]:
    groups: dict[tuple[str, str, str], list[RelationMention]] = defaultdict(list)
    for extraction in extractions:
        document = chunks[extraction.chunk].document
        for said in extraction.relations:
            source, target = (ids[resolved.keys[document, name_key(name)]] for name in (said.source, said.target))
            if source != target:
                groups[source, target, predicate_key(said.predicate)].append(said)
    heaviest = max((sum(said.weight for said in group) for group in groups.values()), default=1.0) or 1.0
    relations, places = [], set()
    for (source, target, key), group in sorted(groups.items()):
        relation = content_id("rel", source, target, key)
        wordings = Counter(said.predicate for said in group)
        descriptions = sorted({said.description for said in group if said.description}, key=lambda text: (len(text), text))
        relations.append(
            Relation(
                id=relation, source=source, target=target,
                predicate=max(wordings, key=lambda wording: (wordings[wording], wording)),
                description=descriptions[0] if descriptions else "",
                weight=sum(said.weight for said in group) / heaviest, count=len(group),
                keys=tuple(sorted({key for said in group for key in said.keys})),
            )  # fmt: skip
        )
        places |= {(relation, said.chunk, said.start, said.end) for said in group}
    return tuple(sorted(relations, key=lambda relation: relation.id)), _occurrences(places)


@step("dedupe")
async def dedupe(extractions: Sequence[Extraction], chunks: Sequence[Chunk]) -> Graph:
    """Resolve all mentions of a generation into its graph."""
    return build_graph(extractions, {chunk.id: chunk for chunk in chunks})
