"""Public question sets by name, read from the files that their authors publish.

An edition of a set is a file of questions and a file of the passages that they are about. Where the
questions bring their passages along, these are pooled, as HippoRAG does (Gutiérrez et al. 2024,
arXiv 2405.14831). Nothing is downloaded. Any file may be compressed (.gz).
"""

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from storage.errors import SourceNotFound, UsageError, did_you_mean
from storage.evaluation_records import EvaluationQuestion
from storage.files import text_of_file
from storage.records import Record
from tasks.load.text import clean, one_line
from tasks.question_sets.load import question_of

Row = dict[str, Any]

POOLED = 1_000  # the questions whose passages HippoRAG pools into one corpus
_GOLD = ("gold_documents", "gold_ids", "gold_pos", "context_id")
_HOPS = re.compile(r"(\d)hop")
_NO_FORMAT = (AttributeError, IndexError, KeyError, TypeError, ValueError)

_ANSWERED = ("exact_match", "f1", "answer_in_text")
_FOUND = ("recall@2", "recall@5", "all_gold@5", "all_gold@8")
_SPENT = ("grounding_share", "seconds", "calls", "tokens_in", "tokens_out", "cost_usd")


@dataclass(frozen=True)
class Edition:
    """The names of a set's files; without `corpus` the questions bring their passages along."""

    questions: str
    corpus: str | None = None

    def __str__(self) -> str:
        if self.corpus in {None, self.questions}:
            return self.questions
        return f"{self.questions} with {self.corpus}"


@dataclass(frozen=True)
class PublicSet:
    """A set: where it is published, its editions (the first one found is read) and its measures."""

    name: str
    origin: str
    editions: tuple[Edition, ...]
    measures: tuple[str, ...] = (*_ANSWERED, *_FOUND, *_SPENT)


class SetPassage(Record):
    """A passage of a set; its id is the one that gold passages are named by."""

    id: str
    title: str
    text: str


class ReadSet(Record):
    """The passages and the chosen questions of a set, and the files that they were read from."""

    files: tuple[str, ...]
    passages: tuple[SetPassage, ...]
    questions: tuple[EvaluationQuestion, ...]


_HIPPORAG = "https://github.com/OSU-NLP-Group/HippoRAG (samples of 1,000 questions)"
_GRAPHRAG_BENCH = "https://github.com/GraphRAG-Bench/GraphRAG-Benchmark"
_WORDS = ("answer_words", "passage_words@5", "passage_words@8", "rouge_l", *_SPENT)
_ALL = (
    PublicSet(
        "hotpotqa",
        f"https://hotpotqa.github.io or {_HIPPORAG}",
        (
            Edition("hotpotqa.json", "hotpotqa_corpus.json"),
            Edition("hotpotqa_train.json", "hotpotqa_train_corpus.json"),
            Edition("hotpot_dev_distractor_v1.json"),
            Edition("hotpot_train100_questions.jsonl", "hotpot_train100_corpus.jsonl"),
        ),
    ),
    PublicSet(
        "2wikimultihopqa",
        f"https://github.com/Alab-NII/2wikimultihop or {_HIPPORAG}",
        (
            Edition("2wikimultihopqa.json", "2wikimultihopqa_corpus.json"),
            Edition("dev.json"),
            Edition("2wiki_train100_questions.jsonl", "2wiki_train100_corpus.jsonl"),
            Edition("2wiki_101_peers.jsonl", "2wiki_corpus_6119.jsonl"),
        ),
    ),
    PublicSet(
        "musique",
        f"https://github.com/StonyBrookNLP/musique or {_HIPPORAG}",
        (
            Edition("musique.json", "musique_corpus.json"),
            Edition("musique_train.json", "musique_train_corpus.json"),
            Edition("musique_ans_v1.0_dev.jsonl"),
            Edition("musique_full_v1.0_dev.jsonl"),
            Edition("musique_train100_questions.jsonl", "musique_train100_corpus.jsonl"),
        ),
    ),
    PublicSet(
        "cmrc2018",
        "https://github.com/ymcui/cmrc2018",
        (
            Edition("cmrc2018_dev.json", "cmrc2018_dev.json"),
            Edition("cmrc2018_zh_dev_questions.jsonl", "cmrc2018_zh_dev_passages.jsonl"),
        ),
        ("exact_match", "span_f1", "answer_in_text", "recall@1", "recall@5", *_SPENT),
    ),
    PublicSet(
        "graphrag-bench-medical",
        _GRAPHRAG_BENCH,
        (
            Edition("medical_questions.json", "medical.json"),
            Edition("medical_dev_questions.jsonl", "medical_corpus.jsonl"),
        ),
        _WORDS,
    ),
    PublicSet(
        "graphrag-bench-novel",
        _GRAPHRAG_BENCH,
        (Edition("novel_questions.json", "novel.json"),),
        _WORDS,
    ),
)
PUBLIC_SETS: Mapping[str, PublicSet] = {known.name: known for known in _ALL}


