"""Answer: write an answer from sources, bind its markers to quotes, and flag each sentence.

A model's words reach the user unchanged. Its markers are renumbered; a marker that names no source
is removed and listed in `removed_markers`. Only the setting `strict` withholds sentences that
nothing supports.

AnswerContext ─ (prompts.answer) AnswerDraft ─ `bind` ─ BoundAnswer ─ `ground_of` ─ Answered; a
StatedAnswer, which needs no model, starts at `bind`.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from prompts.answer import AnswerDraft, AnswerRequest, AnswerStep, Direct, NumberedText, QuotedSpan
from prompts.text.words import content_terms, fold, is_han
from storage.answer_records import AnsweredBy, Citation, Fallback, Grounding
from storage.records import DocumentText
from tasks.citations import Source, best_quote, citation_of
from tasks.grounding import Scorer, fallback_of, ground, uniform_flags, word_coverage
from tasks.retrying import BRIEF
from tasks.statements import can_state
from tasks.step import step

# Returns the stored texts of documents by their ids.
Documents = Callable[[Sequence[str]], Mapping[str, DocumentText]]

_CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]+`", re.S)
_NUMBERS = r"\d{1,3}(?:\s*(?:[,;，、；]|[-–—](?=\s*\d))\s*\d{1,3})*"
_MARKER = re.compile(rf"([ \t]{{0,9}})(?:\[({_NUMBERS})\](?!\()|[【［]({_NUMBERS})[】］])")
_RANGE = re.compile(r"(\d+)(?:\s*[-–—]\s*(\d+))?")
# What a statement begins after: a line end, a sentence end, a cell border.
_STATEMENT = re.compile(r"\n|(?<=[.!?])\s+|(?<=[。！？；])|\|")
_LONGEST_RANGE = 20  # How far the marker [2-99] reaches beyond its first number
MISREAD = "a small model misreads what is computed"
# Shown in place of an answer, in English and in Chinese: with a model, and without one.
NOTHING_SAID = "The documents do not say.", "文档中没有说明。"
NOTHING_FOUND = "Nothing was found about this.", "没有找到相关的内容。"


@dataclass(frozen=True, slots=True)
class Note:
    """What an earlier step learnt from the documents; `[n]` in its text names source n.

    `computed`: a program made it of what the documents state, so that it supports an answer as they
    do. What a model wrote supports nothing.
    """

    label: str
    text: str
    computed: bool = False


@dataclass(frozen=True)
class AnswerContext:
    """What an answer is written from: sources, best first, and notes on them."""

    sources: Sequence[Source]
    notes: Sequence[Note] = ()


@dataclass(frozen=True)
class StatedAnswer:
    """An answer that exists before any model writes: from the graph, from tables, or quoted points.

    `[n]` in its text names source n, counted from 1. `fallback` says how well it is supported,
    `looked_up` that imported triples hold it in the question's own words.
    """

    text: str
    values: tuple[str, ...] = ()
    fallback: Fallback = "none"
    answered_by: AnsweredBy = "excerpts"
    looked_up: bool = False


@dataclass(frozen=True)
class Answered:
    """An answer with its citations, and a support flag for each sentence."""

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

    `documents` returns the texts that quotes are checked against; `rarity`, `similarity` and
    `response` are those of `AnswerRequest`. `strict` withholds sentences that nothing supports,
    `scorer` judges support, `language` is the language of answers (empty: the question's).
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
    """Answer from the context with a model; without one return `stated`, or the best excerpts.

    An empty context abstains and asks no model, and what is computed from tables stays as it is
    where the model is a small one. Raises EngineError where the model fails.
    """
    is_empty = not context.sources and not context.notes
    if stated is not None and (writer.is_offline or is_empty or _stays(stated, writer)):
        return _stated(stated, context, options)
    answered_by: AnsweredBy = "excerpts" if writer.is_offline else "model"
    if is_empty:
        return abstained(question, answered_by)
    draft = await writer.run(_request(question, context, options))
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
            fallback="partial",  # The reader judges whether an excerpt answers the question
            answered_by=answered_by,
        )
    # A scorer may be a slow model: other questions go on meanwhile.
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


def _stays(stated: StatedAnswer, writer: AnswerStep) -> bool:
    """Whether an answer is computed and the model a small one, which is entered in the trace.

    Over a computed "4" one of 1.5 billion parameters wrote "3".
    """
    stays = stated.answered_by == "table" and writer.policy.profile == "small"
    if stays:
        writer.models.meter.spare(writer.step, MISREAD)
    return stays


def _request(question: str, context: AnswerContext, options: AnswerOptions) -> AnswerRequest:
    evidence = [
        NumberedText(
            number,
            source.title or source.document,
            source.text,
            source.heading,
            source.language,
        )
        for number, source in enumerate(context.sources, 1)
    ]
    return AnswerRequest(
        question=question,
        evidence=evidence,
        notes=[(note.label, note.text) for note in context.notes],
        response=options.response,
        rarity=options.rarity,
        similarity=options.similarity,
    )


@step("direct", BRIEF, asks_model=True)
async def answer_directly(question: str, answerer: Direct) -> StatedAnswer:
    """Ask a model without documents: ungrounded, or abstained where the model says nothing."""
    written = await answerer.run(question)
    text = written.answer.strip()
    if not text:
        return StatedAnswer("The model does not know.", fallback="abstained", answered_by="model")
    return StatedAnswer(text, tuple(dict.fromkeys(written.values)), "ungrounded", "model")


def abstained(question: str, answered_by: AnsweredBy, text: str = "") -> Answered:
    """Return an abstention: the model's own words if any, else a fixed sentence."""
    words = NOTHING_SAID if answered_by == "model" else NOTHING_FOUND
    return Answered(text or words[is_han(question)], (), (), (), "abstained", answered_by)


