"""Rows: read in several forms, kept from evaluation sets, made by a model, judged, and stored as
they come.
"""

import asyncio
import json
from pathlib import Path

import pytest

from flows.train import TrainOptions, train_step
from prompts.route import Route
from prompts.text.question import parse_question
from storage.errors import UsageError
from storage.training_records import DataCard, FilterRow, PreferenceRow, RewriteRow
from tasks.train.rows import read_questions, read_rows, stored
from tests.flows.conftest import Command
from tests.server.client import Server
from tests.train.conftest import PAGES, preferences
from tests.workspaces import indexed, opened, write_rows

PUBLISHED = {
    "id": 3,
    "language": "zh",
    "doc_info": "《桥梁》《船闸》",
    "query": "哪一座桥最长？",
    "chosen": "chunk",
    "rejected": "table",
}


def test_rows_are_read_in_our_form_and_in_published_ones(tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "rows.jsonl",
        [PUBLISHED, {"question": "Compare.", "type": "table", "language": "en"}],
    )
    (published, labelled), source = read_rows(path, "router", "CC BY 4.0")
    assert isinstance(published, PreferenceRow)
    assert published.documents == ("桥梁", "船闸")
    assert (published.question, published.chosen, published.rejected) == (
        "哪一座桥最长？",
        "chunk",
        "table",
    )
    assert isinstance(labelled, PreferenceRow)
    assert (labelled.chosen, labelled.rejected) == ("table", None)
    assert (source.rows, source.licence, len(source.sha256)) == (2, "CC BY 4.0", 64)
    pair = {"id": 1, "a": "A man sleeps", "b": "Nobody sleeps", "entailment": "CONTRADICTION"}
    (judged,), _ = read_rows(write_rows(tmp_path / "sick.jsonl", [pair]), "filter")
    assert isinstance(judged, FilterRow)
    assert (judged.passage, judged.question, judged.label) == (
        "A man sleeps",
        "Nobody sleeps",
        "contradiction",
    )


def test_a_line_that_is_no_row_is_named(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [PUBLISHED, {**PUBLISHED, "chosen": "list"}])
    with pytest.raises(UsageError, match="line 2 is no row for a router: chosen"):
        read_rows(path, "router")


def test_questions_bring_their_gold(tmp_path: Path) -> None:
    gold = {"question": "Who?", "gold_documents": ["a"], "x": 1}
    rows = [gold, {"question": "When?", "answer": 1931}, {"question": "Eh?"}]
    first, second = read_questions(write_rows(tmp_path / "gold.jsonl", rows))
    assert first.gold_documents == ("a",)
    assert second.answers == ("1931",)


def test_a_last_line_that_a_kill_has_cut_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    whole = [row.model_dump_json() for row in preferences()[:3]]
    path.write_text("\n".join(whole)[:-9], encoding="utf-8")
    assert [row.id for row in stored(path, PreferenceRow)] == ["0", "1"]
    assert path.read_text(encoding="utf-8") == f"{whole[0]}\n{whole[1]}\n"


# --- a router without a GPU -----------------------------------------------------------------------


def test_a_linear_router_is_trained_compared_and_used_by_the_command(
    copied: Command, tmp_path: Path
) -> None:
    rows = [row.model_dump(exclude={"rejected"}) for row in preferences()]
    swapped = [
        {**row, "chosen": "graph" if row["chosen"] == "chunk" else "catalogue"} for row in rows
    ]
    path = write_rows(tmp_path / "rows.jsonl", swapped)
    ended = copied("train", "router", "--rows", str(path), "--licence", "ours", "--use", "--json")
    assert ended.code == 0, ended.err
    report = ended.json
    assert report["rows"] + report["held_out"] == 16
    assert report["scores"]["trained"]["accuracy"] > report["scores"]["rules"]["accuracy"]
    card = DataCard.model_validate_json(
        Path(report["folder"], "card.json").read_text(encoding="utf-8")
    )
    assert [(source.name, source.licence) for source in card.sources] == [("rows.jsonl", "ours")]
    models = opened(copied.workspace).models
    assert models.is_offline("route")
    asked = parse_question("Compare the mills of 1931 and 1935.")
    routed = asyncio.run(Route(models).run(asked, [], tabular=False))
    assert routed.structure == "catalogue", "which our own classifier calls a table"
    assert (
        copied("ask", "Who is the keeper of the harbour?", "--json").json["trace"]["route"]["type"]
        == "graph"
    )
    (copied.workspace / "programs" / "route.json").write_text(
        '{"step": "route", "shape": "linear", "demos": []}'
    )
    broken = copied("ask", "Who is the keeper?")
    assert broken.code == 2
    assert "trellis train router" in broken.err


