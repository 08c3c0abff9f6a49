"""Four processes keep one limit of requests, or of tokens."""

from pathlib import Path

import pytest

from tests.faults.shared_limit import WINDOW, figures, requested
from tests.server.client import Server


@pytest.mark.patient
@pytest.mark.parametrize(("rpm", "tpm"), [(30, 10**6), (10**4, 40_000)], ids=["requests", "tokens"])
def test_four_processes_keep_one_limit(
    rpm: int, tpm: int, model_server: Server, tmp_path: Path
) -> None:
    requests = requested(tmp_path, model_server, rpm, tpm, 24)
    found = figures(requests)
    assert found["seconds"] > WINDOW, "more than one window was needed"
    # Whatever the machine's load: a call comes in after it was counted, so never more have come
    # than windows allow.
    first = min(one["at"] for one in requests)
    for one in requests:
        windows = 1 + (one["at"] - first) // WINDOW
        before = [other for other in requests if other["at"] <= one["at"]]
        assert len(before) <= rpm * (windows + 1)
        assert sum(other["tokens"] for other in before) <= tpm * (windows + 1)
