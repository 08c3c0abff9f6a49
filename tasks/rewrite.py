"""Rewrite: what is searched for in place of a question, and what the question leaves open (ERM4,
Query Rewriter+).

One question that stands on its own with its search queries; the keys by which the graph is searched
(LightRAG 3.2); a hypothetical passage (HyDE). What is ambiguous is reported: of a name that several
things bear the index tells, of pronouns and dates the rewriting; the answer follows the evidence.
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
    """The words of a conversation's earlier turns, each given as its text or as `{"role",
    "content"}` of a chat.

    Raises UsageError for anything else, also for other roles than user and assistant: they are no
    turns.
    """
    if isinstance(history, str):
        raise UsageError("The history is one text.", "Give it as a list of turns, oldest first.")
    return tuple(map(_words, history))


def _words(turn: object) -> str:
    if isinstance(turn, str):
        return turn
    words = (
        turn.get("content")
        if isinstance(turn, Mapping) and turn.get("role") in {"user", "assistant"}
        else None
    )
    if isinstance(words, str):
        return words
    raise UsageError(
        f"A turn of the history is {str(turn)[:80]}.",
        'Give a turn as its text, or as {"role": "user" or "assistant", "content": its text}.',
    )


@step("rewrite", BRIEF, asks_model=True)
async def rewrite(question: str, history: Sequence[str], rewriter: Rewrite) -> Rewriting:
    """Make the question stand on its own, which is, in one line, the first of its queries."""
    rewriting = await helped(
        rewriter,
        lambda step: step.run(question, history),
        "the question is searched for as it is",
        wanted=bool(history),
    )
    queries = list(
        dict.fromkeys(" ".join(query.split()) for query in [rewriting.question, *rewriting.queries])
    )
    return rewriting.model_copy(update={"queries": queries})


@step("keywords", BRIEF, asks_model=True)
async def find_keys(question: str, finder: Keywords) -> Keys:
    """Find the keys of a question: low ones are names, high ones themes."""
    instead = "names and words of the question are its keys"
    return await helped(finder, lambda step: step.run(question), instead)


@step("hypothesize", BRIEF, asks_model=True)
async def hypothesize(question: str, writer: Hypothesize) -> str:
    """Write a hypothetical passage that answers the question; where the model gives none, the
    question stands in.
    """
    instead = "the passages nearest to the question are read"
    return await helped(
        writer, lambda step: step.run(question), instead, otherwise=lambda: question
    )


# --- ambiguity ------------------------------------------------------------------------------------


def shared_names(links: Sequence[Link], entities: Sequence[Entity]) -> dict[str, list[Entity]]:
    """The names that the best links of a stretch take for several entities, and these, those that
    are named most first; a likeness of spelling is no homonym.
    """
    by_place = by_key(((link.start, link.end), link) for link in links)
    shared = {}
    for stretch in by_place.values():
        same = [entities[link.entity] for link in stretch if link.score == 1.0]
        if len(same) > 1:
            shared[stretch[0].text] = sorted(same, key=lambda e: (-e.mentions, e.name, e.id))[
                :MAX_READINGS
            ]
    return shared


def ambiguities(
    rewritten: Sequence[Ambiguous],
    shared: Mapping[str, Sequence[Entity]],
    chunks: Mapping[str, Sequence[Chunk]],
    weights: Mapping[str, float],
) -> tuple[Ambiguity, ...]:
    """What the question leaves open; the reading that was taken is the one whose places the answer
    rests on, else the first. A reading that nothing is known of has none.

    `chunks` name an entity, by its id; `weights` say how much each chunk counted for the answer
    (cited ones most).
    """
    by_text: dict[str, tuple[str, ...]] = {}
    for text, entities in shared.items():
        weight = {
            e.id: sum(weights.get(chunk.id, 0.0) for chunk in chunks.get(e.id, ()))
            for e in entities
        }
        bearing = sorted(entities, key=lambda entity: -weight[entity.id])
        readings = tuple(dict.fromkeys(entity.name for entity in bearing))
        if len(readings) > 1:
            by_text[text] = readings
    by_rewriting = {ambiguous.text: tuple(ambiguous.readings) for ambiguous in rewritten}
    return tuple(
        Ambiguity(text=text, readings=readings, taken=next(iter(readings), ""))
        for text, readings in (by_rewriting | by_text | by_rewriting).items()
    )