def public_set(name: str) -> PublicSet:
    """Return the set of that name; UsageError where there is none."""
    if name not in PUBLIC_SETS:
        near = did_you_mean(name, PUBLIC_SETS)
        raise UsageError(
            f"There is no public set {name!r}.", f"{near}The sets are {', '.join(PUBLIC_SETS)}."
        )
    return PUBLIC_SETS[name]


def read_public_set(
    known: PublicSet, data: Path, limit: int | None = None, seed: int | None = None
) -> ReadSet:
    """Read a set from a folder and its sub-folders; `data` may also be its file of questions.

    Chosen are the first `limit` questions, or with a `seed` as many drawn at random: a larger
    limit adds to them. A pooled corpus holds the passages of at least 1,000 questions, so that it
    is the same for every smaller limit. Raises SourceNotFound, and UsageError for files that are
    missing or not in the published format.
    """
    questions, corpus = _files_of(known, data)
    with _format_of(known, questions):
        rows = list(enumerate(question_rows(_content(questions)), 1))
    if seed is not None:
        rows = random.Random(seed).sample(rows, len(rows))  # noqa: S311 -- a sample, no secret
    chosen, pool = rows[:limit], rows[: max(limit or len(rows), POOLED)]
    passages = _Passages()
    if corpus is None:
        with _format_of(known, questions):
            for context in (context for _, row in pool for context in _contexts(row)):
                passages.add(context.title, context.text)
    else:
        with _format_of(known, corpus):
            for row in passage_rows(_content(corpus)):
                passages.add(row["title"], row["text"], row["id"])
    with _format_of(known, questions):
        asked = [question_of(question_row(row), number) for number, row in chosen]
        gold = [passages.gold(row) for _, row in chosen]
    return ReadSet(
        files=tuple(str(file) for file in dict.fromkeys((questions, corpus)) if file is not None),
        passages=tuple(passages.by_id.values()),
        questions=tuple(
            question.model_copy(update={"gold_documents": own if question.answerable else ()})
            for question, own in zip(asked, gold, strict=True)
        ),
    )


def _files_of(known: PublicSet, data: Path) -> tuple[Path, Path | None]:
    """Find the files of the first edition that is whole; the nearest file of a name counts."""
    get_it = f"Download it from {known.origin}, or name another folder: --data DIR."
    if not data.exists():
        raise SourceNotFound(data, get_it)
    folder, only = (data.parent, data.name.removesuffix(".gz")) if data.is_file() else (data, None)
    here: dict[str, Path] = {}
    for path in sorted(folder.rglob("*"), key=lambda path: (len(path.parts), str(path))):
        here.setdefault(path.name.removesuffix(".gz"), path)
    lacking = []
    for edition in known.editions:
        if edition.questions not in here or only not in {None, edition.questions}:
            continue
        if edition.corpus is None or edition.corpus in here:
            return here[edition.questions], here[edition.corpus] if edition.corpus else None
        lacking.append(f"{edition.questions} is there without {edition.corpus}")
    needs = "; ".join(lacking) or f"it needs {', or '.join(map(str, known.editions))}"
    raise UsageError(f"{data} does not hold the set {known.name}: {needs}.", get_it)


@contextmanager
def _format_of(known: PublicSet, file: Path) -> Iterator[None]:
    """Tell of a file that is not in its published format. Raises UsageError."""
    try:
        yield
    except _NO_FORMAT as error:
        what = f"{type(error).__name__}: {str(error)[:200]}"
        raise UsageError(
            f"{file} is not in the published format of {known.name} ({what}).",
            f"Take the file as it is from {known.origin}.",
        ) from error


def _content(file: Path) -> Any:
    """Return the JSON value of a file, or the list of those of JSON Lines."""
    text = text_of_file(file)
    if text.startswith("version https://git-lfs"):
        raise ValueError("it is a pointer of Git LFS: run `git lfs pull`")
    if file.name.removesuffix(".gz").endswith(".jsonl"):
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    return json.loads(text)


# --- questions ---


def question_rows(content: Any) -> Iterator[Row]:
    """Yield the rows of questions, which CMRC 2018 keeps within their passages."""
    for row in _listed(content):
        for part in _sections(row):
            if "qas" not in part:
                yield row
                break
            for asked in part["qas"]:
                found = [one["text"] if isinstance(one, dict) else one for one in asked["answers"]]
                yield {
                    "id": asked["query_id"] if "query_id" in asked else asked["id"],
                    "question": asked["query_text"] if "query_text" in asked else asked["question"],
                    "answers": found,
                    "context_id": part["context_id"] if "context_id" in part else part["id"],
                }


def question_row(row: Row) -> Row:
    """Return a published row with the fields of an `EvaluationQuestion`."""
    gold: Any = next((row[name] for name in _GOLD if name in row), [])
    given = row["answers"] if "answers" in row else row.get("answer", [])
    given = given if isinstance(given, list) else [given]
    also = [*row.get("aliases", ()), *row.get("answer_aliases", ())]
    answers = [*dict.fromkeys(map(str, [*given, *also]))]
    hops = _HOPS.match(str(row.get("id", "")))
    ours = {
        "answers": answers,
        "values": answers if "path" in row else [],  # answers at the ends of a path in a graph
        "gold_documents": gold if isinstance(gold, list) else [gold],
        "kind": str(row.get("type") or row.get("question_type") or _hops(row, hops)),
    }
    named = next(({"id": row[name]} for name in ("_id", "i") if name in row), {})
    return {**ours, **named, **row, "answers": answers}


