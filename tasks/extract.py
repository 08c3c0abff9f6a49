"""What does each chunk say? Entities and relations with the exact places that name them (GraphRAG 2.2, LightRAG `Recog`)."""

import asyncio
import re
from collections.abc import Sequence

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


def find_name(text: str, name: str) -> int:
    """Where a name stands in a text as whole words, or -1; a run of white space in either matches any other."""
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 1]
        if not (_glues(before, name[:1]) or _glues(name[-1:], after)):
            return at
        at = text.find(name, at + 1)
    return -1


def _glues(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word (Chinese characters never do)."""
    return left.isalnum() and right.isalnum() and ord(left) < 0x2E80 and ord(right) < 0x2E80


def to_extraction(chunk: Chunk, found: Extracted) -> Extraction:
    """Bind what was found to the text. Names that the chunk does not hold are dropped, with the relations that need them.

    The title's thing is the exception: it is mentioned by the document's title, with an empty span at the chunk's start.
    """
    mentions: dict[str, Mention] = {}
    for entity in found.entities:
        at = find_name(chunk.text, entity.name)
        if at >= 0 and entity.name not in mentions:
            start = chunk.start + at
            mentions[entity.name] = Mention(
                chunk=chunk.id, name=entity.name, kind=entity.kind, start=start, end=start + len(entity.name),
                description=entity.description,
            )  # fmt: skip
    topic = topic_of(chunk.title)
    named = {relation.source for relation in found.relations} | {relation.target for relation in found.relations}
    if topic and topic not in mentions and (chunk.ordinal == 0 or topic in named):
        mentions[topic] = Mention(chunk=chunk.id, name=topic, kind="thing", start=chunk.start, end=chunk.start)
    spans = sentences(chunk.text)
    relations = tuple(
        _bind(chunk, relation, spans)
        for relation in found.relations
        if relation.source in mentions and relation.target in mentions and relation.source != relation.target
    )
    return Extraction(chunk=chunk.id, mentions=tuple(mentions.values()), relations=relations)


def _bind(chunk: Chunk, relation: RelationFound, spans: list[tuple[int, int]]) -> RelationMention:
    """The relation with the sentence that says it: the one quoted, else the first with both names, else with the target."""
    texts = [chunk.text[start:end] for start, end in spans]

    def rank(text: str) -> int:
        said = " ".join(text.split()) == relation.description
        return 4 * said + 2 * (relation.target in text) + (relation.source in text)

    best = max(range(len(spans)), key=lambda i: (rank(texts[i]), -i))
    start, end = spans[best]
    return RelationMention(
        chunk=chunk.id, source=relation.source, target=relation.target, predicate=relation.predicate,
        start=chunk.start + start, end=chunk.start + end, description=relation.description,
        weight=max(relation.strength, 0.0), keys=tuple(relation.keys),
    )  # fmt: skip


def extract_triples(chunk: Chunk, weights: dict[str, float]) -> Extraction:
    """The triples of a chunk of rendered triples, each bound to its line; `weights` maps a rendered line to its weight."""
    mentions: dict[str, Mention] = {}
    relations = []
    for match in _TRIPLE_LINE.finditer(chunk.text):
        triple = Triple(s=match["s"], p=match["p"], o=match["o"])
        for group in ("s", "o"):
            name, at = match[group], chunk.start + match.start(group)
            mentions.setdefault(name, Mention(chunk=chunk.id, name=name, kind="thing", start=at, end=at + len(name)))
        relations.append(
            RelationMention(
                chunk=chunk.id, source=triple.s, target=triple.o, predicate=triple.p,
                start=chunk.start + match.start(), end=chunk.start + match.end(),
                weight=weights.get(match.group(), 1.0),
            )  # fmt: skip
        )
    return Extraction(chunk=chunk.id, mentions=tuple(mentions.values()), relations=tuple(relations))


@step("extract")
async def extract(chunks: Sequence[Chunk], extractor: Extract, weights: dict[str, float]) -> Extracts:
    """Extract a batch of chunks, calls to a model side by side. A chunk that fails becomes a dead letter, never nothing."""

    async def one(chunk: Chunk) -> Extraction | DeadLetter:
        if chunk.kind == "triples":
            return extract_triples(chunk, weights)
        try:
            return to_extraction(chunk, await extractor.run(chunk.title, chunk.text))
        except EngineError as error:
            return DeadLetter(item=chunk.id, step="extract", error=error.message, remedy=error.remedy)

    results = [await one(chunk) for chunk in chunks] if extractor.is_offline else await asyncio.gather(*map(one, chunks))
    return Extracts(
        extractions=tuple(result for result in results if isinstance(result, Extraction)),
        dead_letters=tuple(result for result in results if isinstance(result, DeadLetter)),
    )
