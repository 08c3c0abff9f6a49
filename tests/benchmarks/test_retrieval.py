"""Benchmarks: each is found by name, measures what it says, and reads published sets."""

import argparse
import asyncio
import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.answers import known_here
from benchmarks.compare import Way, ask, scored
from benchmarks.compare_sets import CompareSet
from benchmarks.contexts import CONTEXTS
from benchmarks.retrieval import by_kind, quality, setting
from benchmarks.runner import main
from benchmarks.sets import BenchmarkSet, index, settings_in
from benchmarks.traversal_baselines import start_of, ways_of
from flows.graph import undirected
from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.session import open_session
from flows.settings import load_settings
from storage.answer_records import Passage
from storage.evaluation_records import EvaluationQuestion

SET = BenchmarkSet(
    "set", "corpus.jsonl.gz", "questions.jsonl.gz", peers_field="lists", titles=False
)


def write(path: Path, *rows: Mapping[str, object]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(map(json.dumps, rows)))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write(
        tmp_path / SET.corpus,
        {"pos": 0, "title": "A", "text": "a"},
        {"pos": 1, "title": "B", "text": "b"},
    )
    asked = {"question": "A?", "gold_pos": [0], "type": "one", "lists": {"peer": ["B", "C"]}}
    other = {**asked, "question": "B?", "gold_pos": [1, 0], "type": "two"}
    write(tmp_path / SET.questions, asked, other)
    return tmp_path


def test_a_set_is_read(data: Path, tmp_path: Path) -> None:
    questions = SET.read_questions(data, None)
    read = [(question.question, question.gold_documents, question.kind) for question in questions]
    assert read == [("A?", ("0",), "one"), ("B?", ("1", "0"), "two")]
    assert SET.read_peers(data) == {"peer": [("1", "C"), ("1", "C")]}
    (written,) = SET.write(data, tmp_path)
    assert [json.loads(line) for line in written.read_text().splitlines()] == [
        {"id": "0", "text": "a"},
        {"id": "1", "text": "b"},
    ]


def test_rankings_are_judged_whole_and_by_kind(data: Path) -> None:
    questions, found = SET.read_questions(data, None), [["0", "1"], ["1", "2", "0"]]
    ranked = {"recall@1": 0.75, "recall@3": 1.0, "all@1": 0.5, "all@3": 1.0}
    assert quality(questions, found, [1, 3]) == ranked
    kinds = by_kind(questions, found, [1])
    assert {kind: row["all@1"] for kind, row in kinds.items()} == {"one": 1.0, "two": 0.0}


def test_a_measure_takes_any_known_setting() -> None:
    assert setting("embedding_query_prompt=query: ") == ("embedding_query_prompt", "query: ")
    with pytest.raises(argparse.ArgumentTypeError, match="'embeding=none': use NAME=VALUE"):
        setting("embeding=none")


@pytest.mark.slow
def test_a_set_is_measured_in_every_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "multihop"
    folder.mkdir()
    texts = {
        "Orla Bridge": "Orla Bridge is a bridge in Velin. It was designed by Ada Korb.",
        "Ada Korb": "Ada Korb was an engineer. She was born in Marl.",
        "Ned Cobb": "Ned Cobb was a boxer. He was born in Velin.",
    }
    passages = [
        {"id": place, "title": title, "text": text}
        for place, (title, text) in enumerate(texts.items())
    ]
    write(folder / "hotpot_train100_corpus.jsonl.gz", *passages)
    designer = "Where was the designer of Orla Bridge born?"
    write(
        folder / "hotpot_train100_questions.jsonl.gz",
        {"question": designer, "gold_ids": [0, 1], "type": "bridge", "answer": "Marl"},
        {
            "question": "Who was a boxer, Ned Cobb or Ada Korb?",
            "gold_ids": [1, 2],
            "type": "bridge",
            "answer": "Ned Cobb",
        },
    )
    figures = tmp_path / "found.json"
    place = ["--data", str(tmp_path), "--json", str(figures)]
    options = [*place, "--sets", "hotpot_train100"]
    assert main(["retrieval", *options]) == 0
    found = json.loads(figures.read_text())
    assert found["command"].startswith("python -m benchmarks retrieval --data")
    tables = {
        title.removeprefix("hotpot_train100: "): rows for title, rows in found["tables"].items()
    }
    standing = "the answer of 1 questions stands in the context"
    titles = ["cost", "as they stand", "by kind", "made worse", "a part left out", standing]
    assert list(tables) == titles
    assert tables["as they stand"]["trellis"]["all@2"] == 1.0
    assert tables[standing]["share"].keys() == CONTEXTS.keys()
    assert tables[standing]["share"]["auto"] == 1.0
    shown = capsys.readouterr().out
    assert "all@2" in shown
    assert "-Origin" in shown