def test_nothing_is_trained_on_an_evaluation_set(copied: Command, tmp_path: Path) -> None:
    rows = [row.model_dump() for row in preferences()]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    same = copied("train", "router", "--rows", str(path), "--exclude", str(path))
    assert same.code == 2
    assert "is a set to evaluate on" in same.err
    asked = write_rows(
        tmp_path / "set.jsonl", [{"question": "compare the MILLS of 1931, and 1932"}]
    )
    report = copied("train", "router", "--rows", str(path), "--exclude", str(asked), "--json").json
    assert report["left_out"] == {"evaluation set": 1}
    assert report["rows"] + report["held_out"] == 15


# --- rows made by models --------------------------------------------------------------------------


def tasks_of(*questions: str) -> str:
    tasks = [
        {"question": question, "documents": ["Log of May", "Log of June"]} for question in questions
    ]
    return json.dumps({"new": {"tasks": tasks}})


def ranks(letters: str) -> str:
    return json.dumps({"judged": {"reason": "it needs that", "ranking": list(letters)}})


def test_tasks_are_made_solved_with_each_type_judged_and_never_asked_again(
    model_server: Server, tmp_path: Path
) -> None:
    questions = [
        f"Which lock had {number} barges?" for number in ("no", "two", "ten", "most", "fewest")
    ]
    model_server.misbehave(
        {"kind": "writes", "step": "synthesize_tasks", "says": tasks_of(*questions)},
        {
            "kind": "writes",
            "step": "simulate_solution",
            "says": json.dumps({"solution": "The notes hold it."}),
        },
        {"kind": "writes", "step": "rank_solutions", "says": ranks("CABED")},
    )
    runtime = opened(
        tmp_path / "ws", lm="openai/m", lm_base_url=model_server.base_url, lm_api_key="k"
    )
    options = TrainOptions("router", tasks=5, languages=("en",), folder=tmp_path / "out")
    report = asyncio.run(train_step(options, runtime))
    rows = stored(tmp_path / "out" / "rows.jsonl", PreferenceRow)
    assert len(rows) == 20, "the best before each of the four others, for each of five tasks"
    assert {
        len({row.rejected for row in rows if row.question == question}) for question in questions
    } == {4}
    assert len({row.chosen for row in rows}) > 1, (
        "the order in which the judge sees the types differs"
    )
    assert report.rows + report.held_out == 20
    steps = model_server.stats()["steps"]
    assert (steps["simulate_solution"]["calls"], steps["rank_solutions"]["calls"]) == (25, 5)
    # As a kill leaves it: two of the tasks judged, a third one cut in its fourth row.
    kept = (tmp_path / "out" / "rows.jsonl").read_bytes().splitlines(keepends=True)[:11]
    (tmp_path / "out" / "rows.jsonl").write_bytes(b"".join(kept) + b'{"id": "syn_')
    (tmp_path / "out" / "report.json").unlink()
    model_server.reset()
    again = opened(
        tmp_path / "ws", lm="openai/m", lm_base_url=model_server.base_url, lm_api_key="k"
    )
    assert asyncio.run(train_step(options, again)).rows == report.rows
    steps = model_server.stats()["steps"]
    assert steps == {}, "every answer comes from the cache"
    assert len(stored(tmp_path / "out" / "rows.jsonl", PreferenceRow)) == 20


