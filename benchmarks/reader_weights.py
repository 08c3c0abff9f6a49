"""Which weights do the signs of an answer get? Fits those of `prompts.reading.weighing` and `prompts.reading.grounds`.

`python -m benchmarks.reader_weights --data DIR` prints them in the form in which they stand there, with how often the
likeliest sentence holds the gold answer, each fifth of the questions weighed by what the others gave.

Sentences: musique_train100 and the plain questions that its own are made of, 2wiki_780 (with the answers that two
published systems gave), RGB's English facts; Chinese: 1,200 questions of cmrc2018 that no figure is taken
from. Grounds: the same over their own passages, against 2wiki and RGB asked over the passages of musique, and against
questions of cmrc2018 whose passages are left out. What a published figure of ours is measured on is in none of them.

The weights that stand there were fitted to these questions and the evidence that the knowledge filter left of what was
found; this command takes all that is found, and comes to much the same, but not to the same digits.
"""

import argparse
import asyncio
import gzip
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.answers import ASKED, SEED, absent, holds, indexed, opened
from benchmarks.questions import SETS, Question, Row
from flows.asking import AskOptions
from flows.asking_view import View
from flows.session import Session, open_session
from prompts.reading.claims import plain
from prompts.reading.grounds import GROUNDS, grounds_of
from prompts.reading.weighing import SIGNS, Weigher
from tasks.route import depth

