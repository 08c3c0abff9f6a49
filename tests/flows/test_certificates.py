"""Certificates are spared where no connection is encrypted, and read wherever one is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

SHOW = (
    "import flows.orchestration.recording; from prefect.settings import get_current_settings;"
    "print(get_current_settings().api.ssl_cert_file)"
)


@pytest.mark.parametrize(
    ("environment", "spared"),
    [
        ({"PREFECT_API_URL": "http://prefect.example:4200/api"}, True),
        ({}, True),
        ({"PREFECT_API_URL": "https://prefect.example/api"}, False),
        ({"PREFECT_API_URL": "http://prefect.example/api", "PREFECT_API_SSL_CERT_FILE": "ours.pem"}, False),
    ],
    ids=["plain", "temporary server", "encrypted", "named by the person"],
)
def test_certificates_are_spared_over_plain_http_alone(
    environment: dict[str, str], spared: bool, tmp_path: Path
) -> None:
    import flows

    ours = str(Path(flows.__path__[0]) / "orchestration" / "no_authority.pem")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    shown = subprocess.run(
        [sys.executable, "-c", SHOW], env=clean | environment | {"PREFECT_HOME": str(tmp_path)}, capture_output=True,
        text=True, check=True, timeout=PATIENCE,
    ).stdout.strip()  # fmt: skip
    assert (shown == ours) is spared
    if environment.get("PREFECT_API_SSL_CERT_FILE") == "ours.pem":
        assert shown == "ours.pem"