@pytest.mark.parametrize(("name", "known"), [("Tomas Reyd", True), ("Ana Korb", False)])
def test_a_foreign_question_with_a_known_answer_is_left_out(name: str, known: bool) -> None:
    passage = Passage(
        document="d", title="Tomas Reyd", chunk="chk_d", score=1.0, text="He was born in Velin."
    )
    question = EvaluationQuestion(id="q", question=f"Where was {name} born?", answers=("Velin",))
    assert known_here(question, [passage]) is known


def written(data: Path, folder: Path) -> list[Path]:
    row = {"id": "a", "title": "Orla Bridge", "text": "Orla Bridge was designed by Ada Korb."}
    (folder / "corpus.jsonl").write_text(f"{json.dumps(row)}\n", encoding="utf-8")
    return [folder / "corpus.jsonl"]


SMALL = CompareSet(
    name="small",
    measures=("answer_in_text", "abstention"),
    files=(),
    write=written,
    ask=lambda data, limit: [
        EvaluationQuestion(id="1", question="Who designed Orla Bridge?", answers=("Ada Korb",)),
        EvaluationQuestion(id="2", question="How long is Orla Bridge?", answerable=False),
    ][:limit],
    embedding="none",
)


def test_a_question_that_breaks_counts_as_wrong(tmp_path: Path) -> None:
    runtime, _ = index(SMALL.write(tmp_path, tmp_path), settings_in(tmp_path, embedding="none"))
    question = SMALL.ask(tmp_path, None)[0]
    with open_session(runtime) as session:
        unreadable = replace(session, _texts=None)  # type: ignore[arg-type]
        broken = asyncio.run(ask(Way(mode="naive"), question, unreadable))
        good = asyncio.run(ask(Way(mode="naive"), question, session))
        assert (broken.answered.answer, broken.answered.error[:10]) == (None, "TypeError:")
        assert scored([good, broken], SMALL) == {"answer_in_text": 0.5, "abstention": 0.5}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["fly"], "There is no measure 'fly'. There are abstention, "),
        (["retrieval"], "Name the one that holds the published data: --data DIR"),
        (["retrieval", "--data", ".", "--sets", "2wiki_780"], "lacks multihop/2wiki_101_peers"),
        (["answers", "--data", ".", "--sets", "cmrc2018_zh"], "cmrc2018_zh_dev_passages.jsonl.gz"),
        (["extraction"], "--data DIR"),
        (["linking"], "--texts DIR"),
    ],
)
def test_a_missing_file_or_measure_is_named(
    arguments: list[str],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert problem in capsys.readouterr().err


async def test_each_way_reads_what_it_says(tmp_path: Path) -> None:
    rows = [
        ("Ada Korb", "spouse", "Tomas Reyd"),
        ("Tomas Reyd", "place of birth", "Velin"),
        ("Velin", "river", "Orla"),
    ]
    source = tmp_path / "kb.csv"
    source.write_text("s,p,o\n" + "".join(f"{s},{p},{o}\n" for s, p, o in rows), encoding="utf-8")
    settings = load_settings({"workspace": tmp_path / "ws", "embedding": "none"})
    await build_index([source], IndexOptions(), open_runtime(settings))
    with open_session(open_runtime(settings)) as session:
        start = start_of("What is the place of birth of the spouse of Ada Korb?", session)
        ways = ways_of(session, undirected(tmp_path / "ws"))
        found = {name: walk(start) for name, walk in ways.items()}
    assert "Ada Korb" not in start.question
    assert set(found["bfs"].values) == {"Tomas Reyd", "Velin"}
    assert found["pagerank"].values == ("Tomas Reyd",)
    assert found["hop by hop"].values == ("Velin",)
    assert found["hop by hop"].calls >= 2
