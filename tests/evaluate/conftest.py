"""A small workspace, questions on it with their answers, and the command."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.copying import copy_of
from tests.flows.conftest import Command, Ended
from tests.workspaces import indexed, write_rows

TEXTS = {
    "bridge": ("Orla Bridge", "Orla Bridge was designed by Tomas Reyd. It opened in 1931."),
    "reyd": ("Tomas Reyd", "Tomas Reyd was born in Velin. He studied under Ana Korb."),
    "light": ("Holm Light", "Holm Light was built by Mira Sand in 1902."),
}
ROWS = [{"id": name, "title": title, "text": text} for name, (title, text) in TEXTS.items()]
ASKED = (
    ("Who designed Orla Bridge?", "Tomas Reyd", "bridge"),
    ("Where was Tomas Reyd born?", "Velin", "reyd"),
    ("Who built Holm Light?", "Mira Sand", "light"),
)
QUESTIONS = [
    {"id": f"q{place}", "question": question, "answers": [answer], "gold_documents": [gold]}
    for place, (question, answer, gold) in enumerate(ASKED, 1)
]


class Bench(Command):
    """The command on a workspace of three documents, and a file of questions on them."""

    def __init__(self, workspace: Path, folder: Path, captured: pytest.CaptureFixture[str]) -> None:
        super().__init__(workspace, captured)
        self.folder = folder
        self.questions = write_rows(folder / "questions.jsonl", QUESTIONS)
        self.at = partial(Command, captured=captured)

    def evaluate(self, *systems: str, more: Sequence[str] = ()) -> Ended:
        """Evaluate systems on the questions; the result is JSON."""
        typed = [part for system in systems for part in ("--system", system)]
        return self("evaluate", "--questions", str(self.questions), "--json", *typed, *more)

    def recorded(self, name: str, *answers: str | None) -> str:
        """Name a system of recorded answers to the questions; None leaves a row out."""
        rows = [
            {"id": row["id"], "answer": text, "usage": {"seconds": 1.0, "calls": 1}}
            for row, text in zip(QUESTIONS, answers, strict=True)
            if text is not None
        ]
        return f"answers={write_rows(self.folder / f'{name}.jsonl', rows)},name={name}"


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace that `bench` copies."""
    return indexed(tmp_path_factory.mktemp("three"), ROWS)


@pytest.fixture
def bench(
    three: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Bench:
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")
    return Bench(copy_of(three, tmp_path / "ws"), tmp_path, capsys)


@pytest.fixture
def sourced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Bench:
    """A bench made of `rows.jsonl` in its folder, for tests that index again."""
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")
    return Bench(indexed(tmp_path, ROWS), tmp_path, capsys)
