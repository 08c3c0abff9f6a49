"""Extraction: the entities, relations and claims of each chunk, with their places (GraphRAG 2.2,
LightRAG `Recog`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from prompts.engine.errors import BudgetSpent, EngineError, ModelMisconfigured, ModelUnavailable
from prompts.extract import ClaimFound, EntityFound, Extract, Extracted, RelationFound, topic_of
from prompts.text.segment import sentences
from prompts.text.words import TRAILING, content_terms
from storage.graph_records import ClaimMention, Extraction, Mention, RelationMention
from storage.records import Chunk, DeadLetter, content_id
from tasks.batches import gather_or_cancel
from tasks.retrying import PATIENT, is_tried_again
from tasks.step import step

# Of the rules that read offline and bind names to places. Prompts need none: their text is part of
# the hash.
READER_VERSION = "4"
_APOSTROPHE = re.compile("['’]")
_SIGN_AFTER, _POINT_BEFORE = re.compile(TRAILING), re.compile(r"(?<=^\.)|(?<=[^\w.]\.)")
_AROUND_A_QUOTE = " \t\n\"'“”‘’「」『』…."
# So much of what a claim says must stand in a sentence for it to be the one that says it.
_SAYS_IT = 0.5
_LINE = re.compile(".+")
# A predicate may hold brackets; where both readings are possible, those in a name are likelier.
_TRIPLE_LINES = (
    re.compile(r"(?P<s>.{1,1000}?) -\[(?P<p>[^\[\]]{0,1000})\]-> (?P<o>.+)"),
    re.compile(r"(?P<s>.{1,1000}?) -\[(?P<p>.{0,1000}?)\]-> (?P<o>.+)"),
)


@dataclass(frozen=True)
class Extracts:
    """What a batch of chunks yields: an extraction per chunk that succeeded, a dead letter per
    chunk that failed.
    """

    extractions: tuple[Extraction, ...]
    dead_letters: tuple[DeadLetter, ...]


def extraction_inputs(chunk: Chunk, author: str) -> str:
    """The hash of all that an extraction depends on; the same hash never needs to be extracted
    again. `author`: see `Step.author`.
    """
    return content_id(
        "inp", READER_VERSION, author, chunk.kind, chunk.title, chunk.text, str(chunk.ordinal == 0)
    )


def find_name(text: str, name: str) -> tuple[int, int] | None:
    """Where a name stands in a text as whole words (start, end); a run of white space matches any
    other.

    Exactly as written, else in other capitals or with another apostrophe: models write "SCROOGE" of
    a Scrooge.
    """
    at, length = text.find(name), len(name)
    while at >= 0 and name:
        if _stands_alone(text, at, at + length):
            return at, at + length
        at = text.find(name, at + 1)
    words = name.split()
    if not words:
        return None
    if len(words) > 1 and (span := _match(text, r"\s+".join(map(re.escape, words)))):
        # Wrapped lines: the name may stand over a line's end.
        return span
    return _match(
        text, r"\s+".join(_APOSTROPHE.sub("['’]", re.escape(word)) for word in words), re.IGNORECASE
    )


def _match(text: str, pattern: str, flags: int = 0) -> tuple[int, int] | None:
    places = (match.span() for match in re.finditer(pattern, text, flags))
    return next((place for place in places if _stands_alone(text, *place)), None)


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether the characters at both ends belong to no longer word: "C" is none in "C#". Chinese
    characters never do."""
    if _SIGN_AFTER.match(text, end) or _POINT_BEFORE.match(text, start):
        return False
    pairs = (text[start - 1 : start + 1] if start else "", text[end - 1 : end + 1])
    return not any(
        len(pair) == 2 and all(sign.isalnum() and ord(sign) < 0x2E80 for sign in pair)
        for pair in pairs
    )


def to_extraction(chunk: Chunk, extracted: Extracted, *, literal: bool = False) -> Extraction:
    """Bind what was found to the text: a mention for each record, nothing is lost.

    A name that the chunk does not hold has an empty span at the chunk's start: the document's
    title, a name that a model spells out or makes up, an end of a relation or claim that it did not
    list (of the kind "thing"). So has a claim that no sentence of the chunk makes, in its own words
    or in others. `literal`: names other than the title that the chunk does not hold are dropped,
    with relations that need them.
    """
    gathered = _Found(chunk)
    if literal:
        extracted = _literal(chunk, extracted)
    for entity in extracted.entities:
        gathered.add(entity)
    gathered.add_topic()
    relations = [
        gathered.relation(relation)
        for relation in extracted.relations
        if all(map(_folded, ends := (relation.source, relation.target)))
        and _folded(ends[0]) != _folded(ends[1])
    ]
    claims = [gathered.claim(claim) for claim in extracted.claims]
    return Extraction(
        chunk=chunk.id,
        mentions=tuple(gathered.mentions),
        relations=tuple(relations),
        claims=tuple(claims),
    )


def _literal(chunk: Chunk, extracted: Extracted) -> Extracted:
    entities = [entity for entity in extracted.entities if find_name(chunk.text, entity.name)]
    known = {entity.name for entity in entities} | {topic_of(chunk.title)}
    relations = [
        relation
        for relation in extracted.relations
        if relation.source in known and relation.target in known
    ]
    claims = [
        claim
        for claim in extracted.claims
        if claim.subject in known and (claim.object in known or not claim.object)
    ]
    return Extracted(entities=entities, relations=relations, claims=claims)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


