"""What does a flow work with? The workspace, the models and the embedder that the settings name, opened once."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from flows.settings import Settings
from flows.shared_limits import budgets
from prompts.engine.embedder import Embedder, VectorCache, open_embedder
from prompts.engine.meter import Meter, Spent
from prompts.engine.models import Models
from prompts.tailoring.step import author
from prompts.tailoring.values import Tailoring
from storage.generations import Workspace
from storage.meta import UsageRow
from storage.records import StepUsage, Usage
from storage.side import SideStore
from tasks.extract import EXTRACTOR_VERSION

if TYPE_CHECKING:
    from tasks.retrieve.pages import Retriever

# Reports that a step has done so many of so many items.
Progress = Callable[[str, int, int], None]


def silent(step: str, done: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class Runtime:
    """All that a run needs to do its work."""

    settings: Settings
    workspace: Workspace
    models: Models
    embedder: Embedder
    progress: Progress = silent

    @cached_property
    def retriever(self) -> "Retriever | None":
        """What brings pages from outside the index to every question, where the settings name a folder of them."""
        if self.settings.pages is None:
            return None
        from tasks.retrieve.pages import FolderRetriever

        return FolderRetriever(self.settings.pages)

    @cached_property
    def query_models(self) -> Models:
        """The models as questions ask them: from the cache of answers, if the settings allow that."""
        return self.models if self.settings.answer_cache else self.models.without_cache()

    @property
    def extractor(self) -> str:
        """What extracts: the model, what it is asked for and how often, and what it is told of the domain.

        Offline there is nobody to ask, and of a tailoring only the kinds count.
        """
        offline, rounds = self.models.is_offline("extract"), self.settings.gleanings
        values = ("entity_types",) if offline else tuple(Tailoring.model_fields)
        told = self.settings.tailoring.digest(*values)
        asked = f", {rounds} gleanings" if rounds and not offline else ""
        asked += ", claims" if self.settings.claims and not offline else ""
        return self.models.name("extract") + asked + (f", tailored {told}" if told else "")

    @property
    def fingerprint(self) -> str:
        """Changes when a setting changes that the stored index depends on."""
        settings = self.settings
        parts = (
            EXTRACTOR_VERSION,
            settings.chunk_tokens,
            settings.chunk_overlap,
            settings.community_size,
            settings.report_tokens,
            self.embedder.name,
            self.extractor,
            self.models.name("resolve"),
            author(self.models, "summarize", settings.tailoring),
            author(self.models, "report", settings.tailoring),
            *(("entity vectors",) if settings.entity_vectors else ()),
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def open_runtime(settings: Settings, progress: Progress = silent, reading: bool = False) -> Runtime:
    """Open what the settings name; nothing is created or loaded before it is used.

    `reading`: who asks or looks goes on without memory and caches where their disk cannot be written.
    """
    settings.keep_secrets()
    workspace = Workspace(settings.workspace, settings.keep_generations, settings.chroma_url, reading)
    caches = open_caches(settings, workspace, reading)
    embedder = open_embedding(settings, caches.embeddings)
    shared = budgets(settings, settings.cache_dir or settings.workspace, reading)
    choices, calls = settings.model_choices(), settings.call_settings()
    models = Models(choices, Meter(), calls, caches.model_answers, budget_of=shared)
    return Runtime(settings, workspace, models, embedder.metered(models.meter), progress)


def open_caches(settings: Settings, workspace: Workspace, reading: bool = False) -> SideStore:
    """Where answers of models and vectors of texts are kept: with the workspace, or in a folder of their own."""
    folder = settings.cache_dir
    return SideStore(folder / "caches.sqlite", reading=reading) if folder else workspace.side


def open_embedding(settings: Settings, cache: VectorCache | None) -> Embedder:
    """The embedder that the settings name; without a cache each text is embedded anew."""
    return open_embedder(
        settings.embedding,
        settings.embedding_base_url,
        settings.embedding_key(),
        cache,
        allow_download=settings.embedding != "bundled",
    )


def usage_of(meter: Meter, seconds: float) -> Usage:
    """The ledger as a record; a cost that is unknown for one model is unknown in sum."""
    total, steps = Spent(), dict[str, Spent]()
    for step, _, spent in meter.rows():
        total.add(spent)
        steps.setdefault(step, Spent()).add(spent)
    whole = _step_usage(total).model_copy(update={"seconds": seconds})
    return Usage(**dict(whole), by_step={name: _step_usage(spent) for name, spent in steps.items()})


def usage_rows(meter: Meter) -> list[UsageRow]:
    """The ledger as storage keeps it."""
    return [UsageRow(step=step, model=model, **dict(_step_usage(spent))) for step, model, spent in meter.rows()]


def _step_usage(spent: Spent) -> StepUsage:
    return StepUsage(
        calls=spent.calls,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cached_calls=spent.cached_calls,
        cost_usd=spent.cost_usd,
        seconds=spent.seconds,
    )