def _stated(stated: StatedAnswer, context: AnswerContext, options: AnswerOptions) -> Answered:
    """Bind a stated answer. Its sentences count as supported where its fallback is "none"."""
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
    """A text whose markers count from 1, with their citations.

    `cited` maps each marker ("[1]") to its source; `removed` lists markers that named no source.
    """

    text: str
    citations: tuple[Citation, ...]
    cited: Mapping[str, Source]
    removed: tuple[str, ...] = ()


def bind(draft: AnswerDraft, sources: Sequence[Source], documents: Documents) -> BoundAnswer:
    """Bind each marker of a draft to the sentence of its source that is nearest to the statement.

    Markers are numbered by first use, and equal quotes share a marker; the markers of excerpts
    keep their numbers. Every other word of the draft stays as it is.
    """
    numbers: dict[QuotedSpan, int] = {}  # The number of each quote's marker
    removed: dict[str, None] = {}
    known = draft.quotes or range(1, len(sources) + 1)
    code = [span.span() for span in _CODE.finditer(draft.text)]

    def renumbered(marker: re.Match[str]) -> str:
        if any(start < marker.end() and marker.start() < end for start, end in code):
            return marker.group()
        if draft.marks is not None and marker.end() not in draft.marks:
            return marker.group()
        statement = _statement_before(draft.text, marker.start())
        new: dict[int, None] = {}
        for number in _numbers_of(marker):
            if number not in known:
                removed[f"[{number}]"] = None
                continue
            quote = _quote_of(number, statement, draft, sources)
            next_number = len(numbers) + 1 if draft.marks is None else number
            new[numbers.setdefault(quote, next_number)] = None
        return f"{marker[1]}[{', '.join(map(str, new))}]" if new else ""

    text = _MARKER.sub(renumbered, draft.text).strip()
    quotes = sorted((number, quote) for quote, number in numbers.items())
    cited = {f"[{number}]": sources[quote.number - 1] for number, quote in quotes}
    stored = documents(sorted({source.document for source in cited.values()}))
    citations = tuple(
        citation_of(marker, source, quote.start, quote.end, stored[source.document])
        for (_, quote), (marker, source) in zip(quotes, cited.items(), strict=True)
    )
    return BoundAnswer(text, citations, cited, tuple(removed))


