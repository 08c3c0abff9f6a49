"""Which of the names that a reader would list does extraction without a model find, and how many others beside them?

`python -m benchmarks.extraction --data DIR --texts DIR` measures a story against the entities that gpt-4o listed, and
five Chinese texts, which are not kept here, against the terms of `chinese_terms.jsonl`: each line names the text by the
end of its file's stem. Either part may be left out.
"""

import argparse
import gzip
import json
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from flows.settings import Settings
from prompts.extract import extract_offline
from prompts.text.words import fold_name
from storage.records import Document, Part, Record
from tasks.chunk import chunk_document

STORY = "llm_outputs/christmas_carol_gpt4o_extraction.jsonl.gz"
TERMS = Path(__file__).with_name("chinese_terms.jsonl")
VERDICTS = Path(__file__).with_name("chinese_verdicts.jsonl")
_OFTEN = 2  # an entity that the model named in so many chunks is no whim
_QUALIFIER = re.compile(r"\s*[(（][^()（）]*[)）]")


class Found(Record):
    """What extraction gave against a reference: `recall` of its names, `precision` of ours, and what was missed."""

    reference: int
    names: int
    recall: float
    precision: float | None
    missed: tuple[str, ...]
    chunks_per_second: float

    def lines(self, title: str) -> list[str]:
        precision = "" if self.precision is None else f", precision {self.precision:.3f}"
        return [
            f"{title}: {self.reference} in the reference, {self.names} extracted",
            f"  {self.chunks_per_second:.0f} chunks a second, recall {self.recall:.3f}{precision}",
            f"  missed: {', '.join(self.missed)}",
        ]


class Verdict(Record):
    """Whether a reader would keep an extracted name as a term of its text."""

    name: str
    keep: bool


def story(path: Path) -> Found:
    """Ours against the entities that the model named at least twice; precision is against all that it named."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    theirs = Counter(name for row in rows for name in {fold_name(entity["name"]) for entity in row["entities"]})
    reference = {name for name, count in theirs.items() if count >= _OFTEN}
    list(_names("", rows[0]["text"]))  # loads the tokenizer, which is paid once
    started = time.process_time()
    ours = {fold_name(name) for row in rows for name in _names("A Christmas Carol", row["text"])}
    rate = len(rows) / (time.process_time() - started)
    return _found(reference, ours, len(ours & set(theirs)) / len(ours), rate)


def chinese(texts: Path) -> tuple[Found, list[str]]:
    """The terms found in the folder's texts, chunked as an index would, and all names extracted, in order."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for line in _rows(TERMS):
        wanted[line["text"]].add(line["term"])
    names: set[str] = set()
    missed: list[str] = []
    chunks = 0
    list(_names("", "一"))  # loads the segmenter
    started = time.process_time()
    for stem, terms in wanted.items():
        passages = _passages(_text_of(texts, stem))
        chunks += len(passages)
        here = {name for passage in passages for name in _names("", passage)}
        names |= here
        forms = {form for name in here for form in _forms(name)}
        missed += sorted(term for term in terms if not _forms(term) & forms)
    rate = chunks / (time.process_time() - started)
    total = sum(map(len, wanted.values()))
    found = Found(
        reference=total,
        names=len(names),
        recall=1 - len(missed) / total,
        precision=None,
        missed=tuple(missed),
        chunks_per_second=rate,
    )
    return found, sorted(names)


def judged(names: Sequence[str], size: int, seed: int) -> list[str]:
    """The share of a seeded sample of `names` that its reader kept, and the names of the sample not judged yet."""
    sample = sorted(random.Random(seed).sample(list(names), min(size, len(names))))  # noqa: S311 - no secret
    verdicts = {one.name: one.keep for one in map(Verdict.model_validate, _rows(VERDICTS))} if VERDICTS.exists() else {}
    known = [verdicts[name] for name in sample if name in verdicts]
    share = f"{sum(known)} of {len(known)} judged names kept"
    return [f"  sample of {len(sample)}, seed {seed}: {share}", f"  not judged: {sorted(set(sample) - set(verdicts))}"]


def _found(reference: set[str], ours: set[str], precision: float, rate: float) -> Found:
    return Found(
        reference=len(reference),
        names=len(ours),
        recall=len(reference & ours) / len(reference),
        precision=precision,
        missed=tuple(sorted(reference - ours)),
        chunks_per_second=rate,
    )


def _names(title: str, text: str) -> Iterable[str]:
    return (entity.name for entity in extract_offline(title, text).entities)


def _forms(name: str) -> set[str]:
    """Folded as written, and without a bracketed qualifier."""
    return {fold_name(name), fold_name(_QUALIFIER.sub("", name))}


def _text_of(folder: Path, stem: str) -> str:
    """Raises `FileNotFoundError` where the folder holds no such text."""
    path = next(folder.glob(f"*{stem}*"), None)
    if path is None:
        raise FileNotFoundError(f"There is no text {stem} in {folder}. Name the folder that holds it: --texts DIR.")
    return path.read_text(encoding="utf-8")


def _passages(text: str) -> list[str]:
    settings = Settings()
    part = Part(document="text", source="text", path="text", kind="text", title="", text=text)
    document = Document(id="text", title="", text=text, language="zh", parts=(part,))
    return [chunk.text for chunk in chunk_document(document, settings.chunk_tokens, settings.chunk_overlap)]


def _rows(path: Path) -> Iterator[dict[str, str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was named; 2 where nothing was, or a file is absent."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction", description="Measure names, offline.")
    parser.add_argument("--data", type=Path, metavar="DIR", help=f"the folder that holds {STORY}")
    parser.add_argument("--texts", type=Path, metavar="DIR", help="the folder that holds the Chinese texts")
    parser.add_argument("--sample", type=int, default=100, metavar="N", help="names to judge (100)")
    parser.add_argument("--seed", type=int, default=7, help="of the sample (7)")
    options = parser.parse_args(arguments)
    if options.data is None and options.texts is None:
        parser.error("name --data, --texts or both")
    try:
        if options.data is not None:
            print("\n".join(story(options.data / STORY).lines("story")))
        if options.texts is not None:
            found, names = chinese(options.texts)
            print("\n".join([*found.lines("Chinese"), *judged(names, options.sample, options.seed)]))
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
