"""Extraction: the entities, relations and claims of each chunk, bound to their places in its text.

Papers: GraphRAG, section 2.2; LightRAG, `Recog`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from prompts.extract import Extract, topic_of
from prompts.extracted import ClaimFound, EntityFound, Extracted, FactFound, RelationFound
from prompts.schema import NO_SCHEMA, Schema
from prompts.tailoring import OTHER_KIND
from prompts.text.segment import sentences
from prompts.text.words import TRAILING, content_terms
from storage.graph_records import (
    ClaimMention,
    Extraction,
    FactMention,
    LeftOutFact,
    Mention,
    RelationMention,
)
from storage.records import Chunk, DeadLetter, Span, content_id
from tasks.batches import read_chunks
from tasks.facts.check import CheckedFact, checked, is_typed
from tasks.facts.typed_values import Unfitting, day_of, first_day, last_day, place_of
from tasks.retrying import PATIENT
from tasks.step import step

# Version of the rules that extract offline and bind names to places. Prompts are part of the hash
# as they are.
READER_VERSION = "4"
_APOSTROPHE = re.compile("['’]")
_SIGN_AFTER, _POINT_BEFORE = re.compile(TRAILING), re.compile(r"(?<=^\.)|(?<=[^\w.]\.)")
_AROUND_A_QUOTE = " \t\n\"'“”‘’「」『』…."
OF_A_FACT = 5.0  # the strength of a relation that a fact states: the middle of the prompt's scale
_CLAIM_SHARE = 0.5  # of a claim's words that a sentence must hold to be the one that makes it
_LINE = re.compile(".+")
# A predicate may hold brackets; where both patterns match, brackets in a name are likelier.
_TRIPLE_LINES = (
    re.compile(r"(?P<s>.{1,1000}?) -\[(?P<p>[^\[\]]{0,1000})\]-> (?P<o>.+)"),
    re.compile(r"(?P<s>.{1,1000}?) -\[(?P<p>.{0,1000}?)\]-> (?P<o>.+)"),
)


@dataclass(frozen=True)
class Extracts:
    """An extraction for each chunk that succeeded, and a dead letter for each that failed."""

    extractions: tuple[Extraction, ...]
    dead_letters: tuple[DeadLetter, ...]


def extraction_inputs(chunk: Chunk, author: str) -> str:
    """Return the hash of all that an extraction depends on; for `author` see `Step.author`."""
    return content_id(
        "inp", READER_VERSION, author, chunk.kind, chunk.title, chunk.text, str(chunk.ordinal == 0)
    )


# --- places of names ---


def find_name(text: str, name: str) -> tuple[int, int] | None:
    """Return the (start, end) of a name in a text, as whole words; any white space matches.

    The exact spelling wins over other capitals or apostrophes: models write "SCROOGE" for Scrooge.
    """
    at, length = text.find(name), len(name)
    while at >= 0 and name:
        if _stands_alone(text, at, at + length):
            return at, at + length
        at = text.find(name, at + 1)
    words = [re.escape(word) for word in name.split()]
    if not words:
        return None
    if len(words) > 1 and (span := _search(text, r"\s+".join(words))):
        return span
    loose = (_APOSTROPHE.sub("['’]", word) for word in words)
    return _search(text, r"\s+".join(loose), re.IGNORECASE)


def _search(text: str, pattern: str, flags: int = 0) -> tuple[int, int] | None:
    places = (match.span() for match in re.finditer(pattern, text, flags))
    return next((place for place in places if _stands_alone(text, *place)), None)


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Say whether a span is not part of a longer word, as "C" is in "C#"; any Chinese is not."""
    if _SIGN_AFTER.match(text, end) or _POINT_BEFORE.match(text, start):
        return False
    pairs = (text[start - 1 : start + 1] if start else "", text[end - 1 : end + 1])
    return not any(
        len(pair) == 2 and all(sign.isalnum() and ord(sign) < 0x2E80 for sign in pair)
        for pair in pairs
    )


# --- binding ---


