"""`trellis serve` as a command: what it refuses, the keys that it makes, how it begins and ends;
and its containers.
"""

import json
import logging
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from ruamel.yaml import YAML

from flows.__main__ import main
from flows.cli.command import trellis_app
from flows.service.log import log_to_stderr
from tests.patience import PATIENCE
from tests.service.conftest import QUESTION
from tests.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def served(
    *arguments: str, log: Path, **environment: str
) -> Iterator[tuple[dict[str, Any], "subprocess.Popen[str]"]]:
    """The command in a process of its own, with what it says of itself."""
    command = [
        sys.executable,
        "-m",
        "flows",
        "serve",
        "--no-prefect",
        "--json",
        "--listen",
        "0",
        *arguments,
    ]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            text=True,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline()), process
        finally:
            process.kill()


def test_it_serves_until_it_is_told_to_end(workspace: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with served("--workspace", str(workspace), log=log) as (facts, process):
        with httpx.Client(base_url=facts["service"], timeout=PATIENCE, trust_env=False) as client:
            assert (
                "Tomas Reyd"
                in client.post("/api/v1/ask", json={"question": QUESTION}).json()["answer"]
            )
            assert client.get("/health").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
    lines = log.read_text().splitlines()
    requests = [json.loads(line) for line in lines if line.startswith("{")]
    assert [row["route"] for row in requests] == ["/api/v1/ask", "/health"]
    assert all(len(row["request"]) == 16 for row in requests)
    assert [line for line in lines if not line.startswith("{")] == ["stopped"]
    assert QUESTION not in log.read_text()


def test_a_new_key_opens_a_service_that_others_can_reach(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--new-key", "ann:edit", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["key"] not in made["row"]
    settings = load_settings(
        environment={"TRELLIS_SERVICE_KEYS": f"{made['row']};{made['row'].replace('ann', 'bob')}"}
    )
    assert len(settings.service.keys) == 2
    where = ("--listen", "0.0.0.0:0", "--workspace", str(workspace))
    with served(*where, log=tmp_path / "log", TRELLIS_SERVICE_KEYS=made["row"]) as (facts, _):
        # As it was asked for.
        address = facts["service"].replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        headers = {"authorization": f"Bearer {made['key']}"}
        assert (
            httpx.get(f"{address}/v1/models", headers=headers, trust_env=False).status_code == 200
        )
        assert httpx.get(f"{address}/v1/models", trust_env=False).status_code == 401


@pytest.mark.parametrize("texts", [False, True])
def test_the_log_names_no_document(capsys: pytest.CaptureFixture[str], texts: bool) -> None:
    name = "people/ilse-marrand.md"
    with log_to_stderr(texts):
        try:
            try:
                raise KeyError(name)
            except KeyError as error:
                raise ValueError(f"{name} is lost") from error
        except ValueError:
            logging.getLogger("trellis.service").exception("request failed")
            logging.getLogger("tasks.load.sources").warning(
                "%s cannot be read", name, exc_info=True
            )
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == [
        "request failed",
        f"{name} cannot be read" if texts else "%s cannot be read",
    ]
    assert all("KeyError" in line["error"] and "ValueError" in line["error"] for line in lines)
    assert all((name in line["error"]) is texts for line in lines)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--listen", "0.0.0.0:8100"), "no key is set"),
        (("--listen", "192.0.2.1:80"), "no key is set"),
        (("--listen", "here"), "is no address"),
        (("--no-prefect", "--cron", "0 3 * * *", "."), "--no-prefect leaves out"),
        (("--no-prefect", "--pool", "p"), "--no-prefect leaves out"),
        (("--new-key", "ann:root"), "Roles: ask, edit, admin"),
        (("--new-key", "a b:ask"), "Use letters"),
        (("--no-prefect", "not-there"), "Source not found"),
    ],
)
def test_what_cannot_be_served_is_refused_in_words(
    arguments: tuple[str, ...], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments, "--workspace", str(tmp_path / "ws")]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "value", ["ann", "ann:root:" + "0" * 64, "ann:ask:abc", "ann:ask:" + "0" * 64 + ";x"]
)
def test_a_row_that_is_no_key_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(Exception, match=r"service\.keys") as caught:
        load_settings(environment={"TRELLIS_SERVICE_KEYS": value})
    assert "0000" not in str(caught.value)


def test_the_containers_fit_together() -> None:
    compose: Mapping[str, Any] = YAML(typ="safe").load(
        ROOT / "examples" / "deploy" / "compose.yaml"
    )
    services, volumes = compose["services"], compose["volumes"]
    assert services.keys() == {"database", "server", "setup", "worker", "service", "chroma"}
    for name, service in services.items():
        assert service.keys() & {"image", "build"}, name
        assert service.get("depends_on", {}).keys() <= services.keys()
        named = [volume.split(":")[0] for volume in service.get("volumes", ())]
        assert {volume for volume in named if not volume.startswith(".")} <= volumes.keys()
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    command = shlex.split(services["service"]["command"])
    _, bound, _ = trellis_app().parse_args(command[1:])
    typed = (
        bound.arguments["listen"],
        bound.arguments["no_prefect"],
        bound.arguments["common"].workspace,
    )
    assert typed == ("0.0.0.0:8100", True, "/data/workspace")
    assert services["service"]["volumes"] == services["worker"]["volumes"]
    host = services["worker"]["environment"]["TRELLIS_CHROMA_URL"]
    settings = {"chroma_url": host, "service": {"keys": []}}
    assert str(load_settings(settings, {}).chroma_url).split("/")[2].split(":")[0] in services
