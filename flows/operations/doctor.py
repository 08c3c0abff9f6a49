"""Examine an installation: try the models, the embedding, the workspace and Prefect once."""

import asyncio
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from flows.orchestration.local_server import check_server
from flows.runtime import Runtime, open_embedding, open_runtime
from flows.settings import Settings
from flows.usage import masked
from prompts.doctor import ExaminedModel, examine
from prompts.engine.effort import HELPERS, Profile
from prompts.engine.errors import EngineError
from storage.database import SCHEMA_VERSION
from storage.errors import StorageError, TrellisError
from storage.records import Record

# Somebody is waiting: a server that is down is tried only once more.
ATTEMPTS = 2
SENTENCES = {"English": "The bridge opened in 1931.", "Chinese": "这座桥于1931年通车。"}
# A question, a passage that answers it and one that does not.
QUESTION = "When was the bridge opened?"
PASSAGES = ["The bridge opened in 1931.", "Rye bread is baked from flour."]
PREFECT_URL = "PREFECT_API_URL"


class Check(Record):
    """What was seen of one component; where it failed, the problem and the advice."""

    ok: bool
    seen: str
    problem: str = ""
    advice: str = ""


class Examination(Record):
    """The result of all checks: `ok` where none failed, `offline` where no role has a model.

    `profile` is what the models can do, `profile_set` whether a setting names it, `spared` the
    steps before an answer that ask no model.
    """

    ok: bool
    offline: bool
    profile: Profile
    profile_set: bool
    spared: tuple[str, ...]
    models: tuple[ExaminedModel, ...]
    embedding: Check
    reranker: Check | None
    workspace: Check
    prefect: Check


async def examination(settings: Settings, prefect_address: str) -> Examination:
    """Try every component, all at once. A failure is a row of the result; no file is left."""
    policy = settings.policy()
    attempts = min(settings.max_attempts, ATTEMPTS)
    runtime = open_runtime(settings.model_copy(update={"max_attempts": attempts}))
    models, embedding, reranker, workspace, prefect = await asyncio.gather(
        examine(runtime.models),
        asyncio.to_thread(_check_embedding, runtime),
        asyncio.to_thread(_check_reranker, runtime),
        asyncio.to_thread(_check_workspace, runtime),
        _check_prefect(prefect_address),
    )
    checks = (embedding, reranker or embedding, workspace, prefect)
    report = Examination(
        ok=all(row.ok for row in models) and all(check.ok for check in checks),
        offline=all(row.structured == "offline" for row in models),
        profile=settings.profile_in_force(),
        profile_set=settings.profile != "auto",
        spared=tuple(step for step in HELPERS if policy.spared(step)),
        models=tuple(models),
        embedding=embedding,
        reranker=reranker,
        workspace=workspace,
        prefect=prefect,
    )
    # Errors of servers and clients repeat the keys and addresses of the request.
    return Examination.model_validate_json(masked(report.model_dump_json()))


def _failed(seen: str, error: TrellisError | EngineError) -> Check:
    return Check(ok=False, seen=seen, problem=error.message, advice=error.remedy)


def _check_embedding(runtime: Runtime) -> Check:
    """Embed a sentence of each language that the embedder reads."""
    # Without the cache: a stored vector would say nothing of the server.
    embedder = open_embedding(runtime.settings, None)
    languages = [language for language, text in SENTENCES.items() if embedder.reads(text)]
    started = time.monotonic()
    try:
        vectors = embedder.embed([SENTENCES[language] for language in languages])
    except EngineError as error:
        return _failed(embedder.name, error)
    dimensions = vectors.shape[1]
    if not dimensions:
        seen = "texts are found by their words and the graph"
        return Check(ok=True, seen=f"{embedder.name}: {seen}")
    took, read = f"{time.monotonic() - started:.2f} s", " and ".join(languages)
    others = "" if len(languages) > 1 else "; other scripts are found by their words"
    return Check(
        ok=True, seen=f"{embedder.name}: {dimensions} dimensions, {took}, reads {read}{others}"
    )


def _check_reranker(runtime: Runtime) -> Check | None:
    """Score two passages; None where no reranker is set."""
    started = time.monotonic()
    try:
        if runtime.reranker is None:
            return None
        right, wrong = runtime.reranker.scores(QUESTION, PASSAGES)
    except EngineError as error:
        return _failed(runtime.settings.reranker, error)
    seen = f"an answer scores {right:.3g}, another text {wrong:.3g}"
    took = f"{time.monotonic() - started:.2f} s"
    return Check(ok=True, seen=f"{runtime.reranker.name}: {seen}, {took}")


def _check_workspace(runtime: Runtime) -> Check:
    """Read the whole workspace, and try to write there."""
    root = runtime.workspace.root.absolute()
    number: int | None = None
    problem, advice = "", ""
    try:
        number = runtime.workspace.current()
        _try_writing(root)
        faults = runtime.workspace.examined()
        problem = " ".join(fault.message for fault in faults)
        advice = " ".join(dict.fromkeys(fault.remedy for fault in faults))
    except TrellisError as error:
        problem, advice = error.message, error.remedy
    except OSError as error:
        problem = f"{error.filename or root}: {error.strerror}"
        advice = "Let this user read and write the folder, or name another with --workspace."
    holds = "nothing is indexed yet" if number is None else f"generation {number}"
    writable = "" if problem else ", can be written"
    seen = f"{root}: {holds}, format {SCHEMA_VERSION}{writable}"
    return Check(ok=not problem, seen=seen, problem=problem, advice=advice)


def _try_writing(root: Path) -> None:
    """Raise OSError where the folder, or the first existing one above it, takes no file."""
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    with tempfile.TemporaryFile(dir=existing):
        pass


async def _check_prefect(address: str) -> Check:
    """Ask the Prefect server for its health, where one is configured."""
    at = address or f"no server is configured ({PREFECT_URL}): a recorded run starts its own"
    seen = f"{at}, version {version('prefect')}"
    try:
        if address:
            await check_server(address)
    except StorageError as error:
        return _failed(seen, error)
    return Check(ok=True, seen=seen)
