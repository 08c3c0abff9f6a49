"""Install into the environment of the Python that runs this: by uv where it can be had, else by
pip.

`python .make/install.py --editable '.[dev]'`: the arguments are those of `pip install`;
constraints.txt holds. uv reads none of pip's settings, so what a person has configured for pip is
handed to it under its own names. On Linux torch is taken in its build for CPUs wherever one can be
had.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

CONSTRAINTS = Path(__file__).resolve().parents[1] / "constraints.txt"
HASHES = Path(__file__).with_name(
    "hashes.txt"
)  # the same versions, but for torch, with the SHA-256 of their files
PIP = [sys.executable, "-m", "pip"]
UV = [sys.executable, "-m", "uv", "pip"]

# Settings of pip, and the variables by which uv takes the same.
VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "retries": "UV_HTTP_RETRIES",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "HTTPS_PROXY",
}
# Settings of pip that are arguments of uv: its variables do not add to arguments, or are none.
ARGUMENTS = ("constraint", "only-binary", "no-binary")


def main(arguments: list[str]) -> int:
    """Install; return the exit code of the installer that was used last."""
    arguments = ["--constraint", str(CONSTRAINTS), *arguments]
    if _succeeds([*PIP, "install", "-qq", "--constraint", str(CONSTRAINTS), "uv"]):
        settings = pip_settings()
        environment = {**os.environ, **uv_variables(settings, os.environ)}
        install = [*UV, "install", "--quiet", "--python", sys.executable, *uv_arguments(settings)]
        torch = torch_for_cpus(install, environment, backends=([], ["--torch-backend", "cpu"]))
        hashed = [*install, "--constraint", str(HASHES), *arguments, *torch]
        done = subprocess.run(
            hashed, env=environment, stderr=subprocess.PIPE, text=True, check=False
        )
        print(done.stderr, end="", file=sys.stderr, flush=True)
        if done.returncode == 0:
            return _code([*UV, "check", "--quiet", "--python", sys.executable])
        if "hash mismatch" in done.stderr.lower():
            print(
                "A package is not the one that .make/hashes.txt names: it is not installed, also "
                "not by pip.",
                flush=True,
            )
            return done.returncode
    print(
        "uv cannot do it here: pip does, which takes some minutes more and compares no hashes.",
        flush=True,
    )
    install = [*PIP, "install", "-qq"]
    torch = torch_for_cpus(install, os.environ, backends=([],))
    return _code([*install, *arguments, *torch]) or _code([*PIP, "check"])


def pip_settings() -> dict[str, str]:
    """What `pip install` goes by here: its files and the variables PIP_*, in pip's order of
    precedence.
    """
    listed = subprocess.run(
        [*PIP, "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for section, name, value in re.findall(r"^(\S+?)\.([\w-]+)=(.*)$", listed, flags=re.MULTILINE):
        sections.setdefault(section, {})[name] = str(ast.literal_eval(value))
    return sections["global"] | sections["install"] | sections[":env:"]


def uv_variables(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """pip's settings as variables of uv; those of uv's own that a person has set stay as they
    are.
    """
    asked = {"cert": environment.get("REQUESTS_CA_BUNDLE", ""), **settings}
    # pip takes a version from whichever of its places has it, and trusts the certificates of the
    # system.
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_SYSTEM_CERTS": "true"}
    for name, variable in VARIABLES.items():
        if values := asked.get(name, "").split():
            variables[variable] = ("," if name == "find-links" else " ").join(values)
    if "HTTPS_PROXY" in variables:
        variables["HTTP_PROXY"] = variables["HTTPS_PROXY"]
    return {
        name: value
        for name, value in variables.items()
        if not (name.startswith("UV_") and name in environment)
    }


def uv_arguments(settings: Mapping[str, str]) -> list[str]:
    """pip's settings as arguments of `uv pip install`."""
    given = [
        f"--{name}={value}"
        for name in ARGUMENTS
        for value in settings.get(name, "").replace(",", " ").split()
    ]
    return given + ["--no-index"] * (
        settings.get("no-index", "").lower() in {"1", "true", "yes", "on"}
    )


def torch_for_cpus(
    install: list[str], environment: Mapping[str, str], backends: tuple[list[str], ...]
) -> list[str]:
    """The arguments that make `install` take torch without CUDA; none where that is the default, or
    cannot be had.
    """
    if sys.platform != "linux" or "UV_TORCH_BACKEND" in environment:
        return []
    (version,) = re.findall(
        r"^torch==(\S+)$", CONSTRAINTS.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    for backend in backends:
        wanted = [f"torch=={version}+cpu", *backend]
        if _succeeds([*install, "--dry-run", "--no-deps", *wanted], environment, silent=True):
            return wanted
    print(
        "No build of torch for CPUs can be had here: the default one follows, for CUDA, about 3 "
        'GB.\nTo do without, stop and see docs/dependencies.md, "torch without CUDA".',
        flush=True,
    )
    return []


def _succeeds(
    command: list[str], environment: Mapping[str, str] | None = None, *, silent: bool = False
) -> bool:
    return _code(command, environment, silent=silent) == 0


def _code(
    command: list[str], environment: Mapping[str, str] | None = None, *, silent: bool = False
) -> int:
    return subprocess.run(command, env=environment, capture_output=silent, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
