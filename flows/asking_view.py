"""How do the steps of a question see the session? Rarities, aliases, memory and further look-ups as plain values."""

from collections.abc import Mapping, Sequence

from flows.session import Session
from prompts.language.concepts import concept_terms, members
from prompts.language.asked import Ask
from storage.memory import MemoryEntry
from storage.records import Mode, Passage
from tasks.answer import LookUp
from tasks.evidence import Pool
from tasks.retrieve.search import retrieve
from tasks.trigger import Recall, Similarity, overlap

LOOK_UP_PASSAGES = 8
RECALLED = {"fact", "list", "yesno"}


def weights_of(session: Session, text: str) -> dict[str, float]:
    """How rare each term of a question is; a concept is as rare as the commonest of its words."""
    rarity = session.index.lexicon.idf_of
    return {term: min(map(rarity, members(term)), default=rarity(term)) for term in concept_terms(text)}


def aliases_of(session: Session, text: str) -> dict[str, tuple[str, ...]]:
    """The names that a question holds, each with the other names of the entity that it links to."""
    return {link.text: session.index.names_of(link.entity) for link in session.index.link(text)}


def memory_of(session: Session, taken: Ask, documents: Sequence[str] | None) -> list[MemoryEntry]:
    """What memory offers: entries whose evidence is in this generation.

    A restricted question has no use for it, nor has one that reads widely: what answered it once was only a part.
    """
    if documents is not None or taken.form not in RECALLED:
        return []
    position = session.index.position
    return [entry for entry in session.memory() if all(chunk in position for chunk in entry.evidence)]


def recalled(session: Session, recall: Recall) -> list[Passage]:
    """The passages that memory offers, if it is used for every query."""
    if not recall.chunks or not all(decision.use_memory for decision in recall.decisions):
        return []
    return [session.index.passage(chunk, 1.0) for chunk in recall.chunks]


def similarity_of(session: Session) -> Similarity:
    """Cosine of titles where the embedder reads the query, else likeness of words."""

    def similarity(query: str, titles: Sequence[str]) -> list[float]:
        embedder = session.runtime.embedder
        likeness = overlap(query, titles)
        if not embedder.reads(query):
            return likeness
        readable = [title for title in titles if embedder.reads(title)]
        vectors = embedder.embed([query, *readable])
        cosines = dict(zip(readable, (vectors[1:] @ vectors[0]).tolist(), strict=True))
        return [cosines.get(title, like) for title, like in zip(titles, likeness, strict=True)]

    return similarity


def look_up_for(session: Session, documents: Sequence[str] | None) -> LookUp:
    """A further search for a sub-question, added to the evidence at hand."""

    async def look(question: str, pool: Pool) -> tuple[Pool, Mapping[str, Sequence[str]]]:
        passages = await retrieve(session.index, [question], session.dense([question], documents), LOOK_UP_PASSAGES, documents)
        more = pool.plus([session.index.chunk(passage.chunk) for passage in passages])
        return more, aliases_of(session, question)

    return look


def mode_of(mode: Mode, taken: Ask) -> Mode:
    """The mode in force: `auto` becomes the one that was followed."""
    if mode != "auto":
        return mode
    return {"connect": "traverse", "global": "mix"}.get(taken.form, "struct")  # type: ignore[return-value]
