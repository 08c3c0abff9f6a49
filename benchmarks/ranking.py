"""How good is a ranking, and what do the plain rankings reach that ours has to beat?"""

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.questions import Question
from flows.asking import AskOptions, retrieve_passages
from flows.session import Session
from storage.records import Record

RRF_K = 60


class Quality(Record):
    """Means over the questions, by k: the share of gold passages found, and of questions with all of them found."""

    recall: dict[int, float]
    all_gold: dict[int, float]


async def ranked(question: str, k: int, session: Session) -> list[str]:
    """The documents of the k passages that Trellis retrieves, best first."""
    found = await retrieve_passages(question, AskOptions(k=k), session)
    return [passage.document for passage in found.passages]


def floors(question: str, k: int, session: Session) -> dict[str, list[str]]:
    """What each plain ranking gives: words alone, meaning alone, and the two fused by reciprocal rank."""
    index = session.index
    scores = index.lexicon.scores(question)
    lexical = [index.chunks[i].id for i in np.argsort(-scores, kind="stable")[:50] if scores[i] > 0]
    near = session.dense([question])[0]
    dense = sorted(near, key=lambda chunk: (-near[chunk], chunk))
    fused: dict[str, float] = {}
    for ranking in (lexical, dense):
        for rank, chunk in enumerate(ranking, 1):
            fused[chunk] = fused.get(chunk, 0.0) + 1 / (RRF_K + rank)
    both = sorted(fused, key=lambda chunk: (-fused[chunk], chunk))
    return {
        name: [index.chunk(chunk).document for chunk in found[:k]]
        for name, found in (("bm25", lexical), ("dense", dense), ("rrf", both))
    }


def quality(questions: Sequence[Question], found: Sequence[Sequence[str]], ks: Sequence[int]) -> Quality:
    """Recall and all-gold at each k; `found` holds the ranked documents of each question."""
    pairs = list(zip(questions, found, strict=True))
    return Quality(
        recall={k: _mean([_share(q, f[:k]) for q, f in pairs]) for k in ks},
        all_gold={k: _mean([float(_share(q, f[:k]) == 1) for q, f in pairs]) for k in ks},
    )


def table(methods: Mapping[str, Quality]) -> list[str]:
    """The figures as lines of text; with one gold passage a question the two columns agree (hit@k)."""
    ks = list(next(iter(methods.values())).recall)
    head = f"  {'':8}" + "".join(f"recall@{k:<4}" for k in ks) + "".join(f"all@{k:<5}" for k in ks)
    rows = [
        f"  {name:8}" + "".join(f"{q.recall[k]:<11.3f}" for k in ks) + "".join(f"{q.all_gold[k]:<9.3f}" for k in ks)
        for name, q in methods.items()
    ]
    return [head.rstrip(), *(row.rstrip() for row in rows)]


def _share(question: Question, found: Sequence[str]) -> float:
    gold = set(question.gold)
    return len(gold & set(found)) / len(gold)


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
