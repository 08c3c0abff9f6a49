"""How often does the offline answer hold the gold answer, and what would the first sentence found have held?

`python -m benchmarks.answers --data DIR [--sets hotpot,cmrc]` indexes each set offline, as `trellis index` does, and
asks its questions in one open session. An answer holds the gold answer by its values, or by its first quote where that
has at most 200 characters. Beside it stands BM25: the first sentence and the first 200 characters of its first passage.

Of cmrc2018_zh 500 questions are asked, chosen by a seed. `--rest` asks 500 others: rules are made there, not on
these.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.questions import SETS, Question, QuestionSet
from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime, open_runtime
from flows.session import Session, open_session
from flows.settings import Settings
from prompts.text.segment import sentences
from prompts.text.words import fold, is_han
from storage.answer_records import Answer
from storage.records import Record

NAMES = {"hotpot": "hotpot_train100", "cmrc": "cmrc2018_zh", "musique": "musique_train100"}
ASKED, SEED = 500, 20180811
QUOTED = 200
NO_MEMORY = 1_000_000  # a θ that no memory reaches: every question is answered as if it were the first
_WORD = re.compile(r"\w+")
_YES_NO = frozenset({"yes", "no", "是", "否"})


class Row(Record):
    """A question with what was answered, and where its gold answer stands."""

    question: str
    gold: tuple[str, ...]
    answer: str
    values: tuple[str, ...]
    quote: str
    fallback: str
    in_values: bool
    in_quote: bool
    in_sentence: bool
    in_opening: bool

    @property
    def right(self) -> bool:
        """Whether the answer holds the gold answer."""
        return self.in_values or self.in_quote


class Measured(Record):
    """What one set gave."""

    name: str
    rows: tuple[Row, ...]
    cpu_ms: float

    def lines(self) -> list[str]:
        shares: dict[str, Callable[[Row], bool]] = {
            "in values or first quote": lambda row: row.right,
            "in values": lambda row: row.in_values,
            f"in first quote (≤ {QUOTED} characters)": lambda row: row.in_quote,
            "BM25's first passage, first sentence": lambda row: row.in_sentence,
            f"BM25's first passage, {QUOTED} characters": lambda row: row.in_opening,
            "supported": lambda row: row.fallback == "none",
            "partly supported": lambda row: row.fallback == "partial",
            "abstained": lambda row: row.fallback == "abstained",
        }
        return [
            f"{self.name}: {len(self.rows)} questions, {self.cpu_ms:.0f} CPU ms each",
            *(f"  {name:42}{share(self.rows, told):.3f}" for name, told in shares.items()),
        ]


def share(rows: Sequence[Row], told: Callable[[Row], bool]) -> float:
    """The share of the rows of which something is true; 0 of none."""
    return sum(map(told, rows)) / max(len(rows), 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the sets asked for; 2 where the folder or a file of theirs is absent."""
    options = _parser().parse_args(arguments)
    chosen = [known for known in SETS if known.name in options.sets]
    problem = absent(options.data, chosen)
    if problem:
        print(problem, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as temporary:
        for known in chosen:
            workspace = indexed(known, options.data, (options.keep or Path(temporary)) / known.name)
            questions = chosen_of(known.read_questions(options.data, None), known, options.rest)
            with open_session(workspace) as session:
                measured = asyncio.run(measure(known.name, questions[: options.limit], session))
            print("\n".join(measured.lines()), flush=True)
            if options.rows:
                with options.rows.open("a", encoding="utf-8") as file:
                    file.writelines(f"{json.dumps(dict(row), ensure_ascii=False)}\n" for row in measured.rows)
    return 0


def chosen_of(questions: list[Question], known: QuestionSet, rest: bool) -> list[Question]:
    """The questions that a set is measured on, in their order; with `rest` as many of the others."""
    if not known.chinese:
        return questions
    order = random.Random(SEED).sample(range(len(questions)), len(questions))  # noqa: S311 -- a choice, no secret
    places = order[ASKED : 2 * ASKED] if rest else order[:ASKED]
    return [questions[place] for place in sorted(places)]


async def measure(name: str, questions: Sequence[Question], session: Session) -> Measured:
    """Ask all questions, one after another; the first is asked twice, since it loads the index."""
    await answer_question(questions[0].text, AskOptions(), session)
    started = time.process_time()
    answers = [await answer_question(question.text, AskOptions(), session) for question in questions]
    spent = 1000 * (time.process_time() - started) / len(questions)
    rows = [row_of(question, answer, session) for question, answer in zip(questions, answers, strict=True)]
    return Measured(name=name, rows=tuple(rows), cpu_ms=round(spent, 1))


def row_of(question: Question, answer: Answer, session: Session) -> Row:
    """An answer beside its gold answers and beside what BM25 finds first."""
    quote = answer.citations[0].quote if answer.citations else ""
    passage = first_passage(question.text, session)
    sentence = next(iter(_sentences(passage)), "")
    by_value = {fold(gold) for gold in question.answers} <= _YES_NO

    def held(text: str) -> bool:
        return not by_value and holds(text, question.answers)

    return Row(
        question=question.text, gold=question.answers, answer=answer.answer, values=answer.values, quote=quote,
        fallback=answer.fallback, in_values=any(holds(value, question.answers) for value in answer.values),
        in_quote=len(quote) <= QUOTED and held(quote), in_sentence=held(sentence), in_opening=held(passage[:QUOTED]),
    )  # fmt: skip


def first_passage(question: str, session: Session) -> str:
    """The text that BM25 alone ranks first; nothing where it finds nothing."""
    scores = session.index.lexicon.scores(question)
    best = int(scores.argmax())
    return session.index.chunks[best].text if scores[best] > 0 else ""


def _sentences(text: str) -> Iterator[str]:
    yield from (text[start:end] for start, end in sentences(text) if text[start:end].strip())


def holds(text: str, answers: Sequence[str]) -> bool:
    """Whether one of the answers stands in a text: case, articles and punctuation do not count, in Chinese nor
    spaces."""
    return any(_within(answer, text) for answer in answers)


def _within(answer: str, text: str) -> bool:
    if is_han(answer) or is_han(text):
        wanted = _squeezed(answer)
        return bool(wanted) and wanted in _squeezed(text)
    wanted = _words(answer)
    return bool(wanted.strip()) and wanted in _words(text)


def _squeezed(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def _words(text: str) -> str:
    return f" {' '.join(word for word in _WORD.findall(fold(text)) if word not in {'a', 'an', 'the'})} "


def indexed(known: QuestionSet, data: Path, folder: Path) -> Runtime:
    """A set's passages, indexed in a folder unless they are there already."""
    folder.mkdir(parents=True, exist_ok=True)
    known.write_corpus(data, folder / "corpus.jsonl")
    return opened(folder / "corpus.jsonl", folder / "workspace")


def opened(corpus: Path, workspace: Path) -> Runtime:
    """Offline, with the default settings but without memory, whatever the environment says."""
    runtime = open_runtime(Settings(workspace=workspace, theta=NO_MEMORY))
    asyncio.run(build_index([corpus], IndexOptions(), runtime))
    return runtime


def absent(data: Path, chosen: Sequence[QuestionSet]) -> str:
    """What is missing, and what to do; nothing where all is there."""
    if not data.is_dir():
        return f"There is no folder {data}. Name the one that holds the question sets: --data DIR."
    missing = sorted({str(path) for known in chosen for path in known.missing(data)})
    return f"These files are absent: {', '.join(missing)}. Add them, or choose other sets." if missing else ""


def sets_of(text: str) -> list[str]:
    """The full names of sets by their short ones, "hotpot,cmrc"."""
    unknown = [name for name in text.split(",") if name not in NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(NAMES)}")
    return [NAMES[name] for name in text.split(",")]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description="Measure offline answers.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder that holds the sets")
    parser.add_argument("--sets", type=sets_of, default=sets_of("hotpot,cmrc"), metavar="A,B", help=", ".join(NAMES))
    parser.add_argument("--rest", action="store_true", help="of cmrc 500 questions that the figure is not taken from")
    parser.add_argument("--limit", type=int, metavar="N", help="ask the first N questions only")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the workspaces there and use them again")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="add every question with its answer to this file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
