"""Four processes keep one limit of requests, or of tokens."""

from pathlib import Path

import pytest

from tests.faults.shared_limit import WINDOW, requested
from tests.server.client import Server


@pytest.mark.patient
@pytest.mark.parametrize(("rpm", "tpm"), [(30, 10**6), (10**4, 40_000)], ids=["requests", "tokens"])
def test_four_processes_keep_one_limit(
    rpm: int, tpm: int, model_server: Server, tmp_path: Path
) -> None:
    requests = sorted(requested(tmp_path, model_server, rpm, tpm, 24), key=lambda one: one["at"])
    first, tokens = requests[0]["at"], 0
    assert requests[-1]["at"] - first > WINDOW, "more than one window was needed"
    # A call arrives after it was counted, however busy the machine is: so never more calls have
    # arrived than the windows until then allow.
    for count, one in enumerate(requests, 1):
        windows = 2 + (one["at"] - first) // WINDOW
        tokens += one["tokens"]
        assert count <= rpm * windows
        assert tokens <= tpm * windows
