"""Fit the prompts to a domain from a sample of its documents.

load → sample → tune → tailoring.toml in the workspace, which the next index run uses
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flows.runtime import Runtime, usage_of
from flows.settings import TAILORING_FILE
from prompts.tailoring import Tailoring, to_toml
from prompts.tune import Sampled, Tune
from storage.errors import UsageError
from storage.layout import Layout, write_atomically
from storage.records import Chunk, Record
from storage.run_records import Usage
from tasks.chunk import chunk
from tasks.load.sources import compose, load
from tasks.tune import some_documents, some_passages, tune

# The sample holds far fewer: chunking more of a large collection would only cost time.
MOST_DOCUMENTS = 200
_HEAD = "# Found by `trellis tune`. Change it as you like: it is only replaced with --force.\n\n"


@dataclass(frozen=True)
class TuneOptions:
    """The tokens to read (None: as many as an answer reads), the seed of the sample, and whether
    to replace an existing file.
    """

    tokens: int | None = None
    seed: int = 0
    force: bool = False


class TuneReport(Record):
    """The tailoring that was found, its file, and the size of the sample."""

    path: str
    documents: int
    passages: int
    tokens: int
    tailoring: Tailoring
    left_out: tuple[str, ...]
    usage: Usage


async def tune_workspace(
    sources: Sequence[str | Path], options: TuneOptions, runtime: Runtime
) -> TuneReport:
    """Find a tailoring and write it into the workspace; change nothing else there.

    Raises UsageError without a model, where the file exists, or where the sources hold no text;
    SourceNotFound; EngineError where the model gives no usable answer.
    """
    started = time.monotonic()
    if runtime.models.is_offline("tune"):
        raise UsageError(
            "Only a model can say what fits a domain, and none is set.", "Set TRELLIS_LM."
        )
    Layout(runtime.settings.workspace).refuse_copy()
    path = runtime.settings.workspace / TAILORING_FILE
    if path.exists() and not options.force:
        raise UsageError(
            f"There is {path} already.", "Move it away, or add --force to replace what it holds."
        )
    chosen = await _sample(sources, options, runtime)
    passages = [Sampled(title=passage.title, text=passage.text) for passage in chosen]
    fitted = await tune(passages, Tune(runtime.models))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, _HEAD + to_toml(fitted.tailoring))
    return TuneReport(
        path=str(path),
        documents=len({passage.document for passage in chosen}),
        passages=len(chosen),
        tokens=sum(passage.tokens for passage in chosen),
        tailoring=fitted.tailoring,
        left_out=fitted.left_out,
        usage=usage_of(runtime.models.meter, time.monotonic() - started),
    )


async def _sample(
    sources: Sequence[str | Path], options: TuneOptions, runtime: Runtime
) -> list[Chunk]:
    settings = runtime.settings
    loaded = await load(sources, runtime.models.cache)
    documents = some_documents(compose(loaded.parts), MOST_DOCUMENTS, options.seed)
    chunks = await chunk(documents, settings.chunk_tokens, settings.chunk_overlap)
    chosen = some_passages(chunks, options.tokens or settings.policy().limits.answer, options.seed)
    if not chosen:
        raise UsageError(
            f"There is no text to learn from in {', '.join(map(str, sources))}.",
            "Name sources that hold documents.",
        )
    return chosen
