"""What does the page of a question show: the answer, its sources, the decisions behind it and its way?"""

from collections.abc import Sequence

from flows.shown.picture import Walked, picture
from flows.shown.text import plain
from flows.usage import ledger
from storage.meta import UsageRow
from storage.records import Answer, ModeDecision, ReportRead, Trace

SHOWN_DOCUMENTS = 6


def in_words(answer: Answer) -> str:
    """How the question ended, as one sentence."""
    cited = len({citation.document for citation in answer.citations})
    sources = "1 document" if cited == 1 else f"{cited} documents"
    if answer.trace.answered_by == "excerpts" and answer.fallback != "abstained":
        return f"The best excerpts, from {sources} (generation {answer.generation}, {answer.usage.seconds:.2f} s)."
    ends = {
        "none": f"Answered from {sources}",
        "partial": f"Answered in part, from {sources}",
        "ungrounded": "Answered by the model alone: no document supports it",
        "abstained": "Not answered: the documents do not say",
    }
    return f"{ends[answer.fallback]} (generation {answer.generation}, {answer.usage.seconds:.2f} s)."


def page(answer: Answer, way: Walked, used: Sequence[UsageRow]) -> str:
    """The page in Markdown, with the picture of the way as a Mermaid block."""
    parts = [f"# {plain(answer.question)}", plain(answer.answer), in_words(answer), *_flagged(answer)]
    parts += _sources(answer)
    parts += ["## Decisions", _decisions(answer.trace), *_structure(answer.trace)]
    parts += ["## The way of the question", picture(answer, way)]
    return "\n\n".join([*parts, ledger(used)])


def _flagged(answer: Answer) -> list[str]:
    """The sentences that no source supports."""
    flagged = [answer.answer[row.start : row.end] for row in answer.grounding if row.supported is False]
    return ["\n".join(["No source supports:", "", *(f"- {plain(one)}" for one in flagged)])] if flagged else []


def _sources(answer: Answer) -> list[str]:
    if not answer.citations:
        return []
    parts = ["## Sources"]
    for citation in answer.citations:
        page = f", p. {citation.page}" if citation.page else ""
        parts.append(f"{plain(citation.marker)} {plain(citation.title)} ({plain(citation.document)}{page})")
        parts.append(f"> {plain(citation.quote)}")
    return parts


def _structure(trace: Trace) -> list[str]:
    """What each document gave to the structure, in its form; documents without anything are named."""
    given = [one for one in trace.structures if one.elements]
    parts = [f"## The {trace.structure}"] if given else []
    for one in given[:SHOWN_DOCUMENTS]:
        text = "\n".join(f"    {line}" for line in one.text.splitlines())
        parts += [f"{plain(one.title)} ({plain(one.document)})", text]
    if len(given) > SHOWN_DOCUMENTS:
        parts.append(f"and {len(given) - SHOWN_DOCUMENTS} documents more")
    nothing = [plain(one.title) for one in trace.structures if not one.elements]
    if given and nothing:
        parts.append(f"nothing found in: {'; '.join(nothing)}")
    return parts


def _telling(trace: Trace) -> list[ReportRead]:
    """The community reports that gave something to the answer."""
    return [one for one in trace.reports if one.points][:SHOWN_DOCUMENTS]


def _chosen(decision: ModeDecision) -> list[str]:
    """Why this mode, what gave nothing, and what each mode would take with a model."""
    costs = ", ".join(f"{one.mode} {one.tokens:,} in {one.calls} calls" for one in decision.forecasts)
    return [
        f"chosen ({decision.confidence:.2f}): {plain(decision.reason)}",
        *(f"{one.mode} was tried and gave no answer: {plain(one.said)}" for one in decision.tried),
        *([f"estimated tokens with a model for every step: {costs}"] if costs else []),
    ]


def _decisions(trace: Trace) -> str:
    route = trace.route
    lines = [
        f"answered by {trace.answered_by}, effort {trace.effort}",
        *(f"no call for {one.step}: {plain(one.reason)}" for one in trace.spared),
        *([f"markers that named no source: {', '.join(trace.removed_markers)}"] if trace.removed_markers else []),
        f"mode {trace.mode}, question type {plain(trace.question_type)}",
        *(_chosen(trace.decision) if trace.decision else ()),
        *(
            f"memory for {plain(one.query)}: {one.pop} sources known, {one.threshold} needed, "
            f"{'used' if one.use_memory else 'not used'}"
            for one in trace.trigger
        ),
        f"searched for: {plain('; '.join(trace.queries))}",
        *(f"{plain(one.text)} read as {plain(one.taken or 'nothing known')}" for one in trace.ambiguity),
        f"passages: {trace.filter.entailment} support, {trace.filter.neutral} neutral, "
        f"{trace.filter.contradiction} contradict ({trace.filter.hypothesis} hypothesis)",
        *(f"{plain(one.document)}: {plain(one.explanation)}" for one in trace.filter.conflicts),
        f"route {route.type} (confidence {route.confidence:.2f}, margin {route.margin:.2f}): {plain(route.reason)}",
        f"structure used: {plain(trace.structure)}",
        *(f"report {plain(one.title)} (level {one.level}): {one.points} points" for one in _telling(trace)),
        *(f"{plain(part.question)} → {plain(part.answer)}" for part in trace.subquestions),
    ]
    return "\n".join(f"- {line}" for line in lines)
