"""The measure of a real model, on the scripted server: what it asks, keeps and counts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kept_rows import KeptRows
from benchmarks.model_graph import GraphRow, ListedPassage, compared
from benchmarks.model_steps import chosen_steps
from benchmarks.runner import main
from benchmarks.step_inputs import GivenPassage, Material, fitted, inputs_of
from benchmarks.step_marks import Case, StepReply, StepRow, marks_of
from prompts.engine.models import Models
from storage.evaluation_records import EvaluationQuestion
from tests.server.client import Server

BRIDGE = GivenPassage(
    "bridge", "Orla Bridge", "Orla Bridge was designed by Ada Korb. It was opened in 1931."
)
TOWN = GivenPassage("town", "Marl", "Marl is a town on the river Ems.")
ASKED = EvaluationQuestion(
    id="1", question="Who designed Orla Bridge?", answers=("Ada Korb",), gold_documents=("bridge",)
)
MATERIAL = Material(
    "en", ASKED, (BRIDGE, TOWN), ("Orla Bridge", "Marl"), TOWN, "Ada Korb", (BRIDGE.text,)
)


def case_of(name: str, *read: str, material: Material = MATERIAL) -> Case:
    step = chosen_steps(Models.offline(), [name])[name]
    return Case(name, step, material, inputs_of(step, fitted(step.step, material)), read)


def reply(text: str, finish: str = "stop") -> StepReply:
    return StepReply(text=text, finish=finish, tokens_in=0, tokens_out=0)


def row_of(outputs: Mapping[str, object], *replies: StepReply) -> StepRow:
    return StepRow(
        asked="a", step="s", number=0, outcome="first", outputs=dict(outputs), replies=replies
    )


def run(server: Server, folder: Path, *options: str) -> dict[str, Any]:
    """Return the tables of a run by the first words of their titles."""
    figures = folder / "figures.json"
    place = ["--base-url", server.base_url, "--model", "m", "--keep", str(folder)]
    arguments = [*place, "--json", str(figures), "--parts", "steps"]
    assert main(["models", *arguments, *options]) == 0
    tables = json.loads(figures.read_text(encoding="utf-8"))["tables"]
    return {title.partition(":")[0]: rows for title, rows in tables.items()}


# --- the steps ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all runs: the samples are indexed once."""
    return tmp_path_factory.mktemp("kept")


@pytest.mark.slow
def test_a_second_run_asks_nothing_again(model_server: Server, kept: Path) -> None:
    options = ("--steps", "decompose", "--limit", "2")
    first = run(model_server, kept, *options)
    assert model_server.calls("decompose") == 2
    assert run(model_server, kept, *options) == first
    assert model_server.calls("decompose") == 2


@pytest.mark.slow
def test_a_failed_step_is_a_row_and_tried_again(model_server: Server, kept: Path) -> None:
    options = ("--steps", "choose,summarize", "--limit", "1")
    model_server.misbehave({"kind": "unauthorized", "step": "choose"})
    told = run(model_server, kept, *options)["steps"]
    assert (told["choose"]["failed"], told["summarize"]["first"]) == (1.0, 1.0)
    model_server.misbehave()
    assert run(model_server, kept, *options)["steps"]["choose"]["first"] == 1.0


@pytest.mark.slow
def test_an_unknown_step_is_named(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--keep", str(kept)]
    assert main(["models", *arguments, "--parts", "steps", "--steps", "fly"]) == 2
    assert "There is no step 'fly'. There are agent, answer," in capsys.readouterr().err


def test_every_field_of_every_step_gets_an_input() -> None:
    for name, step in chosen_steps(Models.offline(), None).items():
        inputs = inputs_of(step, fitted(step.step, MATERIAL))
        assert inputs.keys() == step.module.signature.input_fields.keys(), name


def test_a_cut_row_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    first = row_of({"x": 1})
    KeptRows(path, StepRow).add(first)
    with path.open("a") as file:
        file.write('\n{"asked": "b", "st')
    again = KeptRows(path, StepRow)
    assert list(again.rows) == ["a"]
    again.add(first.model_copy(update={"asked": "c"}))
    assert list(KeptRows(path, StepRow).rows) == ["a", "c"]


# --- marks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "outputs", "quality"),
    [
        ("decompose", {"parts": {"questions": ["a?", "b?"]}}, 2.0),
        ("extract", {"found": {"entities": [{"name": "Ada Korb"}, {"name": "Bert Reyd"}]}}, 0.5),
        ("filter", {"judged": {"judgements": [{"passage": 1, "label": "entailment"}]}}, 1.0),
        ("filter", {"judged": {"judgements": [{"passage": 2, "label": "entailment"}]}}, 0.0),
        ("answer", {"written": {"answer": "Ada Korb did [1].", "values": []}}, 1.0),
        ("judge", {"judgement": {"reason": "", "winner": "first"}}, 1.0),
        ("grade", {"grade": {"reason": "", "score": 20}}, 0.0),
        ("summarize", {"description": "She lived to 1999."}, 0.0),
    ],
)
def test_an_answer_is_marked_where_the_right_one_is_known(
    step: str, outputs: Mapping[str, object], quality: float
) -> None:
    assert marks_of(case_of(step), row_of(outputs, reply(""))).quality == quality


def test_a_graph_is_compared_by_names() -> None:
    listed = ListedPassage(
        "s", BRIDGE.title, BRIDGE.text, ("ADA KORB", "Orla Bridge"), (("Ada Korb", "Orla Bridge"),)
    )
    found = GraphRow(
        asked="", title="", names=("the Ada Korb", "Bert"), pairs=(("Orla Bridge", "Ada Korb"),)
    )
    lost = GraphRow(asked="", title="", problem="cut")
    told = compared([listed, listed], [found, lost])
    assert (told["recall"], told["precision"], told["lost"]) == (0.25, 0.5, 0.5)
    assert (told["their recall"], told["their precision"], told["in passage"]) == (0.5, 1.0, 0.5)
