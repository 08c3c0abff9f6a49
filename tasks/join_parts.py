"""How do the answers of a question's independent parts become one answer?"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prompts.reading.claims import Reading, Support
from storage.records import Citation, RouteDecision, SubQuestion
from tasks.answer import Answered

_MARKERS = re.compile(r"(?:\[\d+\])+$", re.M)
_MARKER = re.compile(r"\[\d+\]")


@dataclass(frozen=True)
class PartAnswered:
    """A part as it was asked, the structure that it got, and its answer."""

    question: str
    route: RouteDecision
    answered: Answered


def join_parts(parts: Sequence[PartAnswered]) -> Answered:
    """One answer: the texts in order, values once each, a place cited under one number throughout.

    Supported where all parts are, abstained where all are; else in part, and a part without an answer is named.
    """
    citations: dict[tuple[str, int, int], Citation] = {}
    texts = []
    silent = [part.answered.reading.support == "abstained" for part in parts]
    for part, says_nothing in zip(parts, silent, strict=True):
        marker_of: dict[str, str] = {}
        for cited in part.answered.citations:
            place = (cited.document, cited.start, cited.end)
            known = citations.setdefault(place, cited.model_copy(update={"marker": f"[{len(citations) + 1}]"}))
            marker_of[cited.marker] = known.marker
        text = _renumbered(part.answered.text, marker_of)
        texts.append(f"{part.question} {text}" if says_nothing and not all(silent) else text)
    values = tuple(dict.fromkeys(value for part in parts for value in part.answered.reading.values))
    return Answered(
        text="\n".join(dict.fromkeys(texts)),
        reading=Reading(values=values, support=_support(parts)),
        citations=tuple(citations.values()),
        subquestions=tuple(sub for part in parts for sub in _subquestions(part)),
    )


def _renumbered(text: str, marker_of: Mapping[str, str]) -> str:
    """Markers stand at the ends of lines; what looks like one within a quote is not ours."""

    def renumber(found: re.Match[str]) -> str:
        return "".join(dict.fromkeys(marker_of.get(marker, marker) for marker in _MARKER.findall(found[0])))

    return _MARKERS.sub(renumber, text)


def _support(parts: Sequence[PartAnswered]) -> Support:
    supports = {part.answered.reading.support for part in parts}
    return supports.pop() if len(supports) == 1 else "partial"


def _subquestions(part: PartAnswered) -> list[SubQuestion]:
    """The part with its structure, after the links that it was answered by where it is a chain."""
    links = part.answered.subquestions if len(part.answered.subquestions) > 1 else ()
    said = ", ".join(part.answered.reading.values) or _MARKERS.sub("", part.answered.text).strip()
    evidence = tuple(dict.fromkeys(citation.chunk for citation in part.answered.citations))
    return [*links, SubQuestion(question=part.question, answer=said, evidence=evidence, route=part.route)]
