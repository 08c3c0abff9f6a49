"""Propositions: the statements of each passage, bound to the sentences that make them, and the
windows by which a question finds them (PropRAG, arXiv 2504.18070).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prompts.engine.embedders import Embedder, text_hash
from prompts.propositions import ListStatements, PropositionListed
from prompts.text.segment import sentences
from prompts.text.words import content_terms
from storage.propositions import Proposition
from storage.records import Chunk, DeadLetter, content_id
from storage.vectors import Window
from tasks.batches import read_chunks
from tasks.retrying import PATIENT
from tasks.step import step

BINDER_VERSION = "1"  # of the rules that bind propositions to sentences
LEAST_SHARED = 0.5  # of a proposition's words that its passage must hold, as of a claim's


@dataclass(frozen=True)
class Proposed:
    """The propositions of each chunk (id) that was read, and a dead letter for each that failed."""

    by_chunk: Mapping[str, Sequence[Proposition]]
    dead_letters: Sequence[DeadLetter] = ()


def proposition_inputs(chunk: Chunk, author: str) -> str:
    """Return the hash of all that a chunk's propositions depend on; see `Step.author`."""
    return content_id("prp", BINDER_VERSION, author, chunk.title, chunk.text)


def bound(
    chunk: Chunk, listed: Sequence[PropositionListed], spans: Sequence[tuple[int, int]]
) -> list[Proposition]:
    """Bind propositions to the spans of their sentences, each text once.

    One that shares less than half of its words with the passage and its title was not taken from
    it, and is left out.
    """
    known = set(content_terms(f"{chunk.title} {chunk.text}"))
    made: dict[str, Proposition] = {}
    for one in listed:
        text, (start, end) = " ".join(one.text.split()), spans[one.sentence - 1]
        words = set(content_terms(text))
        if words and len(words & known) >= LEAST_SHARED * len(words):
            made.setdefault(
                text, Proposition(chunk.id, text, chunk.start + start, chunk.start + end)
            )
    return list(made.values())


@step("propositions", PATIENT, asks_model=True)
async def propose(chunks: Sequence[Chunk], proposer: ListStatements) -> Proposed:
    """List the propositions of a batch of chunks; a chunk that fails becomes a dead letter.

    Raises as `read_chunks` does.
    """

    async def of_chunk(chunk: Chunk) -> list[Proposition]:
        spans = sentences(chunk.text)
        texts = [chunk.text[start:end] for start, end in spans]
        return bound(chunk, await proposer.run(chunk.title, texts), spans)

    made, letters = await read_chunks(chunks, proposer.step, of_chunk)
    return Proposed({chunk.id: propositions for chunk, propositions in made}, letters)


def proposition_windows(
    propositions: Sequence[Proposition], chunks: Mapping[str, Chunk], embedder: Embedder
) -> list[tuple[Window, str]]:
    """Return a window for each proposition that the embedder can read, with the text to embed.

    It lies on the sentence that makes the proposition, so that a search for the nearest windows
    finds the passage.
    """
    windows = []
    for one in propositions:
        if embedder.reads(one.text):
            chunk, key = chunks[one.chunk], text_hash(one.text)
            place = f"{one.start - chunk.start}-{one.end - chunk.start}"
            window = Window(
                id=f"{chunk.id}#{key[:16]}:{place}",
                chunk=chunk.id,
                document=chunk.document,
                text_hash=key,
            )
            windows.append((window, one.text))
    return windows
