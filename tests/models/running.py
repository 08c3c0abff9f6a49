"""Runs the product on the scripted model server."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime, open_runtime
from flows.session import open_session
from prompts.engine.limits import Clock
from prompts.engine.models import Models
from prompts.engine.spending import Meter
from storage.answer_records import Answer
from storage.export import Export, export
from storage.records import DeadLetter
from storage.run_records import IndexReport, UsageRow
from tests.server.client import Server
from tests.settings import load_settings


def quick(speed: float) -> Clock:
    """Waits between tries pass as quickly as this; `chance` always says the longest of them."""
    return Clock(
        lambda: time.monotonic() * speed,
        lambda seconds: asyncio.sleep(seconds / speed),
        lambda: 1.0 - 2**-53,
    )


QUICK = quick(200)


@dataclass(frozen=True)
class Place:
    """A workspace and the server that its roles use; `settings` override."""

    workspace: Path
    server: Server
    settings: Mapping[str, object] = field(default_factory=dict)
    clock: Clock = QUICK

    def runtime(self, **settings: object) -> Runtime:
        base: dict[str, object] = {
            "workspace": self.workspace,
            "lm": "openai/m",
            "lm_base_url": self.server.base_url,
            "embedding": "none",
            "lm_api_key": "k",
        }
        opened = open_runtime(load_settings({**base, **self.settings, **settings}, {}))
        chosen = opened.settings
        models = Models(
            chosen.model_choices(),
            Meter(),
            chosen.call_settings(),
            opened.workspace.database.model_answers,
            self.clock,
        )
        return replace(opened, models=models, embedder=opened.embedder.metered(models.meter))

    async def index(self, *sources: Path, **settings: object) -> IndexReport:
        runtime = self.runtime(**settings)
        try:
            return await build_index(sources, IndexOptions(allow_removals=True), runtime)
        finally:
            await runtime.models.aclose()

    async def ask(self, *questions: str, **settings: object) -> list[Answer]:
        """The answers, asked one after another."""
        runtime = self.runtime(**settings)
        with open_session(runtime) as session:
            answers = [
                await answer_question(question, AskOptions(), session) for question in questions
            ]
        await runtime.models.aclose()
        return answers

    def graph(self) -> Export:
        """All that must be equal between two runs."""
        with self.runtime().workspace.read() as generation:
            return export(generation)

    def dead_letters(self) -> list[DeadLetter]:
        with self.runtime().workspace.read() as generation:
            return generation.extractions.dead_letters()

    def usage(self) -> list[UsageRow]:
        with self.runtime().workspace.read() as generation:
            return generation.meta.usage()
