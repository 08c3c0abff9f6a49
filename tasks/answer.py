"""Answer: written from sources, its markers bound to quotes of documents, its sentences flagged by
their grounding.

What a model wrote reaches the user word for word. Its markers get new numbers; one that names no
source is removed and listed in `removed_markers`. Only the setting `strict` withholds what nothing
supports.

AnswerContext ─ (prompts.answer) AnswerDraft ─ `bind` ─ BoundAnswer ─ `ground_of` ─ Answered; a
StatedAnswer, which no model writes, goes the same way from `bind` on.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from prompts.answer import AnswerDraft, AnswerRequest, AnswerStep, Direct, NumberedText, QuotedSpan
from prompts.text.regex import regex
from prompts.text.words import content_terms, fold, is_han
from storage.answer_records import AnsweredBy, Citation, Fallback, Grounding
from storage.records import DocumentText
from tasks.citations import Source, best_quote, citation_of
from tasks.grounding import Scorer, fallback_of, ground, uniform_flags, word_coverage
from tasks.retrying import BRIEF
from tasks.statements import can_state
from tasks.step import step

# The stored texts of documents, by id.
Documents = Callable[[Sequence[str]], Mapping[str, DocumentText]]

_CODE = regex(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]+`", re.S)
_NUMBERS = r"\d{1,3}(?:\s*(?:[,;，、；]|[-–—](?=\s*\d))\s*\d{1,3})*"
_MARKER = regex(rf"[ \t]{{0,9}}(?:\[({_NUMBERS})\](?!\()|[【［]({_NUMBERS})[】］])")
_RANGE = regex(r"(\d+)(?:\s*[-–—]\s*(\d+))?")
# What stands in the place of an answer, in English and Chinese: a model says the first, the second
# needs none.
NOTHING_SAID = "The documents do not say.", "文档中没有说明。"
NOTHING_FOUND = "Nothing was found that speaks of this.", "没有找到相关的内容。"
MOST_OF_A_RANGE = 20  # numbers after the first, of [2-99]
# Where a statement begins: at a line, after a sentence, at a table's cell.
_STATEMENT = regex(r"\n|(?<=[.!?])\s+|(?<=[。！？；])|\|")


@dataclass(frozen=True, slots=True)
class Note:
    """What an earlier step made of the documents; `[n]` in its text is the number of a source."""

    label: str
    text: str


@dataclass(frozen=True)
class AnswerContext:
    """What a mode lays before the answer: sources, best first, and what was made of them."""

    sources: Sequence[Source]
    notes: Sequence[Note] = ()


@dataclass(frozen=True)
class StatedAnswer:
    """An answer that needs no model: of a walk over the graph, of cells of tables, or points that
    are quoted.

    `[n]` in its text is the number of a source, from 1 on. `fallback` says how well it answers.
    `looked_up`: triples say it in the question's own words.
    """

    text: str
    values: tuple[str, ...] = ()
    fallback: Fallback = "none"
    answered_by: AnsweredBy = "excerpts"
    looked_up: bool = False


@dataclass(frozen=True)
class Answered:
    """An answer with its citations bound, and how well each of its sentences is supported."""

    text: str
    values: tuple[str, ...]
    citations: tuple[Citation, ...]
    grounding: tuple[Grounding, ...]
    fallback: Fallback
    answered_by: AnsweredBy
    removed_markers: tuple[str, ...] = ()


@dataclass(frozen=True)
class AnswerOptions:
    """How answers are finished.

    `documents` gives the texts that quotes are checked against; `rarity`, `similarity` and
    `response` are those of `AnswerRequest`. `strict` withholds sentences that nothing supports,
    `scorer` judges support, `language` is the one that answers are written in (empty: that of the
    question).
    """

    documents: Documents
    rarity: Callable[[str], float]
    similarity: Callable[[str, Sequence[str]], Sequence[float]] | None = None
    response: str = ""
    strict: bool = False
    scorer: Scorer = word_coverage
    language: str = ""


@step("answer", BRIEF, asks_model=True)
async def answer(
    question: str,
    context: AnswerContext,
    writer: AnswerStep,
    options: AnswerOptions,
    stated: StatedAnswer | None = None,
) -> Answered:
    """Answer from the context, by the model; without a model what is `stated`, else the best
    excerpts.

    Where the context is empty nobody is asked: the documents do not say. EngineError where the
    model fails.
    """
    nothing = not context.sources and not context.notes
    if stated is not None and (writer.is_offline or nothing):
        return _stated(stated, context, options)
    if nothing:
        return abstained(question, "excerpts" if writer.is_offline else "model")
    request = AnswerRequest(
        question=question,
        evidence=[
            NumberedText(
                number,
                source.title or source.document,
                source.text,
                source.heading,
                source.language,
            )
            for number, source in enumerate(context.sources, 1)
        ],
        notes=[(note.label, note.text) for note in context.notes],
        response=options.response,
        rarity=options.rarity,
        similarity=options.similarity,
    )
    draft = await writer.run(request)
    answered_by: AnsweredBy = "excerpts" if writer.is_offline else "model"
    bound = bind(draft, context.sources, options.documents)
    if not draft.answerable:
        return replace(
            abstained(question, answered_by, bound.text),
            citations=bound.citations,
            removed_markers=bound.removed,
        )
    if writer.is_offline:
        return Answered(
            text=bound.text,
            values=(),
            citations=bound.citations,
            grounding=uniform_flags(bound.text, None),
            fallback="partial",  # whether a quote answers the question is the reader's to judge
            answered_by="excerpts",
        )
    # A model that judges support takes its time: other questions go on meanwhile.
    if options.scorer is word_coverage:
        grounding = ground_of(question, bound, context, options.scorer)
    else:
        grounding = await asyncio.to_thread(ground_of, question, bound, context, options.scorer)
    citations, fallback = bound.citations, fallback_of(grounding)
    if not citations:
        citations, grounding = cited_by_program(bound.text, grounding, context.sources, options)
    answered = Answered(
        text=bound.text,
        values=draft.values,
        citations=citations,
        grounding=grounding,
        fallback=fallback if citations or fallback != "none" else "partial",
        answered_by=answered_by,
        removed_markers=bound.removed,
    )
    return withheld(question, answered) if options.strict else answered


@step("direct", BRIEF, asks_model=True)
async def answer_directly(question: str, answerer: Direct) -> StatedAnswer:
    """Ask a model without any document: ungrounded; abstained where it says nothing."""
    written = await answerer.run(question)
    text = written.answer.strip()
    if not text:
        return StatedAnswer("The model does not know.", fallback="abstained", answered_by="model")
    return StatedAnswer(text, tuple(dict.fromkeys(written.values)), "ungrounded", "model")


def abstained(question: str, answered_by: AnsweredBy, text: str = "") -> Answered:
    """The documents do not say, in the words of the model where it found some; without a model
    nothing was found.
    """
    words = NOTHING_SAID if answered_by == "model" else NOTHING_FOUND
    return Answered(text or words[is_han(question)], (), (), (), "abstained", answered_by)


def _stated(stated: StatedAnswer, context: AnswerContext, options: AnswerOptions) -> Answered:
    """The answer that needs no model, with its citations.

    Its sentences are supported where it says so of itself: then they are triples, or computed by a
    model's plan.
    """
    quotes = {
        number: QuotedSpan(number, 0, len(source.text))
        for number, source in enumerate(context.sources, 1)
    }
    bound = bind(AnswerDraft(stated.text, quotes=quotes), context.sources, options.documents)
    supported = True if stated.fallback == "none" else None
    grounding = uniform_flags(bound.text, supported) if stated.fallback != "abstained" else ()
    return Answered(
        text=bound.text,
        values=stated.values,
        citations=bound.citations,
        grounding=grounding,
        fallback=stated.fallback,
        answered_by=stated.answered_by,
    )


# --- markers and quotes ---------------------------------------------------------------------------


@dataclass(frozen=True)
class BoundAnswer:
    """A text whose markers are numbered from 1 on, their citations, the source behind each marker
    (`cited`, by "[1]"), and the markers that named no source (`removed`).
    """

    text: str
    citations: tuple[Citation, ...]
    cited: Mapping[str, Source]
    removed: tuple[str, ...] = ()


def bind(draft: AnswerDraft, sources: Sequence[Source], documents: Documents) -> BoundAnswer:
    """The draft word for word, each marker bound to the sentence of its source that is nearest to
    the statement.

    Markers are numbered in the order of their first use, the same quote has the same marker; those
    of excerpts keep their numbers.
    """
    numbers: dict[
        tuple[int, int, int], int
    ] = {}  # by (place of the source, start, end): the number of its marker
    removed: list[str] = []
    known = draft.quotes or range(1, len(sources) + 1)
    code = [span.span() for span in _CODE.finditer(draft.text)]

    def renumbered(marker: re.Match[str]) -> str:
        if any(start < marker.end() and marker.start() < end for start, end in code):
            return marker.group()  # brackets in code are code
        if draft.marks is not None and marker.end() not in draft.marks:
            return marker.group()
        marker_numbers = _numbers_of(marker)
        removed.extend(f"[{number}]" for number in marker_numbers if number not in known)
        statement = _statement_before(draft.text, marker.start())
        new = []
        for number in marker_numbers:
            if number in known:
                quote = _quote_of(number, statement, draft, sources)
                new.append(
                    numbers.setdefault(quote, len(numbers) + 1 if draft.marks is None else number)
                )
        lead = marker.group()[: len(marker.group()) - len(marker.group().lstrip())]
        return f"{lead}[{', '.join(map(str, dict.fromkeys(new)))}]" if new else ""

    text = _MARKER.sub(renumbered, draft.text).strip()
    stored = documents(sorted({sources[place].document for place, _, _ in numbers}))
    quotes = sorted((number, quote) for quote, number in numbers.items())
    citations = tuple(
        citation_of(f"[{number}]", sources[place], start, end, stored[sources[place].document])
        for number, (place, start, end) in quotes
    )
    cited = {f"[{number}]": sources[place] for number, (place, _, _) in quotes}
    return BoundAnswer(text, citations, cited, tuple(dict.fromkeys(removed)))


def _numbers_of(match: re.Match[str]) -> list[int]:
    """The numbers of a marker: [2], [2, 5], [2-4]."""
    numbers: list[int] = []
    for part in _RANGE.finditer(match.group(1) or match.group(2)):
        first, last = int(part.group(1)), int(part.group(2) or part.group(1))
        numbers += range(first, min(last, first + MOST_OF_A_RANGE) + 1)
    return list(dict.fromkeys(numbers))


def _quote_of(
    number: int, statement: str, draft: AnswerDraft, sources: Sequence[Source]
) -> tuple[int, int, int]:
    """(place of the source, start, end) of what a known marker quotes."""
    if draft.quotes:
        quote = draft.quotes[number]
        return quote.number - 1, quote.start, quote.end
    return (number - 1, *best_quote(statement, sources[number - 1].text))


def _statement_before(text: str, end: int) -> str:
    """The sentence, list item or cell that a marker closes, without other markers."""
    start = text.rfind("\n\n", 0, end)
    before = _MARKER.sub("", text[max(start, 0) : end])
    return next(
        (part.strip() for part in reversed(_STATEMENT.split(before)) if part.strip()),
        before.strip(),
    )


# --- grounding ------------------------------------------------------------------------------------


def ground_of(
    question: str, bound: BoundAnswer, context: AnswerContext, scorer: Scorer
) -> tuple[Grounding, ...]:
    """A flag for each sentence of the bound text."""
    cited = {marker: f"{source.title}\n{source.text}" for marker, source in bound.cited.items()}
    offered = [f"{source.title}\n{source.text}" for source in context.sources]
    offered += [note.text for note in context.notes]
    return ground(bound.text, cited, offered, question, scorer)


def cited_by_program(
    text: str, grounding: Sequence[Grounding], sources: Sequence[Source], options: AnswerOptions
) -> tuple[tuple[Citation, ...], tuple[Grounding, ...]]:
    """Citations for what a text without markers says, and its flags with their markers.

    A sentence that is supported is cited, and one that cannot be told to be where a source has it
    word for word, as it has a bare name. The quote is the sentence that shares most with what is
    said, of a source that can state it where one can.
    """
    citations: list[Citation] = []
    rows: list[Grounding] = []
    for row in grounding:
        said = text[row.start : row.end]
        if row.supported or (
            row.supported is None and any(_has_word_for_word(one, said) for one in sources)
        ):
            wanted = frozenset(content_terms(said))
            having = [one for one in sources if _has_word_for_word(one, said)] or sources
            able = [
                one for one in having if can_state(said, [f"{one.title}\n{one.text}"])
            ] or having
            source = max(able, key=lambda one: len(wanted & frozenset(content_terms(one.text))))
            start, end = best_quote(said, source.text)
            stored = options.documents([source.document])[source.document]
            marker = f"[{len(citations) + 1}]"
            found = citation_of(marker, source, start, end, stored)
            citations.append(found.model_copy(update={"bound_by": "program"}))
            # The same row, cited.
            row = row.model_copy(update={"markers": (marker,)})  # noqa: PLW2901
        rows.append(row)
    return tuple(citations), tuple(rows)


def _has_word_for_word(source: Source, said: str) -> bool:
    bare = fold(said).strip(" .。!！")
    return bool(bare) and bare in fold(source.text)


def withheld(question: str, answered: Answered) -> Answered:
    """The answer without the sentences that nothing supports; where none is left, the documents do
    not say.
    """
    if all(row.supported is not False for row in answered.grounding):
        return answered
    if not any(row.supported for row in answered.grounding):
        return abstained(question, answered.answered_by)
    rows: list[Grounding] = []
    text, at = "", 0
    for row in answered.grounding:
        gap = answered.text[at : row.start]
        at = row.end
        if row.supported is not False:
            start = len(text) + len(gap)
            text += gap + answered.text[row.start : row.end]
            rows.append(row.model_copy(update={"start": start, "end": len(text)}))
        elif "\n" in gap:
            text += gap
    markers = {marker for row in rows for marker in row.markers}
    citations = tuple(citation for citation in answered.citations if citation.marker in markers)
    return replace(
        answered,
        text=text + answered.text[at:],
        grounding=tuple(rows),
        citations=citations,
        fallback="partial",
    )
