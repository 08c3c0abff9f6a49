"""The measure of retrieval: questions made worse, tables, and what other systems published."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.ablations import CONTEXT_TOKENS, CONTEXTS, context, stands
from benchmarks.questions import QuestionSet
from benchmarks.ranking import by_kind, quality, table
from benchmarks.retrieval import main
from benchmarks.stress import lowered, misspelt
from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.session import open_session
from flows.settings import Settings
from prompts.text.tokens import count_tokens

SET = QuestionSet(
    "set", "corpus.jsonl.gz", "questions.jsonl.gz", "pos", "gold", kind_field="type", peers_field="lists", titles=False
)


def write(path: Path, *rows: Mapping[str, object]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(map(json.dumps, rows)))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write(tmp_path / SET.corpus, {"pos": 0, "title": "A", "text": "a"}, {"pos": 1, "title": "B", "text": "b"})
    asked = {"question": "A?", "gold": [0], "type": "one", "lists": {"peer": ["B", "C"]}}
    write(tmp_path / SET.questions, asked, {**asked, "question": "B?", "gold": [1, 0], "type": "two"})
    return tmp_path


def test_a_set_is_read(data: Path, tmp_path: Path) -> None:
    questions = SET.read_questions(data, None)
    assert [(question.text, question.gold, question.kind) for question in questions] == [
        ("A?", ("0",), "one"), ("B?", ("1", "0"), "two"),
    ]  # fmt: skip
    assert questions[0].peers == {"peer": ("1", "C")}
    assert SET.write_corpus(data, tmp_path / "rows.jsonl") == 2
    assert json.loads((tmp_path / "rows.jsonl").read_text().splitlines()[0]) == {"id": "0", "text": "a"}


def test_rankings_are_judged_whole_and_by_kind(data: Path) -> None:
    questions, found = SET.read_questions(data, None), [["0", "1"], ["1", "2", "0"]]
    whole = quality(questions, found, [1, 3])
    assert (whole.recall, whole.all_gold) == ({1: 0.75, 3: 1.0}, {1: 0.5, 3: 1.0})
    kinds = by_kind(questions, found, [1])
    assert {kind: (count, figures.all_gold[1]) for kind, (count, figures) in kinds.items()} == {
        "one": (1, 1.0), "two": (1, 0.0),
    }  # fmt: skip
    assert table({"ours": whole, "theirs": quality(questions, found, [1])})[-1].split() == [
        "theirs", "0.750", "-", "0.500", "-",
    ]  # fmt: skip


def test_each_name_gets_one_slip() -> None:
    question = "Did Orla Bridge's builder know Ada Korb or It?"
    slips = {misspelt(question, seed) for seed in range(20)}
    assert len(slips) > 10
    for slip in slips:
        words, wrong = question.split(), slip.split()
        assert [number for number, word in enumerate(words) if wrong[number] != word] == [2, 6]
        assert wrong[2].endswith("'s")
        assert {wrong[2][0], wrong[6][0]} == {"B", "K"}
    assert misspelt(question, 3) == misspelt(question, 3)
    assert lowered("Ada Korb") == "ada korb"


@pytest.mark.parametrize(
    ("answers", "text", "there"),
    [
        (["Ada Korb"], "ADA KORB's bridge", True),
        (["ada körb"], "Ada | Korb", True),
        (["Korb", "Sund"], "Ida Sund", True),
        (["Korb"], "Korber", False),
        (["1.5"], "15", False),
        ([], "anything", False),
    ],
)
def test_an_answer_stands_in_a_text_word_for_word(answers: list[str], text: str, there: bool) -> None:
    assert stands(answers, text) is there


async def test_contexts_have_the_same_room_and_without_texts_no_sentence_of_a_passage(tmp_path: Path) -> None:
    text = "It lies beside the mill and the quay, and many carts cross over on market days. " * 200
    bridge = {"id": "b", "title": "Orla Bridge", "text": f"Orla Bridge was designed by Ada Korb. {text}"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(bridge), encoding="utf-8")
    runtime = open_runtime(Settings(workspace=tmp_path / "ws", embedding="none"))
    await build_index([tmp_path / "rows.jsonl"], IndexOptions(), runtime)
    with open_session(runtime) as session:
        made = {
            name: await context("Who designed Orla Bridge?", mode, session, alone)
            for name, (mode, alone) in CONTEXTS.items()
        }
    # One passage is always shown, however long it is.
    assert all(count_tokens([one])[0] <= CONTEXT_TOKENS + 600 for one in made.values())
    assert {name for name, one in made.items() if "Orla Bridge: " not in one} == {"-Origin"}
    assert {name for name, one in made.items() if "| Ada Korb | " not in one} == {"auto", "naive"}


def test_absent_files_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", str(tmp_path), "--set", "2wiki_780"]) == 2
    assert "2wiki_corpus_6119.jsonl.gz" in capsys.readouterr().err


@pytest.mark.slow
def test_a_set_is_measured_in_every_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "multihop"
    folder.mkdir()
    texts = {
        "Orla Bridge": "Orla Bridge is a bridge in Velin. It was designed by Ada Korb.",
        "Ada Korb": "Ada Korb was an engineer. She was born in Marl.",
        "Ned Cobb": "Ned Cobb was a boxer. He was born in Velin.",
    }
    passages = [{"id": place, "title": title, "text": text} for place, (title, text) in enumerate(texts.items())]
    write(folder / "hotpot_train100_corpus.jsonl.gz", *passages)
    asked = {"question": "Where was the designer of Orla Bridge born?", "gold_ids": [0, 1], "type": "bridge"}
    choice = {**asked, "gold_ids": [1, 2], "question": "Who was a boxer, Ned Cobb or Ada Korb?", "answer": "Ned Cobb"}
    write(folder / "hotpot_train100_questions.jsonl.gz", {**asked, "answer": "Marl"}, choice)
    assert main(["--data", str(tmp_path), "--set", "hotpot_train100", "--json", str(tmp_path / "found.json")]) == 0
    measured = json.loads((tmp_path / "found.json").read_text())[0]
    tables = measured["tables"]
    assert list(tables) == ["as they stand", "by kind", "made worse", "a part left out"]
    assert tables["as they stand"]["trellis"]["all_gold"]["2"] == 1.0
    assert measured["standing"]["questions"] == 1
    assert measured["standing"]["shares"].keys() == CONTEXTS.keys()
    assert measured["standing"]["shares"]["auto"] == 1.0
    shown = capsys.readouterr().out
    assert "all@2" in shown
    assert "-Origin" in shown