def to_extraction(
    chunk: Chunk, extracted: Extracted, *, literal: bool = False, schema: Schema = NO_SCHEMA
) -> Extraction:
    """Bind what was found to the text of its chunk.

    A name that the chunk does not hold (the document's title, a name that a model spells out or
    invents) and a claim that no sentence makes get an empty span at the chunk's start. An end of a
    relation or claim that was not listed becomes a mention of the kind "thing". With `literal`,
    names other than the title that the chunk does not hold are dropped, with their relations. A
    fact that breaks the schema, or that the chunk does not state, is left out with the reason.
    """
    if literal:
        extracted = _literal(chunk, extracted)
    binder = _Binder(chunk)
    for entity in extracted.entities:
        binder.add(entity)
    binder.add_topic()
    relations = [
        binder.relation(relation)
        for relation in extracted.relations
        if _folded(relation.source)
        and _folded(relation.target)
        and _folded(relation.source) != _folded(relation.target)
    ]
    claims = [binder.claim(claim) for claim in extracted.claims if _folded(claim.subject)]
    facts = [binder.fact(fact, schema) for fact in extracted.facts]
    stated = [fact for fact in facts if isinstance(fact, FactMention)]
    return Extraction(
        chunk=chunk.id,
        mentions=tuple(binder.mentions),
        relations=(*relations, *_as_relations(stated)),
        claims=tuple(claims),
        facts=tuple(stated),
        left_out=tuple(fact for fact in facts if isinstance(fact, LeftOutFact)),
    )


def _as_relations(facts: Sequence[FactMention]) -> list[RelationMention]:
    """Return the facts between two names as relations, so that the graph has them."""
    return [
        RelationMention(
            fact.chunk, fact.subject, fact.object, fact.type, *fact.statement, weight=OF_A_FACT
        )
        for fact in facts
        if fact.object
    ]


def _literal(chunk: Chunk, extracted: Extracted) -> Extracted:
    entities = [entity for entity in extracted.entities if find_name(chunk.text, entity.name)]
    known = {entity.name for entity in entities} | {topic_of(chunk.title)}
    relations = [one for one in extracted.relations if {one.source, one.target} <= known]
    claims = [
        claim
        for claim in extracted.claims
        if {claim.subject, claim.object or claim.subject} <= known
    ]
    return Extracted(entities=entities, relations=relations, claims=claims)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