def _numbers_of(marker: re.Match[str]) -> list[int]:
    """Return the numbers of a marker: [2], [2, 5], [2-4]."""
    numbers: list[int] = []
    for part in _RANGE.finditer(marker[2] or marker[3]):
        first, last = int(part[1]), int(part[2] or part[1])
        numbers += range(first, min(last, first + _LONGEST_RANGE) + 1)
    return list(dict.fromkeys(numbers))


def _quote_of(
    number: int, statement: str, draft: AnswerDraft, sources: Sequence[Source]
) -> QuotedSpan:
    if draft.quotes:
        return draft.quotes[number]
    return QuotedSpan(number, *best_quote(statement, sources[number - 1].text))


def _statement_before(text: str, end: int) -> str:
    """Return the sentence, list item or cell before a marker, without other markers."""
    start = text.rfind("\n\n", 0, end)
    before = _MARKER.sub("", text[max(start, 0) : end])
    parts = [part.strip() for part in _STATEMENT.split(before) if part.strip()]
    return parts[-1] if parts else ""


# --- grounding ------------------------------------------------------------------------------------


def ground_of(
    question: str, bound: BoundAnswer, context: AnswerContext, scorer: Scorer
) -> tuple[Grounding, ...]:
    """Flag each sentence of a bound answer by the sources and the computed notes."""
    cited = {marker: _titled_text(source) for marker, source in bound.cited.items()}
    computed = [note.text for note in context.notes if note.computed]
    offered = [*map(_titled_text, context.sources), *computed]
    return ground(bound.text, cited, offered, question, scorer)


def _titled_text(source: Source) -> str:
    return f"{source.title}\n{source.text}"


def cited_by_program(
    text: str, grounding: Sequence[Grounding], sources: Sequence[Source], options: AnswerOptions
) -> tuple[tuple[Citation, ...], tuple[Grounding, ...]]:
    """Return citations for a text without markers, and its flags with their markers.

    Supported sentences get a citation, and undecided ones that a source holds word for word, such
    as a bare name. The source is one that can state the sentence, if any can; the quote is its
    sentence that shares most words.
    """
    citations: list[Citation] = []
    flags: list[Grounding] = []
    for flag in grounding:
        said = text[flag.start : flag.end]
        having = [source for source in sources if _has_word_for_word(source, said)]
        if sources and (flag.supported or (flag.supported is None and having)):
            marker = f"[{len(citations) + 1}]"
            source = _nearest(said, having or sources)
            stored = options.documents([source.document])[source.document]
            citation = citation_of(marker, source, *best_quote(said, source.text), stored)
            citations.append(citation.model_copy(update={"bound_by": "program"}))
            flags.append(flag.model_copy(update={"markers": (marker,)}))
        else:
            flags.append(flag)
    return tuple(citations), tuple(flags)


def _nearest(said: str, sources: Sequence[Source]) -> Source:
    """Return the source that shares most terms with a sentence, among those that can state it."""
    able = [source for source in sources if can_state(said, [_titled_text(source)])]
    wanted = frozenset(content_terms(said))
    return max(
        able or sources, key=lambda source: len(wanted.intersection(content_terms(source.text)))
    )


def _has_word_for_word(source: Source, said: str) -> bool:
    bare = fold(said).strip(" .。!！")
    return bool(bare) and bare in fold(source.text)


def withheld(question: str, answered: Answered) -> Answered:
    """Remove the sentences that nothing supports; abstain where none is supported."""
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
    return replace(
        answered,
        text=text + answered.text[at:],
        grounding=tuple(rows),
        citations=tuple(one for one in answered.citations if one.marker in markers),
        fallback="partial",
    )
