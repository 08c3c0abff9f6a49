"""How good is a ranking, and what do the plain rankings reach that ours has to beat?"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.questions import Question
from flows.query import retrieve_passages
from flows.question import AskOptions
from flows.session import Session
from storage.answer_records import Mode
from storage.records import Record
from tasks.retrieve.passage_sets import fused


class Quality(Record):
    """Means over the questions, by k: the share of gold passages found, and of questions with all of them found."""

    recall: dict[int, float]
    all_gold: dict[int, float]


async def ranked(question: str, k: int, session: Session, mode: Mode = "auto") -> list[str]:
    """The documents of the k passages that Trellis retrieves, best first."""
    found = await retrieve_passages(question, AskOptions(mode=mode, k=k), session)
    return [passage.document for passage in found.passages]


def floors(question: str, k: int, session: Session) -> dict[str, list[str]]:
    """What each plain ranking gives: words alone, meaning alone, and the two fused by reciprocal rank."""
    index = session.index
    scores = index.lexicon.scores(question)
    lexical = [int(i) for i in np.argsort(-scores, kind="stable")[:50] if scores[i] > 0]
    near = session.dense([question])[0]
    dense = [index.position[chunk] for chunk in sorted(near, key=lambda chunk: (-near[chunk], chunk))]
    rankings = {"bm25": lexical, "dense": dense, "rrf": fused([lexical, dense])}
    return {name: [index.chunks[place].document for place in found[:k]] for name, found in rankings.items()}


def quality(questions: Sequence[Question], found: Sequence[Sequence[str]], ks: Sequence[int]) -> Quality:
    """Recall and all-gold at each k; `found` holds the ranked documents of each question."""
    pairs = list(zip(questions, found, strict=True))
    return Quality(
        recall={k: _mean([_share(q, f[:k]) for q, f in pairs]) for k in ks},
        all_gold={k: _mean([float(_share(q, f[:k]) == 1) for q, f in pairs]) for k in ks},
    )


def by_kind(
    questions: Sequence[Question], found: Sequence[Sequence[str]], ks: Sequence[int]
) -> dict[str, tuple[int, Quality]]:
    """For each kind of question how many there are and how good their rankings are, in the order of the kinds."""
    groups: dict[str, list[tuple[Question, Sequence[str]]]] = defaultdict(list)
    for question, documents in zip(questions, found, strict=True):
        groups[question.kind].append((question, documents))
    return {
        kind: (len(pairs), quality([q for q, _ in pairs], [f for _, f in pairs], ks))
        for kind, pairs in sorted(groups.items())
    }


def table(methods: Mapping[str, Quality]) -> list[str]:
    """The figures as lines of text; with one gold passage a question the two columns agree (hit@k)."""
    ks = list(next(iter(methods.values())).recall)
    width = max(map(len, methods)) + 2
    head = f"  {'':{width}}" + "".join(f"recall@{k:<4}" for k in ks) + "".join(f"all@{k:<5}" for k in ks)
    rows = [
        f"  {name:{width}}" + "".join(f"{_cell(q.recall, k):<11}" for k in ks)
        + "".join(f"{_cell(q.all_gold, k):<9}" for k in ks)
        for name, q in methods.items()
    ]  # fmt: skip
    return [head.rstrip(), *(row.rstrip() for row in rows)]


def _cell(figures: Mapping[int, float], k: int) -> str:
    """Others' lists may end before our largest k: what they would have found there is not known."""
    return f"{figures[k]:.3f}" if k in figures else "-"


def _share(question: Question, found: Sequence[str]) -> float:
    gold = set(question.gold)
    return len(gold & set(found)) / len(gold)


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
