"""Which figures does a model read out of sentences, where no rule finds what is asked for in a document?

(StructRAG, section 2.3: the structurizer, document by document, by one schema.) Only sentences that share words with
the attribute are shown; a document without any costs no call and has nothing to say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from prompts.engine.calls import rough_tokens
from prompts.language.concepts import concept_terms
from prompts.language.segment import sentences
from prompts.language.table_plan import TablePlan
from prompts.structures.table import WriteTable
from storage.records import Document
from storage.structures import Cell, Schema
from tasks.structurize.tables import matching
from tasks.structurize.written import placed
from tasks.together import together
from tasks.utilize.slots import amount_of
from tasks.utilize.subjects import Subject

MOST_DOCUMENTS = 24
SHOWN_TOKENS = 500  # of one document
LEAST_SHARED = 0.5  # of the attribute's words


async def with_written(
    plan: TablePlan, subjects: Sequence[Subject], stored: Mapping[str, Document], writer: WriteTable
) -> list[Subject]:
    """The subjects, those without the attribute with the cells that a model finds and that stand in the text."""
    lacking = [one for one in subjects if _is_asked(one, plan) and not _has(one, plan)][:MOST_DOCUMENTS]
    found = await together(_read(stored[one.document], plan.attribute, writer) for one in lacking)
    new = {one.document: cells for one, cells in zip(lacking, found, strict=True)}
    return [replace(one, cells=(*one.cells, *new.get(one.document, ()))) for one in subjects]


def _is_asked(subject: Subject, plan: TablePlan) -> bool:
    return not plan.things or any(subject.is_called(thing) for thing in plan.things)


def _has(subject: Subject, plan: TablePlan) -> bool:
    schema = Schema(things=plan.things, attributes=(plan.attribute,), periods=plan.periods)
    return any(amount_of(cell) is not None for cell in matching(schema, subject.cells)[plan.attribute])


async def _read(document: Document, attribute: str, writer: WriteTable) -> tuple[Cell, ...]:
    spans = nearest_to(attribute, document.text)
    if not spans:
        return ()
    written = await writer.run([attribute], document.title, [document.text[start:end] for start, end in spans])
    return placed(document, spans, [attribute], written).cells


def nearest_to(attribute: str, text: str) -> list[tuple[int, int]]:
    """The sentences with most of the attribute's words, as many as are shown, in the order of the text."""
    wanted = set(concept_terms(attribute))
    shares = []
    for start, end in sentences(text):
        said = text[start:end]
        if any(sign.isdigit() for sign in said):
            shares.append((len(wanted & set(concept_terms(said))) / max(len(wanted), 1), start, end))
    room, kept = SHOWN_TOKENS, list[tuple[int, int]]()
    for share, start, end in sorted(shares, key=lambda one: (-one[0], one[1])):
        room -= rough_tokens(text[start:end])
        if share < LEAST_SHARED or room < 0:
            break
        kept.append((start, end))
    return sorted(kept)
