"""Which of the names that a reader would list extraction without a model finds, and how many others beside them."""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.runner import DATA, Cell, DataMissingError, Run, measure, option
from benchmarks.sets import Row, read_rows
from flows.settings import Settings
from prompts.extract import extract_offline
from prompts.text.words import fold_name
from storage.records import Document, Part
from tasks.chunk import chunk_document

STORY = "llm_outputs/christmas_carol_gpt4o_extraction.jsonl.gz"
TERMS = DATA / "chinese_terms.jsonl"
_OFTEN = 2  # an entity that the model named in so many chunks is no whim
_QUALIFIER = re.compile(r"\s*[(（][^()（）]*[)）]")


@measure(
    option("--texts", type=Path, metavar="DIR", help="the folder that holds the Chinese texts"),
    files=[STORY], optional=True,
)  # fmt: skip
def extraction(run: Run) -> None:
    """Which of the names that a reader would list are found without a model?

    A story against the entities that gpt-4o named at least twice (precision: against all that it named), and by --texts
    five Chinese texts, which are not kept here, against the terms of `chinese_terms.jsonl`: each line names the text by
    the end of its file's stem.
    """
    if run.options.data is None and run.options.texts is None:
        raise DataMissingError("Name the folder of the published data (--data DIR) or of the texts (--texts DIR).")
    missed: dict[str, Sequence[str]] = {}
    if run.options.data is not None:
        figures, missed["missed in the story"] = story(list(read_rows(run.file(STORY))))
        run.table("names", {"story": figures})
    if run.options.texts is not None:
        figures, missed["missed in the Chinese texts"] = chinese(run.options.texts)
        run.table("Chinese terms", {"terms": figures})
    run.show([f"{title}: {', '.join(names)}" for title, names in missed.items()])


def story(rows: Sequence[Row]) -> tuple[dict[str, Cell], list[str]]:
    """Figures against the entities that the model named at least twice, and those that were missed."""
    theirs = Counter(name for row in rows for name in {fold_name(entity["name"]) for entity in row["entities"]})
    reference = {name for name, count in theirs.items() if count >= _OFTEN}
    names_in("", rows[0]["text"])  # loads the tokenizer, which is paid once
    started = time.process_time()
    ours = {fold_name(name) for row in rows for name in names_in("A Christmas Carol", row["text"])}
    rate = len(rows) / (time.process_time() - started)
    return {
        "reference": len(reference),
        "extracted": len(ours),
        "recall": len(reference & ours) / len(reference),
        "precision": len(ours & set(theirs)) / len(ours),
        "chunks a second": rate,
    }, sorted(reference - ours)


def chinese(texts: Path) -> tuple[dict[str, Cell], list[str]]:
    """Figures of the terms in the folder's texts, chunked as an index would; and the terms missed."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for line in read_rows(TERMS):
        wanted[line["text"]].add(line["term"])
    names: set[str] = set()
    missed: list[str] = []
    chunks = 0
    names_in("", "一")  # loads the segmenter
    started = time.process_time()
    for stem, terms in wanted.items():
        passages = _passages(_text_of(texts, stem))
        chunks += len(passages)
        here = {name for passage in passages for name in names_in("", passage)}
        names |= here
        forms = {form for name in here for form in _forms(name)}
        missed += sorted(term for term in terms if not _forms(term) & forms)
    total = sum(map(len, wanted.values()))
    rate = chunks / (time.process_time() - started)
    figures: dict[str, Cell] = {
        "reference": total, "extracted": len(names), "recall": 1 - len(missed) / total, "chunks a second": rate
    }  # fmt: skip
    return figures, missed


def names_in(title: str, text: str) -> list[str]:
    """The names that are extracted from a chunk."""
    return [entity.name for entity in extract_offline(title, text).entities]


def _forms(name: str) -> set[str]:
    """Folded as written, and without a bracketed qualifier."""
    return {fold_name(name), fold_name(_QUALIFIER.sub("", name))}


def _text_of(folder: Path, stem: str) -> str:
    path = next(folder.glob(f"*{stem}*"), None)
    if path is None:
        raise DataMissingError(f"There is no text {stem} in {folder}. Name the folder that holds it: --texts DIR.")
    return path.read_text(encoding="utf-8")


def _passages(text: str) -> list[str]:
    settings = Settings()
    part = Part(document="text", source="text", path="text", kind="text", title="", text=text)
    document = Document(id="text", title="", text=text, language="zh", parts=(part,))
    return [chunk.text for chunk in chunk_document(document, settings.chunk_tokens, settings.chunk_overlap)]
