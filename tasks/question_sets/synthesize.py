"""Question sets made for any collection, with the evidence that answers them.

About the whole: a description → users → tasks → questions, 5 × 5 × 5 = 125 (GraphRAG, arXiv
2404.16130v2; LightRAG, section 4.1). About parts: one fact, several hops, comparisons, and what the
documents do not say, each from passages drawn by lot, with the documents and spans of its evidence.
Near-duplicates and questions that fail their check are replaced by others.

Without a model there is one kind, `cloze`: a sentence without one of its names. It flatters lexical
search, but shows whether a passage is found at all.
"""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import ceil
from typing import cast

import numpy as np
from numpy.typing import NDArray

from prompts.engine.messages import first_fitting, first_tokens, rough_tokens
from prompts.engine.models import Models
from prompts.synthesize import (
    KINDS,
    AskPart,
    AskWhole,
    CheckAnswerable,
    DescribeCollection,
    FindUsers,
    PartAsked,
    PartKind,
)
from prompts.text.languages import names_of
from prompts.text.segment import sentences
from prompts.text.words import content_terms, is_han
from storage.errors import UsageError, did_you_mean
from storage.evaluation_records import EvaluationQuestion
from storage.graph_records import TextSpan
from storage.records import Chunk, Record, by_key, content_id
from tasks.batches import gather_or_cancel
from tasks.evaluate.measures import holds, normalised
from tasks.retrieve.lexical import lexicon_of
from tasks.retrying import PATIENT
from tasks.step import step

GLOBAL, CLOZE = "global", "cloze"
MADE_KINDS = (GLOBAL, *KINDS, CLOZE)
USERS, TASKS = 5, 5
ROUNDS = 6  # Of asking again for what duplicates and checks have cost
ALIKE = 0.8  # The share of common words from which two questions are one
SAMPLES = 12  # Passages whose beginnings describe a collection
COMPARED = 600  # Characters of a passage by which a similar one is searched for
DRAWN = 1_500  # Passages among which pairs are searched for
SHARED_BY = 6  # A name in as many further passages ties no two together
CLOZE_WORDS = range(6, 45)
CLOZE_FORMS = ("Which name is missing: “{}”?", "“{}”一句空白处是什么名称？")


class MadeQuestions(Record):
    """Questions that were made, and the counts of those that were dropped."""

    questions: tuple[EvaluationQuestion, ...]
    duplicates: int = 0
    rejected: int = 0


@step("make-questions", PATIENT, asks_model=True)
async def make_questions(
    chunks: Sequence[Chunk], kinds: Sequence[str], number: int, models: Models, seed: int = 0
) -> MadeQuestions:
    """Make `number` questions about chunks, equally many of each kind (names of MADE_KINDS).

    Fewer come back where the chunks give no more. The same seed draws the same passages.
    UsageError where there is no text, a kind does not exist, or needs a model that the role
    `synthesize` does not have.
    """
    texts = [chunk for chunk in chunks if chunk.kind == "text" and chunk.text.strip()]
    _check(texts, kinds, models)
    maker = _Maker(sorted(texts, key=lambda chunk: content_id("lot", str(seed), chunk.id)), models)
    share, left = divmod(number, len(kinds))
    for place, kind in enumerate(kinds):
        await maker.make(kind, share + (place < left))
    return maker.made()


def _check(texts: Sequence[Chunk], kinds: Sequence[str], models: Models) -> None:
    unknown = [kind for kind in kinds if kind not in MADE_KINDS]
    if unknown or not kinds:
        near = did_you_mean(unknown[0], MADE_KINDS) if unknown else ""
        raise UsageError(
            f"There is no kind of question {unknown}.",
            f"{near}The kinds are {', '.join(MADE_KINDS)}.",
        )
    if not texts:
        raise UsageError(
            "There is no text to ask about.", "Name sources that hold texts, or index some first."
        )
    if models.is_offline("synthesize") and set(kinds) != {CLOZE}:
        raise UsageError(
            f"Questions of the kind {', '.join(kind for kind in kinds if kind != CLOZE)} are "
            "written by a model, and the role `synthesize` has none.",
            f"Set TRELLIS_LM_SYNTHESIZE, or TRELLIS_LM; without a model there is the kind {CLOZE}.",
        )