def _hops(row: Row, written: re.Match[str] | None) -> str:
    hops = row.get("hops", written.group(1) if written else None)
    return "" if hops is None else f"{hops} hops"


# --- passages ---


def passage_rows(content: Any) -> Iterator[Row]:
    """Yield the passages of a corpus as rows {id, title, text}; the id may be empty."""
    if isinstance(content, dict) and not {"data", "corpus_name"} & content.keys():
        for title, sentences in content.items():  # HippoRAG's first edition
            yield {"id": "", "title": title, "text": "".join(sentences)}
        return
    for row in _listed(content):
        if "corpus_name" in row:
            yield {"id": row["corpus_name"], "title": row["corpus_name"], "text": row["context"]}
            continue
        for part in _sections(row):
            if "qas" in part:
                own = part["context_id"] if "context_id" in part else part["id"]
                text = part["context_text"] if "context_text" in part else part["context"]
                yield {"id": own, "title": row["title"], "text": text}
            else:
                yield passage_row(row)


def passage_row(row: Row) -> Row:
    """Return a passage as a row {id, title, text}; the id is empty where it has none."""
    if "part" in row:  # of an episode
        return {"id": f"{row['doc']} #{row['part']}", "title": row["doc"], "text": row["text"]}
    own = row.get("id", row.get("pos", ""))
    return {"id": str(own), "title": row["title"], "text": row["text"]}


def _listed(content: Any) -> list[Row]:
    if isinstance(content, dict):
        content = content.get("data", [content])
    if not isinstance(content, list):
        raise TypeError("it holds no list of rows")
    return content


def _sections(row: Row) -> Sequence[Row]:
    """Return the paragraphs of CMRC 2018's second edition; any other row is one section."""
    paragraphs: Sequence[Row] = row.get("paragraphs", ())
    return paragraphs if paragraphs and "qas" in paragraphs[0] else (row,)


class _Context(Record):
    """A passage that a question brings along, and whether its answer needs it."""

    title: str
    text: str
    is_gold: bool


def _contexts(row: Row) -> Iterator[_Context]:
    """Yield the passages of a question: HotpotQA's and 2Wiki's, or MuSiQue's paragraphs."""
    if "supporting_facts" in row:
        needed = {title for title, _ in row["supporting_facts"]}
        for title, sentences in row["context"]:
            text = " ".join(sentence.strip() for sentence in sentences)
            yield _Context(title=title, text=text, is_gold=title in needed)
        return
    for part in row["paragraphs"]:
        text = part["paragraph_text"] if "paragraph_text" in part else part["text"]
        yield _Context(title=part["title"], text=text, is_gold=part.get("is_supporting", True))


class _Passages:
    """Passages by id. One without an id is named by its title, and a number where that is taken."""

    def __init__(self) -> None:
        self.by_id: dict[str, SetPassage] = {}
        self._by_text: dict[tuple[str, str], str] = {}
        self._by_title: dict[str, list[str]] = {}

    def add(self, title: str, text: str, own: str = "") -> None:
        """Add a passage, unless it has no id and is there already. ValueError for an id twice."""
        title = one_line(clean(title))
        key = (title, _squeezed(text))
        if not own and key in self._by_text:
            return
        name = own or self._free(title)
        if name in self.by_id:
            raise ValueError(f"two passages have the id {name!r}")
        self.by_id[name] = SetPassage(id=name, title=title, text=text.strip() or title)
        self._by_text.setdefault(key, name)
        self._by_title.setdefault(title, []).append(name)

    def _free(self, title: str) -> str:
        """Return a title as an id, with the first number from 2 that makes it one of its own."""
        names = (title if number == 1 else f"{title} #{number}" for number in count(1))
        return next(name for name in names if name not in self.by_id)

    def gold(self, row: Row) -> tuple[str, ...]:
        """Return the ids of the passages that a question needs, none where that is unknown."""
        if any(name in row for name in _GOLD):
            names = [str(name) for name in question_row(row)["gold_documents"]]
            unknown: Iterable[str] = (name for name in names if name not in self.by_id)
        elif "supporting_facts" in row or "paragraphs" in row:
            needed = [context for context in _contexts(row) if context.is_gold]
            names = [self._found(context) for context in needed]
            unknown = (one.title for one, name in zip(needed, names, strict=True) if not name)
        else:
            return ()
        for name in unknown:
            raise ValueError(f"the corpus lacks {name!r}, which a question needs")
        return tuple(dict.fromkeys(names))

    def _found(self, context: _Context) -> str:
        """Return the id of a passage by title and text, or by a title that only one has."""
        title = one_line(clean(context.title))
        same = self._by_title.get(title, ())
        by_title = same[0] if len(same) == 1 else ""
        return self._by_text.get((title, _squeezed(context.text)), by_title)


def _squeezed(text: str) -> str:
    return "".join(text.split())
