"""Public sets: each published format is read, indexed once, and asked by name."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.operations.public_sets import left_of
from storage.errors import TrellisError
from storage.run_records import NO_BUDGET, Budget, Usage
from tasks.question_sets.public_sets import PUBLIC_SETS, ReadSet, public_set, read_public_set
from tests.evaluate.conftest import Bench
from tests.flows.conftest import Command

ASKED = "Where was the designer of Orla Bridge born?"
SENTENCES = {
    "Orla Bridge": ["Orla Bridge was designed by Tomas Reyd.", " It opened in 1931."],
    "Holm Light": ["Holm Light was built by Mira Sand."],
    "Tomas Reyd": ["Tomas Reyd was born in Velin."],
}
NEEDED = ("Orla Bridge", "Tomas Reyd")
TEXTS = {title: "".join(sentences) for title, sentences in SENTENCES.items()}
CORPUS = [{"idx": n, "title": t, "text": text} for n, (t, text) in enumerate(TEXTS.items())]
WITH_CONTEXT = {
    "_id": "q1",
    "question": ASKED,
    "answer": "Velin",
    "type": "bridge",
    "supporting_facts": [["Orla Bridge", 0], ["Tomas Reyd", 0]],
    "context": [[title, sentences] for title, sentences in SENTENCES.items()],
}
WITH_PARAGRAPHS = {
    "id": "2hop__1_2",
    "question": ASKED,
    "answer": "Velin",
    "answer_aliases": ["Velin Town"],
    "answerable": True,
    "paragraphs": [
        {"idx": n, "title": t, "paragraph_text": text, "is_supporting": t in NEEDED}
        for n, (t, text) in enumerate(TEXTS.items())
    ],
}
OUR_ROWS = [
    {"id": n, "title": title, "text": text} for n, (title, text) in enumerate(TEXTS.items())
]
OUR_QUESTION = {"id": "q1", "question": ASKED, "answer": "Velin", "hops": 2, "gold_ids": [0, 2]}
NESTED = {
    "context_id": "DEV_0",
    "title": "奥拉桥",
    "context_text": "奥拉桥由托马斯设计。",
    "qas": [{"query_id": "DEV_0_QUERY_0", "query_text": "谁设计了奥拉桥？", "answers": ["托马斯"]}],
}
SQUAD = {
    "version": "v1.0",
    "data": [
        {
            "title": "奥拉桥",
            "paragraphs": [
                {
                    "id": "DEV_0",
                    "context": "奥拉桥由托马斯设计。",
                    "qas": [
                        {
                            "id": "DEV_0_QUERY_0",
                            "question": "谁设计了奥拉桥？",
                            "answers": [{"text": "托马斯", "answer_start": 4}],
                        }
                    ],
                }
            ],
        }
    ],
}
HANDBOOK = {"corpus_name": "Medical", "context": "Melanoma is a cancer of the skin."}
MEDICAL = {
    "id": "Medical-1",
    "source": "Medical",
    "question": "What is melanoma?",
    "answer": "A skin cancer.",
    "question_type": "Fact Retrieval",
    "evidence": "Melanoma is a cancer of the skin.",
}
Files = dict[str, Any]
Write = Callable[[Files], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write files of JSON, or of JSON Lines, zipped where the name says so, into a folder."""

    def written(files: Files) -> Path:
        for name, content in files.items():
            path = tmp_path / "data" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = ".jsonl" in name
            text = "\n".join(map(json.dumps, content)) if lines else json.dumps(content)
            data = text.encode()
            path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return tmp_path / "data"

    return written


def read(name: str, data: Path, **chosen: Any) -> ReadSet:
    return read_public_set(public_set(name), data, **chosen)


@pytest.mark.parametrize(
    ("name", "files", "kind"),
    [
        ("hotpotqa", {"hotpot_dev_distractor_v1.json": [WITH_CONTEXT]}, "bridge"),
        (
            "hotpotqa",
            {"a/hotpotqa.json": [WITH_CONTEXT], "b/hotpotqa_corpus.json": CORPUS},
            "bridge",
        ),
        (
            "hotpotqa",
            {"hotpotqa_train.json": [WITH_CONTEXT], "hotpotqa_train_corpus.json": SENTENCES},
            "bridge",
        ),
        ("2wikimultihopqa", {"dev.json": [WITH_CONTEXT]}, "bridge"),
        ("musique", {"musique_ans_v1.0_dev.jsonl": [WITH_PARAGRAPHS]}, "2 hops"),
        ("musique", {"musique.json": [WITH_PARAGRAPHS], "musique_corpus.json": CORPUS}, "2 hops"),
        (
            "musique",
            {
                "musique_train100_questions.jsonl.gz": [OUR_QUESTION],
                "musique_train100_corpus.jsonl.gz": OUR_ROWS,
            },
            "2 hops",
        ),
    ],
)
def test_each_edition_has_passages_and_gold(
    name: str, files: Files, kind: str, write: Write
) -> None:
    found = read(name, write(files))
    (question,) = found.questions
    assert (question.question, question.kind) == (ASKED, kind)
    assert question.answers[0] == "Velin"
    texts = {passage.id: passage.text for passage in found.passages}
    titles = {passage.id: passage.title for passage in found.passages}
    assert sorted(titles.values()) == sorted(TEXTS)
    assert texts == {one: TEXTS[title] for one, title in titles.items()}
    assert tuple(titles[gold] for gold in question.gold_documents) == NEEDED
    assert len(found.files) == len(files)


