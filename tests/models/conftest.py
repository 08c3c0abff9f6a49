"""Where the recorded answers of a real model lie, and a workspace on the scripted model server."""

from pathlib import Path

import pytest

from tests.models.running import Place
from tests.server.client import Server


@pytest.fixture
def place(tmp_path: Path, model_server: Server) -> Place:
    """A workspace with all roles on the server."""
    return Place(tmp_path / "ws", model_server)


@pytest.fixture(scope="session")
def recorded_data(request: pytest.FixtureRequest) -> Path:
    """The folder with the recorded answers of a real model."""
    given = request.config.getoption("--data")
    if given is None:
        pytest.skip("no recorded data: give its folder by --data or TRELLIS_TEST_DATA")
    folder = Path(given) / "llm_outputs"
    if not folder.is_dir():
        pytest.skip(f"no recorded data: {folder} is not there")
    return folder
