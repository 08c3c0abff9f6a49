"""`trellis doctor` reports damage that a question passes over, with a remedy that repairs it."""

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from flows.operations.doctor import Check, Examination
from tests.copying import copy_of
from tests.flows.conftest import Command, indexed_by_command
from tests.workspaces import quays, write_rows

QUESTION = ("ask", "Where is Quay 1 of Velin?", "--json")


@pytest.fixture
def trellis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.setenv("TRELLIS_VECTOR_STORE", "chroma")
    monkeypatch.setenv("TRELLIS_MEMORY", "off")
    source = write_rows(tmp_path / "docs.jsonl", quays(30))
    return Command(indexed_by_command(source, tmp_path), capsys)


def answered(trellis: Command) -> tuple[object, object]:
    done = trellis(*QUESTION)
    assert done.code == 0, done.err
    return done.json["answer"], done.json["citations"]


def examined(trellis: Command) -> Check:
    done = trellis("doctor", "--json")
    report = Examination.model_validate(done.json)
    assert (done.code, report.ok) == ((0, True) if report.workspace.ok else (1, False))
    return report.workspace


def test_a_damaged_vector_index_is_reported_and_rebuilt(
    trellis: Command, caplog: pytest.LogCaptureFixture
) -> None:
    assert examined(trellis).ok
    whole = answered(trellis)
    (file,) = trellis.workspace.rglob("chroma.sqlite3")
    file.write_bytes(b"garbage" * 1000)
    assert answered(trellis) == whole
    assert "Vectors are searched in the database instead" in caplog.text
    check = examined(trellis)
    assert "the vector index cannot be used" in check.problem
    assert "trellis clean --vectors" in check.advice
    assert trellis("clean", "--vectors").code == 0
    assert examined(trellis).ok


@pytest.mark.parametrize(
    ("name", "advice"),
    [("side.sqlite", "move the file away"), ("generation.duckdb", "trellis index")],
)
def test_a_damaged_database_is_told(name: str, advice: str, trellis: Command) -> None:
    (file,) = trellis.workspace.rglob(name)
    content, chance = bytearray(file.read_bytes()), random.Random(3)  # noqa: S311 -- which bits
    for _ in range(3_000):
        at = chance.randrange(len(content) // 4, len(content))
        content[at] ^= 1 << chance.randrange(8)
    file.write_bytes(content)
    check = examined(trellis)
    assert name in check.problem
    assert advice in check.advice


@pytest.mark.patient
def test_zeros_in_a_generation_are_told_or_change_no_answer(
    trellis: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """4 kB of zeros in place of each page of the file that holds anything."""
    whole = answered(trellis)
    kept = copy_of(trellis.workspace, tmp_path / "kept")
    (file,) = kept.rglob("generation.duckdb")
    content, ends = file.read_bytes(), Counter[str]()
    for at in range(12_288, len(content), 4096):
        if not any(content[at : at + 4096]):
            continue
        copy = copy_of(kept, tmp_path / f"at-{at}")
        with (copy / file.relative_to(kept)).open("r+b") as damaged_file:
            damaged_file.seek(at)
            damaged_file.write(bytes(4096))
        ended = Command(copy, capsys)(*QUESTION)
        if ended.code == 0:
            assert (ended.json["answer"], ended.json["citations"]) == whole, at
        else:
            assert ended.json["error"]["type"] == "Damaged", at
        ends["answered" if ended.code == 0 else "told"] += 1
        shutil.rmtree(copy)
    assert ends["told"] > ends["answered"] > 0
