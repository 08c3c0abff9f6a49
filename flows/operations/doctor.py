"""The examination of an installation: models, embedding, workspace and Prefect, each once."""

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

# Somebody is waiting: a server that is down is reported after one more try.
ATTEMPTS = 2
SENTENCES = {"English": "The bridge opened in 1931.", "Chinese": "这座桥于1931年通车。"}
# A question, a passage that answers it and one that does not.
QUESTION = "When was the bridge opened?"
PASSAGES = ["The bridge opened in 1931.", "Rye bread is baked from flour."]
PREFECT_URL = "PREFECT_API_URL"


class Check(Record):
    """What was seen of one thing; where it failed, what is wrong and what to do."""

    ok: bool
    seen: str
    problem: str = ""
    advice: str = ""


class Examination(Record):
    """What was found.

    `ok`: nothing failed. `offline`: no role has a model. `profile` is what the models can do, and
    `profile_set` says whether a setting names it.
    `spared` are the steps before an answer that ask no model.
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
    """Try everything once, side by side. What fails is a row, and nothing is written that stays."""
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
    # Servers and clients repeat the keys and addresses that they were called with.
    return Examination.model_validate_json(masked(report.model_dump_json()))


def _check_embedding(runtime: Runtime) -> Check:
    """Embed a sentence of each language that the embedder says it reads."""
    # Without the cache: a vector that is stored proves nothing of the server.
    embedder = open_embedding(runtime.settings, None)
    read = [language for language, text in SENTENCES.items() if embedder.reads(text)]
    started = time.monotonic()
    try:
        vectors = embedder.embed([SENTENCES[language] for language in read])
    except EngineError as error:
        return Check(ok=False, seen=embedder.name, problem=error.message, advice=error.remedy)
    dimensions = vectors.shape[1]
    if not dimensions:
        seen = "texts are found by their words and the graph"
        return Check(ok=True, seen=f"{embedder.name}: {seen}")
    seen = (
        f"{dimensions} dimensions, {time.monotonic() - started:.2f} s, reads {' and '.join(read)}"
    )
    others = "" if len(read) > 1 else "; other scripts are found by their words"
    return Check(ok=True, seen=f"{embedder.name}: {seen}{others}")


def _check_reranker(runtime: Runtime) -> Check | None:
    """Score two passages; None where no reranker is set."""
    started = time.monotonic()
    try:
        if runtime.reranker is None:
            return None
        right, wrong = runtime.reranker.scores(QUESTION, PASSAGES)
    except EngineError as error:
        name = runtime.settings.reranker
        return Check(ok=False, seen=name, problem=error.message, advice=error.remedy)
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
    """Raises OSError where the folder, or the first above it that exists, takes no file."""
    place = next(folder for folder in (root, *root.parents) if folder.exists())
    with tempfile.TemporaryFile(dir=place):
        pass


async def _check_prefect(address: str) -> Check:
    """Ask the Prefect server whether it is there, where one is configured."""
    problem = advice = ""
    if address:
        try:
            await check_server(address)
        except StorageError as error:
            problem, advice = error.message, error.remedy
    at = address or f"no server is configured ({PREFECT_URL}): a recorded run starts its own"
    seen = f"{at}, version {version('prefect')}"
    return Check(ok=not problem, seen=seen, problem=problem, advice=advice)