def test_aliases_are_right_answers_too(write: Write) -> None:
    found = read("musique", write({"musique_full_v1.0_dev.jsonl": [WITH_PARAGRAPHS]}))
    assert found.questions[0].answers == ("Velin", "Velin Town")


def test_what_cannot_be_answered_needs_no_passage(write: Write) -> None:
    row = {**WITH_PARAGRAPHS, "answerable": False}
    (question,) = read("musique", write({"musique_full_v1.0_dev.jsonl": [row]})).questions
    assert (question.answerable, question.gold_documents) == (False, ())


@pytest.mark.parametrize("content", [[NESTED], SQUAD])
def test_cmrc_is_read_in_both_its_formats(content: object, write: Write) -> None:
    found = read("cmrc2018", write({"cmrc2018_dev.json": content}))
    (question,), (passage,) = found.questions, found.passages
    assert (question.id, question.answers) == ("DEV_0_QUERY_0", ("托马斯",))
    assert question.gold_documents == (passage.id,) == ("DEV_0",)
    assert passage.text == "奥拉桥由托马斯设计。"


@pytest.mark.parametrize("corpus", [HANDBOOK, [HANDBOOK]])
def test_graphrag_bench_has_no_gold_passages(corpus: object, write: Write) -> None:
    files = {"Questions/medical_questions.json": [MEDICAL], "Corpus/medical.json": corpus}
    found = read("graphrag-bench-medical", write(files))
    (question,) = found.questions
    assert (question.kind, question.gold_documents) == ("Fact Retrieval", ())
    assert [passage.text for passage in found.passages] == [HANDBOOK["context"]]


def many(count: int) -> list[dict[str, Any]]:
    """Questions that bring two passages each, one of them always the same."""
    return [
        {
            "_id": f"q{n}",
            "question": f"Who built quay {n}?",
            "answer": "Ana Korb",
            "supporting_facts": [[f"Quay {n}", 0]],
            "context": [[f"Quay {n}", [f"Ana Korb built quay {n}."]], ["Velin", ["A town."]]],
        }
        for n in range(count)
    ]


def test_a_larger_limit_adds_to_the_drawn_questions(write: Write) -> None:
    data = write({"dev.json": many(20)})
    ids = [
        [question.id for question in read("2wikimultihopqa", data, limit=n, seed=s).questions]
        for n, s in ((3, 7), (6, 7), (3, 8), (3, None))
    ]
    assert ids[1][:3] == ids[0] != ids[2]
    assert ids[3] == ["q0", "q1", "q2"]


def test_the_pool_is_the_same_for_every_limit(write: Write) -> None:
    data = write({"dev.json": many(20)})
    few, more = (read("2wikimultihopqa", data, limit=n, seed=1) for n in (2, 9))
    assert few.passages == more.passages
    assert len(few.passages) == 21, "the shared passage counts once"


def test_two_texts_of_one_title_are_two_passages(write: Write) -> None:
    other = {**CORPUS[1], "title": "Orla Bridge", "text": "Another bridge."}
    files = {"musique.json": [WITH_PARAGRAPHS], "musique_corpus.json": [other, *CORPUS]}
    found = read("musique", write(files))
    assert [passage.id for passage in found.passages][:2] == ["Orla Bridge", "Orla Bridge #2"]
    assert found.questions[0].gold_documents == ("Orla Bridge #2", "Tomas Reyd")


def test_a_file_of_questions_chooses_the_edition(write: Write) -> None:
    rows = {
        "2wiki_101_peers.jsonl.gz": [{"i": 0, "question": ASKED, "gold_pos": [0]}],
        "2wiki_corpus_6119.jsonl.gz": [{"pos": 0, "title": "Orla Bridge", "text": "It opened."}],
    }
    data = write({"dev.json": [WITH_CONTEXT], **rows})
    assert len(read("2wikimultihopqa", data).passages) == 3
    chosen = read("2wikimultihopqa", data / "2wiki_101_peers.jsonl.gz")
    assert [question.gold_documents for question in chosen.questions] == [("0",)]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, ["hotpot_dev_distractor_v1.json", "https://hotpotqa.github.io", "--data DIR"]),
        (
            {"hotpotqa.json": [WITH_CONTEXT]},
            ["hotpotqa.json is there without hotpotqa_corpus.json"],
        ),
        ({"hotpot_dev_distractor_v1.json": {"a": 1}}, ["not in the published format of hotpotqa"]),
        (
            {"hotpotqa.json": [WITH_CONTEXT], "hotpotqa_corpus.json": CORPUS[:2]},
            ["the corpus lacks 'Tomas Reyd'", "Take the file as it is"],
        ),
    ],
)
def test_what_is_missing_is_told_with_its_origin(
    files: Files, told: list[str], write: Write
) -> None:
    data = write({"README.json": {}, **files})
    with pytest.raises(TrellisError) as raised:
        read("hotpotqa", data)
    assert all(words in str(raised.value) for words in told), raised.value


