"""Question sets: one format that is read and written, and sets made for a collection."""

import gzip
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.rows import read_passages, read_questions, write_rows
from flows.__main__ import main
from prompts.engine.models import Models
from prompts.synthesize import PartAsked, PartKind
from storage.errors import SourceNotFound, UsageError
from storage.evaluation_records import EvaluationQuestion
from storage.graph_records import TextSpan
from storage.records import Chunk
from tasks.chunk import chunk_document
from tasks.load.sources import compose, read_sources
from tasks.question_sets.load import load_questions, write_questions
from tasks.question_sets.synthesize import evaluation_question, make_questions
from tests.models.running import Place
from tests.server.client import Server

SAMPLES = Path(__file__).resolve().parents[2] / "examples" / "corpus"
CHUNK_TOKENS = 300

QUESTIONS = (
    EvaluationQuestion(
        id="h1",
        question="Where was the designer of Orla Bridge born?",
        kind="bridge",
        answers=("Marl", "Marl on Ems"),
        gold_documents=("Orla Bridge", "Ada Korb"),
        gold_spans=(TextSpan(document="Ada Korb", start=0, end=26),),
        documents=("Orla Bridge", "Ada Korb", "Marl"),
        history=("Who was Ada?",),
    ),
    EvaluationQuestion(id="谁", question="谁设计了奥拉桥？", answerable=False, group="zh"),
)


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write_questions(QUESTIONS, tmp_path / "set.jsonl")
    assert load_questions(tmp_path / "set.jsonl") == QUESTIONS
    assert load_questions(tmp_path / "set.jsonl", first=1) == QUESTIONS[:1]
    packed = tmp_path / "set.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "set.jsonl").read_bytes()))
    assert load_questions(packed) == QUESTIONS


def test_only_the_question_must_be_there(tmp_path: Path) -> None:
    rows = (
        {"question": "Who?"},
        {"question": "When?", "answer": 1931, "gold_documents": [7], "x": 1},
    )
    path = written(tmp_path / "set.jsonl", *map(json.dumps, rows))
    assert load_questions(path) == (
        EvaluationQuestion(id="1", question="Who?"),
        EvaluationQuestion(id="2", question="When?", answers=("1931",), gold_documents=("7",)),
    )


@pytest.mark.parametrize("row", ['{"id": 1}', "[1]", "{", '{"question": "Who?", "answers": [{}]}'])
def test_a_row_that_is_no_question_is_named(row: str, tmp_path: Path) -> None:
    path = written(tmp_path / "set.jsonl", '{"question": "Who?"}', row)
    with pytest.raises(UsageError, match="row 2 is no question"):
        load_questions(path)


def test_a_missing_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match="none"):
        load_questions(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("questions", "passages", "many", "documents"),
    [
        ("multihop/hotpot_train100_questions", "multihop/hotpot_train100_corpus", 100, 994),
        ("multihop/musique_train100_questions", "multihop/musique_train100_corpus", 100, 1890),
        ("multihop/2wiki_train100_questions", "multihop/2wiki_train100_corpus", 100, 712),
        ("corpora/cmrc2018_zh_dev_questions", "corpora/cmrc2018_zh_dev_passages", 3219, 848),
        ("kgqa/pathquestion_2h_questions", "kgqa/pathquestion_2h_kb", 1908, 1211),
        ("corpora/kevin_scott_questions", "corpora/kevin_scott_podcast", 125, 1669),
    ],
)
def test_benchmark_sets_are_read_whole(
    questions: str, passages: str, many: int, documents: int, pytestconfig: pytest.Config
) -> None:
    data = pytestconfig.getoption("--data")
    if data is None:
        pytest.skip("needs --data")
    asked = read_questions(Path(data, f"{questions}.jsonl.gz"))
    corpus = read_passages(Path(data, f"{passages}.jsonl.gz"))
    assert (len(asked), len(corpus)) == (many, documents)
    gold = {document for question in asked for document in question.gold_documents}
    assert gold <= {row["id"] for row in corpus if "id" in row}


# --- made for a collection ---


def chunks_of(*sources: Path) -> list[Chunk]:
    documents = compose(read_sources(sources).parts)
    return [chunk for document in documents for chunk in chunk_document(document, CHUNK_TOKENS, 0)]


@pytest.fixture(scope="module")
def samples() -> list[Chunk]:
    return chunks_of(SAMPLES)


@pytest.fixture
def models(tmp_path: Path, model_server: Server) -> Models:
    return Place(tmp_path / "ws", model_server).runtime().models


def texts_of(chunks: list[Chunk]) -> dict[str, dict[int, str]]:
    """Return the characters of each document by their places."""
    texts: dict[str, dict[int, str]] = {}
    for chunk in chunks:
        texts.setdefault(chunk.document, {}).update(enumerate(chunk.text, chunk.start))
    return texts


def quoted(span: TextSpan, texts: Mapping[str, Mapping[int, str]]) -> str:
    held = "".join(texts[span.document][at] for at in range(span.start, span.end))
    return " ".join(held.split())


