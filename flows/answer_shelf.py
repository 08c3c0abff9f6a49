"""Which answers need not be written again? Those that a model wrote from the same evidence, by the same settings.

The key holds all that the answer depends on: the question as it was understood, how it was asked, the models, and the
passages that were found for it. So an answer is never older than its evidence. What depends on more than passages (a
structure from the graph or a table, links of a chain that are searched for one after another, a question that reads
widely) is bound to all passages of the generation too.

Offline nothing is kept: rules are cheap, and they have no name that would change with them.
"""

import json
from collections.abc import Sequence
from functools import lru_cache

from flows.asking_view import View
from prompts.engine.models import Models
from prompts.engine.roles import Role
from storage.record import content_id
from storage.records import Answer, Passage, StepUsage, Usage

ROLES: tuple[Role, ...] = ("filter", "route", "structurize", "decompose", "answer")
NARROW = frozenset({"fact", "list", "yesno"})  # forms that passages alone answer


class AnswerShelf:
    """The kept answers as one question sees them; where it may not keep any, all is missing and nothing is put."""

    def __init__(self, view: View, models: Models) -> None:
        session, options = view.session, view.options
        asks_a_model = any(not models.is_offline(role) for role in ROLES)
        self._open = session.runtime.settings.answer_cache and asks_a_model and view.retriever is None
        self._view = view
        self._cache = session.runtime.workspace.side.answers
        parts = (
            _form(), view.question, options.mode, str(options.structure), str(options.k),
            json.dumps(options.documents), session.runtime.settings.tailoring.digest(),
            *(models.name(role) for role in ROLES),
        )  # fmt: skip
        self._question = content_id("ask", *parts)

    def get(self, passages: Sequence[Passage]) -> Answer | None:
        """The answer that was written from these passages, whose citations all stand."""
        if not self._open:
            return None
        for whole in (False, True):
            stored = self._cache.get(self._question, self._evidence(passages, whole))
            if stored is not None:
                answer = Answer.model_validate_json(stored)
                position = self._view.session.index.position
                if all(citation.chunk in position for citation in answer.citations):
                    return answer
        return None

    def put(self, answer: Answer, passages: Sequence[Passage], remembered: Sequence[Passage], bound: bool) -> None:
        """Keep an answer by the passages that it was written from, and by those that memory now has for it.

        `bound`: it depends on more than the passages. An abstention is not kept: a model that failed in its own words
        would be believed for good.
        """
        if not self._open or answer.fallback == "abstained":
            return
        documents = {one.document for one in (*passages, *remembered)} | {one.document for one in answer.citations}
        text = answer.model_dump_json()
        whole = bound or self._view.taken.form not in NARROW or answer.trace.structure != "chunk"
        for evidence in {self._evidence(found, whole) for found in (passages, remembered) if found}:
            self._cache.put(self._question, evidence, text, documents)

    def _evidence(self, passages: Sequence[Passage], whole: bool) -> str:
        every = (self._view.session.notes.digest,) if whole else ()
        return content_id("ev", *(passage.chunk for passage in passages), *every)


def shown_again(stored: Answer, question: str, now: Usage, generation: int) -> Answer:
    """A kept answer for the one who asks now: with what was spent now, and the calls that were saved as cached."""
    saved = stored.usage.calls + stored.usage.cached_calls
    steps = {**now.by_step, "answer cache": StepUsage(cached_calls=saved)}
    usage = now.model_copy(update={"cached_calls": now.cached_calls + saved, "by_step": steps})
    return stored.model_copy(update={"question": question, "usage": usage, "generation": generation})


@lru_cache(maxsize=1)
def _form() -> str:
    """Changes with the fields of an answer: an answer of another version is not read."""
    return content_id("form", json.dumps(Answer.model_json_schema(), sort_keys=True))
