"""Question sets made for any collection: about the whole of it, and about parts with the evidence
that answers them.

About the whole: a description → users → tasks → questions, 5 × 5 × 5 = 125 (GraphRAG, arXiv
2404.16130v2; LightRAG, section 4.1). About parts: one fact, several hops, comparisons, and what the
documents do not say, each from passages drawn by lot, with the documents and spans of its evidence,
so that retrieval is measured without labels. Near-duplicates and questions that fail their check
are made up for by others. Without a model there is one kind, `cloze`: a sentence whose name is left
out. It shares the sentence's words, so that it flatters lexical search; it tells whether a passage
is found at all.
"""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from prompts.engine.calls import first_fitting, first_tokens, rough_tokens
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
USERS, TASKS, QUESTIONS = 5, 5, 125
# How often what was lost to duplicates and checks is made up for.
ROUNDS = 6
ALIKE = 0.8  # of all content words of two questions: with so many in common they are one
SAMPLES = 12  # passages whose beginnings share the tokens of a part's evidence
COMPARED = 600  # characters of a passage by which one like it is searched for
DRAWN = 1_500  # passages that are looked at for pairs
SHARED_BY = 6  # a name in more passages ties nothing together
CLOZE_WORDS = range(6, 45)
CLOZE_FORMS = ("Which name is missing: “{}”?", "“{}”一句空白处是什么名称？")


class MadeQuestions(Record):
    """Questions that were made; `duplicates` and `rejected` were dropped on the way, `description`
    is the collection's where one was needed.
    """

    questions: tuple[EvaluationQuestion, ...]
    duplicates: int = 0
    rejected: int = 0
    description: str = ""