FITTED = 1_200  # Chinese questions
FOLDS = 5
PENALTY = 1.0
RGB = "qa/rgb_en_fact.jsonl.gz"
_UNKNOWN = frozenset({"Not mentioned", "Error"})
# What the relations of a decomposition ask ("Hello Love >> performer").
_RELATIONS = {
    "performer": "Who is the performer of {}?",
    "country": "In which country is {}?",
    "place of birth": "Where was {} born?",
    "author": "Who is the author of {}?",
    "composer": "Who is the composer of {}?",
    "spouse": "Who is the spouse of {}?",
    "director": "Who is the director of {}?",
    "country of citizenship": "What country was {} a citizen of?",
    "educated at": "Where was {} educated?",
    "record label": "What is the record label of {}?",
}
Matrix = NDArray[np.float64]
Case = tuple[
    Matrix, NDArray[np.bool_], Matrix
]  # signs of each sentence, which hold the answer, grounds of the question


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit and print both languages; 2 where the folder or a file is absent."""
    options = _parser().parse_args(arguments)
    used = [known for known in SETS if known.name in {"musique_train100", "2wiki_780", "cmrc2018_zh"}]
    problem = absent(options.data, used)
    if problem or not (options.data / RGB).is_file():
        print(problem or f"{options.data / RGB} is absent.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as temporary:
        folder = options.keep or Path(temporary)
        for language, (own, foreign) in (
            ("EN", _english(options.data, folder)),
            ("ZH", _chinese(options.data, folder)),
        ):
            print("\n".join(_fitted(language, own, foreign)), flush=True)
    return 0


def _english(data: Path, folder: Path) -> tuple[list[Case], list[Case]]:
    sets = {known.name: known for known in SETS}
    musique, wiki = sets["musique_train100"], sets["2wiki_780"]
    facts = [Question(text=row["query"], gold=(), answers=tuple(_flat(row["answer"]))) for row in _rows(data / RGB)]
    own_facts = folder / "rgb"
    own_facts.mkdir(parents=True, exist_ok=True)
    with (own_facts / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for row in _rows(data / RGB):
            for place, text in enumerate([*row["positive"], *row["negative"]]):
                file.write(json.dumps({"id": f"{row['id']}-{place}", "text": text}) + "\n")
    others = [
        Question(text=row["question"], gold=tuple(map(str, row["gold_pos"])), answers=tuple(_told(row["llm_answer"])))
        for row in _rows(data / wiki.questions)
    ]
    whole = [*musique.read_questions(data, None), *_parts(data / musique.questions)]
    with open_session(indexed(musique, data, folder / musique.name)) as session:
        own, foreign = _cases(whole, session), _cases([*others, *facts], session)
    with open_session(indexed(wiki, data, folder / wiki.name)) as session:
        own += _cases(others, session)
    with open_session(opened(own_facts / "corpus.jsonl", own_facts / "workspace")) as session:
        own += _cases(facts, session)
    return own, foreign


def _chinese(data: Path, folder: Path) -> tuple[list[Case], list[Case]]:
    known = next(one for one in SETS if one.name == "cmrc2018_zh")
    questions = known.read_questions(data, None)
    order = random.Random(SEED).sample(range(len(questions)), len(questions))  # noqa: S311 -- a choice, no secret
    chosen = [questions[place] for place in order[ASKED : ASKED + FITTED]]
    with open_session(indexed(known, data, folder / known.name)) as session:
        own = _cases(chosen, session)
        foreign = _cases(chosen, session, without_gold=True)
    return own, foreign


def _cases(questions: Sequence[Question], session: Session, *, without_gold: bool = False) -> list[Case]:
    found = (asyncio.run(_case(question, session, without_gold=without_gold)) for question in questions)
    return [case for case in found if case is not None]


async def _case(question: Question, session: Session, *, without_gold: bool) -> Case | None:
    """The signs of the passages found for a question; without those that it was made for where they are to be left
    out."""
    view = View(session, AskOptions(), question.text, session.runtime.embedder)
    passages = await view.search([question.text], depth(view.taken, view.options.k))
    passages = [passage for passage in passages if not (without_gold and passage.document in question.gold)]
    evidence = plain(view.pool(passages).evidence)
    if not evidence:
        return None
    weigher = Weigher(evidence, view.relevance)
    held = [
        holds(piece.text, question.answers) and (not question.gold or piece.document in question.gold)
        for piece in evidence
    ]
    signs = np.array([weigher.signs(piece) for piece in evidence])
    return signs, np.array(held), np.array(grounds_of(weigher.ranked(), view.relevance))


def _fitted(language: str, own: Sequence[Case], foreign: Sequence[Case]) -> Iterator[str]:
    """The weights of one language as lines of code, each with what it reaches on the fifths left out."""
    right = 0
    for fold in range(FOLDS):
        weights = _choose([case for place, case in enumerate(own) if place % FOLDS != fold])
        right += sum(bool(held[int((signs @ weights).argmax())]) for signs, held, _ in own[fold::FOLDS])
    yield f"{language}: the likeliest sentence holds the answer of {right / len(own):.3f} of {len(own)} questions"
    yield f"WEIGHTS_{language}: Signs = ({', '.join(f'{weight + 0.0:.2f}' for weight in _choose(own))})  # {len(SIGNS)}"
    grounds = np.array([case[2] for case in (*own, *foreign)])
    told = np.array([True] * len(own) + [False] * len(foreign))
    odds = np.zeros(len(told))
    for fold in range(FOLDS):
        out = np.arange(len(told)) % FOLDS == fold
        odds[out] = grounds[out] @ _tell(grounds[~out], told[~out])
    for floor in (-1.0, -0.5, 0.0, 0.5):
        below = odds < floor
        yield f"  below {floor}: {below[told].mean():.3f} of its own, {below[~told].mean():.3f} of the foreign"
    weights = _tell(grounds, told)
    yield f"WEIGHTS_{language}: Grounds = ({', '.join(f'{weight + 0.0:.2f}' for weight in weights)})  # {len(GROUNDS)}"


def _choose(cases: Sequence[Case]) -> Matrix:
    """A conditional logit: how likely each sentence is the one, of those of its question."""
    used = [(signs, held) for signs, held, _ in cases if held.any() and not held.all()]
    scale = _scale(np.concatenate([signs for signs, _ in used]))

    def loss(scaled: Matrix) -> tuple[float, Matrix]:
        total, slope = PENALTY * float(scaled @ scaled) / 2, PENALTY * scaled
        for signs, held in used:
            odds = np.exp(signs @ (scaled / scale) - (signs @ (scaled / scale)).max())
            chance, right = odds / odds.sum(), odds * held / (odds * held).sum()
            total -= float(np.log((chance * held).sum()))
            slope = slope - (right - chance) @ signs / scale
        return total, slope

    return np.asarray(minimize(loss, np.zeros(len(SIGNS)), jac=True, method="L-BFGS-B").x) / scale


def _tell(grounds: Matrix, told: NDArray[np.bool_]) -> Matrix:
    """A logistic regression in which both kinds count alike."""
    scale, share = _scale(grounds), told.mean()
    counts = np.where(told, 0.5 / share, 0.5 / (1 - share))

    def loss(scaled: Matrix) -> tuple[float, Matrix]:
        chance = 1 / (1 + np.exp(-grounds @ (scaled / scale)))
        right = np.where(told, chance, 1 - chance)
        total = -float((counts * np.log(right + 1e-12)).sum()) + PENALTY * float(scaled @ scaled) / 2
        return total, (counts * (chance - told)) @ grounds / scale + PENALTY * scaled

    return np.asarray(minimize(loss, np.zeros(len(GROUNDS)), jac=True, method="L-BFGS-B").x) / scale


def _scale(columns: Matrix) -> Matrix:
    spread = columns.std(0)
    return np.where(spread > 0, spread, 1.0)


def _parts(path: Path) -> list[Question]:
    """The plain questions that the set's own are made of, with the answers before them filled in."""
    found: dict[str, Question] = {}
    for row in _rows(path):
        answers: list[str] = []
        for part in row["decomposition"]:
            text = part["question"]
            for place, answer in enumerate(answers, 1):
                text = text.replace(f"#{place}", answer)
            answers.append(part["answer"])
            subject, arrow, relation = text.partition(" >> ")
            text = _RELATIONS.get(relation, "").format(subject) if arrow else text
            if text:
                gold = (str(part["support_id"]),)
                found.setdefault(text, Question(text=text, gold=gold, answers=(part["answer"],)))
    return list(found.values())


def _told(answers: dict[str, str]) -> list[str]:
    return [answer for answer in dict.fromkeys(answers.values()) if answer not in _UNKNOWN]


def _flat(answer: str | list[str] | list[list[str]]) -> list[str]:
    return [answer] if isinstance(answer, str) else [one for part in answer for one in _flat(part)]


def _rows(path: Path) -> Iterator[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reader_weights", description="Fit the reader's weights."
    )
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder that holds the sets")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the workspaces there and use them again")
    return parser


if __name__ == "__main__":
    sys.exit(main())
