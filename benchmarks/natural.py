"""Do the best excerpts answer natural questions? Measured on a handbook, read by hand on our own documents.

`python -m benchmarks natural --data DIR` indexes natural/medical_corpus offline and asks natural/medical_dev. An answer
is its first 450 characters as they are shown; its recall is the share of the gold answer's content words in them.
Beside it stand the first 450 characters of the first passage, and fifteen lines that rank sentences by rare words.

`--own docs=WORKSPACE` (or `seeds=`) prints what our own questions (natural_questions.jsonl) get, to be judged by hand.
"""

import argparse
import asyncio
import gzip
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.answers import NO_MEMORY, opened
from flows.query import retrieve_passages
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import Settings
from prompts.offline.answer import OfferedPassage, best_excerpts, shown
from prompts.text.segment import sentences
from prompts.text.words import STOPWORDS, content_terms, fold, terms
from storage.records import Record

CORPUS, QUESTIONS = "natural/medical_corpus.jsonl.gz", "natural/medical_dev_questions.jsonl.gz"
PLAIN = ("Fact Retrieval", "Complex Reasoning")
SHOWN, PASSAGES, POOR = 450, 12, 0.4
OWN = Path(__file__).with_name("natural_questions.jsonl")
_WORD = re.compile(r"[^\W_]+")


class Row(Record):
    """A question with the recall of its answer, and of the two plain ways beside it."""

    kind: str
    support: str
    recall: float
    first: float
    lines: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 2 where the folder or a file is absent."""
    options = _parser().parse_args(arguments)
    for name, _, workspace in (own.partition("=") for own in options.own):
        with _existing(Path(workspace)) as session:
            _read_out(name, session)
    if options.data is None:
        return 0
    missing = [str(path) for name in (CORPUS, QUESTIONS) if not (path := options.data / name).is_file()]
    if missing:
        print(
            f"These files are absent: {', '.join(missing)}. Name the folder that holds them: --data DIR.",
            file=sys.stderr,
        )
        return 2
    questions = [json.loads(line) for line in gzip.decompress((options.data / QUESTIONS).read_bytes()).splitlines()]
    with (
        tempfile.TemporaryDirectory(prefix="trellis-bench-") as temporary,
        _medical(options.data, options.workspace, Path(temporary)) as session,
    ):
        rows = [_row(question, session) for question in questions]
        spent = _milliseconds([question["question"] for question in questions[:40]], session)
    for name, chosen in (("all", rows), ("odd places", rows[1::2]), ("even places", rows[::2])):
        print("\n".join(lines_of(name, [row for row in chosen if row.kind in PLAIN])))
    print("\n".join(lines_of("summaries and the like", [row for row in rows if row.kind not in PLAIN])))
    print(f"choosing the excerpts takes {spent:.1f} CPU ms a question")
    return 0


def _medical(data: Path, workspace: Path | None, temporary: Path) -> Session:
    if workspace and (workspace / "CURRENT").exists():
        return _existing(workspace)
    corpus = temporary / "corpus.jsonl"
    corpus.write_bytes(gzip.decompress((data / CORPUS).read_bytes()))
    return open_session(opened(corpus, workspace or temporary / "workspace"))


def _existing(workspace: Path) -> Session:
    return open_session(open_runtime(Settings(workspace=workspace, theta=NO_MEMORY)))


def offered(question: str, session: Session) -> list[OfferedPassage]:
    """The passages that are found for a question, with the headings in force where they begin."""
    found = asyncio.run(retrieve_passages(question, AskOptions(k=PASSAGES), session)).passages
    headings = {chunk.id: chunk.heading for chunk in session.index.chunks}
    return [
        OfferedPassage(number, passage.title, headings.get(passage.chunk, ""), passage.text)
        for number, passage in enumerate(found, 1)
    ]


def _row(question: dict[str, str], session: Session) -> Row:
    rarity = session.index.lexicon.idf_of
    passages = offered(question["question"], session)
    answer = best_excerpts(question["question"], passages, rarity)
    return Row(
        kind=question["question_type"],
        support=answer.support,
        recall=recall(question["answer"], shown(answer).text),
        first=recall(question["answer"], passages[0].text if passages else ""),
        lines=recall(question["answer"], fifteen_lines(question["question"], passages, rarity)),
    )


def recall(gold: str, answer: str) -> float:
    """The share of the gold answer's content words in what is shown first."""
    wanted = _content(gold)
    return len(wanted & _content(answer[:SHOWN])) / max(len(wanted), 1)


def _content(text: str) -> set[str]:
    return {word for word in _WORD.findall(fold(text)) if word not in STOPWORDS}


def fifteen_lines(question: str, passages: Sequence[OfferedPassage], rarity: Callable[[str], float]) -> str:
    """The three best sentences of the first six passages by the question's rare words alone."""
    wanted = content_terms(question)
    ranked: list[tuple[float, str]] = []
    for passage in passages[:6]:
        for start, end in sentences(passage.text):
            held = terms(passage.text[start:end])
            weight = sum(rarity(term) for term in wanted if term in held)
            ranked.append((weight / (1 + 0.02 * len(held)) - 0.03 * passage.number, passage.text[start:end]))
    ranked.sort(key=lambda one: -one[0])
    return " ".join(text for _, text in ranked[:3])


def _milliseconds(questions: Sequence[str], session: Session) -> float:
    """What choosing costs where the passages have been seen before."""
    found = [(question, offered(question, session)) for question in questions]
    started = time.process_time()
    for question, passages in found:
        best_excerpts(question, passages, session.index.lexicon.idf_of)
    return 1000 * (time.process_time() - started) / max(len(found), 1)


def lines_of(name: str, rows: Sequence[Row]) -> list[str]:
    """The figures of some rows."""
    many, sure = max(len(rows), 1), [row for row in rows if row.support == "none"]
    poor = sum(row.recall < POOR for row in sure) / max(len(sure), 1)
    return [
        f"{name}: {len(rows)} questions",
        f"  recall within {SHOWN} characters {sum(row.recall for row in rows) / many:.3f}"
        f" (first passage {sum(row.first for row in rows) / many:.3f},"
        f" fifteen lines {sum(row.lines for row in rows) / many:.3f})",
        f"  supported {len(sure) / many:.3f}, of these poor {poor:.3f},"
        f" abstained {sum(row.support == 'abstained' for row in rows) / many:.3f}",
    ]


def _read_out(corpus: str, session: Session) -> None:
    for line in OWN.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["corpus"] == corpus:
            answer = best_excerpts(row["question"], offered(row["question"], session), session.index.lexicon.idf_of)
            print(
                f"{row['id']}: {row['question']}\n  useful: {row['useful']}\n  {answer.support}\n{shown(answer).text}\n"
            )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks natural", description="Measure excerpts, offline.")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder that holds the sets")
    parser.add_argument("--workspace", type=Path, metavar="DIR", help="keep the handbook's workspace and use it again")
    parser.add_argument("--own", action="append", default=[], metavar="NAME=WORKSPACE", help="print our own questions")
    return parser


if __name__ == "__main__":
    sys.exit(main())