@step("make-questions", PATIENT, asks_model=True)
async def make_questions(
    chunks: Sequence[Chunk], kinds: Sequence[str], number: int, models: Models, seed: int = 0
) -> MadeQuestions:
    """So many questions about these chunks, evenly of each kind (names of MADE_KINDS); fewer where
    the chunks give no more, which is for the caller to say.

    The same seed draws the same passages. UsageError where there is no text, a kind does not exist,
    or it needs a model and the role `synthesize` has none.
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
        near = did_you_mean(next(iter(unknown), ""), MADE_KINDS)
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
    """The chunks in the order of their lot, and what was made so far."""

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
            questions=tuple(self.questions),
            duplicates=self.duplicates,
            rejected=self.rejected,
            description=self.description,
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
            await self.about_parts(kind, number)  # type: ignore[arg-type]  # checked: no other kind is left

    def add(self, question: EvaluationQuestion) -> bool:
        """Take a question unless one like it is there."""
        words = frozenset(content_terms(question.question)) or frozenset([question.question])
        if any(len(words & other) >= ALIKE * len(words | other) for other in self.words):
            self.duplicates += 1
            return False
        self.questions.append(question)
        self.words.append(words)
        return True

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
        """Every user's every task gives its share; later rounds ask for what is missing, showing
        what there is.
        """
        people = await FindUsers(self.models).run(self.description, USERS, TASKS)
        slots = [(person.user, task) for person in people for task in person.tasks]
        end, asker = len(self.questions) + number, AskWhole(self.models)
        for later in range(ROUNDS):
            missing = end - len(self.questions)
            if missing <= 0:
                return
            wanted = missing + (
                max(2, missing // 4) if later else 0
            )  # some of them will be lost again
            asked_before = (question.question for question in reversed(self.questions))
            each, known = (
                ceil(wanted / len(slots)),
                first_fitting(asked_before, rough_tokens, self.limits.rate)[::-1],
            )
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
                    self.add(
                        EvaluationQuestion(
                            id=content_id("qst", GLOBAL, text), question=text, kind=GLOBAL
                        )
                    )

    async def verdict(self, question: str) -> str:
        """What the model says of a question, from what a search finds for it."""
        passages = await asyncio.to_thread(self.search, question)
        shown = [f"{chunk.title}: {chunk.text}" for chunk in passages]
        return (await CheckAnswerable(self.models).run(self.description, question, shown)).verdict

    def search(self, question: str) -> list[Chunk]:
        scores = self.lexicon.scores(question)
        best = (
            self.chunks[place]
            for place in np.argsort(-scores, kind="stable").tolist()
            if scores[place] > 0
        )
        return first_fitting(best, lambda chunk: rough_tokens(chunk.text), self.limits.part)

    # --- about parts ------------------------------------------------------------------------------

    async def about_parts(self, kind: PartKind, number: int) -> None:
        candidates = self.candidates(kind)
        end, tried = len(self.questions) + number, 0
        while (missing := end - len(self.questions)) > 0 and tried < ROUNDS * number:
            batch = [
                group
                for group in (next(candidates, None) for _ in range(missing))
                if group is not None
            ]
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
        """One question about passages; None where the model gives none, or what it gives fails its
        check.
        """
        numbered = [(chunk, start, end) for chunk in group for start, end in sentences(chunk.text)]
        shown = [
            "\n".join(
                [
                    chunk.title,
                    *(
                        f"[{number}] {' '.join(own.text[start:end].split())}"
                        for number, (own, start, end) in enumerate(numbered, 1)
                        if own is chunk
                    ),
                ]
            )
            for chunk in group
        ]
        asked = await AskPart(self.models).run(kind, shown)
        question = evaluation_question(kind, asked, numbered)
        if (
            question is None
            or (await self.verdict(question.question) == "unanswerable") is question.answerable
        ):
            return None
        return question

    def candidates(self, kind: PartKind) -> Iterator[Sequence[Chunk]]:
        """Passages to ask about, by lot: one, two that share a rare name, or two that are alike."""
        if kind in {"single_fact", "unanswerable"}:
            return ([chunk] for chunk in self.chunks)
        return self.tied() if kind == "multi_hop" else self.alike()

    def apart(self, first: Chunk, second: Chunk) -> bool:
        """Whether two chunks are of different documents, or different ones where there is but one
        document.
        """
        return first.document != second.document or (self.alone and first.id != second.id)

    def tied(self) -> Iterator[Sequence[Chunk]]:
        by_name = by_key(
            (name, chunk)
            for chunk in self.chunks[:DRAWN]
            for name in {span.text for span in names_of(chunk.text)} | {chunk.title}
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
            near = (
                self.chunks[place] for place in np.argsort(-scores, kind="stable")[:20].tolist()
            )
            other = next((one for one in near if self.apart(chunk, one)), None)
            if other is not None:
                yield [chunk, other]


def evaluation_question(
    kind: PartKind, asked: PartAsked, numbered: Sequence[tuple[Chunk, int, int]]
) -> EvaluationQuestion | None:
    """What a model asked about numbered sentences, with its evidence; None where it does not fit
    its kind.

    The sentences must be there, and the answer of a single fact in them; several hops and
    comparisons rest on both passages; what cannot be answered has no evidence.
    """
    text = " ".join(asked.question.split())
    if not text:
        return None
    if kind == "unanswerable":
        return EvaluationQuestion(
            id=content_id("qst", kind, text), question=text, kind=kind, answerable=False
        )
    if (
        not asked.answer.strip()
        or not asked.sentences
        or not set(asked.sentences) <= set(range(1, len(numbered) + 1))
    ):
        return None
    evidence = [numbered[number - 1] for number in dict.fromkeys(asked.sentences)]
    if kind == "single_fact" and not holds(
        " ".join(c.text[a:b] for c, a, b in evidence), [asked.answer]
    ):
        return None
    if kind != "single_fact" and len({chunk.id for chunk, _, _ in evidence}) < 2:
        return None
    return EvaluationQuestion(
        id=content_id("qst", kind, text),
        question=text,
        kind=kind,
        answers=(asked.answer.strip(),),
        gold_documents=tuple(dict.fromkeys(chunk.document for chunk, _, _ in evidence)),
        gold_spans=tuple(_span(chunk, start, end) for chunk, start, end in evidence),
    )


def cloze_questions(chunks: Collection[Chunk]) -> Iterator[EvaluationQuestion]:
    """A question for each chunk that has a sentence with a name in its middle, which its title does
    not have: the sentence without the name.
    """
    for chunk in chunks:
        for start, end in sentences(chunk.text):
            sentence = " ".join(chunk.text[start:end].split())
            if (
                len(normalised(sentence).split()) not in CLOZE_WORDS or " | " in sentence
            ):  # a row of a table
                continue
            names = [
                span for span in names_of(sentence) if span.start and span.text not in chunk.title
            ]
            name = next(
                (
                    span.text
                    for span in names
                    if len(span.text) > 1 and sentence.count(span.text) == 1
                ),
                None,
            )
            if name is None:
                continue
            text = CLOZE_FORMS[is_han(sentence)].format(sentence.replace(name, "____"))
            yield EvaluationQuestion(
                id=content_id("qst", CLOZE, text),
                question=text,
                kind=CLOZE,
                answers=(name,),
                gold_documents=(chunk.document,),
                gold_spans=(_span(chunk, start, end),),
            )
            break


def _span(chunk: Chunk, start: int, end: int) -> TextSpan:
    return TextSpan(document=chunk.document, start=chunk.start + start, end=chunk.start + end)
