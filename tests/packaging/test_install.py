"""`.make/install.py` hands pip's settings to uv, takes torch without CUDA, and works without uv."""

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
    """Write a package without modules."""
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {need}\n" for need in needs)
    tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for file, text in (("METADATA", metadata), ("WHEEL", tags), ("RECORD", "")):
            archive.writestr(f"{name}-{version}.dist-info/{file}", text)


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """All packages that a machine without a network has: an application, and torch twice."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    wheel(folder, "application", "1.0", "torch")
    wheel(folder, "torch", "2.13.0")
    wheel(folder, "torch", "2.13.0+cpu")
    return folder


@pytest.fixture
def environment(wheels: Path) -> dict[str, str]:
    """The variables of this process, with the wheels as pip's only source."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    return kept | {
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_INDEX": "1",
        "UV_OFFLINE": "1",
    }


def installed(folder: Path) -> set[str]:
    return {path.name.removesuffix(".dist-info") for path in folder.glob("*.dist-info")}


def run(
    python: Path | str, environment: Mapping[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), str(INSTALL), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


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
    arguments = set(uv_arguments(settings))
    assert {"--no-index", "--only-binary=numpy", "--only-binary=scipy"} <= arguments


@pytest.mark.packaging
def test_uv_takes_torch_without_cuda(environment: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("uv", reason="pip has set this up")
    done = run(sys.executable, environment, "--target", str(tmp_path / "target"), "application")
    torch = "torch-2.13.0+cpu" if sys.platform == "linux" else "torch-2.13.0"
    assert installed(tmp_path / "target") == {"application-1.0", torch}
    assert (done.returncode, done.stdout) == (0, ""), "pip, which is the second choice, says more"


@pytest.mark.packaging
def test_a_package_with_another_hash_is_not_installed(
    wheels: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("uv", reason="pip has set this up")
    pinned = re.search(r"^idna==(\S+) ", HASHES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert pinned
    wheel(wheels, "idna", pinned[1])
    done = run(sys.executable, environment, "--target", str(tmp_path / "target"), "idna")
    assert done.returncode != 0
    assert "also not by pip" in done.stdout
    assert installed(tmp_path / "target") == set()


@pytest.mark.slow
@pytest.mark.packaging
def test_pip_does_it_where_uv_cannot_be_had(
    wheels: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    (site,) = tmp_path.glob("venv/lib/python*/site-packages")
    (site / "pip").symlink_to(Path(pip.__file__).parent)
    done = run(python, environment, "application")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pip does" in done.stdout
    assert {"application-1.0", "torch-2.13.0+cpu"} <= installed(site)

    # Where there is no build for CPUs, it says so and takes the one that there is.
    (wheels / "torch-2.13.0+cpu-py3-none-any.whl").unlink()
    subprocess.run([python, "-m", "pip", "uninstall", "-qy", "torch"], env=environment, check=True)
    done = run(python, environment, "application")
    assert ("No build of torch for CPUs" in done.stdout) == (sys.platform == "linux")
    assert "torch-2.13.0" in installed(site)
