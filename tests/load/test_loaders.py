"""Loaders of other packages, by the entry points of a package that is really there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.load.loaders import loaders
from tasks.load.sources import Loaded, read_sources

PACKAGE = '''
from tasks.load.text import PageText, join_pages

def read_plan(data: bytes, name: str) -> PageText:
    """Read the plans of an imaginary program: one page a line."""
    pages = data.decode().split("@")
    if "locked" in pages:
        raise ValueError("a password is needed")
    text, starts = join_pages(pages, [""] * len(pages))
    return PageText(text=text, title=f"Plan {name}", metadata={"pages": len(pages)}, pages=starts)

def nothing(data: bytes, name: str) -> str:
    return "text"
'''
ENTRY_POINTS = """
[trellis.loaders]
plan = others_loader:read_plan
pdf = others_loader:read_plan
odd = others_loader:nothing
lost = others_loader:gone
"""


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    installed = tmp_path / "site" / "others_loader-1.0.dist-info"
    installed.mkdir(parents=True)
    (tmp_path / "site" / "others_loader.py").write_text(PACKAGE)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: others-loader\nVersion: 1\n")
    (installed / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path / "site")
    loaders.cache_clear()
    yield
    loaders.cache_clear()


def load(folder: Path, name: str, content: str) -> Loaded:
    (folder / "in").mkdir()
    (folder / "in" / name).write_text(content)
    return read_sources([folder / "in"])


@pytest.mark.parametrize("name", ["a.plan", "a.PDF"])
def test_a_package_reads_an_ending_also_one_of_ours(name: str, tmp_path: Path) -> None:
    (part,) = load(tmp_path, name, "One\r\n@Two\x07 and").parts
    assert (part.title, part.text, part.pages) == (f"Plan {name}", "One\nTwo and", (0, 4))
    assert part.metadata == {"pages": 2}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a.plan", "unreadable (ValueError: a password is needed)"),
        ("a.odd", "its loader others_loader:nothing returned no PageText but a str"),
        ("a.lost", "its loader others_loader:gone cannot be loaded (module 'others_loader' has"),
    ],
)
def test_what_a_loader_cannot_read_is_skipped(name: str, reason: str, tmp_path: Path) -> None:
    (skipped,) = load(tmp_path, name, "locked").skipped
    assert skipped.reason.startswith(reason)