class _Found:
    """The mentions of a chunk, the form in which each name was listed, and the sentences that say
    what was found.
    """

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.mentions: list[Mention] = []
        self._forms: dict[str, str] = {}
        self.spans = sentences(chunk.text) or [(0, len(chunk.text))]
        texts = [" ".join(chunk.text[start:end].split()) for start, end in self.spans]
        self.quoted = dict(reversed([*zip(texts, self.spans, strict=True)]))

    @cached_property
    def terms(self) -> list[set[str]]:
        """The words of content of each sentence."""
        return [set(content_terms(self.chunk.text[start:end])) for start, end in self.spans]

    def add(self, entity: EntityFound) -> None:
        if entity.name.strip():
            start, end = self._placed(find_name(self.chunk.text, entity.name) or (0, 0))
            self.mentions.append(
                Mention(self.chunk.id, entity.name, entity.kind, start, end, entity.description)
            )
            self._forms.setdefault(_folded(entity.name), entity.name)

    def add_topic(self) -> None:
        """A document's first chunk mentions its title."""
        topic, start = topic_of(self.chunk.title), self.chunk.start
        if topic and self.chunk.ordinal == 0 and topic not in self._forms.values():
            self.mentions.append(
                Mention(chunk=self.chunk.id, name=topic, kind="thing", start=start, end=start)
            )
            self._forms.setdefault(_folded(topic), topic)

    def listed(self, name: str) -> str:
        """The listed form of a name that a relation or claim needs; one that was not listed is from
        now on.
        """
        if _folded(name) not in self._forms:
            self.add(EntityFound(name=name, kind="thing"))
        return self._forms[_folded(name)]

    def relation(self, relation: RelationFound) -> RelationMention:
        """The relation between two listed names, with the sentence that says it."""
        spoken = f"{relation.source} {relation.target} {relation.predicate} {relation.description}"
        start, end = self._placed(
            self.quoted.get(relation.description) or self._saying(spoken, 0) or self.spans[0]
        )
        return RelationMention(
            chunk=self.chunk.id,
            source=self.listed(relation.source),
            target=self.listed(relation.target),
            predicate=relation.predicate,
            start=start,
            end=end,
            description=relation.description,
            weight=max(relation.strength, 0.0),
            keys=tuple(relation.keys),
        )

    def claim(self, claim: ClaimFound) -> ClaimMention:
        """The claim about a listed name, with the words that are quoted, else the sentence that
        says them.
        """
        other = self.listed(claim.object) if claim.object.strip() else None
        subject, quote, text = self.listed(claim.subject), claim.quote, self.chunk.text
        quoted = self.quoted.get(" ".join(quote.split())) or find_name(text, quote)
        quoted = quoted or find_name(text, quote.strip(_AROUND_A_QUOTE))
        start, end = self._placed(
            quoted or self._saying(f"{quote} {claim.description}", _SAYS_IT) or (0, 0)
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

    def _placed(self, span: tuple[int, int]) -> tuple[int, int]:
        """A span of the chunk's text as one of the document's."""
        return self.chunk.start + span[0], self.chunk.start + span[1]

    def _saying(self, text: str, least: float) -> tuple[int, int] | None:
        """The sentence that holds most of the text's words; None where none holds this share of
        them.
        """
        words = set(content_terms(text))
        shared = [len(words & terms) for terms in self.terms]
        best = max(shared)
        return self.spans[shared.index(best)] if best and best >= least * len(words) else None


def _triple_lines(text: str) -> Iterator[re.Match[str]]:
    """The lines that are rendered triples, taken apart."""
    for line in _LINE.finditer(text):
        matches = (pattern.fullmatch(text, *line.span()) for pattern in _TRIPLE_LINES)
        if match := next(filter(None, matches), None):
            yield match


def extract_triples(chunk: Chunk, weights: Mapping[tuple[str, str], float]) -> Extraction:
    """The triples of a chunk of rendered triples, each bound to its line; `weights`: by document
    and line.
    """
    mentions: dict[str, Mention] = {}
    relations = []
    for match in _triple_lines(chunk.text):
        for group in ("s", "o"):
            name, at = match[group], chunk.start + match.start(group)
            mentions.setdefault(
                name, Mention(chunk=chunk.id, name=name, kind="thing", start=at, end=at + len(name))
            )
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
    return Extraction(chunk=chunk.id, mentions=tuple(mentions.values()), relations=tuple(relations))


@step("extract", PATIENT, asks_model=True)
async def extract(
    chunks: Sequence[Chunk], extractor: Extract, weights: Mapping[tuple[str, str], float]
) -> Extracts:
    """Extract a batch of chunks, calls to a model side by side; a chunk that fails becomes a dead
    letter.

    ModelMisconfigured and BudgetSpent end it at once; where the step will be tried again, so does
    ModelUnavailable, after the other chunks: what they got comes from the cache then.
    """
    unreached: list[ModelUnavailable] = []

    async def extracted_from(chunk: Chunk) -> Extraction | DeadLetter:
        if chunk.kind == "triples":
            return extract_triples(chunk, weights)
        try:
            extracted = await extractor.run(chunk.title, chunk.text)
            return to_extraction(chunk, extracted, literal=extractor.is_offline)
        except (ModelMisconfigured, BudgetSpent):
            raise  # no other chunk would fare better
        except EngineError as error:
            if isinstance(error, ModelUnavailable):
                unreached.append(error)
            return DeadLetter(
                item=chunk.id, step="extract", error=error.message, remedy=error.remedy
            )

    results = await gather_or_cancel(map(extracted_from, chunks))
    if unreached and is_tried_again():
        raise unreached[0]
    return Extracts(
        extractions=tuple(result for result in results if isinstance(result, Extraction)),
        dead_letters=tuple(result for result in results if isinstance(result, DeadLetter)),
    )
