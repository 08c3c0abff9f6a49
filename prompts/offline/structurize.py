"""Structures by rules: the elements of each that can be read out of evidence (StructRAG 2.3)."""

import re
from collections.abc import Callable, Sequence

from prompts.structures import StructureName
from prompts.text.evidence import Evidence
from prompts.text.relevance import Relevance

# The share of a question's words from which a sentence is worth being taken apart.
NEAR = 0.25
MOST_OF_A_SECTION = 3


def elements_of(structure: StructureName, evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    """The elements of one document's evidence; each is the piece that says it, with label, attribute and value."""
    pieces = evidence if structure == "algorithm" else [piece for piece in evidence if not piece.label]
    return _BUILDERS[structure](pieces, relevance)


def is_exact(structure: StructureName, evidence: Sequence[Evidence]) -> bool:
    """Whether rules make this structure of a document's evidence without loss: sentences, rows, numbered steps."""
    if structure in {"table", "graph"}:
        return all(piece.cells for piece in evidence)
    return structure == "chunk" or (structure == "algorithm" and any(piece.attribute == "step" for piece in evidence))


def _table(evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    """The cells of rows, each a triple too; prose is left to a model."""
    return [
        piece._replace(label=piece.cells[0][1], attribute=column, value=value)
        for piece in evidence
        for column, value in piece.cells[1:]
        if value
    ]


def _algorithm(evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    """The steps of the document, unless all of them together have next to nothing of the question."""
    steps = steps_of(evidence)
    if not steps:
        return []
    together = steps[0]._replace(
        text="\n".join(step.text for step in steps), heading=" ".join({step.heading: None for step in steps})
    )
    return steps if relevance.coverage(together) >= NEAR else []


def _catalogue(evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    """Each section under its heading, numbered 1, 2, …; in it its most telling sentences, numbered 1.1, 1.2, …"""
    sections: dict[str, list[Evidence]] = {}
    for piece in evidence:
        if not piece.text.lstrip().startswith("#"):  # no heading
            sections.setdefault(piece.heading or piece.title, []).append(piece)
    lines = []
    for number, (heading, pieces) in enumerate(sections.items(), 1):
        ranked = sorted(pieces, key=lambda piece: (-relevance.coverage(piece), -piece.prior, piece.number))
        best = sorted(ranked[:MOST_OF_A_SECTION], key=lambda piece: piece.number)
        # The heading's own line is cited by the first sentence under it.
        lines.append(best[0]._replace(label=str(number), attribute=heading, value=heading or best[0].text))
        lines += [
            piece._replace(label=f"{number}.{place}", attribute=heading, value=piece.text)
            for place, piece in enumerate(best, 1)
        ]
    return lines


_BUILDERS: dict[StructureName, Callable[[Sequence[Evidence], Relevance], list[Evidence]]] = {
    "table": _table,
    "graph": _table,
    "algorithm": _algorithm,
    "catalogue": _catalogue,
    "chunk": lambda evidence, relevance: list(evidence),
}


# --- procedures ------------------------------------------------------------------------------------------------------

_CONDITION = re.compile(
    r"(?P<condition>(?:if|when|whenever|unless|until|once|before|after|in case|only if|as soon as|where)\b"
    r"[^,;:，]{3,160})[,:，]\s*(?P<rest>\S.*)|"
    r"(?P<when>(?:如果|若|假如|当|一旦|除非|在)[^，,：:；;。]{2,60})[，,：:]\s*(?P<then>\S.*)",
    re.I | re.S,
)
_ZH_PLACE = re.compile(r"在.*(?:前|后|时|情况下)$")


def steps_of(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The steps in order: `label` their number, `attribute` the condition (or "step"), `value` what is done.

    `value` and the condition are parts of the text as written; a step that is nothing but a condition stays whole.
    """
    return [_conditioned(piece) for piece in evidence if piece.attribute == "step"]


def _conditioned(piece: Evidence) -> Evidence:
    text = piece.text.strip()
    match = _CONDITION.match(text)
    if not match:
        return piece._replace(attribute="step", value=text)
    condition, done = match["condition"] or match["when"], match["rest"] or match["then"]
    if match["when"] and condition.startswith("在") and not _ZH_PLACE.match(condition):
        return piece._replace(attribute="step", value=text)
    return piece._replace(attribute=condition, value=done)
