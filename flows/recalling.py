"""What does memory know of a question, and what does it learn from its answer? (ERM4: trigger and reservoir)"""

from collections.abc import Sequence

from flows.asking_view import View
from flows.contexts import Context
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


async def recalled(view: View, queries: Sequence[str], searches: bool) -> Recall:
    """The trigger's decision on each query; memory has no part in a question that is restricted or reads widely, nor
    in a mode that does not search."""
    likeness = likeness_of(view)
    apart = [view.session.notes.asked(query) for query in queries] if searches and _has_part(view) else []
    return await check_trigger(queries, _offered(view, apart, likeness.strict), likeness)


async def keep(view: View, found: Context, answered: Answered) -> tuple[Passage, ...]:
    """Keep the knowledge that an answer rests on; the passages that memory has for the question from now on."""
    if not _has_part(view):
        return ()
    support = answered.reading.support
    used = [chunk for part in answered.subquestions for chunk in part.evidence]
    used += [citation.chunk for citation in answered.citations]
    chosen = worth_keeping(support, found.passages, found.kept.entailed, used)
    if not chosen:
        return ()
    title = view.session.notes.asked(view.taken.text)
    strict = view.session.runtime.settings.memory == "published"
    read = {passage.chunk: passage for passage in found.passages}
    kept = tuple(read.get(chunk) or view.recalled_passage(chunk) for chunk in chosen)
    around = view.session.notes.surroundings(title.text)
    shares = view.standing(found.passages).together
    lesson = Lesson(title.text, support, kept, around, view.session.number, strict, shares)
    for entry in await remember(lesson):
        view.session.runtime.workspace.side.memory.put(entry, keys(title), title_alone=strict)
    return kept


def likeness_of(view: View) -> Likeness:
    """How the trigger compares queries with remembered titles, by the settings."""
    settings = view.session.runtime.settings
    strict = settings.memory == "published"
    given = settings.model_fields_set
    tau = PUBLISHED_TAU if strict and "tau" not in given else settings.tau
    theta = PUBLISHED_THETA if strict and "theta" not in given else settings.theta

    def similarity(query: Question, titles: Sequence[Question]) -> list[float]:
        return close(query, titles, view, None if strict else tau)

    return Likeness(tau, theta, view.session.notes.asked, similarity, strict)


def close(query: Question, titles: Sequence[Question], view: View, enough: float | None) -> list[float]:
    """Likeness on the common scale: by words, and where those are not `enough`, by cosines if the embedder reads both.

    None is the published way: cosines as they are.
    """
    embedder = view.embedder
    words = overlap(query, titles)
    scales = {han: of_characters() if han else of_words() for han in (True, False)}
    found = [scales[query.han and title.han].common(like) for title, like in zip(titles, words, strict=True)]
    same = [title.text == query.text for title in titles]
    known = [equal or (enough is not None and like >= enough) for equal, like in zip(same, found, strict=True)]
    near = [at for at, title in enumerate(titles) if not known[at] and embedder.reads(title.text)]
    if near and embedder.reads(query.text):
        vectors = embedder.embed([query.text, *(titles[at].text for at in near)])
        scale = view.session.notes.scale(embedder.name)
        for at, cosine in zip(near, (vectors[1:] @ vectors[0]).tolist(), strict=True):
            found[at] = cosine if enough is None else scale.common(cosine)
    return [1.0 if equal else like for equal, like in zip(same, found, strict=True)]


def _offered(view: View, queries: Sequence[Question], strict: bool) -> list[MemoryEntry]:
    """The entries that hold in this generation.

    After a rollback later ones are still there: they were chosen among documents that this one lacks.
    """
    if not queries:
        return []
    memory, session = view.session.runtime.workspace.side.memory, view.session
    found = memory.entries() if strict else [one for query in queries for one in memory.found_by(keys(query))]
    return [
        entry
        for entry in {(one.source, one.title): one for one in found}.values()
        if entry.generation <= session.number
        and all(chunk in session.index.position for chunk in entry.evidence)
        and entry.surroundings in {"", session.notes.surroundings(entry.title)}
    ]


def _has_part(view: View) -> bool:
    enabled = view.session.runtime.settings.memory != "off"
    return enabled and view.remembers and view.taken.form in RECALLED
