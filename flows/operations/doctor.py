"""Doctor: whether all that the settings name works (each role's model, the embedding, the workspace, Prefect)."""

import asyncio
import os
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import httpx

from flows.runtime import Runtime, open_embedding
from prompts.engine.doctor import Examined, examine
from prompts.engine.errors import EngineError
from storage.database import SCHEMA_VERSION
from storage.errors import TrellisError
from storage.records import Record

SENTENCES = {"English": "The bridge opened in 1931.", "Chinese": "这座桥于1931年通车。"}
PREFECT_WAIT = 5.0  # seconds
PREFECT_URL = "PREFECT_API_URL"


class EmbeddingCheck(Record):
    """The embedding model, asked for one vector of each language that it says it reads."""

    name: str
    ok: bool
    dimension: int
    seconds: float
    reads: tuple[str, ...]
    problem: str = ""
    advice: str = ""


class WorkspaceCheck(Record):
    """The folder of state; `generation` is None where nothing is indexed, `format` is what this version reads."""

    folder: str
    ok: bool
    exists: bool
    generation: int | None
    format: int
    problem: str = ""
    advice: str = ""


class PrefectCheck(Record):
    """The Prefect server that is configured; `address` is empty where none is."""

    address: str
    ok: bool
    version: str
    problem: str = ""
    advice: str = ""


class Examination(Record):
    """What was found; `ok` where nothing failed, `offline` where no role has a model."""

    ok: bool
    offline: bool
    models: tuple[Examined, ...]
    embedding: EmbeddingCheck
    workspace: WorkspaceCheck
    prefect: PrefectCheck


async def examination(runtime: Runtime, environment: Mapping[str, str] | None = None) -> Examination:
    """Try everything once, side by side; what fails is a row, not an exception. Nothing is written that stays."""
    environ = os.environ if environment is None else environment
    rows, embedding, workspace, prefect = await asyncio.gather(
        examine(runtime.models),
        asyncio.to_thread(_embedding, runtime),
        asyncio.to_thread(_workspace, runtime),
        _prefect(environ.get(PREFECT_URL, "")),
    )
    models = tuple(rows)
    return Examination(
        ok=all(row.ok for row in models) and embedding.ok and workspace.ok and prefect.ok,
        offline=all(row.structured == "offline" for row in models),
        models=models,
        embedding=embedding,
        workspace=workspace,
        prefect=prefect,
    )


def _embedding(runtime: Runtime) -> EmbeddingCheck:
    # Without the cache: a vector that is stored proves nothing of the server.
    embedder = open_embedding(runtime.settings, None)
    read = tuple(language for language, text in SENTENCES.items() if embedder.reads(text))
    started = time.monotonic()
    try:
        vectors = embedder.embed([SENTENCES[language] for language in read])
    except EngineError as error:
        return EmbeddingCheck(
            name=embedder.name, ok=False, dimension=0, seconds=time.monotonic() - started, reads=(),
            problem=error.message, advice=error.remedy,
        )  # fmt: skip
    return EmbeddingCheck(
        name=embedder.name, ok=True, dimension=int(vectors.shape[1]), seconds=time.monotonic() - started, reads=read
    )


def _workspace(runtime: Runtime) -> WorkspaceCheck:
    root = runtime.workspace.root.absolute()
    number: int | None = None
    problem, advice = "", ""
    try:
        number = runtime.workspace.current()
        if number is not None:
            runtime.workspace.read(number).close()
        _try_writing(root)
    except TrellisError as error:
        problem, advice = error.message, error.remedy
    except OSError as error:
        problem = f"{error.filename or root}: {error.strerror}"
        advice = "Give this user the right to read and write the folder, or name another with --workspace."
    return WorkspaceCheck(
        folder=str(root), ok=not problem, exists=root.is_dir(), generation=number, format=SCHEMA_VERSION,
        problem=problem, advice=advice,
    )  # fmt: skip


def _try_writing(root: Path) -> None:
    """Raises OSError where the folder, or the first one above it that exists, takes no file."""
    place = next(folder for folder in (root, *root.parents) if folder.exists())
    with tempfile.TemporaryFile(dir=place):
        pass


async def _prefect(address: str) -> PrefectCheck:
    installed = version("prefect")
    problem = ""
    if address:
        try:
            async with httpx.AsyncClient(timeout=PREFECT_WAIT) as client:
                response = await client.get(f"{address.rstrip('/')}/health")
            # Any answer but a server's own error shows that one is there; Prefect Cloud asks for a key first.
            problem = f"it answers HTTP {response.status_code}" if response.status_code >= 500 else ""
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            problem = f"it cannot be reached ({str(error) or type(error).__name__})"
    advice = f"Start it (`prefect server start`), correct {PREFECT_URL}, or unset it." if problem else ""
    return PrefectCheck(address=address, ok=not problem, version=installed, problem=problem, advice=advice)
