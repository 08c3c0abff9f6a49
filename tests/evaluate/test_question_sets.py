"""Question sets: read from the formats in which they are published, and made for collections."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from flows.__main__ import main
from prompts.engine.effort import Policy
from prompts.engine.models import Models
from prompts.synthesize import PartAsked, PartKind
from storage.errors import SourceNotFound, UsageError
from storage.evaluation_records import EvaluationQuestion
from storage.records import Chunk
from tasks.chunk import chunk_document
from tasks.load.sources import compose, read_sources
from tasks.question_sets.formats import QuestionSet, published_sets
from tasks.question_sets.load import load_set, write_corpus, write_questions
from tasks.question_sets.synthesize import evaluation_question, make_questions
from tests.models.running import Place
from tests.server.client import Server

SAMPLES = Path(__file__).resolve().parents[2] / "examples" / "corpus"
CHUNK_TOKENS = 300

BRIDGE = ["Orla Bridge was designed by Ada Korb.", " It was opened in 1931."]
KORB = ["Ada Korb was born in Marl.", " She drew bridges."]
HOTPOT = {
    "_id": "h1", "question": "Where was the designer of Orla Bridge born?", "answer": "Marl", "type": "bridge",
    "level": "easy", "supporting_facts": [["Orla Bridge", 0], ["Ada Korb", 0]],
    "context": [["Orla Bridge", BRIDGE], ["Ada Korb", KORB], ["Marl", ["Marl is a town."]]],
}  # fmt: skip
# As the hub has it.
HUB = HOTPOT | {
    "supporting_facts": {"title": ["Orla Bridge", "Ada Korb"], "sent_id": [0, 0]},
    "context": {"title": ["Orla Bridge", "Ada Korb", "Marl"], "sentences": [BRIDGE, KORB, ["Marl is a town."]]},
}
MUSIQUE = {
    "id": "2hop__1_2", "question": "Where was the designer of Orla Bridge born?", "answer": "Marl",
    "answer_aliases": ["Marl on Ems"], "answerable": False,
    "paragraphs": [
        {"idx": 0, "title": "Korb", "paragraph_text": "Ada Korb was born in Marl.", "is_supporting": True},
        {"idx": 1, "title": "Korb", "paragraph_text": "Korb is a basket.", "is_supporting": False},
    ],
}  # fmt: skip
AMBIGUOUS = {
    "id": "a1", "question": "When was Orla Bridge opened?",
    "annotations": [{"type": "multipleQAs", "qaPairs": [
        {"question": "the old one?", "answer": ["1931", "in 1931"]}, {"question": "the new one?", "answer": ["1980"]},
    ]}],
}  # fmt: skip
AMBIGUOUS_HUB = {
    "id": "a1", "question": "When was Orla Bridge opened?",
    "annotations": {"type": ["multipleQAs"], "answer": [[]], "qaPairs": [
        {"question": ["the old one?", "the new one?"], "answer": [["1931", "in 1931"], ["1980"]]},
    ]},
}  # fmt: skip
CMRC = {
    "context_id": "D0", "context_text": "奥拉桥由阿达设计。", "title": "奥拉桥",
    "qas": [{"query_id": "D0Q0", "query_text": "谁设计了奥拉桥？", "answers": ["阿达", "阿达"]}],
}  # fmt: skip
SQUAD = {"version": "1", "data": [{"title": "奥拉桥", "paragraphs": [{
    "id": "D0", "context": "奥拉桥由阿达设计。",
    "qas": [{"id": "D0Q0", "question": "谁设计了奥拉桥？", "answers": [{"text": "阿达", "answer_start": 4}]}],
}]}]}  # fmt: skip
LOONG = [
    {"id": "l1", "type": "financial", "level": 1, "set": 2, "language": "en", "question": "What is Vell's revenue?",
     "instruction": "Read.", "answer": "$5", "doc": ["Vell Corp"]},
    {"id": "l3", "type": "legal", "level": 3, "set": 4, "language": "zh", "question": "", "instruction": "请分类。",
     "answer": {"盗窃": ["判决文书1"]}, "doc": ["c7"]},
    {"id": "l4", "type": "paper", "level": 4, "set": 1, "language": "en", "question": "Chain?", "instruction": "Cite.",
     "answer": ["A", "B"], "doc": ["p.md"]},
]  # fmt: skip
LOONG_FILES: Mapping[str, object] = {
    "loong.jsonl": "\n".join(map(json.dumps, LOONG)),
    "doc/financial/2024-Vell Corp-j.txt": "Revenue: $5",
    "doc/financial/2023-Vell Corp-j.txt": "Revenue: $4",
    "doc/paper/p.md": "# P\ntext",
    "doc/legal/legal.json": {"c7": {"content": "经审理，", "result": "判决如下。"}},
}
GRAPHRAG_BENCH = {
    "id": "g1", "source": "Medical", "question": "What helps?", "answer": "Rest.", "question_type": "Fact Retrieval",
    "evidence": ["Rest helps."],
}  # fmt: skip
NEWS = [{"title": "Tide", "url": "u/1", "body": "The tide is late. Ferries wait."}]
MULTIHOP = [
    {"query": "Who waits?", "answer": "Ferries", "question_type": "inference_query",
     "evidence_list": [{"title": "Tide", "url": "u/1", "fact": "Ferries wait."}]},
    {"query": "Who flies?", "answer": "Insufficient information.", "question_type": "null_query", "evidence_list": []},
]  # fmt: skip
POLYG = {
    "qid": 3, "question": "Who wrote 'Tide'?", "entity": {"Tide": "book-1"}, "type": "single_entity_concrete",
    "hops": 1, "answer": ["Ada Korb", "Ada Korb", "Tom Reyd"],
}  # fmt: skip
GRAPH = {
    "book_nodes": {"book-1": {"features": {"title": "Tide"}, "neighbors": {"author": ["author-1", "author-9"]}}},
    "author_nodes": {"author-1": {"features": {"name": "Ada Korb"}, "neighbors": {}}},
}
SPANS = [
    {"document": "Orla Bridge", "start": 0, "end": 37}, {"document": "Ada Korb", "start": 0, "end": 26},
]  # fmt: skip
SPANNED = "Orla Bridge was designed by Ada Korb."

# Of each set its files as published, what is read of the first question, and how many rows its corpus has.
CASES: Mapping[str, tuple[Mapping[str, object], Mapping[str, object], int]] = {
    "hotpotqa": ({"hotpot_dev_distractor_v1.json": [HOTPOT]}, {
        "id": "h1", "question": HOTPOT["question"], "kind": "bridge", "answers": ["Marl"],
        "gold_documents": ["Orla Bridge", "Ada Korb"],
        "gold_spans": SPANS,
    }, 3),
    "2wiki": ({"dev.json": [HUB | {"type": "compositional"}]}, {
        "id": "h1", "question": HOTPOT["question"], "kind": "compositional", "answers": ["Marl"],
        "gold_documents": ["Orla Bridge", "Ada Korb"],
        "gold_spans": SPANS,
    }, 3),
    "musique": ({"musique_ans_v1.0_dev.jsonl": json.dumps(MUSIQUE)}, {
        "id": "2hop__1_2", "question": MUSIQUE["question"], "kind": "2 hops", "answers": ["Marl", "Marl on Ems"],
        "gold_documents": ["Korb"], "answerable": False,
    }, 2),
    "nq": ({"NQ-open.dev.jsonl": json.dumps({"question": "who designed orla bridge", "answer": ["Ada Korb"]})}, {
        "id": "0", "question": "who designed orla bridge", "answers": ["Ada Korb"],
    }, 0),
    "popqa": ({"popQA.tsv": 'id\tprop\tquestion\tpossible_answers\n7\tauthor\tWho wrote Tide?\t["A. Korb", "Ada"]'}, {
        "id": "7", "question": "Who wrote Tide?", "kind": "author", "answers": ["A. Korb", "Ada"],
    }, 0),
    "ambignq": ({"dev_light.json": [AMBIGUOUS]}, {
        "id": "a1", "question": AMBIGUOUS["question"], "kind": "ambiguous", "answers": ["1931", "in 1931", "1980"],
        "values": ["1931", "1980"],
    }, 0),
    "cambignq": ({"cq_dev.json": [{
        "id": "c1", "question": "When?", "dqs": ["old?", "new?"], "clarification_answers": [["1931"], ["1980", "80"]],
        "clarification_question": "Which one?",
    }]}, {
        "id": "c1", "question": "When?", "kind": "ambiguous", "answers": ["1931", "1980", "80"],
        "values": ["1931", "1980"],
    }, 0),
    "cmrc": ({"cmrc2018_dev.json": [CMRC]}, {
        "id": "D0Q0", "question": "谁设计了奥拉桥？", "answers": ["阿达"], "gold_documents": ["D0"],
        "gold_spans": [{"document": "D0", "start": 4, "end": 6}],
    }, 1),
    "loong": (LOONG_FILES, {
        "id": "l1", "question": "What is Vell's revenue?", "kind": "spotlight_locating", "answers": ["$5"],
        "gold_documents": ["2024-Vell Corp-j.txt"], "documents": ["2024-Vell Corp-j.txt"], "names": ["Vell Corp"],
        "group": "set 2",
    }, 4),
    "ultradomain": ({"cs.jsonl": json.dumps({
        "_id": "u1", "input": "Why?", "answers": ["So."], "context": "A book.", "context_id": "b1", "label": "cs",
        "meta": {"title": "Book"},
    })}, {"id": "u1", "question": "Why?", "answers": ["So."], "gold_documents": ["b1"], "group": "cs"}, 1),
    "graphrag_bench": ({
        "Questions/medical_questions.json": [GRAPHRAG_BENCH],
        "Corpus/medical.json": {"corpus_name": "Medical", "context": "Sleep. Rest helps. Eat."},
    }, {
        "id": "g1", "question": "What helps?", "kind": "Fact Retrieval", "answers": ["Rest."], "group": "Medical",
        "gold_documents": ["Medical"], "gold_spans": [{"document": "Medical", "start": 7, "end": 18}],
    }, 1),
    "multihop_rag": ({"MultiHopRAG.json": MULTIHOP, "corpus.json": NEWS}, {
        "id": "0", "question": "Who waits?", "kind": "inference_query", "answers": ["Ferries"],
        "gold_documents": ["u/1"],
        "gold_spans": [{"document": "u/1", "start": 18, "end": 31}],
    }, 1),
    "podcasts": ({"Kevin Scott Questions.csv": "id,question\nk1,What recurs?", "in/Episode 1.txt": "Hello."}, {
        "id": "k1", "question": "What recurs?", "kind": "global",
    }, 1),
    "pathquestion": ({
        "PQ-2H.txt": "what is ada 's town ?\tmarl(marl/ems)\tada#spouse#tom#town#marl#<end>#marl\n",
        "2H-kb.txt": "ada\t\tspouse\ttom\ntom\ttown\tmarl\n", "3H-kb.txt": "x\ty\tz\n",
    }, {
        "id": "0", "question": "what is ada 's town ?", "kind": "2 hops", "answers": ["marl", "ems"],
        "values": ["marl", "ems"], "names": ["ada"],
    }, 2),
    "polyg": ({"goodreads/a_rephrased.jsonl": json.dumps(POLYG), "goodreads/graph.json": GRAPH}, {
        "id": "goodreads/single_entity_concrete/3", "question": "Who wrote 'Tide'?", "kind": "sp*",
        "values": ["Ada Korb", "Tom Reyd"], "names": ["Tide"], "group": "goodreads",
    }, 1),
}  # fmt: skip


def written(folder: Path, files: Mapping[str, object]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def shown(question: EvaluationQuestion) -> dict[str, object]:
    fields: dict[str, object] = question.model_dump(mode="json", exclude_defaults=True)
    return fields


@pytest.mark.parametrize("name", published_sets())
def test_a_published_format_is_read(name: str, tmp_path: Path) -> None:
    files, first, documents = CASES[name]
    found = load_set(name, written(tmp_path, files))
    assert shown(found.questions[0]) == first
    assert len(found.corpus or ()) == documents
    texts = {row["id"]: row["text"] for row in found.corpus or () if "text" in row}
    for span in found.questions[0].gold_spans:
        assert texts[span.document][span.start : span.end].strip(" .") in {
            SPANNED.strip("."), "Ada Korb was born in Marl", "阿达", "Rest helps", "Ferries wait",
        }  # fmt: skip


def test_other_forms_of_a_set_are_read_alike(tmp_path: Path) -> None:
    ambiguous = written(tmp_path / "a", {"dev_light.json": [AMBIGUOUS_HUB]})
    assert shown(load_set("ambignq", ambiguous).questions[0]) == CASES["ambignq"][1]
    squad = written(tmp_path / "c", {"cmrc2018_squad.json": SQUAD})
    assert shown(load_set("cmrc", squad).questions[0]) == CASES["cmrc"][1]


def test_loong_has_its_four_tasks_and_lengths(tmp_path: Path) -> None:
    _, clustering, chain = load_set("loong", written(tmp_path, LOONG_FILES)).questions
    assert (clustering.kind, clustering.group, clustering.question) == ("clustering", "set 4", "请分类。")
    assert (clustering.answers, clustering.documents) == (('{"盗窃": ["判决文书1"]}',), ("c7",))
    assert (chain.kind, chain.question, chain.documents) == ("chain_of_reasoning", "Cite.\nChain?", ("p.md",))
    rows = {row["id"]: row["text"] for row in load_set("loong", tmp_path).corpus or ()}
    assert rows["c7"] == "经审理，判决如下。"


def test_a_question_nobody_can_answer_says_so(tmp_path: Path) -> None:
    unknown = load_set("multihop_rag", written(tmp_path, CASES["multihop_rag"][0])).questions[1]
    assert (unknown.answerable, unknown.answers) == (False, ())


def test_rows_are_read_with_the_file_beside_them_and_written_again(tmp_path: Path) -> None:
    rows = {"id": 7, "question": "Who?", "answer": "Ada", "aliases": ["A."], "hops": 2, "gold_ids": [0, 1]}
    corpus = [{"pos": 0, "title": "T", "text": "t"}, {"pos": 1, "title": "U", "text": "u"}]
    folder = written(
        tmp_path, {"own_questions.jsonl": json.dumps(rows), "own_corpus.jsonl": "\n".join(map(json.dumps, corpus))}
    )
    found = load_set("own", folder)
    assert found == load_set(folder / "own_questions.jsonl").model_copy(update={"name": "own"})
    assert shown(found.questions[0]) == {
        "id": "7", "question": "Who?", "kind": "2 hops", "answers": ["Ada", "A."], "gold_documents": ["0", "1"],
    }  # fmt: skip
    write_questions(found.questions, tmp_path / "again.jsonl")
    assert load_set(tmp_path / "again.jsonl").questions == found.questions
    (path,) = write_corpus(found, tmp_path / "out")
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["0", "1"]


def test_what_is_missing_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one of hotpotqa, 2wiki"):
        load_set("hotpot", tmp_path)
    with pytest.raises(SourceNotFound, match=r"published as popQA\.tsv"):
        load_set("popqa", tmp_path / "no")
    with pytest.raises(UsageError, match="holds no questions of musique"):
        load_set("musique", tmp_path)
    with pytest.raises(UsageError, match=r"not in the format of hotpotqa .*KeyError"):
        load_set("hotpotqa", written(tmp_path, {"hotpot_x.json": [{"question": "?"}]}))
    with pytest.raises(UsageError, match="not on the hub"):
        load_set("cambignq")
    with pytest.raises(UsageError, match="comes without its documents"):
        write_corpus(QuestionSet(name="x", questions=()), tmp_path)


@pytest.mark.parametrize(
    ("name", "folder", "questions", "documents"),
    [
        ("hotpot_train100", "multihop", 100, 994),
        ("musique_train100", "multihop", 100, 1890),
        ("2wiki_train100", "multihop", 100, 712),
        ("cmrc2018_zh_dev", "corpora", 3219, 848),
        ("pathquestion_2h", "kgqa", 1908, 1211),
        ("podcasts", "corpora", 125, 1669),
        ("polyg", "kgqa", 100, 0),
        ("loong", "router", 96, 161),
    ],
)
def test_sets_at_hand_are_read_whole(
    name: str, folder: str, questions: int, documents: int, pytestconfig: pytest.Config
) -> None:
    data = pytestconfig.getoption("--data")
    if data is None:
        pytest.skip("needs --data")
    found = load_set(name, Path(data, folder))
    assert (len(found.questions), len(found.corpus or ())) == (questions, documents)
    ids = {row["id"] for row in found.corpus or () if "id" in row}
    gold = {document for question in found.questions for document in question.gold_documents}
    assert gold <= ids or name == "polyg"


# --- made for a collection -------------------------------------------------------------------------------------------


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
    """The characters of each document by their places."""
    texts: dict[str, dict[int, str]] = {}
    for chunk in chunks:
        texts.setdefault(chunk.document, {}).update(enumerate(chunk.text, chunk.start))
    return texts


async def test_125_questions_come_by_users_and_tasks(
    samples: list[Chunk], models: Models, model_server: Server
) -> None:
    made = await make_questions(samples, ["global"], 125, models)
    steps = Counter(str(request["step"]) for request in model_server.requests())
    assert (len(made.questions), len({question.question for question in made.questions})) == (125, 125)
    assert (steps["describe"], steps["users"]) == (1, 1)
    assert steps["ask_whole"] > 25  # a call a task, and more for what is made up
    assert made.duplicates >= 24  # every task's first question is the same
    assert made.rejected == 25  # every task's second one asks for what is not there
    assert steps["check_question"] >= 125 + made.duplicates
    assert not any("Zorblax" in question.question for question in made.questions)


async def test_a_prompt_about_a_collection_holds_as_much_as_the_limits_say(
    samples: list[Chunk], models: Models, model_server: Server
) -> None:
    sizes = list[list[int]]()
    for window in (4_000, None):
        model_server.reset()
        policy = Policy.of("medium", window)
        many = [replace(chunk, id=f"{chunk.id}-{n}") for n in range(30) for chunk in samples]
        await make_questions(many, ["global"], 5, replace(models, policy=policy).without_cache())
        asked = [(str(one["step"]), len(str(one["body"]))) for one in model_server.requests()]
        sizes.append([max(size for step, size in asked if step == name) for name in ("describe", "check_question")])
        assert max(sizes[-1]) < 5 * (policy.limits.rate + policy.limits.part) + 5_000, sizes
    assert all(small < usual for small, usual in zip(*sizes, strict=True)), sizes


async def test_questions_about_parts_have_their_evidence(samples: list[Chunk], models: Models) -> None:
    kinds = ["single_fact", "multi_hop", "comparison", "unanswerable"]
    made = await make_questions(samples, kinds, 12, models)
    assert Counter(question.kind for question in made.questions) == dict.fromkeys(kinds, 3)
    texts = texts_of(samples)
    for question in made.questions:
        quotes = [
            "".join(texts[span.document][at] for at in range(span.start, span.end)) for span in question.gold_spans
        ]
        assert question.answerable is (question.kind != "unanswerable") is bool(quotes)
        assert {span.document for span in question.gold_spans} == set(question.gold_documents)
        if question.answers:
            assert any(question.answers[0] in " ".join(quote.split()) for quote in quotes)
        if question.kind in {"multi_hop", "comparison"}:
            assert len(quotes) == 2
    assert await make_questions(samples, kinds, 12, models) == made
    other = await make_questions(samples, ["single_fact"], 3, models, seed=1)
    assert {question.id for question in other.questions} != {question.id for question in made.questions[:3]}


@pytest.mark.parametrize(
    ("kind", "asked", "taken"),
    [
        ("single_fact", {"answer": "Ada Korb", "sentences": [1]}, True),
        ("single_fact", {"answer": "Ada Korb", "sentences": [2]}, False),  # it does not stand there
        ("single_fact", {"answer": "Ada Korb", "sentences": [1, 9]}, False),  # there is no such sentence
        ("single_fact", {"answer": "", "sentences": [1]}, False),
        ("single_fact", {"answer": "Ada Korb", "sentences": [1], "question": " "}, False),
        ("multi_hop", {"answer": "Marl", "sentences": [1, 3]}, True),
        ("multi_hop", {"answer": "Marl", "sentences": [1, 2]}, False),  # of one passage alone
        ("unanswerable", {"answer": "", "sentences": []}, True),
    ],
)
def test_a_question_is_taken_only_with_evidence_that_fits(
    kind: PartKind, asked: Mapping[str, object], taken: bool
) -> None:
    texts = {"a": "Orla Bridge was designed by Ada Korb. It stands.", "b": "Ada Korb was born in Marl."}
    chunks = [
        Chunk(
            id=name,
            document=name,
            ordinal=0,
            start=5,
            end=5 + len(text),
            text=text,
            tokens=9,
            language="en",
            title=name,
        )
        for name, text in texts.items()
    ]
    numbered = [(chunks[0], 0, 37), (chunks[0], 38, 48), (chunks[1], 0, 26)]
    written = PartAsked.model_validate({"reason": "r", "question": "Who, where?", **asked})
    question = evaluation_question(kind, written, numbered)
    assert (question is not None) is taken
    if question is not None and question.gold_spans:
        assert (question.gold_spans[0].start, question.gold_spans[0].end) == (5, 42)


async def test_one_document_alone_is_asked_about_two_of_its_places(models: Models) -> None:
    alone = chunks_of(SAMPLES / "institute")
    assert len({chunk.document for chunk in alone}) == 1 < len(alone)
    made = await make_questions(alone, ["comparison"], 1, models)
    assert [len(question.gold_spans) for question in made.questions] == [2]


async def test_without_a_model_there_is_the_cloze(samples: list[Chunk]) -> None:
    made = await make_questions(samples, ["cloze"], 30, Models.offline())
    texts = texts_of(samples)
    assert len(made.questions) == 30
    assert any("空白处" in question.question for question in made.questions)
    for question in made.questions:
        (span,), (name,) = question.gold_spans, question.answers
        sentence = " ".join("".join(texts[span.document][at] for at in range(span.start, span.end)).split())
        assert sentence.replace(name, "____") in question.question
        assert name not in question.question
    with pytest.raises(UsageError, match=r"TRELLIS_LM_SYNTHESIZE.*cloze"):
        await make_questions(samples, ["single_fact"], 3, Models.offline())
    with pytest.raises(UsageError, match="The kinds are global"):
        await make_questions(samples, ["hard"], 3, Models.offline())
    with pytest.raises(UsageError, match="no text"):
        await make_questions([], ["cloze"], 3, Models.offline())


@pytest.mark.parametrize("name", ["corpora/kevin_scott_podcast.jsonl.gz", "corpora/cmrc2018_zh_dev_passages.jsonl.gz"])
async def test_125_questions_for_podcasts_and_for_a_chinese_collection(
    name: str, models: Models, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    data = pytestconfig.getoption("--data")
    if data is None:
        pytest.skip("needs --data")
    source = load_set("podcasts", Path(data, "corpora")) if "podcast" in name else None
    path = write_corpus(source, tmp_path)[0] if source else Path(data, name)
    made = await make_questions(chunks_of(path)[:400], ["global"], 125, models)
    assert len({question.question for question in made.questions}) == 125


def test_the_command_writes_a_file_that_can_be_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cloze.jsonl"
    arguments = ["questions", str(SAMPLES), "--kind", "cloze", "-n", "5", "-o", str(out), "--workspace", str(tmp_path)]
    assert main(arguments) == 0
    assert "Wrote 5 questions" in capsys.readouterr().out
    assert len(load_set(out).questions) == 5
    assert main([*arguments[:5], "5000", *arguments[6:]]) == 1
    assert "5000 were asked for" in capsys.readouterr().out
