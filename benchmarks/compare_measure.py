"""How is one way of asking measured: how good its answers are, and what they cost?"""

import asyncio
import copy
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from pydantic import SecretStr

from benchmarks.answers import row_of
from benchmarks.compare_records import Asked, Cost, Figures, Judged, Way
from benchmarks.compare_sets import CLAIMS, CompareSet
from benchmarks.overhead_client import cpu_seconds
from benchmarks.questions import Question
from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime, open_runtime
from flows.session import Session
from flows.settings import Settings
from prompts.text.words import fold
from storage.answer_records import Answer, Citation
from storage.errors import UsageError

# A claim is another one where less than so much of its words stands in one before it; it is supported where its
# citations hold so much of them.
SAME = 0.7
SUPPORTED = 0.5
_CLAIM = re.compile(r"(.+?)((?:\s*\[\d+\])+)", re.S)
_MARKER = re.compile(r"\[\d+\]")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Room:
    """Where a set is indexed and how its session is opened. After `seconds` a way of asking gets no further question:
    what reads everything would take hours; its row says how many it got."""

    known: CompareSet
    workspace: Path
    seconds: float = 3600

    def runtime(self, cache: Path | None = None, server: str | None = None) -> Runtime:
        """Without memory or kept answers, so that no way of asking profits from one before it. `server`: the base URL
        of a scripted server."""
        settings = Settings(
            workspace=self.workspace, embedding=self.known.embedding, memory="off", answer_cache=False, cache_dir=cache
        )
        if server is not None:
            named = {"lm": "openai/scripted", "lm_base_url": server, "lm_api_key": SecretStr("none")}
            settings = settings.model_copy(update=named)
        return open_runtime(settings)

    def index(self, sources: Sequence[Path]) -> Runtime:
        """The sources, indexed offline unless they are there already."""
        runtime = self.runtime()
        asyncio.run(build_index(list(sources), IndexOptions(), runtime))
        return runtime


@dataclass(frozen=True)
class Given:
    """What one question gave, with the seconds that it took; no answer where it failed."""

    asked: Asked
    answer: Answer | None
    problem: str
    seconds: float
    cpu: float


class NeedsModelError(Exception):
    """A mode in which a model has to write was asked offline."""


@dataclass(frozen=True)
class Scripted:
    """The base URL of a scripted server, and how many questions it is asked."""

    base_url: str
    questions: int


def measure(way: Way, questions: Sequence[Asked], session: Session, room: Room, server: Scripted | None) -> Figures:
    """A way of asking, offline, and with the scripted server too where one is given."""
    served = None
    if server is not None:
        served = cost_of(ask_all(way, questions[: server.questions], session, room, server.base_url))
    try:
        given = ask_all(way, questions, session, room, None)
    except NeedsModelError as error:
        return Figures(way=way, quality={}, served=served, problem=f"needs a model: {error}")
    problems = [one.problem for one in given if one.problem]
    answers = [one.answer for one in given if one.answer]
    return Figures(
        way=way, quality=quality_of(given, room.known, session), asked=cost_of(given), served=served,
        failed=len(problems), problem=problems[0] if problems else "",
        reports=round(mean(len(answer.trace.reports) for answer in answers), 1) if answers else 0.0,
    )  # fmt: skip


def ask_all(way: Way, questions: Sequence[Asked], session: Session, room: Room, server: str | None) -> list[Given]:
    """Every question once, after the first, which loads what the way needs; with caches of its own.

    Raises NeedsModelError where the way cannot be asked offline.
    """
    with tempfile.TemporaryDirectory(prefix="trellis-bench-", ignore_cleanup_errors=True) as folder:
        seen = copy.copy(session)
        for name, asked in (("warm", questions[:1]), ("measured", questions)):
            cache = Path(folder) / name
            cache.mkdir()
            seen.runtime = room.runtime(cache, server)
            until = time.monotonic() + room.seconds
            given = []
            for one in asked:
                given.append(asyncio.run(ask(way, one, seen)))
                if time.monotonic() > until:
                    break
        return given


async def ask(way: Way, asked: Asked, session: Session) -> Given:
    """One question. What fails is told: a way that breaks is a row of the comparison, not its end."""
    began, cpu = time.perf_counter(), cpu_seconds()
    answer, problem = None, ""
    try:
        answer = await answer_question(asked.text, AskOptions(mode=way.mode, level=way.level), session)
    except UsageError as error:
        raise NeedsModelError(str(error)) from error
    except Exception as error:  # noqa: BLE001 -- counted, and its words are shown
        problem = f"{type(error).__name__}: {error}"
    return Given(asked, answer, problem, time.perf_counter() - began, cpu_seconds() - cpu)