def test_a_rewriting_is_a_row_only_where_it_finds_the_gold_better(
    model_server: Server, tmp_path: Path
) -> None:
    gold = [
        {"id": "better", "question": "What about his native town?", "gold_documents": ["reyd"]},
        {"id": "worse", "question": "Who designed Orla Bridge?", "gold_documents": ["bridge"]},
    ]

    def written(question: str) -> str:
        return json.dumps(
            {"rewriting": {"reasoning": "", "question": question, "queries": [], "ambiguities": []}}
        )

    model_server.misbehave(
        {
            "kind": "writes",
            "step": "rewrite",
            "text": "native town",
            "says": written("Where was Tomas Reyd born?"),
        },
        {
            "kind": "writes",
            "step": "rewrite",
            "text": "Orla Bridge",
            "says": written("Who repaired Kestrel Quay?"),
        },
    )
    workspace = indexed(tmp_path, PAGES)
    runtime = opened(workspace, lm="openai/m", lm_base_url=model_server.base_url, lm_api_key="k")
    path = write_rows(tmp_path / "gold.jsonl", gold)
    options = TrainOptions(
        "rewriter", questions=path, base=str(tmp_path / "no-model"), folder=tmp_path / "out"
    )
    with pytest.raises(Exception, match=r"trl|cannot be loaded"):
        asyncio.run(
            train_step(options, runtime)
        )  # the rows are made before there is anything to train
    rows = {row.id: row for row in stored(tmp_path / "out" / "rows.jsonl", RewriteRow)}
    assert rows["better"].after > rows["better"].before
    assert rows["worse"].after < rows["worse"].before


def test_labels_against_the_gold_are_stored_and_not_trained_on(
    model_server: Server, tmp_path: Path
) -> None:
    def labelled(label: str) -> str:
        one = {"passage": 1, "explanation": "because", "label": label, "against": None}
        return json.dumps({"judged": {"judgements": [one]}})

    model_server.misbehave({"kind": "writes", "step": "filter", "says": labelled("entailment")})
    workspace = indexed(tmp_path, PAGES)
    runtime = opened(workspace, lm="openai/m", lm_base_url=model_server.base_url, lm_api_key="k")
    gold = [
        {
            "id": f"q{place}",
            "question": f"Who designed Orla Bridge in {place}?",
            "gold_documents": [document],
        }
        for place, document in enumerate(["bridge", "quay"] * 4)
    ]
    path = write_rows(tmp_path / "gold.jsonl", gold)
    options = TrainOptions(
        "filter",
        questions=path,
        passages=1,
        base=str(tmp_path / "no-model"),
        folder=tmp_path / "out",
    )
    with pytest.raises(Exception, match=r"trl|cannot be loaded"):
        asyncio.run(train_step(options, runtime))
    rows = stored(tmp_path / "out" / "rows.jsonl", FilterRow)
    assert {row.source for row in rows} == {"judged", "judged, against the gold"}
    assert all(row.explanation == "because" for row in rows)


def test_a_router_is_compiled_from_rows_compared_and_put_to_use(
    model_server: Server, tmp_path: Path
) -> None:
    def routed(structure: str) -> str:
        return json.dumps(
            {"routed": {"reason": "so", "structure": structure, "confidence": 0.9, "margin": 0.5}}
        )

    model_server.misbehave(
        {"kind": "writes", "step": "route", "text": "Compare", "says": routed("table")},
        {"kind": "writes", "step": "route", "says": routed("graph")},
    )
    path = write_rows(tmp_path / "rows.jsonl", [row.model_dump() for row in preferences()])
    runtime = opened(
        tmp_path / "ws", lm="openai/m", lm_base_url=model_server.base_url, lm_api_key="k"
    )
    report = asyncio.run(
        train_step(TrainOptions("router", by="bootstrap", rows=(path,), use=True), runtime)
    )
    assert set(report.scores) == {"rules", "prompt", "few-shot", "compiled"}
    assert report.scores["prompt"]["accuracy"] == 0.5, "every table, and no chunk"
    assert report.use == f"in use: {tmp_path / 'ws' / 'programs' / 'route.json'}"
    compiled = Route(
        opened(
            tmp_path / "ws", lm="openai/m", lm_base_url=model_server.base_url, lm_api_key="k"
        ).models
    )
    assert compiled.module.demos
    beside = asyncio.run(
        train_step(TrainOptions("router", by="linear", rows=(path,)), opened(tmp_path / "ws"))
    )
    assert set(beside.scores) == {"rules", "in use", "trained"}
    assert all(
        demo["question"].startswith("Compare")
        for demo in compiled.module.demos
        if "augmented" in demo
    )
