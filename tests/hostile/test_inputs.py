"""Hostile questions, filters, settings, replies and archives give an error or a sound result."""

import io
import json
import os
import re
import tarfile
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from flows.__main__ import main
from flows.query import answer_question
from flows.question import AskOptions
from flows.session import Session, open_session
from prompts.answer import AnswerQuestion
from prompts.engine.adapter import StepAdapter
from prompts.engine.messages import NotAsAsked, without_thinking
from prompts.engine.prompt_guard import restore
from prompts.extract import Extract, ExtractGraph
from prompts.tailoring import from_toml
from storage.archive import read_archive, write_archive
from storage.errors import ArchiveError, FilterError, NothingMatches, SettingsError, UsageError
from tests.flows.conftest import KEY, ROWS
from tests.hostile.made import text_of
from tests.settings import load_settings
from tests.storage.samples import publish
from tests.workspaces import indexed, opened, write_rows

TABLE = tomllib.loads(Path(__file__).with_name("inputs.toml").read_text(encoding="utf-8"))
Case = dict[str, Any]


def of(kind: str) -> pytest.MarkDecorator:
    cases = TABLE[kind]["cases"]
    return pytest.mark.parametrize("case", cases, ids=[case["name"] for case in cases])


Result = TypeVar("Result")


def tried(work: Callable[[], Result], *refusals: type[Exception]) -> tuple[str, Result | None]:
    """Return the words of a refusal, or none and the result."""
    try:
        return "", work()
    except refusals as error:
        return str(error), None


