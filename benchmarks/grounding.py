"""How well do grounding flags agree with people's verdicts on a model's claims?

`python -m benchmarks.grounding --data DIR [--cross-encoder NAME]` judges the claims of recorded GPT-4 answers to
questions of experts (ExpertQA) by the passages that they cite. A person called each claim's support complete, or not:
incomplete, partial or missing. All that is missing cites nothing, so the claims that cite are counted apart. What a
sentence scores after the number of passages that it cites has two weights; they are also fitted on half of the
questions and measured on the other half, both ways.
"""

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.filter import area
from prompts.engine.torch_models import CrossEncoderScorer
from prompts.text.words import terms
from storage.records import Record
from tasks.grounding import Scorer, ground, ground_scored, sentences_of, weighed, word_coverage

FILE = "answers/expertqa_val.jsonl.gz"
MADE_UP = "It was painted green by Zorblax Quemby in 1803"
_UNCITED, _FURTHER = (0.0, 0.25, 0.5, 1.0), (0.0, 0.05, 0.1, 0.2)


class JudgedClaim(Record):
    """A claim with a person's verdict on it."""

    number: int
    question: str
    text: str
    passages: dict[str, str]
    cites: tuple[str, ...]
    verdict: str

    @property
    def evidence(self) -> list[str]:
        return [self.passages[marker] for marker in self.cites]

    def overlap(self) -> float:
        """Plain word overlap: the share of the claim's words that its cited passages hold."""
        words = {word for row in sentences_of(self.text) for word in terms(row.claim)}
        held = {word for passage in self.evidence for word in terms(passage)}
        return len(words & held) / max(1, len(words))

    def scored(self, scorer: Scorer) -> tuple[float, bool | None]:
        """The least score of its sentences, and the worst flag."""
        shown = list(self.passages.values())
        rows = [row for row in ground_scored(self.text, self.passages, shown, self.question, scorer) if row[1]]
        flags = {flag.supported for flag, _ in rows}
        return min((score for _, score in rows), default=0.0), (False if False in flags else True in flags or None)


def auc(claims: Sequence[JudgedClaim], scores: Sequence[float]) -> float:
    """How often a claim with complete support scores more than another."""
    return area(np.array(scores), np.array([claim.verdict == "Complete" for claim in claims]))


def both_areas(name: str, claims: Sequence[JudgedClaim], scores: Sequence[float]) -> str:
    """One line: the AUC over all claims, and over those that cite."""
    citing = [place for place, claim in enumerate(claims) if claim.cites]
    some = auc([claims[place] for place in citing], [scores[place] for place in citing])
    return f"AUC {name:<24} {auc(claims, scores):.3f}   of the claims that cite {some:.3f}"


def read(path: Path) -> tuple[list[JudgedClaim], list[tuple[str, str, dict[str, str]]]]:
    """The claims with a verdict, and the whole answers: question, text, passages by marker."""
    claims, answers = [], []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, row in enumerate(map(json.loads, lines)):
            passages = {f"[{key}]": text for key, text in row["passages"].items()}
            answers.append((row["question"], row["answer"], passages))
            claims += [
                JudgedClaim(
                    number=number, question=row["question"], text=claim["text"], passages=passages,
                    cites=tuple(f"[{cite}]" for cite in claim["cites"]), verdict=claim["support"],
                )
                for claim in row["claims"]
                if claim["support"] not in (None, "N/A")
            ]  # fmt: skip
    return claims, answers


def fitted(claims: Sequence[JudgedClaim]) -> list[str]:
    """The two weights chosen on one half of the questions, and their AUC on the other."""
    raw = [word_coverage(" ".join(row.claim for row in sentences_of(claim.text)),
                         claim.evidence or list(claim.passages.values())) for claim in claims]  # fmt: skip

    def measured(half: int, uncited: float, further: float) -> float:
        chosen = [place for place, claim in enumerate(claims) if claim.number % 2 == half]
        scores = [weighed(raw[place], len(claims[place].cites), uncited, further) for place in chosen]
        return auc([claims[place] for place in chosen], scores)

    lines = []
    for half in (0, 1):
        best = max(product(_UNCITED, _FURTHER), key=lambda weights: measured(half, *weights))
        there = [claim for claim in claims if claim.number % 2 != half]
        overlap = auc(there, [claim.overlap() for claim in there])
        lines.append(
            f"weights fitted on half {half + 1} of the questions: {best}; AUC on the other half"
            f" {measured(1 - half, *best):.3f}, word overlap there {overlap:.3f}"
        )
    return lines


def made_up_flagged(answers: Sequence[tuple[str, str, dict[str, str]]]) -> str:
    """How many of the answers have a made-up sentence flagged that is added to them."""
    flagged = 0
    for question, text, passages in answers:
        rows = ground(f"{text} {MADE_UP} {next(iter(passages))}.", passages, list(passages.values()), question)
        flagged += rows[-1].supported is False
    return f"made-up sentence flagged: {flagged} of {len(answers)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; 2 where the file is absent."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grounding", description="Measure grounding flags.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder that holds the sets")
    parser.add_argument("--cross-encoder", metavar="NAME", help="also measure this model: a name or a folder")
    options = parser.parse_args(arguments)
    if not (options.data / FILE).is_file():
        print(f"The file {options.data / FILE} is absent. Name the folder that holds it: --data DIR.", file=sys.stderr)
        return 2
    claims, answers = read(options.data / FILE)
    scorers: dict[str, Scorer] = {"grounding": word_coverage}
    if options.cross_encoder:
        scorers[options.cross_encoder] = CrossEncoderScorer(options.cross_encoder)
    print(both_areas("word overlap", claims, [claim.overlap() for claim in claims]))
    for name, scorer in scorers.items():
        judged = [claim.scored(scorer) for claim in claims]
        print(both_areas(name, claims, [score for score, _ in judged]))
        print(both_areas("its flags alone", claims, [{True: 1.0, None: 0.5, False: 0.0}[flag] for _, flag in judged]))
        for verdict, number in Counter(claim.verdict for claim in claims).most_common():
            flags = Counter(flag for claim, (_, flag) in zip(claims, judged, strict=True) if claim.verdict == verdict)
            shares = [f"{flags[flag] / number:.2f}" for flag in (True, False, None)]
            print(f"  {verdict} ({number}): supported {shares[0]}, unsupported {shares[1]}, not told {shares[2]}")
    print("\n".join([*fitted(claims), made_up_flagged(answers)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