async def test_125_questions_come_by_users_and_tasks(
    samples: list[Chunk], models: Models, model_server: Server
) -> None:
    made = await make_questions(samples, ["global"], 125, models)
    steps = Counter(str(request["step"]) for request in model_server.requests())
    assert len({question.question for question in made.questions}) == len(made.questions) == 125
    assert (steps["describe"], steps["users"]) == (1, 1)
    assert steps["ask_whole"] > 25  # A call for each task, and more for what was dropped
    assert made.duplicates >= 24  # The first question of every task is the same
    assert made.rejected == 25  # The second one of every task cannot be answered
    assert steps["check_question"] >= 125 + made.duplicates
    assert not any("Zorblax" in question.question for question in made.questions)


async def test_questions_about_parts_have_their_evidence(
    samples: list[Chunk], models: Models
) -> None:
    kinds = ["single_fact", "multi_hop", "comparison", "unanswerable"]
    made = await make_questions(samples, kinds, 12, models)
    assert Counter(question.kind for question in made.questions) == dict.fromkeys(kinds, 3)
    texts = texts_of(samples)
    for question in made.questions:
        quotes = [quoted(span, texts) for span in question.gold_spans]
        assert question.answerable is (question.kind != "unanswerable") is bool(quotes)
        assert {span.document for span in question.gold_spans} == set(question.gold_documents)
        if question.answers:
            assert any(question.answers[0] in quote for quote in quotes)
        if question.kind in {"multi_hop", "comparison"}:
            assert len(quotes) == 2
    assert await make_questions(samples, kinds, 12, models) == made
    other = await make_questions(samples, ["single_fact"], 3, models, seed=1)
    assert other.questions != made.questions[:3]


@pytest.mark.parametrize(
    ("kind", "asked", "taken"),
    [
        ("single_fact", {"answer": "Ada Korb", "sentences": [1]}, True),
        ("single_fact", {"answer": "Ada Korb", "sentences": [2]}, False),  # Not in that sentence
        ("single_fact", {"answer": "Ada Korb", "sentences": [1, 9]}, False),  # No such sentence
        ("single_fact", {"answer": "", "sentences": [1]}, False),
        ("single_fact", {"answer": "Ada Korb", "sentences": [1], "question": " "}, False),
        ("multi_hop", {"answer": "Marl", "sentences": [1, 3]}, True),
        ("multi_hop", {"answer": "Marl", "sentences": [1, 2]}, False),  # Of one passage alone
        ("unanswerable", {"answer": "", "sentences": []}, True),
    ],
)
def test_a_question_needs_evidence_that_fits(
    kind: PartKind, asked: Mapping[str, object], taken: bool
) -> None:
    texts = ["Orla Bridge was designed by Ada Korb. It stands.", "Ada Korb was born in Marl."]
    first, second = (
        Chunk(
            id=str(place),
            document=str(place),
            ordinal=0,
            start=5,
            end=5 + len(text),
            text=text,
            tokens=9,
            language="en",
            title="",
        )
        for place, text in enumerate(texts)
    )
    numbered = [(first, 0, 37), (first, 38, 48), (second, 0, 26)]
    written = PartAsked.model_validate({"reason": "r", "question": "Who, where?", **asked})
    question = evaluation_question(kind, written, numbered)
    assert (question is not None) is taken
    if question is not None and question.gold_spans:
        assert (question.gold_spans[0].start, question.gold_spans[0].end) == (5, 42)


async def test_without_a_model_there_is_the_cloze(samples: list[Chunk]) -> None:
    made = await make_questions(samples, ["cloze"], 30, Models.offline())
    texts = texts_of(samples)
    assert len(made.questions) == 30
    assert any("空白处" in question.question for question in made.questions)
    for question in made.questions:
        (span,), (name,) = question.gold_spans, question.answers
        assert quoted(span, texts).replace(name, "____") in question.question
        assert name not in question.question


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("single_fact", "TRELLIS_LM_SYNTHESIZE.*cloze"),
        ("hard", "The kinds are global"),
        ("cloze", "no text"),
    ],
)
async def test_questions_that_cannot_be_made_are_refused(
    kind: str, problem: str, samples: list[Chunk]
) -> None:
    chunks = samples if kind != "cloze" else []
    with pytest.raises(UsageError, match=problem):
        await make_questions(chunks, [kind], 3, Models.offline())


@pytest.mark.parametrize(
    "name", ["corpora/kevin_scott_podcast.jsonl.gz", "corpora/cmrc2018_zh_dev_passages.jsonl.gz"]
)
async def test_125_questions_for_podcasts_and_for_a_chinese_collection(
    name: str, models: Models, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    data = pytestconfig.getoption("--data")
    if data is None:
        pytest.skip("needs --data")
    path = tmp_path / "corpus.jsonl"
    write_rows(read_passages(Path(data, name)), path)
    made = await make_questions(chunks_of(path)[:400], ["global"], 125, models)
    assert len({question.question for question in made.questions}) == 125


def test_the_command_writes_a_file_that_can_be_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cloze.jsonl"
    typed = ["questions", str(SAMPLES), "--kind", "cloze", "-o", str(out)]
    typed += ["--workspace", str(tmp_path)]
    assert main([*typed, "-n", "5"]) == 0
    assert "Wrote 5 questions" in capsys.readouterr().out
    assert len(load_questions(out)) == 5
    assert main([*typed, "-n", "5000"]) == 1
    assert "5000 were asked for" in capsys.readouterr().out
