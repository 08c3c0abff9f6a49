"""Rewrite: what is searched for instead of a question, and what the question leaves open (ERM4,
Query Rewriter+).

The results are a question that stands on its own with search queries, the keys by which the graph
is searched (LightRAG 3.2), and a hypothetical passage (HyDE). Ambiguities are reported: the index
knows names that several things share, the rewriting pronouns and dates. The answer follows the
evidence.
"""

from collections.abc import Mapping, Sequence

from prompts.engine.helper import helped
from prompts.rewrite import Ambiguous, Hypothesize, Keys, Keywords, Rewrite, Rewriting
from storage.answer_records import Ambiguity
from storage.errors import UsageError
from storage.graph_records import Entity
from storage.records import Chunk, by_key
from tasks.retrieve.link import Link
from tasks.retrying import BRIEF
from tasks.step import step

MAX_READINGS = 5


def turns(history: Sequence[str | Mapping[str, object]]) -> tuple[str, ...]:
    """Return the texts of a conversation's earlier turns, oldest first.

    A turn is a text, or `{"role", "content"}` of a chat. Raises UsageError for anything else, and
    for roles other than user and assistant.
    """
    if isinstance(history, str):
        raise UsageError("The history is one text.", "Give it as a list of turns, oldest first.")
    return tuple(map(_turn_text, history))


def _turn_text(turn: object) -> str:
    text = turn
    if isinstance(turn, Mapping):
        text = turn.get("content") if turn.get("role") in {"user", "assistant"} else None
    if isinstance(text, str):
        return text
    raise UsageError(
        f"A turn of the history is {str(turn)[:80]}.",
        'Give a turn as its text, or as {"role": "user" or "assistant", "content": its text}.',
    )


@step("rewrite", BRIEF, asks_model=True)
async def rewrite(question: str, history: Sequence[str], rewriter: Rewrite) -> Rewriting:
    """Make the question stand on its own; as one line it is the first of the queries."""
    rewriting = await helped(
        rewriter,
        lambda step: step.run(question, history),
        "the question is searched for as it is",
        wanted=bool(history),
    )
    lines = [" ".join(query.split()) for query in (rewriting.question, *rewriting.queries)]
    return rewriting.model_copy(update={"queries": list(dict.fromkeys(lines))})


@step("keywords", BRIEF, asks_model=True)
async def find_keys(question: str, finder: Keywords) -> Keys:
    """Find the keys of a question: names (low) and themes (high)."""
    instead = "names and words of the question are its keys"
    return await helped(finder, lambda step: step.run(question), instead)


@step("hypothesize", BRIEF, asks_model=True)
async def hypothesize(question: str, writer: Hypothesize) -> str:
    """Write a hypothetical passage that answers the question, or else return the question."""
    instead = "the passages nearest to the question are read"
    return await helped(
        writer, lambda step: step.run(question), instead, otherwise=lambda: question
    )


# --- ambiguity ------------------------------------------------------------------------------------


def shared_names(links: Sequence[Link], entities: Sequence[Entity]) -> dict[str, list[Entity]]:
    """Return the linked names of several entities, each with these, the most mentioned first.

    Links by a similar spelling do not count.
    """
    by_place = by_key(((link.start, link.end), link) for link in links)
    shared = {}
    for stretch in by_place.values():
        same = [entities[link.entity] for link in stretch if link.score == 1.0]
        if len(same) > 1:
            same.sort(key=lambda entity: (-entity.mentions, entity.name, entity.id))
            shared[stretch[0].text] = same[:MAX_READINGS]
    return shared


def ambiguities(
    rewritten: Sequence[Ambiguous],
    shared: Mapping[str, Sequence[Entity]],
    chunks: Mapping[str, Sequence[Chunk]],
    weights: Mapping[str, float],
) -> tuple[Ambiguity, ...]:
    """Return what the question leaves open, by the rewriting and by names that entities share.

    The reading that the answer took is the entity whose chunks count most for it, or else the first
    one. `chunks` are those of an entity, by its id; `weights` say how much each chunk counted.
    """
    readings = {ambiguous.text: tuple(ambiguous.readings) for ambiguous in rewritten}
    for text, entities in shared.items():
        weight = {
            entity.id: sum(weights.get(chunk.id, 0.0) for chunk in chunks.get(entity.id, ()))
            for entity in entities
        }
        ranked = sorted(entities, key=lambda entity: -weight[entity.id])
        names = tuple(dict.fromkeys(entity.name for entity in ranked))
        if len(names) > 1:
            readings.setdefault(text, names)
    return tuple(
        Ambiguity(text=text, readings=own, taken=next(iter(own), ""))
        for text, own in readings.items()
    )
