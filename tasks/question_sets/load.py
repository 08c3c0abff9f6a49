"""Question sets from local files or, by name, from the Hugging Face hub (the package `datasets`).

A set is a published one (`tasks/question_sets/formats.py` reads its format), a file of rows, or a pair of files
NAME_questions.jsonl and NAME_corpus.jsonl. Nothing is downloaded unless a published set is asked for without its files.
"""

import csv
import io
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from storage.errors import SourceNotFound, UsageError
from storage.evaluation_records import EvaluationQuestion
from storage.faults import faults_told
from storage.files import content_of_file
from tasks.question_sets.formats import PublishedSet, QuestionSet, Row, flat_corpus, flat_questions, published_sets

__all__ = ["QuestionSet", "load_set", "read_rows", "write_corpus", "write_questions"]

# How the file beside NAME_questions is called that holds what they are about.
CORPUS_NAMES = ("corpus", "passages", "docs", "podcast", "kb")
_LARGEST = 1 << 30  # bytes of a file, unpacked
_TEXTS = {".txt", ".md"}


def load_set(name_or_path: str | Path, data: Path | None = None, first: int | None = None) -> QuestionSet:
    """A question set with its corpus, where that is published with it or beside it.

    `name_or_path` is a published set (`data`: its file, the folder that holds its files, or nothing to take it from the
    hub), a file of rows (`data`: the corpus of it, else the file beside it), or the NAME of files NAME_questions.jsonl
    and NAME_corpus.jsonl in the folder `data`. Files may be zipped (.gz). `first` takes so many questions.

    Raises SourceNotFound where a file is missing, UsageError for an unknown name or rows of another format.
    """
    name, path = str(name_or_path), Path(name_or_path)
    if name in published_sets():
        loaded = _published(published_sets()[name], data)
    elif path.is_file():
        loaded = _flat(_stem(path), path, data or _beside(path))
    elif data is not None and (pair := _one(data, [f"{name}_questions.jsonl*", f"{name}.jsonl*"])):
        loaded = _flat(name, pair, _beside(pair))
    else:
        raise UsageError(
            f"There is no question set {name!r}" + (f" in {data}." if data else "."),
            f"Name a file of rows {{id, question, …}}, or one of {', '.join(published_sets())}.",
        )
    return loaded if first is None else loaded.model_copy(update={"questions": loaded.questions[:first]})


def write_questions(questions: Sequence[EvaluationQuestion], path: Path) -> None:
    """Write questions as rows that `load_set` reads and `trellis ask --questions` answers."""
    rows = (question.model_dump(mode="json", exclude_defaults=True) for question in questions)
    with faults_told(path):
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write_corpus(question_set: QuestionSet, folder: Path) -> list[Path]:
    """Write a set's corpus as JSON Lines for indexing: texts, and triples; the files written. UsageError where the set
    has none."""
    if question_set.corpus is None:
        raise UsageError(
            f"The question set {question_set.name!r} comes without its documents.", "Name a workspace that holds them."
        )
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, rows in itertools.groupby(question_set.corpus, lambda row: "triples" if "s" in row else "texts"):
        path = folder / f"{name}.jsonl"
        with path.open("a" if path in written else "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        written = [*dict.fromkeys([*written, path])]
    return written


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file: JSON Lines, JSON (a list, or an object of one list), TSV or CSV with a head, a text as one
    row {id, text}; zipped or not."""
    kind = path.suffixes[-2] if path.suffix == ".gz" and len(path.suffixes) > 1 else path.suffix
    with io.TextIOWrapper(io.BytesIO(content_of_file(path, _LARGEST)), encoding="utf-8") as file:
        if kind == ".jsonl":
            yield from (json.loads(line) for line in file if line.strip())
        elif kind in {".tsv", ".csv"}:
            yield from csv.DictReader(file, delimiter="\t" if kind == ".tsv" else ",")
        elif kind in _TEXTS:
            yield {"id": path.name.removesuffix(".gz"), "text": file.read()}
        else:
            yield from _json_rows(file)


def _json_rows(file: io.TextIOBase | Any) -> Iterable[Row]:
    text = file.read()
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:  # many a .json holds JSON Lines
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(whole, list):
        return whole
    if isinstance(whole.get("data"), list):
        return list(whole["data"])
    if whole and all(isinstance(value, dict) for value in whole.values()):
        return [{"id": key, **value} for key, value in whole.items()]
    return [whole]


# --- files -----------------------------------------------------------------------------------------------------------


def _published(known: PublishedSet, data: Path | None) -> QuestionSet:
    if data is None:
        return known.read(_from_hub(known))
    if not data.exists():
        raise SourceNotFound(data, f"{known.name} is published as {known.published}.")
    parts: dict[str, list[Row]] = {}
    for part, patterns in known.files.items():
        if part == "questions" and data.is_file():
            parts[part] = _rows_of([data], data.parent)
        else:
            folder = data if data.is_dir() else data.parent
            files = sorted(file for pattern in patterns for file in folder.glob(pattern) if file.is_file())
            parts[part] = _rows_of(files, folder)
    if not parts["questions"]:
        raise UsageError(f"{data} holds no questions of {known.name}.", f"It is published as {known.published}.")
    try:
        return known.read(parts)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UsageError(
            f"{data} is not in the format of {known.name} ({type(error).__name__}: {error}).",
            f"It is published as {known.published}.",
        ) from error


def _rows_of(files: Iterable[Path], folder: Path) -> list[Row]:
    return [{**row, "_file": file.relative_to(folder).as_posix()} for file in files for row in read_rows(file)]


def _from_hub(known: PublishedSet) -> dict[str, list[Row]]:
    if not known.hub:
        raise UsageError(f"{known.name} is not on the hub.", f"Give its files: it is published as {known.published}.")
    if find_spec("datasets") is None:
        raise UsageError(
            f"{known.name} is read from the Hugging Face hub by the package datasets, which is not installed.",
            "pip install 'trellis-rag[sets]', or give its files.",
        )
    from datasets import load_dataset

    return {
        part: [{**row, "_file": config} for row in load_dataset(repository, config or None, split=split)]
        for part, (repository, config, split) in known.hub.items()
    }


def _flat(name: str, questions: Path, corpus: Path | None) -> QuestionSet:
    if corpus is not None and not corpus.exists():
        raise SourceNotFound(corpus, "Name the file of the documents that the questions are about.")
    try:
        rows = list(read_rows(questions))
        return QuestionSet(
            name=name, questions=flat_questions(rows),
            corpus=flat_corpus(read_rows(corpus)) if corpus is not None else None,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{questions} holds no rows of questions ({type(error).__name__}: {str(error)[:200]}).",
            "A row is {id, question, answers?, gold_documents?, …}.",
        ) from error


def _beside(questions: Path) -> Path | None:
    """The corpus that lies beside a file NAME_questions.jsonl."""
    stem = _stem(questions).removesuffix("_questions")
    return _one(questions.parent, [f"{stem}_{name}.jsonl*" for name in CORPUS_NAMES])


def _one(folder: Path, patterns: Sequence[str]) -> Path | None:
    return next((file for pattern in patterns for file in sorted(folder.glob(pattern)) if file.is_file()), None)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name
