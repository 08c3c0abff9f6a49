"""Structures by rules: the elements of each that can be read out of evidence (StructRAG 2.3)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from prompts.offline.extract import RelationInText, statements
from prompts.structures import StructureName
from prompts.text.amounts import values_in
from prompts.text.evidence import Evidence
from prompts.text.languages import names_of
from prompts.text.relevance import Relevance

# The share of a question's words from which a sentence is worth being taken apart.
NEAR = 0.25
MOST_OF_A_CLAUSE = 70
MOST_OF_A_SECTION = 3
_CLAUSE_END = re.compile(r"[;:；：。，]|[,.](?=\s|$)")


def elements_of(structure: StructureName, evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    """The elements of one document's evidence; each is the piece that says it, with label, attribute and value."""
    return _BUILDERS[structure](evidence, relevance)


def is_exact(structure: StructureName, evidence: Sequence[Evidence]) -> bool:
    """Whether rules make this structure of a document's evidence without loss: sentences, rows, numbered steps."""
    if structure in {"table", "graph"}:
        return all(piece.cells for piece in evidence)
    return structure == "chunk" or (structure == "algorithm" and any(piece.attribute == "step" for piece in evidence))


def _plain(evidence: Sequence[Evidence]) -> list[Evidence]:
    return [piece for piece in evidence if not piece.label]


def _chunk(evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    return _plain(evidence)


def _table(evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    """Cells: those of rows, and of sentences near the question each figure or date, under the words around it."""
    cells = []
    for piece in _plain(evidence):
        if piece.cells:
            row = piece.cells[0][1]
            cells += [
                replace(piece, label=row, attribute=column, value=value) for column, value in piece.cells[1:] if value
            ]
        elif relevance.coverage(piece) >= NEAR and not _is_heading(piece):
            cells += [
                replace(piece, label=piece.title, attribute=_around(piece.text, value), value=value)
                for value in values_in(piece.text)
            ]
    return cells


def _around(text: str, value: str) -> str:
    """The clause of a sentence that a value stands in, with "…" in its place; at most MOST_OF_A_CLAUSE signs."""
    clause = next((one for one in _CLAUSE_END.split(text) if value in one), text)
    said = " ".join(clause.replace(value, "…", 1).split()).strip(" *_#|")
    return said if len(said) <= MOST_OF_A_CLAUSE else f"{said[:MOST_OF_A_CLAUSE].rsplit(' ', 1)[0]} …"


def _is_heading(piece: Evidence) -> bool:
    return piece.text.lstrip().startswith("#")


def _graph(evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    """Triples: those of rows, and of the sentences that share much with the question."""
    triples = []
    for piece in _plain(evidence):
        if piece.cells:
            head = piece.cells[0][1]
            triples += [
                replace(piece, label=head, attribute=column, value=value) for column, value in piece.cells[1:] if value
            ]
            continue
        if relevance.coverage(piece) >= NEAR:
            triples += [
                replace(piece, label=said.source, attribute=said.predicate, value=said.target)
                for said in _stated(piece.text, piece.title)
            ]
    return triples


@lru_cache(maxsize=20_000)
def _stated(text: str, title: str) -> tuple[RelationInText, ...]:
    """The relations that a sentence states between the names in it."""
    return tuple(statements(text, 0, len(text), list(names_of(text)), title))


def _algorithm(evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    """The steps of the document, unless all of them together have next to nothing of the question."""
    steps = steps_of(evidence)
    if not steps:
        return []
    together = replace(
        steps[0], text="\n".join(step.text for step in steps), heading=" ".join({step.heading: None for step in steps})
    )
    return steps if relevance.coverage(together) >= NEAR else []


def _catalogue(evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    """Each section under its heading, numbered 1, 2, …; in it its most telling sentences, numbered 1.1, 1.2, …"""
    sections: dict[str, list[Evidence]] = {}
    for piece in _plain(evidence):
        if not _is_heading(piece):
            sections.setdefault(piece.heading or piece.title, []).append(piece)
    lines = []
    for number, (heading, pieces) in enumerate(sections.items(), 1):
        ranked = sorted(pieces, key=lambda piece: (-relevance.coverage(piece), -piece.prior, piece.number))
        best = sorted(ranked[:MOST_OF_A_SECTION], key=lambda piece: piece.number)
        # The heading's own line is cited by the first sentence under it.
        lines.append(replace(best[0], label=str(number), attribute=heading, value=heading or best[0].text))
        lines += [
            replace(piece, label=f"{number}.{place}", attribute=heading, value=piece.text)
            for place, piece in enumerate(best, 1)
        ]
    return lines


_BUILDERS: dict[StructureName, Callable[[Sequence[Evidence], Relevance], list[Evidence]]] = {
    "table": _table,
    "graph": _graph,
    "algorithm": _algorithm,
    "catalogue": _catalogue,
    "chunk": _chunk,
}


# --- procedures ------------------------------------------------------------------------------------------------------

_CONDITION = re.compile(
    r"(?P<condition>(?:if|when|whenever|unless|until|once|before|after|in case|only if|as soon as|where)\b"
    r"[^,;:，]{3,160})[,:，]\s*(?P<rest>\S.*)|"
    r"(?P<when>(?:如果|若|假如|当|一旦|除非|在)[^，,：:；;。]{2,60})[，,：:]\s*(?P<then>\S.*)",
    re.I | re.S,
)
_ZH_PLACE = re.compile(r"在.*(?:前|后|时|情况下)$")
_PLACED = re.compile(
    r"(?:first(?:ly)?|second(?:ly)?|third(?:ly)?|then|next|after that|afterwards|finally|lastly|to begin with)\b"
    r"[,:]?\s|"
    r"(?:首先|其次|再次|然后|接着|接下来|随后|之后|最后|第[一二三四五六七八九十]步)[，,：:]?",
    re.I,
)
LEAST_PLACED = 2  # sentences that say their place: one alone is no procedure


def steps_of(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The steps in order: `label` their number, `attribute` the condition (or "step"), `value` what is done.

    `value` and the condition are parts of the text as written; a step that is nothing but a condition stays whole.
    """
    listed = [piece for piece in evidence if piece.attribute == "step"]
    if not listed:
        placed = [piece for piece in evidence if not piece.label and _PLACED.match(piece.text)]
        listed = [
            replace(piece, label=str(number))
            for number, piece in enumerate(placed if len(placed) >= LEAST_PLACED else (), 1)
        ]
    return [_conditioned(piece) for piece in listed]


def _conditioned(piece: Evidence) -> Evidence:
    text = piece.text.strip()
    found = _CONDITION.match(text)
    if not found:
        return replace(piece, attribute="step", value=text)
    condition, done = found["condition"] or found["when"], found["rest"] or found["then"]
    if found["when"] and condition.startswith("在") and not _ZH_PLACE.match(condition):
        return replace(piece, attribute="step", value=text)
    return replace(piece, attribute=condition, value=done)