@of("rows")
def test_a_row_of_questions(
    case: Case, session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.jsonl").write_text(text_of(case["content"]) + "\n")
    workspace = str(session.runtime.workspace.root)
    command = ["ask", "--questions", str(tmp_path / "rows.jsonl"), "--workspace", workspace]
    assert main(command) in (0, 1)
    ended = capsys.readouterr()
    assert "Traceback" not in ended.err
    (answered,) = ended.out.splitlines()
    json.loads(answered, parse_constant=pytest.fail)
    answered.encode()


@of("no_files")
@pytest.mark.parametrize("file", ["pipe", "/dev/zero", "/proc/kmsg"])
def test_what_is_no_file(
    case: Case,
    file: str,
    session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if file == "/proc/kmsg" and not os.access(file, os.R_OK):
        pytest.skip("only the system's administrator may read it")
    place = tmp_path / "given" / case.get("link", "file.jsonl")
    place.parent.mkdir()
    if file == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(file)
    row = {"id": "q", "question": "Who designed Orla Bridge?"}
    questions = write_rows(tmp_path / "questions.jsonl", [row])
    given = {"FILE": place, "FOLDER": place.parent, "QUESTIONS": questions}

    def filled(words: str) -> str:
        return re.sub("FILE|FOLDER|QUESTIONS", lambda name: str(given[name[0]]), words)

    for name, value in case.get("environment", {}).items():
        monkeypatch.setenv(name, filled(value))
    is_new = case["command"][0] in ("restore", "index")
    workspace = tmp_path / "ws" if is_new else session.runtime.workspace.root
    assert main([*map(filled, case["command"]), "--workspace", str(workspace)]) in (2, 5)
    assert "Traceback" not in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} <= {"given", "questions.jsonl", "ws"}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_session(opened(indexed(tmp_path_factory.mktemp("hostile"), ROWS))) as session:
        yield session


@of("questions")
@pytest.mark.parametrize(
    "share", [10, pytest.param(1, marks=pytest.mark.patient)], ids=["", "in full"]
)
async def test_a_question(case: Case, share: int, session: Session) -> None:
    question = text_of(case["content"], 1 if "says" in case else share)
    if "says" in case:
        with pytest.raises(UsageError, match=case["says"]) as refused:
            await answer_question(question, AskOptions(), session)
        assert len(str(refused.value)) < 500
        return
    answer = await answer_question(question, AskOptions(), session)
    answer.model_dump_json().encode()
    for cited in answer.citations:
        (document,) = session.generation.documents.documents([cited.document])
        assert cited.verified
        assert document.text[cited.start : cited.end] == cited.quote


@of("filters")
def test_a_filter(case: Case, session: Session) -> None:
    expression = text_of(case["content"]) + ("\udc00" if case.get("surrogate") else "")
    error, found = tried(
        lambda: session.generation.filters.matching(expression), FilterError, NothingMatches
    )
    assert case.get("says", "") in error
    assert set(found or ()) <= set(session.generation.documents.ids())
    assert len(session.generation.documents.ids()) == len(ROWS)


@of("settings")
def test_a_file_of_settings(case: Case, tmp_path: Path) -> None:
    file = tmp_path / "trellis.toml"
    is_binary = "hex" in case
    file.write_bytes(bytes.fromhex(case["hex"]) if is_binary else text_of(case["content"]).encode())
    environment = {"TRELLIS_CONFIG": str(file), "TRELLIS_LM_API_KEY": KEY}
    error, settings = tried(lambda: load_settings({}, environment), SettingsError)
    assert case.get("says", "") in error
    assert KEY not in error + repr(settings)


@of("replies")
def test_a_reply_of_a_model(case: Case) -> None:
    reply = restore(without_thinking(text_of(case["content"])))
    for form, signature in ((Extract.output_format, ExtractGraph), (StepAdapter(), AnswerQuestion)):
        error, outputs = tried(partial(form.read, signature, reply), NotAsAsked)
        assert len(error) < 2_000
        assert error or set(outputs or ()) == set(signature.output_fields)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("archive") / "ws"
    publish(root, {"a": "Zoë met Ada in Velin."})
    publish(root, {"b": "beta " * 30})
    (root / "tailoring.toml").write_text('[tailoring]\npersona = "an engineer"\n')
    write_archive(root, root.parent / "kept.tar")
    return root.parent / "kept.tar"


def changed(archive: Path, case: Case) -> bytes:
    """Return the archive's bytes with the change that the case names."""
    whole = archive.read_bytes()
    if "cut" in case:
        return whole[: int(len(whole.rstrip(b"\0")) * case["cut"])]
    with tarfile.open(archive) as read:
        entries = {entry.name: read.extractfile(entry).read() for entry in read}  # type: ignore[union-attr]
    made = io.BytesIO()
    if "header" in case:
        entry = tarfile.TarInfo("././@LongLink")
        entry.type, entry.size = case["header"].encode(), case["size"]
        made.write(entry.tobuf(tarfile.GNU_FORMAT) + bytes(case["size"]))
    if "sparse" in case:
        entry = tarfile.TarInfo("side.sqlite")
        entry.pax_headers = {"GNU.sparse.size": str(case["sparse"]), "GNU.sparse.map": "0,0"}
        made.write(entry.tobuf(tarfile.PAX_FORMAT))
    entries.pop(case.get("lose", ""), None)
    if "replace" in case:
        entries[case["replace"]] = text_of(case["content"]).encode()
    if name := case.get("add", "a" * case.get("add_long", 0)):
        entries[name] = b"x"
    entries |= {
        f"generations/{number:06}/manifest.json": b""
        for number in range(3, case.get("add_many", 0))
    }
    with tarfile.open(fileobj=made, mode="w") as written:
        for name, content in [*entries.items()] * (2 if case.get("twice") else 1):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            written.addfile(entry, io.BytesIO(content))
        if "kind" in case:
            entry = tarfile.TarInfo("side.sqlite.x")
            entry.type, entry.linkname = case["kind"].encode(), "/etc/passwd"
            written.addfile(entry)
    return made.getvalue()


@of("archives")
def test_an_archive(case: Case, archive: Path, tmp_path: Path) -> None:
    (tmp_path / "changed.tar").write_bytes(changed(archive, case))
    with pytest.raises(ArchiveError, match=case.get("says")):
        read_archive(tmp_path / "changed.tar", tmp_path / "in" / "ws", from_toml)
    assert [path.name for path in tmp_path.iterdir() if path.name != "in"] == ["changed.tar"]
    assert list((tmp_path / "in").iterdir()) == []
