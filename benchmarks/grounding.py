"""How well grounding flags agree with people's verdicts on a model's claims."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.runner import Cell, Run, measure, option, share
from benchmarks.sets import Row, read_rows
from prompts.engine.local_models import CrossEncoderScorer
from prompts.text.words import terms
from storage.records import Record
from tasks.grounding import Scorer, ground, ground_scored, sentences_of, word_coverage

FILE = "answers/expertqa_val.jsonl.gz"
MADE_UP = "It was painted green by Zorblax Quemby in 1803"


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
        rows = [
            row
            for row in ground_scored(self.text, self.passages, shown, self.question, scorer)
            if row[1]
        ]
        flags = {flag.supported for flag, _ in rows}
        return min((score for _, score in rows), default=0.0), (
            False if False in flags else True in flags or None
        )


@measure(
    option("--cross-encoder", metavar="NAME", help="also measure this model: a name or a folder"),
    files=[FILE],
)
def grounding(run: Run) -> None:
    """How well do grounding flags agree with people's verdicts on a model's claims?

    The claims of recorded GPT-4 answers to questions of experts (ExpertQA), by the passages that
    they cite. A person called each claim's support complete, or not: incomplete, partial or
    missing. All that is missing cites nothing, so the claims that cite are counted apart.
    """
    rows = list(read_rows(run.file(FILE)))[: run.limit]
    claims = [claim for number, row in enumerate(rows) for claim in claims_of(number, row)]
    scorers: dict[str, Scorer] = {"grounding": word_coverage}
    if run.options.cross_encoder:
        scorers[run.options.cross_encoder] = CrossEncoderScorer(run.options.cross_encoder)
    areas = {"word overlap": both_areas(claims, [claim.overlap() for claim in claims])}
    verdicts: dict[str, dict[str, Cell]] = {}
    for name, scorer in scorers.items():
        judged = [claim.scored(scorer) for claim in claims]
        areas[name] = both_areas(claims, [score for score, _ in judged])
        areas[f"{name}: flags alone"] = both_areas(
            claims, [{True: 1.0, None: 0.5, False: 0.0}[flag] for _, flag in judged]
        )
        for verdict, number in Counter(claim.verdict for claim in claims).most_common():
            flags = [
                flag
                for claim, (_, flag) in zip(claims, judged, strict=True)
                if claim.verdict == verdict
            ]
            shares = {
                told: share([flag is value for flag in flags])
                for told, value in (("supported", True), ("unsupported", False), ("not told", None))
            }
            verdicts[f"{name}: {verdict}"] = {"claims": number, **shares}
    run.table("AUC of complete support", areas)
    run.table("flags by verdict", verdicts)
    flagged = [made_up_is_flagged(row) for row in rows]
    run.table("a made-up sentence", {"added": {"answers": len(flagged), "flagged": sum(flagged)}})


def claims_of(number: int, row: Row) -> list[JudgedClaim]:
    """The claims of an answer that have a verdict."""
    return [
        JudgedClaim(
            number=number,
            question=row["question"],
            text=claim["text"],
            passages=passages_of(row),
            cites=tuple(f"[{cite}]" for cite in claim["cites"]),
            verdict=claim["support"],
        )
        for claim in row["claims"]
        if claim["support"] not in (None, "N/A")
    ]


def passages_of(row: Row) -> dict[str, str]:
    """The passages of an answer by their markers."""
    return {f"[{key}]": text for key, text in row["passages"].items()}


def auc(claims: Sequence[JudgedClaim], scores: Sequence[float]) -> float:
    """How often a claim with complete support scores more than another."""
    return area(np.array(scores), np.array([claim.verdict == "Complete" for claim in claims]))


def both_areas(claims: Sequence[JudgedClaim], scores: Sequence[float]) -> dict[str, Cell]:
    """The AUC over all claims, and over those that cite."""
    citing = [place for place, claim in enumerate(claims) if claim.cites]
    return {
        "all claims": auc(claims, scores),
        "claims that cite": auc(
            [claims[place] for place in citing], [scores[place] for place in citing]
        ),
    }


def made_up_is_flagged(row: Row) -> bool:
    """Whether a made-up sentence is flagged that is added to an answer."""
    passages = passages_of(row)
    text = f"{row['answer']} {MADE_UP} {next(iter(passages))}."
    return ground(text, passages, list(passages.values()), row["question"])[-1].supported is False


def area(scores: NDArray[np.float64], gold: NDArray[np.bool_]) -> float:
    """The area under the ROC curve: how often a supported claim has a higher score than another;
    ties count half.
    """
    first, second = scores[gold], scores[~gold]
    higher = (first[:, None] > second[None, :]).sum() + 0.5 * (
        first[:, None] == second[None, :]
    ).sum()
    return float(higher / max(len(first) * len(second), 1))
