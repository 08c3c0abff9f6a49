"""A graph of triples of our own, and a session that answers from it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import load_settings
from storage.answer_records import Answer

FACTS = """
ada_vell | children | bruno_vell
ada_vell | children | cleo_vell
ada_vell | spouse | dov_arlen
ada_vell | profession | glazier
dov_arlen | children | cleo_vell
dov_arlen | profession | glazier
dov_arlen | religion | quaker
dov_arlen | date_of_birth | 1950-03-02
ada_vell | date_of_birth | 1948
ada_vell | religion | lutheran
bruno_vell | gender | male
bruno_vell | place_of_birth | port_ister
bruno_vell | cause_of_death | drowning
bruno_vell | place_of_death | lake_orm
bruno_vell | children | edda_vell
bruno_vell | children | finn_vell
cleo_vell | gender | female
cleo_vell | place_of_birth | hallen
cleo_vell | children | gus_arlen
the glass harp | directed_by | dov_arlen
the glass harp | starred_actors | cleo_vell
salt road | directed_by | dov_arlen
salt road | release_year | 1991
the glass harp | release_year | 1987
hermit_oyl | profession | beekeeper
"""

Asking = Callable[..., Awaitable[Answer]]


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("family")
    rows = [dict(zip("spo", line.split(" | "), strict=True)) for line in FACTS.strip().splitlines()]
    path = folder / "family.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    runtime = open_runtime(load_settings({"workspace": folder / "ws", "embedding": "none"}, {}))
    asyncio.run(build_index([path], IndexOptions(), runtime))
    return folder / "ws"


@pytest.fixture(scope="session")
def session(workspace: Path) -> Iterator[Session]:
    runtime = open_runtime(load_settings({"workspace": workspace, "embedding": "none"}, {}))
    with open_session(runtime) as opened:
        yield opened


@pytest.fixture
def asked(session: Session) -> Asking:
    async def ask(question: str, **options: object) -> Answer:
        return await answer_question(question, AskOptions(mode="traverse", **options), session)  # type: ignore[arg-type]

    return ask