@dataclass
class _Maker:
    """The chunks in their drawn order, and the questions made so far."""

    chunks: Sequence[Chunk]
    models: Models
    questions: list[EvaluationQuestion] = field(default_factory=list)
    duplicates: int = 0
    rejected: int = 0
    description: str = ""

    def __post_init__(self) -> None:
        self.lexicon = lexicon_of(self.chunks)
        self.alone = len({chunk.document for chunk in self.chunks}) == 1
        self.words: list[frozenset[str]] = []
        self.limits = self.models.policy.limits

    def made(self) -> MadeQuestions:
        return MadeQuestions(
            questions=tuple(self.questions), duplicates=self.duplicates, rejected=self.rejected
        )

    async def make(self, kind: str, number: int) -> None:
        if kind == CLOZE:
            candidates = cloze_questions(self.chunks)
            end = len(self.questions) + number
            while len(self.questions) < end and (question := next(candidates, None)):
                self.add(question)
            return
        await self.describe()
        if kind == GLOBAL:
            await self.about_whole(number)
        else:
            await self.about_parts(cast(PartKind, kind), number)

    def add(self, question: EvaluationQuestion) -> None:
        """Keep a question unless a similar one was made."""
        words = frozenset(content_terms(question.question)) or frozenset([question.question])
        if any(len(words & other) >= ALIKE * len(words | other) for other in self.words):
            self.duplicates += 1
        else:
            self.questions.append(question)
            self.words.append(words)

    # --- about the whole --------------------------------------------------------------------------

    async def describe(self) -> None:
        if self.description:
            return
        firsts = {chunk.document: chunk for chunk in reversed(self.chunks)}.values()
        titles = first_fitting(
            dict.fromkeys(chunk.title for chunk in firsts), rough_tokens, self.limits.rate
        )
        each = self.limits.part // SAMPLES
        samples = [
            first_tokens(f"{chunk.title}: {chunk.text}", each) for chunk in self.chunks[:SAMPLES]
        ]
        self.description = await DescribeCollection(self.models).run(titles, samples)

    async def about_whole(self, number: int) -> None:
        """Ask for each task of each user; later rounds ask for what is missing."""
        people = await FindUsers(self.models).run(self.description, USERS, TASKS)
        slots = [(person.user, task) for person in people for task in person.tasks]
        end, asker = len(self.questions) + number, AskWhole(self.models)
        for later in range(ROUNDS):
            missing = end - len(self.questions)
            if missing <= 0 or not slots:
                return
            # Some of the further ones will be dropped again.
            wanted = missing + (max(2, missing // 4) if later else 0)
            each = ceil(wanted / len(slots))
            asked_before = (question.question for question in reversed(self.questions))
            known = first_fitting(asked_before, rough_tokens, self.limits.rate)[::-1]
            lists = await gather_or_cancel(
                asker.run(self.description, user, task, known, each)
                for user, task in slots[: ceil(wanted / each)]
            )
            texts = [text for asked in lists for text in asked]
            verdicts = await gather_or_cancel(self.verdict(text) for text in texts)
            for text, verdict in zip(texts, verdicts, strict=True):
                if verdict == "unanswerable":
                    self.rejected += 1
                elif len(self.questions) < end:
                    identity = content_id("qst", GLOBAL, text)
                    self.add(EvaluationQuestion(id=identity, question=text, kind=GLOBAL))

    async def verdict(self, question: str) -> str:
        """Ask the model whether what a search finds answers a question."""
        passages = await asyncio.to_thread(self.search, question)
        shown = [f"{chunk.title}: {chunk.text}" for chunk in passages]
        return (await CheckAnswerable(self.models).run(self.description, question, shown)).verdict

    def search(self, question: str) -> list[Chunk]:
        scores = self.lexicon.scores(question)
        best = (self.chunks[place] for place in _best_first(scores) if scores[place] > 0)
        return first_fitting(best, lambda chunk: rough_tokens(chunk.text), self.limits.part)

    # --- about parts ------------------------------------------------------------------------------

    async def about_parts(self, kind: PartKind, number: int) -> None:
        candidates = self.candidates(kind)
        end, tried = len(self.questions) + number, 0
        while (missing := end - len(self.questions)) > 0 and tried < ROUNDS * number:
            batch = list(islice(candidates, missing))
            if not batch:
                return
            tried += len(batch)
            asked = await gather_or_cancel(self.ask(kind, group) for group in batch)
            for question in asked:
                if question is None:
                    self.rejected += 1
                else:
                    self.add(question)

    async def ask(self, kind: PartKind, group: Sequence[Chunk]) -> EvaluationQuestion | None:
        """Ask one question about passages; None where it does not come or fails its check."""
        numbered = [(chunk, start, end) for chunk in group for start, end in sentences(chunk.text)]
        shown = {chunk.id: [chunk.title] for chunk in group}
        for number, (chunk, start, end) in enumerate(numbered, 1):
            shown[chunk.id].append(f"[{number}] {' '.join(chunk.text[start:end].split())}")
        asked = await AskPart(self.models).run(kind, list(map("\n".join, shown.values())))
        question = evaluation_question(kind, asked, numbered)
        if question is None:
            return None
        is_answered = await self.verdict(question.question) != "unanswerable"
        return question if is_answered is question.answerable else None

    def candidates(self, kind: PartKind) -> Iterator[Sequence[Chunk]]:
        """Yield passages to ask about: one, two that share a rare name, or two similar ones."""
        if kind in {"single_fact", "unanswerable"}:
            return ([chunk] for chunk in self.chunks)
        return self.tied() if kind == "multi_hop" else self.alike()

    def apart(self, first: Chunk, second: Chunk) -> bool:
        """Whether two chunks are of different documents, or differ where there is one document."""
        return first.document != second.document or (self.alone and first.id != second.id)

    def tied(self) -> Iterator[Sequence[Chunk]]:
        by_name = by_key(
            (name, chunk)
            for chunk in self.chunks[:DRAWN]
            for name in dict.fromkeys([*(span.text for span in names_of(chunk.text)), chunk.title])
        )
        seen: set[frozenset[str]] = set()
        for name, (first, *others) in by_name.items():
            second = next((chunk for chunk in others if self.apart(first, chunk)), None)
            if (
                second is None
                or len(name) == 1
                or len(others) >= SHARED_BY
                or {first.id, second.id} in seen
            ):
                continue
            seen.add(frozenset((first.id, second.id)))
            yield [first, second]

    def alike(self) -> Iterator[Sequence[Chunk]]:
        for chunk in self.chunks[:DRAWN]:
            scores = self.lexicon.scores(chunk.text[:COMPARED])
            near = (self.chunks[place] for place in _best_first(scores)[:20])
            other = next((one for one in near if self.apart(chunk, one)), None)
            if other is not None:
                yield [chunk, other]


def _best_first(scores: NDArray[np.float64]) -> list[int]:
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return order


def evaluation_question(
    kind: PartKind, asked: PartAsked, numbered: Sequence[tuple[Chunk, int, int]]
) -> EvaluationQuestion | None:
    """Make a question of what a model asked about numbered sentences, with its evidence.

    None where the evidence does not fit: sentences must exist; the answer of a single fact must
    stand in them; several hops and comparisons must rest on both passages.
    """
    text = " ".join(asked.question.split())
    if not text:
        return None
    identity = content_id("qst", kind, text)
    if kind == "unanswerable":
        return EvaluationQuestion(id=identity, question=text, kind=kind, answerable=False)
    answer, places = asked.answer.strip(), list(dict.fromkeys(asked.sentences))
    if not answer or not places or not set(places) <= set(range(1, len(numbered) + 1)):
        return None
    evidence = [numbered[number - 1] for number in places]
    if kind == "single_fact":
        fits = holds(" ".join(chunk.text[a:b] for chunk, a, b in evidence), [asked.answer])
    else:
        fits = len({chunk.id for chunk, _, _ in evidence}) > 1
    if not fits:
        return None
    return EvaluationQuestion(
        id=identity,
        question=text,
        kind=kind,
        answers=(answer,),
        gold_documents=tuple(dict.fromkeys(chunk.document for chunk, _, _ in evidence)),
        gold_spans=tuple(_span(chunk, start, end) for chunk, start, end in evidence),
    )


def cloze_questions(chunks: Collection[Chunk]) -> Iterator[EvaluationQuestion]:
    """Yield for each chunk its first sentence with a name that can be left out."""
    for chunk in chunks:
        questions = (_cloze(chunk, start, end) for start, end in sentences(chunk.text))
        question = next(filter(None, questions), None)
        if question is not None:
            yield question


def _cloze(chunk: Chunk, start: int, end: int) -> EvaluationQuestion | None:
    """Leave out a name that stands once in a sentence, not at its start and not in the title."""
    sentence = " ".join(chunk.text[start:end].split())
    is_row = " | " in sentence
    if is_row or len(normalised(sentence).split()) not in CLOZE_WORDS:
        return None
    names = (
        span.text
        for span in names_of(sentence)
        if span.start
        and len(span.text) > 1
        and span.text not in chunk.title
        and sentence.count(span.text) == 1
    )
    name = next(names, None)
    if name is None:
        return None
    text = CLOZE_FORMS[is_han(sentence)].format(sentence.replace(name, "____"))
    return EvaluationQuestion(
        id=content_id("qst", CLOZE, text),
        question=text,
        kind=CLOZE,
        answers=(name,),
        gold_documents=(chunk.document,),
        gold_spans=(_span(chunk, start, end),),
    )


def _span(chunk: Chunk, start: int, end: int) -> TextSpan:
    return TextSpan(document=chunk.document, start=chunk.start + start, end=chunk.start + end)