def test_a_pointer_of_git_lfs_is_told(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:89\nsize 6505789\n"
    (tmp_path / "dev.json").write_text(pointer, encoding="utf-8")
    with pytest.raises(TrellisError, match="git lfs pull"):
        read("2wikimultihopqa", tmp_path)


def test_a_missing_folder_is_told_with_the_origin(tmp_path: Path) -> None:
    with pytest.raises(TrellisError, match=r"none.*StonyBrookNLP"):
        read("musique", tmp_path / "none")


def test_all_sets_of_the_data_folder_are_read(pytestconfig: pytest.Config) -> None:
    data = pytestconfig.getoption("--data")
    if data is None:
        pytest.skip("needs --data")
    here = [name for name in PUBLIC_SETS if name != "graphrag-bench-novel"]
    found = {name: read(name, Path(data)) for name in here}
    counts = {name: (len(one.questions), len(one.passages)) for name, one in found.items()}
    assert counts == {
        "hotpotqa": (100, 994),
        "2wikimultihopqa": (100, 712),
        "musique": (100, 1890),
        "cmrc2018": (3219, 848),
        "graphrag-bench-medical": (160, 1),
    }


# --- asked by name ---


@pytest.fixture
def command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")
    return Command(tmp_path / "ws", capsys)


def test_a_set_is_indexed_once_and_asked(command: Command, write: Write) -> None:
    data = write({"dev.json": [WITH_CONTEXT]})
    typed = ["evaluate", "--set", "2wikimultihopqa", "--data", str(data), "--system", "naive"]
    first = command(*typed, "--json")
    assert first.code == 0, first.err
    assert "1 questions, 3 passages (indexed now)" in first.err
    means = {row["measure"]: row["value"] for row in first.json["scores"]}
    assert means["recall@5"] == means["all_gold@5"] == means["answer_in_text"] == 1.0
    again = command(*typed, "--measures", "recall@2", "--json")
    assert "indexed before" in again.err
    assert {row["measure"] for row in again.json["scores"]} == {"recall@2"}


def test_another_sample_replaces_the_passages(command: Command, write: Write) -> None:
    data = write({"dev.json": [WITH_CONTEXT]})
    typed = ["evaluate", "--set", "2wikimultihopqa", "--data", str(data), "--system", "naive"]
    assert command(*typed).code == 0
    write({"dev.json": many(2)})
    assert "2 questions, 3 passages (indexed now)" in command(*typed).err
    assert json.loads(command("status", "--json").out)["counts"]["documents"] == 3


def test_other_documents_are_not_mixed_with_a_set(bench: Bench, write: Write) -> None:
    data = write({"dev.json": [WITH_CONTEXT]})
    ran = bench("evaluate", "--set", "2wikimultihopqa", "--data", str(data))
    assert ran.code == 2
    assert "rows.jsonl" in ran.err
    assert "a workspace of its own" in ran.err


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["--set", "hotpot", "--data", "."], "Did you mean 'hotpotqa'?"),
        (["--set", "musique"], "Download it from https://github.com/StonyBrookNLP/musique"),
        (["--set", "musique", "--data", ".", "--questions", "q.jsonl"], "Leave one of them out"),
        (["--questions", "q.jsonl", "--data", "."], "--data belongs to a public set"),
        (["--questions", "q.jsonl", "--seed", "7"], "--seed belongs to a public set"),
    ],
)
def test_options_that_do_not_fit_are_refused(typed: list[str], told: str, command: Command) -> None:
    ran = command("evaluate", *typed)
    assert ran.code == 2
    assert told in ran.err


def test_what_indexing_took_is_taken_from_the_budget() -> None:
    usage = Usage(input_tokens=700, output_tokens=100, cost_usd=0.5)
    assert left_of(Budget(tokens=1_000, usd=2.0), usage) == Budget(tokens=200, usd=1.5)
    assert left_of(Budget(tokens=1_000), None) == Budget(tokens=1_000)
    assert left_of(NO_BUDGET, usage) == NO_BUDGET
    assert left_of(Budget(tokens=500), usage) == Budget(tokens=1)
