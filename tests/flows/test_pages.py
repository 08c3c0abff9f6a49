"""Pages from outside the index join the evidence: chosen whole, read in parts, filtered, and cited
where they are.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from flows.query import ask
from storage.errors import SourceNotFound
from storage.workspace import Workspace
from tasks.retrieve.pages import FolderRetriever, Page, best_parts, read_pages
from tests.copying import CORPUS
from tests.flows.conftest import Command
from tests.workspaces import write_rows

OTTER = (
    "# Otter Lock\n\nThe Otter Lock was built in 1888 by Magda Plisk.\n\n## Today\n\nIt is closed "
    "on Mondays.\n"
)
BUILT = "Who built the Otter Lock?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "otter.md").write_text(OTTER, encoding="utf-8")
    (folder / "weather.txt").write_text("Rain fell on the harbour for nine days.", encoding="utf-8")
    (folder / "空.txt").write_text(" ", encoding="utf-8")
    shutil.copy(CORPUS / "manuals" / "kestrel-bearing-manual.pdf", folder / "manual.pdf")
    write_rows(folder / "rows.jsonl", [{"title": "Seals", "text": "Seals rest at Quill Point."}])
    return folder


async def test_a_folder_gives_the_best_pages_as_they_are_now(
    folder: Path,
) -> None:
    retriever = FolderRetriever(folder)
    assert [Path(one.path).name for one in await retriever.pages(BUILT, 5)] == ["otter.md"]
    assert len(await retriever.pages("rocker bearings, rain, seals", 2)) == 2
    assert (await retriever.pages("seals", 5))[0].path.endswith("rows.jsonl:1")
    assert await retriever.pages("zebra", 5) == []
    changed = OTTER.replace("Magda Plisk", "Jonas Ardel, as we know now")
    (folder / "otter.md").write_text(changed, encoding="utf-8")
    assert "Ardel" in (await retriever.pages(BUILT, 5))[0].text
    (folder / "otter.md").unlink()
    assert await retriever.pages(BUILT, 5) == []
    with pytest.raises(SourceNotFound):
        await FolderRetriever(folder / "none").pages(BUILT, 5)


def test_an_answer_from_a_page_cites_its_place(indexed: Path, folder: Path) -> None:
    assert "Magda Plisk" not in ask(BUILT, workspace=indexed).answer
    answer = ask(BUILT, workspace=indexed, retriever=FolderRetriever(folder))
    assert "Magda Plisk" in answer.answer
    cited = answer.citations[0]
    assert (cited.document, cited.title) == (str(folder / "otter.md"), "Otter Lock")
    assert cited.verified
    assert OTTER[cited.start : cited.end] == cited.quote


def test_the_command_and_the_setting_name_a_folder(
    trellis: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = ("--pages", str(folder))
    assert "Plisk" in trellis("ask", BUILT, *pages).out
    found = trellis("retrieve", BUILT, *pages, "--k", "2", "--json").json["passages"]
    assert str(folder / "otter.md") in [one["document"] for one in found]
    assert len(found) <= 2
    monkeypatch.setenv("TRELLIS_PAGES", str(folder))
    assert "Plisk" in trellis("ask", BUILT).out
    missing = trellis("ask", BUILT, "--pages", str(folder / "none"), "--json")
    assert (missing.code, missing.json["error"]["type"]) == (2, "SourceNotFound")


def test_pages_are_not_remembered_as_if_they_were_indexed(
    copied: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_THETA", "1")
    memory = Workspace(copied.workspace).database.memory
    before = memory.entries()
    assert "Plisk" in copied("ask", BUILT, "--pages", str(folder)).out
    assert memory.entries() == before
    assert "Plisk" not in copied("ask", BUILT).out


class SearchEngine:
    """A retriever that remembers what it was asked."""

    def __init__(self, *pages: Page) -> None:
        self.found = pages
        self.asked: list[tuple[str, int]] = []

    async def pages(self, query: str, n: int) -> Sequence[Page]:
        self.asked.append((query, n))
        return self.found[:n]


async def test_a_long_page_is_read_in_parts() -> None:
    parts = [
        f"## Part {n}\n\n" + f"Stone number {n} was laid in the wall of the lock. " * 20
        for n in range(40)
    ]
    text = "\n\n".join([*parts, "## End\n\nMagda Plisk laid the last stone of all."])
    engine = SearchEngine(
        Page(path="long.md", title="", text=text), Page(path="empty", title="", text="  ")
    )
    documents, chunks = await read_pages(engine, ["Magda Plisk"])
    assert engine.asked == [("Magda Plisk", 5)]
    assert ([one.id for one in documents], len(chunks) > 20) == (["long.md"], True)
    (best,) = best_parts(chunks, ["Magda Plisk"], 9)
    assert "last stone" in best.text
    (found,) = [chunk for chunk in chunks if chunk.id == best.chunk]
    assert documents[0].text[found.start : found.end] == found.text
    assert best_parts(chunks, ["zebra"], 9) == best_parts([], ["zebra"], 9) == []
    assert len(best_parts(chunks, ["stone", "wall"], 9)) == 9
