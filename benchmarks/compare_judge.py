"""How one way of asking is measured: how good its answers are, and what they cost."""

import asyncio
import copy
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from pydantic import SecretStr

from benchmarks.answers import row_of
from benchmarks.compare_sets import CLAIMS, CompareSet, JudgedQuestion, Judgement
from benchmarks.runner import Cell, cpu_seconds
from benchmarks.sets import Question
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import Session
from prompts.text.words import fold
from storage.answer_records import Answer, Citation, Mode
from storage.errors import UsageError
from storage.records import Record

# A claim is another one where less than so much of its words stands in one before it; it is supported where its
# citations hold so much of them.
SAME = 0.7
SUPPORTED = 0.5
SERVED = 20
_CLAIM = re.compile(r"(.+?)((?:\s*\[\d+\])+)", re.S)
_MARKER = re.compile(r"\[\d+\]")
_WORD = re.compile(r"\w+")


class Way(Record):
    """A way of asking: a mode, and for `global` the level whose reports are all read (None: the relevant branches)."""

    mode: Mode
    level: int | None = None

    @property
    def name(self) -> str:
        return self.mode if self.level is None else f"{self.mode}, level {self.level}"


@dataclass(frozen=True)
class Given:
    """What one question gave, with the seconds that it took; no answer where it failed."""

    question: JudgedQuestion
    answer: Answer | None
    problem: str
    seconds: float
    cpu: float


class NeedsModelError(Exception):
    """A mode in which a model has to write was asked offline."""


def measured(
    way: Way, questions: Sequence[JudgedQuestion], known: CompareSet, session: Session, server: str | None
) -> dict[str, Cell]:
    """The figures of a way of asking: offline, and with the first 20 questions at the scripted server too, where
    the base URL of one is given."""
    costs = _served(ask_all(way, questions[:SERVED], session, server)) if server else {}
    try:
        given = ask_all(way, questions, session, None)
    except NeedsModelError as error:
        return {**costs, "note": f"needs a model: {error}"}
    return {**quality_of(given, known, session), **costs, **_offline(given), "note": _note(given)}


def ask_all(way: Way, questions: Sequence[JudgedQuestion], session: Session, server: str | None) -> list[Given]:
    """Every question once, after the first, which loads what the way needs.

    With caches of its own and without kept answers, so that no way of asking profits from one before it. Raises
    NeedsModelError where the way cannot be asked offline.
    """
    model = {"lm": "openai/scripted", "lm_base_url": server, "lm_api_key": SecretStr("none")} if server else {}
    given: list[Given] = []
    with tempfile.TemporaryDirectory(prefix="trellis-bench-", ignore_cleanup_errors=True) as folder:
        seen = copy.copy(session)
        for name, asked in (("warm", questions[:1]), ("measured", questions)):
            cache = Path(folder) / name
            cache.mkdir()
            settings = {"answer_cache": False, "cache_dir": cache, **model}
            seen.runtime = open_runtime(session.runtime.settings.model_copy(update=settings))
            given = [asyncio.run(ask(way, question, seen)) for question in asked]
    return given


async def ask(way: Way, question: JudgedQuestion, session: Session) -> Given:
    """One question. What fails is noted: a way that breaks is a row of the comparison, not its end."""
    began, cpu = time.perf_counter(), cpu_seconds()
    answer, problem = None, ""
    try:
        answer = await answer_question(question.text, AskOptions(mode=way.mode, level=way.level), session)
    except UsageError as error:
        raise NeedsModelError(str(error)) from error
    except Exception as error:  # noqa: BLE001 -- counted, and its words are shown
        problem = f"{type(error).__name__}: {error}"
    return Given(question, answer, problem, time.perf_counter() - began, cpu_seconds() - cpu)


def _served(given: Sequence[Given]) -> dict[str, Cell]:
    usages = [one.answer.usage for one in given if one.answer is not None]
    return {
        "calls*": _mean([usage.calls for usage in usages]),
        "tokens in*": _mean([usage.input_tokens for usage in usages]),
        "tokens out*": _mean([usage.output_tokens for usage in usages]),
    }