class _Binder:
    """Binds names, relations and claims to places in a chunk, and collects the mentions."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.mentions: list[Mention] = []
        self._forms: dict[str, str] = {}  # the listed form of each folded name
        self._spans = sentences(chunk.text) or [(0, len(chunk.text))]
        texts = [" ".join(chunk.text[start:end].split()) for start, end in self._spans]
        self._quoted = dict(reversed([*zip(texts, self._spans, strict=True)]))

    @cached_property
    def _terms(self) -> list[set[str]]:
        """The content words of each sentence."""
        return [set(content_terms(self.chunk.text[start:end])) for start, end in self._spans]

    def add(self, entity: EntityFound) -> None:
        if entity.name.strip():
            start, end = self._placed(find_name(self.chunk.text, entity.name) or (0, 0))
            self.mentions.append(
                Mention(self.chunk.id, entity.name, entity.kind, start, end, entity.description)
            )
            self._forms.setdefault(_folded(entity.name), entity.name)

    def add_topic(self) -> None:
        """Let the first chunk of a document mention its title."""
        topic, start = topic_of(self.chunk.title), self.chunk.start
        if topic and self.chunk.ordinal == 0 and topic not in self._forms.values():
            self.mentions.append(Mention(self.chunk.id, topic, "thing", start, start))
            self._forms.setdefault(_folded(topic), topic)

    def relation(self, relation: RelationFound) -> RelationMention:
        """Bind a relation between two listed names to the sentence that states it."""
        words = f"{relation.source} {relation.target} {relation.predicate} {relation.description}"
        start, end = self._placed(
            self._quoted.get(relation.description) or self._stating(words, 0) or self._spans[0]
        )
        return RelationMention(
            chunk=self.chunk.id,
            source=self._listed(relation.source),
            target=self._listed(relation.target),
            predicate=relation.predicate,
            start=start,
            end=end,
            description=relation.description,
            weight=max(relation.strength, 0.0),
            keys=tuple(relation.keys),
        )

    def claim(self, claim: ClaimFound) -> ClaimMention:
        """Bind a claim to the words that it quotes, else to the sentence that states them."""
        other = self._listed(claim.object) if claim.object.strip() else None
        subject, quote, text = self._listed(claim.subject), claim.quote, self.chunk.text
        start, end = self._placed(
            self._quoted.get(" ".join(quote.split()))
            or find_name(text, quote)
            or find_name(text, quote.strip(_AROUND_A_QUOTE))
            or self._stating(f"{quote} {claim.description}", _CLAIM_SHARE)
            or (0, 0)
        )
        return ClaimMention(
            chunk=self.chunk.id,
            subject=subject,
            object=None if other == subject else other,
            kind=claim.kind,
            status=claim.status,
            since=claim.since or None,
            until=claim.until or None,
            start=start,
            end=end,
            description=claim.description,
        )

    def fact(self, fact: FactFound, schema: Schema) -> FactMention | LeftOutFact:
        """Bind a fact to the characters of its value, and check it against the schema."""
        try:
            found = checked(fact, schema, self._kind_of)
            value, statement = self._value_at(found, self._statement(fact))
        except Unfitting as problem:
            return LeftOutFact(self.chunk.id, fact.subject, fact.type, fact.value, str(problem))
        subject = self._listed(found.subject, found.kind)
        other = self._listed(found.object, found.object_kind) if found.object else None
        written = Written(
            subject, other, self._placed(value), self._placed(statement), fact.since, fact.until
        )
        return typed_mention(self.chunk.id, found, written)

    def _statement(self, fact: FactFound) -> Span:
        """Return the sentence that a fact quotes, best one that names its subject, or else the
        sentence with most of its words. Raises Unfitting where there is none.
        """
        said = _folded(fact.quote.strip(_AROUND_A_QUOTE))
        texts = [_folded(self.chunk.text[start:end]) for start, end in self._spans]
        holding = [place for place, text in enumerate(texts) if said and said in text]
        if holding:
            subject = _folded(fact.subject)
            return self._spans[min(holding, key=lambda place: subject not in texts[place])]
        words = f"{fact.subject} {fact.value}"
        place = find_name(self.chunk.text, fact.quote) or self._stating(words, _CLAIM_SHARE)
        if place is None:
            raise Unfitting("no sentence of the passage states it")
        return place

    def _value_at(self, found: CheckedFact, statement: Span) -> tuple[Span, Span]:
        """Return where the value stands, and the sentence around it: the statement, or else the
        first one that names the subject and holds the value.

        Yes or no, and a name that the passage spells otherwise, stand for the whole statement.
        Raises Unfitting for other values that the passage does not hold.
        """
        subject = _folded(found.subject)
        naming = [span for span in self._spans if subject in _folded(self.chunk.text[slice(*span)])]
        for start, end in (statement, *naming):
            text = self.chunk.text[start:end]
            if place := find_name(text, found.value) or place_of(text, found.value, found.typed):
                return (start + place[0], start + place[1]), (start, end)
        if found.object is None and found.typed.yes is None:
            raise Unfitting(f"no sentence of it holds {found.value!r}")
        return statement, statement

    def _kind_of(self, name: str) -> str:
        listed = self._forms.get(_folded(name))
        kinds = (mention.kind for mention in self.mentions if mention.name == listed)
        return next((kind for kind in kinds if kind != OTHER_KIND), OTHER_KIND)

    def _listed(self, name: str, kind: str = OTHER_KIND) -> str:
        """Return the listed form of a name; list it first where it is new or has no kind."""
        if _folded(name) not in self._forms:
            self.add(EntityFound(name=name, kind=kind))
        form = self._forms[_folded(name)]
        if kind != OTHER_KIND and self._kind_of(name) == OTHER_KIND:
            self.mentions = [
                one._replace(kind=kind) if one.name == form else one for one in self.mentions
            ]
        return form

    def _placed(self, span: tuple[int, int]) -> tuple[int, int]:
        return self.chunk.start + span[0], self.chunk.start + span[1]

    def _stating(self, text: str, least: float) -> tuple[int, int] | None:
        """Return the sentence with most of the text's words, at least this share of them."""
        words = set(content_terms(text))
        shared = [len(words & terms) for terms in self._terms]
        best = max(shared)
        return self._spans[shared.index(best)] if best and best >= least * len(words) else None


@dataclass(frozen=True, slots=True)
class Written:
    """How a passage writes a fact: the names of its ends, the places of its value and of its
    statement in the document, and the time for which it says that it holds.
    """

    subject: str
    object: str | None
    value: Span
    statement: Span
    since: str = ""
    until: str = ""


