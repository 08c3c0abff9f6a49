"""A graph of triples of our own, and a session that answers from it."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.session import Session, open_session
from tests.workspaces import indexed, opened


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with Path(__file__).with_name("family.csv").open(encoding="utf-8") as facts:
        return indexed(tmp_path_factory.mktemp("family"), csv.DictReader(facts))


@pytest.fixture(scope="session")
def session(workspace: Path) -> Iterator[Session]:
    with open_session(opened(workspace)) as session:
        yield session
