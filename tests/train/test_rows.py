"""Rows to train on: read, kept from evaluation sets, made by models, stored, and trained on."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from flows.runtime import Runtime
from flows.train import TrainOptions, train_step
from prompts.filter import Filter
from prompts.route import Route
from prompts.text.question import parse_question
from storage.answer_records import Passage
from storage.errors import UsageError
from storage.evaluation_records import EvaluationQuestion
from storage.training_records import DataCard, FilterRow, PreferenceRow, RewriteRow
from tasks.train.filter import judge_passages
from tasks.train.rows import EvaluationSets, read_questions, read_rows, stored
from tests.flows.conftest import Command
from tests.query.steps import scripted, sent
from tests.server.client import Server
from tests.train.conftest import preferences, rewriting
from tests.workspaces import opened, write_rows

PUBLISHED = {
    "id": 3,
    "language": "zh",
    "doc_info": "《桥梁》《船闸》",
    "query": "哪一座桥最长？",
    "chosen": "chunk",
    "rejected": "table",
}
LABELLED = {"question": "Compare.", "type": "table", "language": "en"}
PAIR = {"id": 1, "a": "A man sleeps", "b": "Nobody sleeps", "entailment": "CONTRADICTION"}


def on_server(server: Server, workspace: Path) -> Runtime:
    return opened(workspace, lm="openai/m", lm_base_url=server.base_url, lm_api_key="k")


def writes(step: str, says: str, **where: str) -> dict[str, str]:
    return {"kind": "writes", "step": step, "says": says, **where}


# --- read -----------------------------------------------------------------------------------------


def test_rows_are_read_in_our_form_and_in_published_ones(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [PUBLISHED, LABELLED])
    (published, labelled), source = read_rows(path, "router", "CC BY 4.0")
    assert isinstance(published, PreferenceRow)
    assert (published.question, published.documents) == ("哪一座桥最长？", ("桥梁", "船闸"))
    assert (published.chosen, published.rejected) == ("chunk", "table")
    assert isinstance(labelled, PreferenceRow)
    assert (labelled.chosen, labelled.rejected) == ("table", None)
    assert (source.rows, source.licence, len(source.sha256)) == (2, "CC BY 4.0", 64)
    (judged,), _ = read_rows(write_rows(tmp_path / "sick.jsonl", [PAIR]), "filter")
    assert isinstance(judged, FilterRow)
    assert (judged.passage, judged.question) == ("A man sleeps", "Nobody sleeps")
    assert judged.label == "contradiction"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({**PUBLISHED, "chosen": "list"}, "chosen"),
        ({"doc_info": "《桥梁》"}, "'language' is missing"),
        (["no", "fields"], "list"),
    ],
)
def test_a_line_that_is_no_row_is_named(row: object, problem: str, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [PUBLISHED, row])
    with pytest.raises(UsageError, match=f"line 2 is no row for a router: .*{problem}"):
        read_rows(path, "router")


@pytest.mark.parametrize("line", ['{"id": 1}', "[1]", "{"])
def test_a_line_without_a_question_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="line 1 has no question"):
        EvaluationSets.read([path])


def test_questions_without_gold_are_left_out(tmp_path: Path) -> None:
    gold = {"question": "Who?", "gold_documents": ["a"], "x": 1}
    rows = [gold, {"question": "When?", "answer": 1931}, {"question": "Eh?"}]
    first, second = read_questions(write_rows(tmp_path / "gold.jsonl", rows))
    assert (first.gold_documents, second.answers) == (("a",), ("1931",))


def test_a_cut_line_goes_with_the_question_before_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    whole = [row.model_dump_json() for row in preferences()[:3]]
    path.write_text("\n".join(whole)[:-9], encoding="utf-8")
    assert [row.id for row in stored(path, PreferenceRow)] == ["0"]
    assert path.read_text(encoding="utf-8") == f"{whole[0]}\n"
    path.write_text(whole[0][:-9], encoding="utf-8")
    assert stored(path, PreferenceRow) == []


# --- a router without a GPU -----------------------------------------------------------------------


def test_a_linear_router_is_trained_compared_and_used_by_the_command(
    copied: Command, tmp_path: Path
) -> None:
    swapped = {"chunk": "graph", "table": "catalogue"}
    rows = [
        row.model_dump(exclude={"rejected"}) | {"chosen": swapped[row.chosen]}
        for row in preferences()
    ]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    ended = copied("train", "router", "--rows", str(path), "--licence", "ours", "--use", "--json")
    assert ended.code == 0, ended.err
    report = ended.json
    assert report["rows"] + report["held_out"] == 16
    assert report["scores"]["trained"]["accuracy"] > report["scores"]["rules"]["accuracy"]
    card = DataCard.model_validate_json(Path(report["folder"], "card.json").read_bytes())
    assert [(source.name, source.licence) for source in card.sources] == [("rows.jsonl", "ours")]
    asked = parse_question("Compare the mills of 1931 and 1935.")
    route = Route(opened(copied.workspace).models)
    routed = asyncio.run(route.run(asked, [], tabular=False))
    assert routed.structure == "catalogue", "our own classifier says a table"
    answer = copied("ask", "Who is the keeper of the harbour?", "--json").json
    assert answer["trace"]["route"]["type"] == "graph"
    program = {"step": "route", "shape": "linear", "demos": []}
    (copied.workspace / "programs" / "route.json").write_text(json.dumps(program))
    broken = copied("ask", "Who is the keeper?")
    assert broken.code == 2
    assert "trellis train router" in broken.err


def test_nothing_is_trained_on_an_evaluation_set(copied: Command, tmp_path: Path) -> None:
    rows = [row.model_dump() for row in preferences()]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    same = copied("train", "router", "--rows", str(path), "--exclude", str(path))
    assert same.code == 2
    assert "is a set to evaluate on" in same.err
    asked = [{"question": "compare the MILLS of 1931, and 1932"}]
    others = write_rows(tmp_path / "set.jsonl", asked)
    report = copied("train", "router", "--rows", str(path), "--exclude", str(others), "--json").json
    assert report["left_out"] == {"evaluation set": 1}
    assert report["rows"] + report["held_out"] == 15


# --- rows made by models --------------------------------------------------------------------------


async def test_tasks_are_made_solved_with_each_type_judged_and_never_asked_again(
    model_server: Server, tmp_path: Path
) -> None:
    counts = ("no", "two", "ten", "most", "fewest")
    questions = [f"Which lock had {count} barges?" for count in counts]
    logs = ["Log of May", "Log of June"]
    tasks = [{"question": question, "documents": logs} for question in questions]
    ranked = {"judged": {"reason": "it needs that", "ranking": list("CABED")}}
    model_server.misbehave(
        writes("synthesize_tasks", json.dumps({"new": {"tasks": tasks}})),
        writes("simulate_solution", json.dumps({"solution": "The notes hold it."})),
        writes("rank_solutions", json.dumps(ranked)),
    )
    out, workspace = tmp_path / "out", tmp_path / "ws"
    options = TrainOptions("router", tasks=5, languages=("en",), folder=out)
    report = await train_step(options, on_server(model_server, workspace))
    rows = stored(out / "rows.jsonl", PreferenceRow)
    assert len(rows) == report.rows + report.held_out == 20, "five tasks, four rejected types each"
    assert len({(row.question, row.rejected) for row in rows}) == 20
    assert len({row.chosen for row in rows}) > 1, "the judge sees the types in different orders"
    steps = model_server.stats()["steps"]
    assert (steps["simulate_solution"]["calls"], steps["rank_solutions"]["calls"]) == (25, 5)
    # A kill left two tasks judged, and cut off a third one in its fourth row.
    kept = (out / "rows.jsonl").read_bytes().splitlines(keepends=True)[:11]
    (out / "rows.jsonl").write_bytes(b"".join(kept) + b'{"id": "syn_')
    (out / "report.json").unlink()
    model_server.reset()
    again = await train_step(options, on_server(model_server, workspace))
    assert again.rows == report.rows
    assert model_server.stats()["steps"] == {}, "every answer comes from the cache"
    assert len(stored(out / "rows.jsonl", PreferenceRow)) == 20


async def made_of_questions(
    step: Any, gold: list[dict[str, object]], pages: Path, server: Server
) -> Path:
    """Make rows of questions; the training that follows finds no base model."""
    folder = pages.parent
    options = TrainOptions(
        step,
        questions=write_rows(folder / "gold.jsonl", gold),
        passages=1,
        base=str(folder / "no-model"),
        folder=folder / "out",
    )
    with pytest.raises(Exception, match=r"trl|cannot be loaded"):
        await train_step(options, on_server(server, pages))
    return folder / "out" / "rows.jsonl"


async def test_a_rewriting_is_a_row_only_where_it_finds_the_gold_better(
    model_server: Server, copied: Command
) -> None:
    native, bridge = "What about his native town?", "Who designed Orla Bridge?"
    model_server.misbehave(
        writes("rewrite", rewriting("Where was Tomas Reyd born?"), text="native town"),
        writes("rewrite", rewriting("Who repaired Kestrel Quay?"), text="Orla Bridge"),
    )
    gold: list[dict[str, object]] = [
        {"id": "better", "question": native, "gold_documents": ["reyd"]},
        {"id": "worse", "question": bridge, "gold_documents": ["bridge"]},
    ]
    path = await made_of_questions("rewriter", gold, copied.workspace, model_server)
    rows = {row.id: row for row in stored(path, RewriteRow)}
    assert rows["better"].after > rows["better"].before
    assert rows["worse"].after < rows["worse"].before


async def test_labels_against_the_gold_are_stored_and_not_trained_on(
    model_server: Server, copied: Command
) -> None:
    judged = {"passage": 1, "explanation": "because", "label": "entailment", "against": None}
    model_server.misbehave(writes("filter", json.dumps({"judged": {"judgements": [judged]}})))
    gold: list[dict[str, object]] = [
        {
            "id": f"q{place}",
            "question": f"Who designed Orla Bridge in {place}?",
            "gold_documents": [document],
        }
        for place, document in enumerate(["bridge", "quay"] * 4)
    ]
    rows = stored(
        await made_of_questions("filter", gold, copied.workspace, model_server), FilterRow
    )
    assert {row.source for row in rows} == {"judged", "judged, against the gold"}
    assert all(row.explanation == "because" for row in rows)


async def test_a_question_whose_rows_a_kill_cut_off_is_judged_again(tmp_path: Path) -> None:
    found = [
        Passage(document=name, title=name, chunk=f"chk_{name}", score=1.0, text=f"The {name}.")
        for name in ("mill", "quay")
    ]
    labels = [{"passage": one, "explanation": "so", "label": "neutral"} for one in (1, 2)]
    questions = [EvaluationQuestion(id=word, question=f"{word}?") for word in ("Who", "Where")]
    path = tmp_path / "rows.jsonl"

    async def find(_: Sequence[str]) -> Sequence[Passage]:
        return found

    async def judged(judge: Filter) -> list[FilterRow]:
        return await judge_passages(questions, path, judge, find, 2, lambda _done, _total: None)

    rows = await judged(scripted(Filter, *[{"judgements": labels}] * 2))
    assert len(rows) == 4
    path.write_bytes(path.read_bytes()[:-20])
    judge = scripted(Filter, {"judgements": labels})
    assert await judged(judge) == rows
    assert len(sent(judge)) == 1, "the other question has all its rows"
    assert sorted(stored(path, FilterRow), key=lambda row: row.id) == rows


async def test_a_router_is_compiled_compared_and_put_to_use(
    model_server: Server, tmp_path: Path
) -> None:
    def routed(structure: str) -> str:
        fields = {"reason": "so", "structure": structure, "confidence": 0.9, "margin": 0.5}
        return json.dumps({"routed": fields})

    model_server.misbehave(
        writes("route", routed("table"), text="Compare"), writes("route", routed("graph"))
    )
    path = write_rows(tmp_path / "rows.jsonl", [row.model_dump() for row in preferences()])
    workspace = tmp_path / "ws"
    options = TrainOptions("router", by="bootstrap", rows=(path,), use=True)
    report = await train_step(options, on_server(model_server, workspace))
    assert set(report.scores) == {"rules", "prompt", "few-shot", "compiled"}
    assert report.scores["prompt"]["accuracy"] == 0.5, "every table, and no chunk"
    assert report.use == f"in use: {workspace / 'programs' / 'route.json'}"
    demos = Route(on_server(model_server, workspace).models).module.demos
    assert demos
    assert all(demo["question"].startswith("Compare") for demo in demos if "augmented" in demo)
    linear = TrainOptions("router", by="linear", rows=(path,))
    assert set((await train_step(linear, opened(workspace))).scores) == {
        "rules",
        "in use",
        "trained",
    }
