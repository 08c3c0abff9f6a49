"""What does a flow work with? The workspace, the models and the embedder that the settings name, opened once."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from flows.settings import Settings
from prompts.engine.embedder import Embedder, VectorCache, open_embedder
from prompts.engine.meter import Meter, Spent
from prompts.engine.models import Models
from storage.generations import Workspace
from storage.meta import UsageRow
from storage.records import StepUsage, Usage
from storage.side import SideStore
from tasks.extract import EXTRACTOR_VERSION

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

    @property
    def extractor(self) -> str:
        """What extracts: the model, and how often it is asked what it has missed. Offline there is nothing to ask."""
        model, rounds = self.models.name("extract"), self.settings.gleanings
        return f"{model}, {rounds} gleanings" if rounds and not self.models.is_offline("extract") else model

    @property
    def fingerprint(self) -> str:
        """Changes when a setting changes that the stored index depends on."""
        settings = self.settings
        parts = (
            EXTRACTOR_VERSION,
            settings.chunk_tokens,
            settings.chunk_overlap,
            settings.community_size,
            self.embedder.name,
            self.extractor,
            self.models.name("summarize"),
            self.models.name("report"),
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def open_runtime(settings: Settings, progress: Progress = silent) -> Runtime:
    """Open what the settings name; nothing is created or loaded before it is used."""
    workspace = Workspace(settings.workspace, settings.keep_generations)
    caches = SideStore(settings.cache_dir / "caches.sqlite") if settings.cache_dir else workspace.side
    embedder = open_embedding(settings, caches.embeddings)
    models = Models(settings.model_choices(), Meter(), settings.call_settings(), caches.model_answers)
    return Runtime(settings, workspace, models, embedder, progress)


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
