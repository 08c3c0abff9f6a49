"""Does `.make/install.py` hand pip's settings to uv, take torch without CUDA, and do without uv?"""

import os
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pip
import pytest
from install import pip_settings, uv_arguments, uv_variables

from tests.patience import PATIENCE

INSTALL = Path(__file__).resolve().parents[2] / ".make" / "install.py"
HASHES = INSTALL.with_name("hashes.txt")
CONFIGURED = """
[global]
index-url = https://mirror.example/simple
extra-index-url = https://one.example/simple
    https://two.example/simple
cert = /certificates/all.pem
timeout = 7
[install]
find-links = /wheels/a /wheels/b
no-index = true
only-binary = numpy,scipy
[download]
find-links = /elsewhere
"""


def wheel(folder: Path, name: str, version: str, *needs: str) -> None:
    """A package without modules."""
    described = f"{name}-{version}.dist-info"
    metadata = [
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}",
        *(f"Requires-Dist: {need}" for need in needs),
    ]
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{described}/METADATA", "\n".join(metadata) + "\n")
        archive.writestr(
            f"{described}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{described}/RECORD", "")


def installed(folder: Path) -> set[str]:
    return {path.name.removesuffix(".dist-info") for path in folder.glob("*.dist-info")}


def environment_with(**variables: str) -> dict[str, str]:
    """That of this process, without what pip and uv would go by."""
    mine = {
        name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))
    }
    return mine | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_OFFLINE": "1"} | variables


def run(python: Path | str, environment: Mapping[str, str], *arguments: str) -> str:
    command = [str(python), str(INSTALL), *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """What a machine without a network has: an application that needs torch, and torch, of the
    version in use.
    """
    folder = tmp_path / "wheels"
    folder.mkdir()
    wheel(folder, "application", "1.0", "torch")
    wheel(folder, "torch", "2.13.0")
    wheel(folder, "torch", "2.13.0+cpu")
    return folder


def test_what_is_configured_for_pip_reaches_uv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.conf").write_text(CONFIGURED, encoding="utf-8")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_TIMEOUT", "9")  # a variable comes before a file
    settings = pip_settings()
    variables = uv_variables(settings, {})
    assert {name: variables[name] for name in variables if name != "UV_INSECURE_HOST"} == {
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "UV_INDEX": "https://one.example/simple https://two.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/wheels/a,/wheels/b",
        "UV_HTTP_TIMEOUT": "9",
        "UV_SYSTEM_CERTS": "true",
        "SSL_CERT_FILE": "/certificates/all.pem",
    }
    assert {"--no-index", "--only-binary=numpy", "--only-binary=scipy"} <= set(
        uv_arguments(settings)
    )


@pytest.mark.packaging
def test_uv_finds_what_pip_would_and_takes_torch_without_cuda(wheels: Path, tmp_path: Path) -> None:
    pytest.importorskip("uv", reason="pip has set this up")
    environment = environment_with(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))
    output = run(sys.executable, environment, "--target", str(tmp_path / "target"), "application")
    expected = {
        "application-1.0",
        "torch-2.13.0+cpu" if sys.platform == "linux" else "torch-2.13.0",
    }
    assert installed(tmp_path / "target") == expected
    assert output == ""  # nothing of pip, which stands in where uv fails


@pytest.mark.packaging
def test_a_package_with_another_hash_than_the_pinned_one_is_not_installed(
    wheels: Path, tmp_path: Path
) -> None:
    pytest.importorskip("uv", reason="pip has set this up")
    (version,) = re.findall(
        r"^idna==(\S+) ", HASHES.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    wheel(wheels, "idna", version)
    command = [sys.executable, str(INSTALL), "--target", str(tmp_path / "target"), "idna"]
    environment = environment_with(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode != 0
    assert "also not by pip" in done.stdout
    assert installed(tmp_path / "target") == set()


@pytest.mark.slow
@pytest.mark.packaging
def test_pip_does_it_where_uv_cannot_be_had(wheels: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    (site,) = tmp_path.glob("venv/lib/python*/site-packages")
    (site / "pip").symlink_to(Path(pip.__file__).parent)
    environment = environment_with(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))
    output = run(python, environment, "application")
    assert "pip does" in output
    assert {"application-1.0", "torch-2.13.0+cpu"} <= installed(site)

    # And where there is no build for CPUs, it says so and takes the one that there is.
    (wheels / "torch-2.13.0+cpu-py3-none-any.whl").unlink()
    subprocess.run([python, "-m", "pip", "uninstall", "-qy", "torch"], env=environment, check=True)
    output = run(python, environment, "application")
    assert ("No build of torch for CPUs" in output) == (sys.platform == "linux")
    assert "torch-2.13.0" in installed(site)
