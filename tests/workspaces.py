"""Workspaces for tests: indexed from rows, without vectors and without the person's settings."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime, open_runtime
from flows.session import Session, open_session
from storage.answer_records import Answer
from tests.server.client import Server
from tests.settings import load_settings


def opened(workspace: Path, **settings: object) -> Runtime:
    """The runtime of a workspace with these settings."""
    given = {"workspace": workspace, "embedding": "none", **settings}
    return open_runtime(load_settings(given, {}))


def write_rows(path: Path, rows: Iterable[Any]) -> Path:
    """A JSON Lines file of rows."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def quays(count: int) -> list[dict[str, str]]:
    """Short documents on quays, their builder and the years."""
    text = "Quay {0} of Velin was built by Ana Korb in {1}."
    return [
        {"id": f"d{n}", "title": f"Quay {n}", "text": text.format(n, 1800 + n)}
        for n in range(count)
    ]


def indexed(folder: Path, rows: Iterable[Any], **settings: object) -> Path:
    """A workspace in the folder, indexed from the rows with these settings."""
    source = write_rows(folder / "rows.jsonl", rows)
    asyncio.run(build_index([source], IndexOptions(), opened(folder / "ws", **settings)))
    return folder / "ws"


@asynccontextmanager
async def session_on(server: Server, workspace: Path, **settings: object) -> AsyncIterator[Session]:
    """A session in which a scripted server, with counters at 0, is the model of every role."""
    server.reset()
    model = {"lm": "openai/m", "lm_base_url": server.base_url, "lm_api_key": "k"}
    runtime = opened(workspace, **model, **settings)
    with open_session(runtime) as session:
        yield session
    await runtime.models.aclose()


@dataclass(frozen=True)
class ScriptedWorkspace:
    """An indexed workspace, and the scripted model that its sessions ask each time anew."""

    workspace: Path
    server: Server

    def session(self, **settings: object) -> AbstractAsyncContextManager[Session]:
        fresh = {"memory": "off", "answer_cache": False}
        return session_on(self.server, self.workspace, **fresh, **settings)


async def asked(question: str, session: Session, **options: Any) -> Answer:
    return await answer_question(question, AskOptions(**options), session)
