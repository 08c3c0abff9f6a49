"""Does the offline answer say "the documents do not say" where they do not, and only there?

`python -m benchmarks.abstention --data DIR` asks questions over the corpus that they were made for, and as many over a
corpus that they were not made for. English: the 100 questions of hotpot_train100 over its own corpus, and the 100 of
musique_train100 over the same corpus. Chinese: of cmrc2018 every second passage is indexed (by its number), 50
questions are asked of those that are, and 50 of those that are not, chosen by a seed.

Of the foreign questions those are left out whose gold answer stands in a passage found for them, beside every name
that the question has: there the other corpus may know the answer after all. An answer that is partly supported is no
abstention.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.answers import NAMES, SEED, absent, holds, indexed, opened
from benchmarks.questions import SETS, Question, QuestionSet
from flows.query import answer_question
from flows.question import AskOptions
from flows.session import Session, open_session
from prompts.text.languages import names_of
from storage.answer_records import Answer, Passage
from storage.records import Record

CHINESE = 50
# Of the questions in the seed's order the first 500 measure answers, and the next were read while rules were made.
DEVELOPED = 2_000


class Abstained(Record):
    """How often it abstained, of how many: where the documents say, and where they do not."""

    name: str
    answerable: tuple[int, int]
    unanswerable: tuple[int, int]
    left_out: int

    def lines(self) -> list[str]:
        return [
            f"{self.name}: abstained on {_share(self.unanswerable)} of the unanswerable,"
            f" {_share(self.answerable)} of the answerable ({self.left_out} left out)"
        ]


def _share(counted: tuple[int, int]) -> str:
    return f"{counted[0] / max(counted[1], 1):.3f} ({counted[0]} of {counted[1]})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both languages; 2 where the folder or a file is absent."""
    options = _parser().parse_args(arguments)
    sets = {known.name: known for known in SETS if known.name in NAMES.values()}
    problem = absent(options.data, list(sets.values()))
    if problem:
        print(problem, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as temporary:
        folder = options.keep or Path(temporary)
        for measured in (_english(sets, options.data, folder), _chinese(sets[NAMES["cmrc"]], options.data, folder)):
            print("\n".join(measured.lines()), flush=True)
    return 0


def _english(sets: dict[str, QuestionSet], data: Path, folder: Path) -> Abstained:
    own, other = sets[NAMES["hotpot"]], sets[NAMES["musique"]]
    runtime = indexed(own, data, folder / own.name)
    with open_session(runtime) as session:
        asked = own.read_questions(data, None), other.read_questions(data, None)
        return asyncio.run(measure("English", *asked, session))


def _chinese(known: QuestionSet, data: Path, folder: Path) -> Abstained:
    half = folder / f"{known.name}_half"
    half.mkdir(parents=True, exist_ok=True)
    known.write_corpus(data, half / "all.jsonl")
    lines = (half / "all.jsonl").read_text(encoding="utf-8").splitlines()
    kept = {row["id"]: line for line in lines if _number((row := json.loads(line))["id"]) % 2}
    (half / "corpus.jsonl").write_text("\n".join(kept.values()) + "\n", encoding="utf-8")
    questions = known.read_questions(data, None)
    order = random.Random(SEED).sample(range(len(questions)), len(questions))  # noqa: S311 -- a choice, no secret
    questions = [questions[place] for place in order[DEVELOPED:]]
    inside = [question for question in questions if question.gold[0] in kept][:CHINESE]
    outside = [question for question in questions if question.gold[0] not in kept][:CHINESE]
    with open_session(opened(half / "corpus.jsonl", half / "workspace")) as session:
        return asyncio.run(measure("Chinese", inside, outside, session))


def _number(document: str) -> int:
    return int(document.rpartition("_")[2])


async def measure(name: str, own: Sequence[Question], other: Sequence[Question], session: Session) -> Abstained:
    """Ask both kinds of questions over one corpus."""
    answerable = [await _asked(question, session) for question in own]
    foreign = [(question, await _asked(question, session)) for question in other]
    unanswerable = [answer for question, answer in foreign if not known_here(question, answer.passages)]
    return Abstained(
        name=name,
        answerable=(sum(map(_abstains, answerable)), len(answerable)),
        unanswerable=(sum(map(_abstains, unanswerable)), len(unanswerable)),
        left_out=len(foreign) - len(unanswerable),
    )


async def _asked(question: Question, session: Session) -> Answer:
    return await answer_question(question.text, AskOptions(), session)


def _abstains(answer: Answer) -> bool:
    return answer.fallback == "abstained"


def known_here(question: Question, passages: Sequence[Passage]) -> bool:
    """Whether a passage that was found holds the gold answer and all that the question names."""
    names = [span.text for span in names_of(question.text)]
    texts = [f"{passage.title}\n{passage.text}" for passage in passages]
    return any(holds(text, question.answers) and all(holds(text, [name]) for name in names) for text in texts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.abstention", description="Measure abstention, offline.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder that holds the sets")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the workspaces there and use them again")
    return parser


if __name__ == "__main__":
    sys.exit(main())
