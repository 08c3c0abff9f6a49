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
from tests.flows.conftest import Command
from tests.workspaces import write_rows

OTTER = (
    "# Otter Lock\n\nThe Otter Lock was built in 1888 by Magda Plisk.\n\n## Today\n\nIt is closed "
    "on Mondays.\n"
)
BUILT = "Who built the Otter Lock?"
MANUAL = (
    Path(__file__).parents[2] / "examples" / "corpus" / "manuals" / "kestrel-bearing-manual.pdf"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "otter.md").write_text(OTTER, encoding="utf-8")
    (folder / "weather.txt").write_text("Rain fell on the harbour for nine days.", encoding="utf-8")
    (folder / "空.txt").write_text(" ", encoding="utf-8")
    shutil.copy(MANUAL, folder / "manual.pdf")
    write_rows(folder / "rows.jsonl", [{"title": "Seals", "text": "Seals rest at Quill Point."}])
    return folder


async def test_a_folder_gives_the_best_pages_first_and_reads_changed_ones_again(
    folder: Path,
) -> None:
    retriever = FolderRetriever(folder)
    assert [Path(one.path).name for one in await retriever.pages(BUILT, 5)] == ["otter.md"]
    assert len(await retriever.pages("rocker bearings, rain, seals", 2)) == 2
    assert (await retriever.pages("seals", 5))[0].path.endswith("rows.jsonl:1")
    assert await retriever.pages("zebra", 5) == []
    (folder / "otter.md").write_text(
        OTTER.replace("Magda Plisk", "Jonas Ardel, as we know now"), encoding="utf-8"
    )
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
    assert (cited.document, cited.title, cited.verified) == (
        str(folder / "otter.md"),
        "Otter Lock",
        True,
    )
    assert OTTER[cited.start : cited.end] == cited.quote


def test_the_command_and_the_setting_name_a_folder(
    trellis: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Plisk" in trellis("ask", BUILT, "--pages", str(folder)).out
    found = trellis("retrieve", BUILT, "--pages", str(folder), "--k", "2", "--json").json[
        "passages"
    ]
    assert str(folder / "otter.md") in [one["document"] for one in found]
    assert len(found) <= 2
    assert "Plisk" not in trellis("ask", BUILT).out
    monkeypatch.setenv("TRELLIS_PAGES", str(folder))
    assert "Plisk" in trellis("ask", BUILT).out
    missing = trellis("ask", BUILT, "--pages", str(folder / "none"), "--json")
    assert (missing.code, missing.json["error"]["type"]) == (2, "SourceNotFound")


def test_pages_are_not_remembered_as_if_they_were_indexed(
    copied: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_THETA", "1")
    before = Workspace(copied.workspace).database.memory.entries()
    assert "Plisk" in copied("ask", BUILT, "--pages", str(folder)).out
    assert Workspace(copied.workspace).database.memory.entries() == before
    assert "Plisk" not in copied("ask", BUILT).out


async def test_a_long_page_is_read_in_parts() -> None:
    text = "\n\n".join(
        f"## Part {n}\n\n" + f"Stone number {n} was laid in the wall of the lock. " * 20
        for n in range(40)
    )
    told = Told(
        page("long.md", text + "\n\n## End\n\nMagda Plisk laid the last stone of all."),
        page("empty", "  "),
    )
    documents, chunks = await read_pages(told, ["Magda Plisk"])
    assert told.asked == [("Magda Plisk", 5)]
    assert ([one.id for one in documents], len(chunks) > 20) == (["long.md"], True)
    best = best_parts(chunks, ["Magda Plisk"], 9)
    assert len(best) == 1
    assert "last stone" in best[0].text
    (found,) = [chunk for chunk in chunks if chunk.id == best[0].chunk]
    assert documents[0].text[found.start : found.end] == found.text
    assert best_parts(chunks, ["zebra"], 9) == best_parts([], ["zebra"], 9) == []
    assert len(best_parts(chunks, ["stone", "wall"], 9)) == 9


class Told:
    """A search engine as a test would have it: it remembers what it was asked."""

    def __init__(self, *pages: Page) -> None:
        self.found = pages
        self.asked: list[tuple[str, int]] = []

    async def pages(self, query: str, n: int) -> Sequence[Page]:
        self.asked.append((query, n))
        return self.found[:n]


def page(path: str, text: str, title: str = "") -> Page:
    return Page(path=path, title=title, text=text)
