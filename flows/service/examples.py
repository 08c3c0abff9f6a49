"""Questions that an index can be asked, for somebody who sees it for the first time."""

from flows.session import Session
from prompts.text.words import is_han
from storage.graph_records import Entity

ENGLISH = ("Who is {}?", "What is {}?", "How are {} and {} connected?")
CHINESE = ("{}是谁？", "{}是什么？", "{}和{}有什么关系？")
WHOLE = {False: "What are these documents about?", True: "这些文档讲了什么？"}


def example_questions(session: Session) -> tuple[str, ...]:
    """Return up to four questions about the best connected entities and about the whole."""
    facts = session.graph.facts
    entities = (facts.entities[node] for node in facts.connected)
    ranked = sorted(entities, key=lambda entity: (-entity.degree, -entity.mentions, entity.id))
    person = next((entity for entity in ranked if entity.kind == "person"), None)
    thing = next((entity for entity in ranked if entity.kind != "person"), None)
    named = [entity for entity in (person, thing) if entity]
    questions = [_about(entity) for entity in named]
    if len(named) == 2:
        forms = CHINESE if all(is_han(entity.name) for entity in named) else ENGLISH
        questions.append(forms[2].format(*(entity.name for entity in named)))
    chinese = bool(ranked) and is_han(ranked[0].name)
    return (*questions, WHOLE[chinese])


def _about(entity: Entity) -> str:
    forms = CHINESE if is_han(entity.name) else ENGLISH
    return forms[0 if entity.kind == "person" else 1].format(entity.name)