def _offline(given: Sequence[Given]) -> dict[str, Cell]:
    seconds = sorted(one.seconds for one in given if one.answer is not None) or [0.0]
    return {
        "ms, median": round(1000 * median(seconds), 1),
        "ms, 90%": round(1000 * seconds[min(int(len(seconds) * 0.9), len(seconds) - 1)], 1),
        "CPU ms": _mean([1000 * one.cpu for one in given if one.answer is not None]),
        "asked": len(given),
    }


def _note(given: Sequence[Given]) -> str:
    problems = [one.problem for one in given if one.problem]
    reports = mean(len(one.answer.trace.reports) if one.answer else 0 for one in given)
    parts = [f"{len(problems)} failed: {problems[0]}"] if problems else []
    return "; ".join([*parts, *([f"{reports:.0f} reports read"] if reports else [])])


def _mean(values: Sequence[float]) -> float:
    return round(float(mean(values)), 2) if values else 0.0


def quality_of(given: Sequence[Given], known: CompareSet, session: Session) -> Mapping[str, Cell]:
    """The set's figures, each a mean over all questions; one that failed gets nothing."""
    judge = JUDGES[known.judged]
    nothing = tuple(0.0 for _ in known.figures)
    judged = [judge(one.question, one.answer, session) if one.answer else nothing for one in given]
    return {name: round(mean(values[place] for values in judged), 4) for place, name in enumerate(known.figures)}


def by_answer(question: JudgedQuestion, answer: Answer, session: Session) -> tuple[float, ...]:
    """The gold answer (as the measure `answers` has it), and all gold passages."""
    row = row_of(Question(text=question.text, gold=question.gold, answers=question.answers), answer, session)
    return (float(row.right), *by_passages(question, answer, session))


def by_passages(question: JudgedQuestion, answer: Answer, session: Session) -> tuple[float, ...]:
    """Whether all gold passages are among those of the answer."""
    return (float(set(question.gold) <= {passage.document for passage in answer.passages[:8]}),)


def by_values(question: JudgedQuestion, answer: Answer, session: Session) -> tuple[float, ...]:
    """Whether the values are the gold ones, none more, none less."""
    return (float(sorted(answer.values) == sorted(question.answers)),)


def by_sample(question: JudgedQuestion, answer: Answer, session: Session) -> tuple[float, ...]:
    """As examples/README.md says; a question that the documents do not answer wants abstention, and one about the whole
    collection enough of the documents that speak of it."""
    if question.covers:
        cited = {citation.document for citation in answer.citations} & set(question.covers)
        return (float(len(cited) >= question.least),)
    if question.abstains:
        return (float(answer.fallback == "abstained"),)
    text = f"{answer.answer} {answer.citations[0].quote if answer.citations else ''}"
    words = set(_WORD.findall(text.lower()))
    return (float(any(one.lower() in words if one in {"Yes", "No"} else one in text for one in question.answers)),)


def by_claims(question: JudgedQuestion, answer: Answer, session: Session) -> tuple[float, ...]:
    """Whether there are enough distinct supported claims from enough documents, and the two counts."""
    claims = distinct_claims(answer.answer, answer.citations)
    documents = {citation.title or citation.document for cited in claims for citation in cited}
    return (float(len(claims) >= CLAIMS <= len(documents)), float(len(claims)), float(len(documents)))


def distinct_claims(text: str, citations: Sequence[Citation]) -> list[list[Citation]]:
    """For each claim that says something new and stands in what it cites, the citations that support it."""
    cited = {citation.marker: citation for citation in citations if citation.verified}
    before: list[set[str]] = []
    claims = []
    for claim, markers in _CLAIM.findall(text):
        words = _words(claim)
        support = [cited[marker] for marker in _MARKER.findall(markers) if marker in cited]
        support = [citation for citation in support if _shared(words, _words(citation.quote)) >= SUPPORTED]
        if support and all(_shared(words, other) < SAME for other in before):
            claims.append(support)
            before.append(words)
    return claims


def _words(text: str) -> set[str]:
    return set(_WORD.findall(fold(text)))


def _shared(words: set[str], others: set[str]) -> float:
    return len(words & others) / len(words) if words else 0.0


JUDGES: dict[Judgement, Callable[[JudgedQuestion, Answer, Session], tuple[float, ...]]] = {
    "answer": by_answer,
    "passages": by_passages,
    "exact": by_values,
    "sample": by_sample,
    "claims": by_claims,
}
