"""Memory: what is remembered of earlier questions, and what is learnt from an answer (ERM4: trigger and reservoir)."""

from collections.abc import Sequence

from flows.modes.result import ModeResult
from flows.question import QuestionContext
from storage.memory import MemoryEntry
from storage.records import Passage
from tasks.alike import Question, keys
from tasks.answer import Answered
from tasks.calibration import of_characters, of_words
from tasks.remember import Lesson, remember, worth_keeping
from tasks.trigger import Likeness, Recall, check_trigger, overlap

# Forms of questions that a part of the documents answers; what reads widely has no use for what answered it once.
RECALLED = frozenset({"fact", "list", "yesno"})
PUBLISHED_TAU, PUBLISHED_THETA = 0.6, 3


async def recalled(question: QuestionContext) -> Recall:
    """The trigger's decision on each query; memory has no part in a question that is restricted or reads widely."""
    likeness = likeness_of(question)
    parsed = [question.session.notes.asked(query) for query in question.queries] if _has_part(question) else []
    return await check_trigger(question.queries, _offered(question, parsed, likeness.strict), likeness)


def passages_of(question: QuestionContext, recall: Recall) -> list[Passage]:
    """What memory offers, in the order in which it was read when it was found: nothing is scored for it."""
    question.remembered_shares.update(recall.shares)
    count = len(recall.chunks)
    return [question.passage_of(question.chunk(name), 1 - rank / count) for rank, name in enumerate(recall.chunks)]


async def keep(question: QuestionContext, result: ModeResult, answered: Answered) -> None:
    """Keep the knowledge that an answer rests on."""
    if not _has_part(question):
        return
    used = [chunk for part in result.subquestions for chunk in part.evidence]
    used += [citation.chunk for citation in answered.citations]
    chosen = worth_keeping(answered.fallback, result.passages, result.filtered.entailed, used)
    if not chosen:
        return
    title = question.session.notes.asked(question.text)
    strict = question.session.runtime.settings.memory == "published"
    read = {passage.chunk: passage for passage in result.passages}
    kept = tuple(read.get(chunk) or question.passage_of(question.chunk(chunk)) for chunk in chosen)
    around = question.session.notes.surroundings(title.text)
    shares = question.shares(result.passages)
    lesson = Lesson(title.text, answered.fallback, kept, around, question.session.number, strict, shares)
    for entry in await remember(lesson):
        question.session.runtime.workspace.side.memory.put(entry, keys(title), title_alone=strict)


def likeness_of(question: QuestionContext) -> Likeness:
    """How the trigger compares queries with remembered titles, by the settings."""
    settings = question.session.runtime.settings
    strict = settings.memory == "published"
    given = settings.model_fields_set
    tau = PUBLISHED_TAU if strict and "tau" not in given else settings.tau
    theta = PUBLISHED_THETA if strict and "theta" not in given else settings.theta

    def similarity(query: Question, titles: Sequence[Question]) -> list[float]:
        return close(query, titles, question, None if strict else tau)

    return Likeness(tau, theta, question.session.notes.asked, similarity, strict)


def close(query: Question, titles: Sequence[Question], question: QuestionContext, enough: float | None) -> list[float]:
    """Likeness on the common scale: by words, and where those are not `enough`, by cosines if the embedder reads both.

    None is the published way: cosines as they are.
    """
    embedder = question.embedder
    words = overlap(query, titles)
    scales = {han: of_characters() if han else of_words() for han in (True, False)}
    found = [scales[query.han and title.han].common(like) for title, like in zip(titles, words, strict=True)]
    same = [title.text == query.text for title in titles]
    known = [equal or (enough is not None and like >= enough) for equal, like in zip(same, found, strict=True)]
    near = [at for at, title in enumerate(titles) if not known[at] and embedder.reads(title.text)]
    if near and embedder.reads(query.text):
        vectors = embedder.embed([query.text, *(titles[at].text for at in near)])
        scale = question.session.notes.scale(embedder.name)
        for at, cosine in zip(near, (vectors[1:] @ vectors[0]).tolist(), strict=True):
            found[at] = cosine if enough is None else scale.common(cosine)
    return [1.0 if equal else like for equal, like in zip(same, found, strict=True)]


def _offered(question: QuestionContext, queries: Sequence[Question], strict: bool) -> list[MemoryEntry]:
    """The entries that hold in this generation.

    After a rollback later ones are still there: they were chosen among documents that this one lacks.
    """
    if not queries:
        return []
    memory, session = question.session.runtime.workspace.side.memory, question.session
    found = memory.entries() if strict else [one for query in queries for one in memory.found_by(keys(query))]
    return [
        entry
        for entry in {(one.source, one.title): one for one in found}.values()
        if entry.generation <= session.number
        and all(chunk in session.index.position for chunk in entry.evidence)
        and entry.surroundings in {"", session.notes.surroundings(entry.title)}
    ]


def _has_part(question: QuestionContext) -> bool:
    enabled = question.session.runtime.settings.memory != "off"
    return enabled and question.remembers and question.parsed.form in RECALLED
