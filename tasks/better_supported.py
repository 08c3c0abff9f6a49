"""Which of two structures supports the question better? Where the router's margin is small both are built.

(StructRAG, section 2.2, takes the router's word. Here what the documents gave decides a close call.)
"""

from dataclasses import dataclass, replace

from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from storage.records import RouteDecision
from tasks.structurize.step import Structured

# The elements nearest to the question: more of them say more, but not to the question.
READ = 12
# The router's first choice stays unless the other one is better by this, and by more than the router's own margin.
LEAD = 0.1
_WORDS, _NAMES, _VALUE, _DOCUMENTS = 0.5, 0.2, 0.2, 0.1


@dataclass(frozen=True, slots=True)
class Support:
    """What the best elements of a structure hold (each 0-1): of the question's words, of its names, a value of the kind
    that it asks for, and the share of the documents that gave elements."""

    words: float
    names: float
    value: float
    documents: float

    @property
    def score(self) -> float:
        """All of it as one number (0-1)."""
        return _WORDS * self.words + _NAMES * self.names + _VALUE * self.value + _DOCUMENTS * self.documents


NOTHING = Support(0.0, 0.0, 0.0, 0.0)


def support_of(structured: Structured, relevance: Relevance) -> Support:
    """How well the elements of a structure support the question. Words count where the element itself says them, or its
    title does; the sentence that it was taken from does not help it."""
    if not structured.elements:
        return NOTHING
    near = sorted(map(relevance.judge, structured.elements), key=lambda one: (-one.score, one.evidence.number))[:READ]
    best = relevance.rank([replace(one.evidence, text=_said(one.evidence), before="") for one in near])
    together = Evidence(
        number=0,
        document="",
        title="; ".join(dict.fromkeys(one.evidence.title for one in best)),
        text="\n".join(one.evidence.text for one in best),
        heading="; ".join(dict.fromkeys(one.evidence.heading for one in best)),
    )
    judged = relevance.judge(together)
    wants_value = relevance.ask.expects not in {"text", "yesno"}
    given = {one.document for one in structured.elements}
    read = {one.document for one in structured.pool.evidence}
    return Support(
        words=judged.coverage,
        names=judged.names,
        value=float(any(one.value for one in best)) if wants_value else 1.0,
        documents=len(given & read) / max(len(read), 1),
    )


def _said(element: Evidence) -> str:
    """What an element says of itself: row, column and cell; head, relation and tail; a step, a line, a sentence."""
    own = " ".join(part for part in (element.label, element.attribute, element.value) if part)
    return own if element.value else element.text


def better(
    first: Structured, second: Structured, route: RouteDecision, relevance: Relevance
) -> tuple[Structured, RouteDecision]:
    """The structure to keep, and the decision with the reason; `first` is the router's choice and wins a tie.

    One that fitted no document (it fell back to chunks) does not count as itself.
    """
    if route.second is None:
        return first, route
    if second.type != route.second:
        return first, _told(route, f"{route.type} kept: {route.second} fits no document")
    if first.type != route.type:
        return second, _told(route, f"{route.second} kept: {route.type} fits no document")
    of_first, of_second = support_of(first, relevance).score, support_of(second, relevance).score
    wins = of_second - of_first > max(LEAD, route.margin)
    kept, other = (route.second, route.type) if wins else (route.type, route.second)
    high, low = (of_second, of_first) if wins else (of_first, of_second)
    return (second if wins else first), _told(route, f"{kept} kept: support {high:.2f}, {other} {low:.2f}")


def _told(route: RouteDecision, kept: str) -> RouteDecision:
    return route.model_copy(update={"kept": kept})
