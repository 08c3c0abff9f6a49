"""Rows, questions and tiny models for the tests of training."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from prompts.engine.models import Models
from prompts.route import Route
from storage.training_records import PreferenceRow
from tasks.train.router import dialogues_of
from tests.flows.conftest import Command
from tests.train.tiny_language_model import tiny_language_model
from tests.workspaces import indexed

needs_extra = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("trl", "peft", "datasets", "accelerate")),
    reason="the extra `train` is not installed: make test-train",
)
INSTRUCTIONS = {"route": "Choose a form.", "filter": "Label the passage.", "rewrite": "Rewrite."}
TEXTS = {
    "bridge": ("Orla Bridge", "Orla Bridge was designed by Tomas Reyd and opened in 1931."),
    "reyd": ("Tomas Reyd", "Tomas Reyd was born in Velin. He studied under Ana Korb."),
    "quay": ("Kestrel Quay", "Kestrel Quay was repaired after the flood of the long winter."),
}
PAGES = [{"id": name, "title": title, "text": text} for name, (title, text) in TEXTS.items()]
THINGS = ("mills", "locks", "ferries", "quays", "bridges", "tolls", "barges", "pumps")


def preferences() -> list[PreferenceRow]:
    """Make rows of two kinds that their first word tells apart."""
    tables = [f"Compare the {thing} of 1931 and 1932." for thing in THINGS]
    chunks = [f"Who is the keeper of the {thing}?" for thing in THINGS]
    return [
        PreferenceRow(
            id=f"{place}",
            question=question,
            documents=("Log", "Accounts"),
            language="en",
            chosen="table" if question in tables else "chunk",
            rejected="graph",
        )
        for place, question in enumerate(tables + chunks)
    ]


def rewriting(question: str) -> str:
    """Write what a rewriter's model answers."""
    fields = {"reasoning": "", "question": question, "queries": [], "ambiguities": []}
    return json.dumps({"rewriting": fields})


@pytest.fixture(scope="session")
def instructed() -> Models:
    """No models, and short instructions for the tiny model."""
    return Models({}, instructions=INSTRUCTIONS)


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory, instructed: Models) -> str:
    """The folder of a tiny language model."""
    dialogues = dialogues_of(preferences(), Route(instructed))
    texts = [message.content for dialogue in dialogues for message in dialogue.prompt]
    texts += [dialogue.wanted for dialogue in dialogues]
    labels = (
        '{"judged": {"judgements": [{"passage": 1, "explanation": "", "label": "neutral", '
        '"against": null}]}}'
    )
    return tiny_language_model(
        tmp_path_factory.mktemp("base") / "tiny", [*texts, *[labels] * 9], context=2048
    )


@pytest.fixture
def copied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """The command on a workspace of three pages, without vectors."""
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")
    return Command(indexed(tmp_path, PAGES), capsys)
