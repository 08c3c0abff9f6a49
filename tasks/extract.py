"""What does each chunk say? Entities and relations with the places that name them (GraphRAG 2.2, LightRAG `Recog`)."""

import asyncio
import re
from collections.abc import Mapping, Sequence

from prompts.engine.errors import EngineError
from prompts.extract import Extract, Extracted, RelationFound, topic_of
from prompts.language.segment import sentences
from storage.records import Chunk, DeadLetter, Extraction, Mention, Record, RelationMention, Triple, content_id
from tasks.step import step

EXTRACTOR_VERSION = "1"
_TRIPLE_LINE = re.compile(r"^(?P<s>.+?) -\[(?P<p>[^\[\]]*)\]-> (?P<o>.+)$", re.M)


class Extracts(Record):
    """What a batch of chunks yields: an extraction per chunk that succeeded, a dead letter per chunk that failed."""

    extractions: tuple[Extraction, ...]
    dead_letters: tuple[DeadLetter, ...]


def extraction_inputs(chunk: Chunk, model: str) -> str:
    """The hash of all that an extraction depends on; the same hash never needs to be extracted again."""
    return content_id("inp", EXTRACTOR_VERSION, model, chunk.kind, chunk.title, chunk.text, str(chunk.ordinal == 0))


def find_name(text: str, name: str) -> tuple[int, int] | None:
    """Where a name stands in a text as whole words (start, end); a run of white space matches any other."""
    at, length = text.find(name), len(name)
    if at < 0 and " " in name:
        # Wrapped lines: the name may stand over a line's end.
        match = re.search(r"\s+".join(map(re.escape, name.split())), text)
        at, length = (match.start(), match.end() - match.start()) if match else (-1, 0)
    while at >= 0 and name:
        before, after = text[at - 1 : at] if at else "", text[at + length : at + length + 1]
        if not (_glues(before, name[:1]) or _glues(name[-1:], after)):
            return at, at + length
        at, length = text.find(name, at + 1), len(name)
    return None


def _glues(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word (Chinese characters never do)."""
    return left.isalnum() and right.isalnum() and ord(left) < 0x2E80 and ord(right) < 0x2E80


def to_extraction(chunk: Chunk, found: Extracted) -> Extraction:
    """Bind what was found to the text. Names that the chunk does not hold are dropped, with relations that need them.

    The title's thing is the exception: the document's title mentions it, with an empty span at the chunk's start.
    """
    mentions: dict[str, Mention] = {}
    for entity in found.entities:
        place = find_name(chunk.text, entity.name)
        if place is not None and entity.name not in mentions:
            mentions[entity.name] = Mention(
                chunk=chunk.id,
                name=entity.name,
                kind=entity.kind,
                start=chunk.start + place[0],
                end=chunk.start + place[1],
                description=entity.description,
            )
    topic = topic_of(chunk.title)
    named = {relation.source for relation in found.relations} | {relation.target for relation in found.relations}
    if topic and topic not in mentions and (chunk.ordinal == 0 or topic in named):
        mentions[topic] = Mention(chunk=chunk.id, name=topic, kind="thing", start=chunk.start, end=chunk.start)
    places = _Sentences(chunk)
    relations = tuple(
        places.bind(relation)
        for relation in found.relations
        if relation.source in mentions and relation.target in mentions and relation.source != relation.target
    )
    return Extraction(chunk=chunk.id, mentions=tuple(mentions.values()), relations=relations)


class _Sentences:
    """The sentences of a chunk, for finding the one that says a relation."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.spans = sentences(chunk.text) or [(0, len(chunk.text))]
        self.texts = [chunk.text[start:end] for start, end in self.spans]
        self.quoted: dict[str, int] = {}
        for index, text in enumerate(self.texts):
            self.quoted.setdefault(" ".join(text.split()), index)

    def bind(self, relation: RelationFound) -> RelationMention:
        """The relation with the sentence that says it: the one quoted, else the first with both names or the target."""
        index = self.quoted.get(relation.description)
        start, end = self.spans[self._first_with(relation) if index is None else index]
        return RelationMention(
            chunk=self.chunk.id,
            source=relation.source,
            target=relation.target,
            predicate=relation.predicate,
            start=self.chunk.start + start,
            end=self.chunk.start + end,
            description=relation.description,
            weight=max(relation.strength, 0.0),
            keys=tuple(relation.keys),
        )

    def _first_with(self, relation: RelationFound) -> int:
        ranks = [2 * (relation.target in text) + (relation.source in text) for text in self.texts]
        return ranks.index(max(ranks))


def extract_triples(chunk: Chunk, weights: Mapping[tuple[str, str], float]) -> Extraction:
    """The triples of a chunk of rendered triples, each bound to its line; `weights`: by document and line."""
    mentions: dict[str, Mention] = {}
    relations = []
    for match in _TRIPLE_LINE.finditer(chunk.text):
        triple = Triple(s=match["s"], p=match["p"], o=match["o"])
        for group in ("s", "o"):
            name, at = match[group], chunk.start + match.start(group)
            mentions.setdefault(name, Mention(chunk=chunk.id, name=name, kind="thing", start=at, end=at + len(name)))
        relations.append(
            RelationMention(
                chunk=chunk.id,
                source=triple.s,
                target=triple.o,
                predicate=triple.p,
                start=chunk.start + match.start(),
                end=chunk.start + match.end(),
                weight=weights.get((chunk.document, match.group()), 1.0),
            )
        )
    return Extraction(chunk=chunk.id, mentions=tuple(mentions.values()), relations=tuple(relations))


@step("extract")
async def extract(chunks: Sequence[Chunk], extractor: Extract, weights: Mapping[tuple[str, str], float]) -> Extracts:
    """Extract a batch of chunks, calls to a model side by side; a chunk that fails becomes a dead letter."""

    async def one(chunk: Chunk) -> Extraction | DeadLetter:
        if chunk.kind == "triples":
            return extract_triples(chunk, weights)
        try:
            return to_extraction(chunk, await extractor.run(chunk.title, chunk.text))
        except EngineError as error:
            return DeadLetter(item=chunk.id, step="extract", error=error.message, remedy=error.remedy)

    results = (
        [await one(chunk) for chunk in chunks] if extractor.is_offline else await asyncio.gather(*map(one, chunks))
    )
    return Extracts(
        extractions=tuple(result for result in results if isinstance(result, Extraction)),
        dead_letters=tuple(result for result in results if isinstance(result, DeadLetter)),
    )
