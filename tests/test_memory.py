"""Is memory used when enough sources answer a like question, and never for another name or after a change?"""

import json
from pathlib import Path

import pytest

from flows.asking import AskOptions, answer_question
from flows.indexing import IndexOptions, build_index
from flows.runtime import Runtime, open_runtime
from flows.session import open_session
from flows.settings import load_settings
from storage.memory import MemoryEntry
from storage.records import Answer
from tasks.trigger import Likeness, check_trigger, overlap

TELLERS = ("almanac", "gazette", "ledger")


def write(folder: Path, designer: str = "Tomas Reyd") -> Path:
    rows = [
        {"id": name, "title": f"The {name}", "text": f"Orla Bridge was designed by {designer}, says the {name}."}
        for name in TELLERS
    ]
    rows += [{"id": "other", "title": "Other", "text": "Stone Bridge was designed by Ana Korb."}]
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
async def runtime(tmp_path: Path) -> Runtime:
    opened = open_runtime(
        load_settings({"workspace": str(tmp_path / "workspace"), "embedding": "none", "tau": 0.6, "theta": 3})
    )
    await build_index([str(write(tmp_path))], IndexOptions(), opened)
    return opened


async def asked(question: str, runtime: Runtime) -> Answer:
    with open_session(runtime) as session:
        return await answer_question(question, AskOptions(), session)


async def test_a_like_question_is_answered_from_memory(runtime: Runtime) -> None:
    first = await asked("Who designed the Orla Bridge?", runtime)
    assert not first.trace.trigger[0].use_memory
    second = await asked("Who was the designer of the Orla Bridge?", runtime)
    assert (second.trace.trigger[0].pop, second.trace.trigger[0].use_memory) == (3, True)
    assert second.values == first.values == ("Tomas Reyd",)
    assert all(citation.verified for citation in second.citations)
    assert {passage.document for passage in second.passages} == set(TELLERS)


async def test_a_question_about_another_thing_is_searched_for(runtime: Runtime) -> None:
    await asked("Who designed the Orla Bridge?", runtime)
    other = await asked("Who designed the Stone Bridge?", runtime)
    assert not other.trace.trigger[0].use_memory
    assert other.values == ("Ana Korb",)


async def test_what_has_changed_is_not_served(runtime: Runtime, tmp_path: Path) -> None:
    await asked("Who designed the Orla Bridge?", runtime)
    await build_index([str(write(tmp_path, "Ivo Lamm"))], IndexOptions(), runtime)
    after = await asked("Who designed the Orla Bridge?", runtime)
    assert not after.trace.trigger[0].use_memory
    assert after.values == ("Ivo Lamm",)


async def test_the_popularity_counts_sources_not_entries() -> None:
    entries = [
        MemoryEntry(source=source, title=title, content="", evidence=("chk_1",), documents=(source,), generation=1)
        for source in ("a", "b")
        for title in ("who built it", "who built it then")
    ]
    likeness = Likeness(0.5, 3, lambda text: frozenset(), overlap)
    recall = await check_trigger(["who built it"], entries, likeness)
    assert (recall.decisions[0].pop, recall.used, recall.chunks) == (2, False, ())