def typed_mention(chunk: str, found: CheckedFact, written: Written) -> FactMention:
    """Return a checked fact as it is stored."""
    since, until = day_of(written.since), day_of(written.until)
    return FactMention(
        chunk=chunk,
        subject=written.subject,
        type=found.type,
        start=written.value[0],
        end=written.value[1],
        before=written.value[0] - written.statement[0],
        after=written.statement[1] - written.value[1],
        kind=found.kind,
        single=found.single,
        value=found.value,
        object=written.object,
        object_kind=found.object_kind,
        number=found.typed.number,
        unit=found.typed.unit,
        day=found.typed.day,
        yes=found.typed.yes,
        valid_from=first_day(since) if since else None,
        valid_to=last_day(until) if until else None,
    )


# --- triples ---


def extract_triples(
    chunk: Chunk, weights: Mapping[tuple[str, str], float], schema: Schema = NO_SCHEMA
) -> Extraction:
    """Parse the triples of a chunk, each bound to its line; `weights` by document and line.

    A triple whose predicate is a type of the schema is also a fact, if it fits.
    """
    mentions: dict[str, Mention] = {}
    relations = []
    typed: list[re.Match[str]] = []
    for line in _LINE.finditer(chunk.text):
        matches = (pattern.fullmatch(chunk.text, *line.span()) for pattern in _TRIPLE_LINES)
        if (match := next(filter(None, matches), None)) is None:
            continue
        for group in ("s", "o"):
            name, at = match[group], chunk.start + match.start(group)
            mentions.setdefault(name, Mention(chunk.id, name, "thing", at, at + len(name)))
        relations.append(
            RelationMention(
                chunk=chunk.id,
                source=match["s"],
                target=match["o"],
                predicate=match["p"],
                start=chunk.start + match.start(),
                end=chunk.start + match.end(),
                weight=weights.get((chunk.document, match.group()), 1.0),
            )
        )
        if is_typed(match["p"], schema):
            typed.append(match)
    facts = _TripleFacts(chunk, schema)
    for match in typed * 2:  # the first time shows the kinds of names, which a second one needs
        facts.add(match)
    return Extraction(
        chunk=chunk.id,
        mentions=tuple(
            mention._replace(kind=facts.kinds.get(name, mention.kind))
            for name, mention in mentions.items()
        ),
        relations=tuple(relations),
        facts=tuple(facts.stated.values()),
        left_out=tuple(facts.left_out.values()),
    )


class _TripleFacts:
    """The triples of a chunk that are facts, and the kinds that they show their names to have."""

    def __init__(self, chunk: Chunk, schema: Schema) -> None:
        self.chunk, self.schema = chunk, schema
        self.kinds: dict[str, str] = {}
        self.stated: dict[int, FactMention] = {}
        self.left_out: dict[int, LeftOutFact] = {}

    def add(self, match: re.Match[str]) -> None:
        """Check a triple, by what is known so far."""
        fact = FactFound(subject=match["s"], type=match["p"], value=match["o"])
        at = match.start()
        try:
            found = checked(fact, self.schema, lambda name: self.kinds.get(name, OTHER_KIND))
        except Unfitting as problem:
            self.stated.pop(at, None)
            parts = (fact.subject, fact.type, fact.value)
            self.left_out[at] = LeftOutFact(self.chunk.id, *parts, str(problem))
            return
        self.left_out.pop(at, None)
        self.kinds[found.subject] = found.kind
        if found.object:
            self.kinds[found.object] = found.object_kind
        start = self.chunk.start
        value = start + match.start("o"), start + match.end("o")
        line = start + match.start(), start + match.end()
        written = Written(found.subject, found.object, value, line)
        self.stated[at] = typed_mention(self.chunk.id, found, written)


@step("extract", PATIENT, asks_model=True)
async def extract(
    chunks: Sequence[Chunk], extractor: Extract, weights: Mapping[tuple[str, str], float]
) -> Extracts:
    """Extract a batch of chunks concurrently; a chunk that fails becomes a dead letter.

    Raises as `read_chunks` does.
    """

    async def extracted_from(chunk: Chunk) -> Extraction:
        if chunk.kind == "triples":
            return extract_triples(chunk, weights, extractor.schema)
        extracted = await extractor.run(chunk.title, chunk.text)
        return to_extraction(
            chunk, extracted, literal=extractor.is_offline, schema=extractor.schema
        )

    made, letters = await read_chunks(chunks, "extract", extracted_from)
    return Extracts(tuple(extraction for _, extraction in made), tuple(letters))
