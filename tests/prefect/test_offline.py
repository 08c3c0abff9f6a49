"""With no network but loopback everything works, and nothing so much as tries to reach another machine."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.prefect.conftest import ROOT

pytestmark = [pytest.mark.prefect, pytest.mark.slow]
CUT_OFF = ("unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
RECORDED = """
import asyncio, sys
from flows.index import index
from flows.query import query
async def both():
    await index(sys.argv[1], workspace=sys.argv[2])
    return await query("Who designed Orla Bridge?", workspace=sys.argv[2])
print(asyncio.run(both()).answer)
"""
# An address as strace writes it; name servers and their likes are reached by `sendto` and `sendmmsg` as well.
ADDRESS = re.compile(r'(?:inet_addr\("|inet_pton\(AF_INET6, ")([^"]+)')


def test_a_recorded_run_and_question_need_no_network_and_try_none(source: Path, tmp_path: Path) -> None:
    for needed in ("unshare", "ip", "strace"):
        if not shutil.which(needed):
            pytest.skip(f"{needed} is not installed (Debian: apt-get install util-linux iproute2 strace)")
    if subprocess.run([*CUT_OFF, "strace", "-o", os.devnull, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody make a network of its own, or trace a process")
    log = tmp_path / "calls"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(tmp_path / "home"),
                   "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120"}  # fmt: skip
    done = subprocess.run(
        [*CUT_OFF, "strace", "-f", "--seccomp-bpf", "-o", str(log), "-e", "trace=connect,sendto,sendmsg,sendmmsg",
         sys.executable, "-c", RECORDED, str(source), str(tmp_path / "ws")],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Tomas Reyd" in done.stdout
    asked = set(ADDRESS.findall(log.read_text(errors="replace")))
    assert asked == {"127.0.0.1"}
