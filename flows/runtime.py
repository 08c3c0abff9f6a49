"""The runtime of a flow: the opened workspace, models and embedder of the settings."""

import tasks.prefect_environment  # noqa: F401 -- before Prefect

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import httpx
from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError, rate_limit

from flows.settings import Settings, secret_value
from flows.tracing import start_tracing
from prompts.engine.embedders import Embedder, EmbeddingForm, VectorCache
from prompts.engine.embedding_api import ApiEmbedder
from prompts.engine.errors import ModelMisconfigured, ModelUnavailable
from prompts.engine.limits import RateLimiter
from prompts.engine.local_models import CrossEncoderScorer
from prompts.engine.models import Models, Role
from prompts.engine.opening import open_embedder, open_reranker
from prompts.engine.rerankers import Reranker
from prompts.engine.spending import Meter, SpendBudget, Spent
from prompts.engine.step import Step
from prompts.extract import Extract, extractor
from prompts.propositions import ListStatements
from prompts.report import WriteReports, report_writer
from prompts.resolve import Resolve
from prompts.summarize import DescribeRelations, Summarize
from prompts.text.words import WORDS_VERSION
from storage.budget import SCHEMA, CallBudget
from storage.errors import SettingsError, UsageError
from storage.published_copy import follow_copy
from storage.run_records import Budget, StepUsage, Usage, UsageRow
from storage.sqlite import SqliteFile
from storage.vector_search import open_vector_store
from storage.vector_store import ServerAddress
from storage.workspace import Workspace
from storage.workspace_db import WorkspaceDatabase
from tasks.extract import READER_VERSION
from tasks.grounding import Scorer, word_coverage
from tasks.retrieve.pages import FolderRetriever, Retriever

# Reports a step, how many items are done, and how many there are.
Progress = Callable[[str, int, int], None]


def silent(step: str, done: int, total: int) -> None:
    """Report no progress."""


def unheard(message: str) -> None:
    """Show the message to nobody."""


