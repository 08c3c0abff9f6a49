"""`trellis serve`: its refusals, its keys, its start and end, and its containers."""

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
from tests.service.conftest import ASK, ASKED, DOCUMENTS, QUESTION
from tests.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
SERVE = (sys.executable, "-m", "flows", "serve", "--no-prefect", "--json", "--listen", "0")


@contextmanager
def served(
    *arguments: str, log: Path, **environment: str
) -> Iterator[tuple[dict[str, Any], "subprocess.Popen[str]"]]:
    """The command in its own process, with the facts that it writes at the start."""
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [*SERVE, *arguments],
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


def test_it_serves_until_sigterm(workspace: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with served("--workspace", str(workspace), log=log) as (facts, process):
        with httpx.Client(base_url=facts["service"], timeout=PATIENCE, trust_env=False) as client:
            assert "Tomas Reyd" in client.post(ASK, json=ASKED).json()["answer"]
            assert client.get("/health").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
    lines = log.read_text().splitlines()
    requests = [json.loads(line) for line in lines if line.startswith("{")]
    assert [row["route"] for row in requests] == [ASK, "/health"]
    assert all(len(row["request"]) == 16 for row in requests)
    assert [line for line in lines if not line.startswith("{")] == ["stopped"]
    assert QUESTION not in log.read_text()


def test_a_new_key_opens_a_service_that_others_can_reach(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filtered = ["--where", "document = 'bridge'"]
    assert main(["serve", "--new-key", "ann:edit", *filtered, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["key"] not in made["row"]
    where = ("--listen", "0.0.0.0:0", "--workspace", str(workspace))
    with served(*where, log=tmp_path / "log", TRELLIS_SERVICE_KEYS=made["row"]) as (facts, _):
        address = facts["service"].replace("0.0.0.0", "127.0.0.1")  # noqa: S104 -- as requested
        for key, status in ((made["key"], 200), ("", 401)):
            headers = {"x-api-key": key}
            answer = httpx.get(
                f"{address}{DOCUMENTS}", headers=headers, timeout=PATIENCE, trust_env=False
            )
            assert answer.status_code == status
            assert answer.json().get("total", 0) == (1 if key else 0)


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
            logger = logging.getLogger("tasks.load.sources")
            logger.warning("%s cannot be read", name, exc_info=True)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    named = f"{name} cannot be read" if texts else "%s cannot be read"
    assert [line["event"] for line in lines] == ["request failed", named]
    for line in lines:
        assert "KeyError" in line["error"]
        assert "ValueError" in line["error"]
        assert (name in line["error"]) is texts


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("--listen", "0.0.0.0:8100"), "no key is set"),
        (("--listen", "192.0.2.1:80"), "no key is set"),
        (("--listen", "here"), "is no address"),
        (("--no-prefect", "--cron", "0 3 * * *", "."), "--no-prefect leaves out"),
        (("--no-prefect", "--pool", "p"), "--no-prefect leaves out"),
        (("--new-key", "ann:root"), "Roles: ask, edit, admin"),
        (("--new-key", "a b:ask"), "Use letters"),
        (("--new-key", "ann:ask", "--where", "year >"), "it ends where a value must stand"),
        (("--no-prefect", "--where", "year > 1"), "Add --new-key"),
        (("--no-prefect", "not-there"), "Source not found"),
    ],
)
def test_impossible_arguments_are_refused(
    arguments: tuple[str, ...], shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments, "--workspace", str(tmp_path / "ws")]) == 2
    assert shown in capsys.readouterr().err


def served_at(container: Mapping[str, Any]) -> tuple[str, bool, str | None]:
    """Where a container's command listens, without Prefect or with, and on which workspace."""
    _, bound, _ = trellis_app().parse_args(shlex.split(container["command"])[1:])
    typed = bound.arguments
    common = typed.get("common")  # where the command gives one of its options
    return typed["listen"], typed["no_prefect"], common and common.workspace


def test_one_container_serves_alone() -> None:
    deploy = ROOT / "examples" / "deploy"
    compose: Mapping[str, Any] = YAML(typ="safe").load(deploy / "compose-alone.yaml")
    (service,) = compose["services"].values()
    assert served_at(service) == ("0.0.0.0:8100", True, None)
    assert service["volumes"][0] == "workspace:/data"
    lines = (deploy / "Dockerfile").read_text().splitlines()
    assert "ENV PATH=/usr/local/trellis/bin:$PATH \\" in lines
    assert "    TRELLIS_WORKSPACE=/data/workspace \\" in lines
    copied = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    places = [ROOT / word for word in copied if not word.startswith(("--", "/"))]
    assert all(place.exists() for place in places)
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{place.name}" for place in places} == {word for word in ignored if word[0] == "!"}


def test_the_containers_fit_together() -> None:
    file = ROOT / "examples" / "deploy" / "compose.yaml"
    compose: Mapping[str, Any] = YAML(typ="safe").load(file)
    services, volumes = compose["services"], compose["volumes"]
    assert services.keys() == {"database", "server", "setup", "worker", "service", "chroma"}
    for name, service in services.items():
        assert service.keys() & {"image", "build"}, name
        assert service.get("depends_on", {}).keys() <= services.keys()
        named = [volume.split(":")[0] for volume in service.get("volumes", ())]
        assert {volume for volume in named if not volume.startswith(".")} <= volumes.keys()
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert served_at(services["service"]) == ("0.0.0.0:8100", True, "/data/workspace")
    assert services["service"]["volumes"] == services["worker"]["volumes"]
    host = services["worker"]["environment"]["TRELLIS_CHROMA_URL"]
    settings = {"chroma_url": host, "service": {"keys": []}}
    assert str(load_settings(settings, {}).chroma_url).split("/")[2].split(":")[0] in services