def cost_of(given: Sequence[Given]) -> Cost:
    """What the questions that were answered took."""
    done = [(one, one.answer.usage) for one in given if one.answer is not None]
    seconds = sorted(one.seconds for one, _ in done) or [0.0]
    spent: Counter[str] = Counter()
    for _, usage in done:
        spent.update({step: used.input_tokens + used.output_tokens for step, used in usage.by_step.items()})
    return Cost(
        questions=len(done),
        calls=_mean([usage.calls for _, usage in done]),
        input_tokens=_mean([usage.input_tokens for _, usage in done]),
        output_tokens=_mean([usage.output_tokens for _, usage in done]),
        seconds_median=round(median(seconds), 4),
        seconds_90=round(seconds[min(int(len(seconds) * 0.9), len(seconds) - 1)], 4),
        cpu_ms=_mean([1000 * one.cpu for one, _ in done]),
        steps={step: round(tokens / len(done), 1) for step, tokens in spent.items() if tokens},
    )


def _mean(values: Sequence[float]) -> float:
    return round(mean(values), 2) if values else 0.0


def quality_of(given: Sequence[Given], known: CompareSet, session: Session) -> dict[str, float]:
    """The set's measures, each a mean over all questions; one that failed gets nothing."""
    judge = JUDGES[known.judged]
    nothing = tuple(0.0 for _ in known.measures)
    judged = [judge(one.asked, one.answer, session) if one.answer else nothing for one in given]
    return {
        measure.name: round(mean(values[place] for values in judged), 4) for place, measure in enumerate(known.measures)
    }


def by_answer(asked: Asked, answer: Answer, session: Session) -> tuple[float, ...]:
    """The gold answer (as `benchmarks.answers` has it), and all gold passages."""
    row = row_of(Question(text=asked.text, gold=asked.gold, answers=asked.answers), answer, session)
    return (float(row.right), *by_passages(asked, answer, session))


def by_passages(asked: Asked, answer: Answer, session: Session) -> tuple[float, ...]:
    """Whether all gold passages are among those of the answer."""
    return (float(set(asked.gold) <= {passage.document for passage in answer.passages[:8]}),)


def by_values(asked: Asked, answer: Answer, session: Session) -> tuple[float, ...]:
    """Whether the values are the gold ones, none more, none less."""
    return (float(sorted(answer.values) == sorted(asked.answers)),)


def by_sample(asked: Asked, answer: Answer, session: Session) -> tuple[float, ...]:
    """As examples/README.md says; a question that the documents do not answer wants abstention, and one about the whole
    collection enough of the documents that speak of it."""
    if asked.covers:
        return (float(len({one.document for one in answer.citations} & set(asked.covers)) >= asked.least),)
    if asked.abstains:
        return (float(answer.fallback == "abstained"),)
    said = f"{answer.answer} {answer.citations[0].quote if answer.citations else ''}"
    return (float(any(_stands(one, said) for one in asked.answers)),)


def _stands(expected: str, said: str) -> bool:
    if expected in {"Yes", "No"}:
        return expected.lower() in _WORD.findall(said.lower())
    return expected in said


def by_claims(asked: Asked, answer: Answer, session: Session) -> tuple[float, ...]:
    """Whether there are enough distinct supported claims from enough documents, and the two counts."""
    claims = distinct_claims(answer.answer, answer.citations)
    documents = {citation.title or citation.document for cited in claims for citation in cited}
    return (float(len(claims) >= CLAIMS <= len(documents)), float(len(claims)), float(len(documents)))


def distinct_claims(said: str, citations: Sequence[Citation]) -> list[list[Citation]]:
    """For each claim that says something new and stands in what it cites, the citations that support it."""
    cited = {citation.marker: citation for citation in citations if citation.verified}
    before: list[set[str]] = []
    claims = []
    for text, markers in _CLAIM.findall(said):
        words = _words(text)
        support = [cited[one] for one in _MARKER.findall(markers) if one in cited]
        support = [one for one in support if _shared(words, _words(one.quote)) >= SUPPORTED]
        if support and all(_shared(words, other) < SAME for other in before):
            claims.append(support)
            before.append(words)
    return claims


def _words(text: str) -> set[str]:
    return set(_WORD.findall(fold(text)))


def _shared(words: set[str], others: set[str]) -> float:
    return len(words & others) / len(words) if words else 0.0


JUDGES: dict[Judged, Callable[[Asked, Answer, Session], tuple[float, ...]]] = {
    "answer": by_answer,
    "passages": by_passages,
    "exact": by_values,
    "sample": by_sample,
    "claims": by_claims,
}