@dataclass(frozen=True)
class Runtime:
    """All that a run works with; `tell` shows a message to the user before the run ends."""

    settings: Settings
    workspace: Workspace
    models: Models
    embedder: Embedder
    progress: Progress = silent
    tell: Callable[[str], None] = unheard

    @cached_property
    def retriever(self) -> Retriever | None:
        """What finds pages outside the index for every question."""
        return None if self.settings.pages is None else FolderRetriever(self.settings.pages)

    @cached_property
    def grounding_scorer(self) -> Scorer:
        """What judges whether evidence supports a sentence: words and figures, or a model."""
        if not self.settings.grounding:
            return word_coverage
        return CrossEncoderScorer(
            self.settings.grounding, backend=self.settings.model_backend, allow_download=True
        )

    @cached_property
    def reranker(self) -> Reranker | None:
        """The reranker of the settings, if any."""
        settings = self.settings
        if not settings.reranker:
            return None
        return open_reranker(
            settings.reranker,
            settings.reranker_base_url,
            secret_value(settings.reranker_api_key),
            backend=settings.model_backend,
            allow_download=True,
        )

    @cached_property
    def query_models(self) -> Models:
        """The models that questions ask, with the cache of answers if the settings allow it."""
        return self.models if self.settings.answer_cache else self.models.without_cache()

    @cached_property
    def authors(self) -> dict[str, str]:
        """The author of each step of an index run: see `Step.author`."""
        return {name: maker.author for name, maker in self.makers.items()}

    @cached_property
    def makers(self) -> dict[str, Step]:
        """The steps of an index run by name."""
        made: dict[str, Step] = {
            "extract": self.extract,
            "resolve": Resolve(self.models),
            "summarize": self.summarize,
            "relate": self.relate,
            "report": self.report,
        }
        if self.settings.propositions:
            made[ListStatements.step] = ListStatements(self.models)
        return made

    @property
    def extract(self) -> Extract:
        settings = self.settings
        return extractor(
            self.models,
            settings.gleanings,
            settings.tailoring,
            settings.claims,
            settings.graph_schema,
        )

    @property
    def summarize(self) -> Summarize:
        return Summarize(self.models, self.settings.tailoring, self.sparing)

    @property
    def relate(self) -> DescribeRelations:
        return DescribeRelations(self.models, self.settings.tailoring, self.sparing)

    @property
    def report(self) -> WriteReports:
        return report_writer(self.models, self.settings.tailoring, self.sparing)

    @property
    def sparing(self) -> bool:
        """Whether calls are left out that were shown to make no difference."""
        return self.settings.effort != "high"

    def counted_as(self, authors: Mapping[str, str]) -> "Runtime":
        """Return the runtime whose work counts as that of these authors, by step."""
        return replace(self, models=replace(self.models, authors=authors)) if authors else self

    @property
    def fingerprint(self) -> str:
        """A hash of all settings and prompts that the stored index depends on."""
        settings, limits = self.settings, self.settings.policy().limits
        parts = (
            READER_VERSION,
            WORDS_VERSION,
            settings.chunk_tokens,
            settings.chunk_overlap,
            settings.communities,
            settings.community_size,
            limits.report,
            limits.summary,
            self.sparing,
            self.embedder.name,
            *sorted(self.authors.items()),
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def open_runtime(
    settings: Settings,
    progress: Progress = silent,
    reading: bool = False,
    tell: Callable[[str], None] = unheard,
) -> Runtime:
    """Open what the settings name; nothing is created or loaded before its first use.

    With `reading` the work goes on without memory and caches if their files are damaged or cannot
    be written.
    """
    settings.keep_secrets()
    start_tracing(settings.trace_texts)
    follow_copy(settings.workspace, settings.follow_seconds)
    store = open_vector_store(settings.vector_store, settings.workspace, _vector_server(settings))
    workspace = Workspace(settings.workspace, settings.keep_generations, store, reading)
    caches = open_caches(settings, workspace, reading)
    embedder = open_embedding(settings, caches.embeddings)
    models = open_models(settings, caches, settings.cache_dir or settings.workspace, reading)
    return Runtime(settings, workspace, models, embedder.metered(models.meter), progress, tell)


def open_models(
    settings: Settings, caches: WorkspaceDatabase, limits: Path, reading: bool = False
) -> Models:
    """Return the models of the settings; calls a minute are counted in the folder `limits`."""
    return Models(
        settings.model_choices(),
        calls=settings.call_settings(),
        cache=caches.model_answers,
        rate_limiter_of=shared_budgets(settings, limits, reading),
        gate=prefect_gate(settings.prefect_limit),
        instructions=settings.instructions,
        programs=settings.compiled,
        policy=settings.policy(),
    )


def prefect_gate(name: str) -> Callable[[], Awaitable[None]] | None:
    """Return a function that waits for a slot of Prefect's global concurrency limit `name`.

    It raises ModelMisconfigured if Prefect's server has no such limit with slot decay, and
    ModelUnavailable if the server cannot be asked.
    """
    if not name:
        return None

    async def gate() -> None:
        try:
            await rate_limit(name, strict=True)
        except ConcurrencySlotAcquisitionError as error:
            raise ModelMisconfigured(
                f"Calls wait for Prefect's limit {name!r} (TRELLIS_PREFECT_LIMIT), which gives no "
                f"slot: {error}",
                f"Make it: prefect gcl create {name} --limit 10 --slot-decay-per-second 1 (60 calls"
                " a minute).",
            ) from error
        except (OSError, RuntimeError, httpx.HTTPError) as error:
            raise ModelUnavailable(
                f"Prefect's server cannot be asked for its limit {name!r} (TRELLIS_PREFECT_LIMIT): "
                f"{error}",
                "Look at PREFECT_API_URL, or leave that setting out.",
            ) from error

    return gate


def _vector_server(settings: Settings) -> ServerAddress | None:
    """Return the address of the server of the chosen store; that of Chroma unless another is set.

    Raises SettingsError where a server's store is not named.
    """
    if settings.vector_url is not None and settings.vector_store == "auto":
        expected = "the name of the store at TRELLIS_VECTOR_URL, such as qdrant or pgvector"
        raise SettingsError("vector_store", "auto", expected)
    if settings.vector_url is not None and not settings.vector_store.startswith("chroma"):
        return ServerAddress(settings.vector_url, token=secret_value(settings.vector_api_key))
    if settings.chroma_url is None:
        return None
    token = secret_value(settings.chroma_api_key)
    return ServerAddress(
        settings.chroma_url, settings.chroma_tenant, settings.chroma_database, token
    )


def open_caches(
    settings: Settings, workspace: Workspace, reading: bool = False
) -> WorkspaceDatabase:
    """Return the database of models' answers and vectors: `cache_dir`, or the workspace's own."""
    if settings.cache_dir is None:
        return workspace.database
    return WorkspaceDatabase(settings.cache_dir / "caches.sqlite", reading=reading)


def open_embedding(settings: Settings, cache: VectorCache | None) -> Embedder:
    """Return the embedder of the settings; without a cache it embeds every text again."""
    return open_embedder(
        settings.embedding,
        settings.embedding_base_url,
        settings.embedding_key(),
        cache,
        form=EmbeddingForm(
            settings.embedding_query_prompt,
            settings.embedding_passage_prompt,
            settings.embedding_dimension,
            settings.embedding_input_types,
        ),
        backend=settings.model_backend,
        allow_download=settings.embedding != "bundled",
    )


def usage_of(meter: Meter, seconds: float) -> Usage:
    """Return the meter's totals; the cost is unknown if that of one model is unknown."""
    total, steps = Spent(), dict[str, Spent]()
    for step, _, spent in meter.rows():
        total.add(spent)
        steps.setdefault(step, Spent()).add(spent)
    whole = _step_usage(total).model_copy(update={"seconds": seconds})
    return Usage(**dict(whole), by_step={name: _step_usage(spent) for name, spent in steps.items()})


def usage_rows(meter: Meter) -> list[UsageRow]:
    """Return the meter's rows as storage keeps them."""
    return [
        UsageRow(step=step, model=model, **dict(_step_usage(spent)))
        for step, model, spent in meter.rows()
    ]


def _step_usage(spent: Spent) -> StepUsage:
    return StepUsage(**{name: getattr(spent, name) for name in StepUsage.model_fields})


def shared_budgets(
    settings: Settings, folder: Path, reading: bool = False
) -> Callable[[str], RateLimiter] | None:
    """Return the limiter of a server by its address, kept in `folder`; None without a limit."""
    rpm, tpm = settings.rpm, settings.tpm
    if rpm is None and tpm is None:
        return None
    database = SqliteFile(folder / "limits.sqlite", SCHEMA, reading)
    return lambda server: CallBudget(database, server, rpm, tpm)


INDEXING: tuple[Role, ...] = ("extract", "resolve", "summarize", "report", "describe")
ASKING: tuple[Role, ...] = (
    "rewrite",
    "classify",
    "filter",
    "route",
    "structurize",
    "decompose",
    "answer",
)


def check_prices(runtime: Runtime, roles: Sequence[Role], instead: str) -> None:
    """Refuse models without a known price; `instead` names the option for tokens.

    Raises UsageError, which names the models of these roles and the embedding model.
    """
    unpriced, embedder = runtime.models.unpriced(roles), runtime.embedder
    if isinstance(embedder, ApiEmbedder) and embedder.unpriced:
        unpriced.append(embedder.name)
    if unpriced:
        raise UsageError(
            f"A budget in US dollars cannot be kept: no price is known of {', '.join(unpriced)}.",
            f"Give a budget in tokens ({instead}), or use models with a list price.",
        )


def with_budget(runtime: Runtime, budget: Budget, roles: Sequence[Role] = INDEXING) -> Runtime:
    """Return the runtime with a budget for these roles and for embedding.

    Raises UsageError for dollars if a price is unknown, and for a runner that calls models in other
    processes.
    """
    if budget.tokens is None and budget.usd is None:
        return runtime
    if runtime.settings.runner != "local" and roles is INDEXING:
        raise UsageError(
            f"A budget cannot be kept by the runner {runtime.settings.runner!r}: its processes "
            "count apart.",
            "Use the runner `local` (TRELLIS_RUNNER), or leave the budget out.",
        )
    if budget.usd is not None:
        check_prices(runtime, roles, "--budget-tokens")
    embedder, spend_budget = runtime.embedder, SpendBudget(budget.tokens, budget.usd)
    if isinstance(embedder, ApiEmbedder):
        embedder = embedder.within(spend_budget)
    return replace(runtime, models=runtime.models.within(spend_budget), embedder=embedder)
