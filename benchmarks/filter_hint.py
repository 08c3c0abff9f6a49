"""How well the filter without a model tells evidence from the rest."""

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.runner import Cell, Run, measure
from benchmarks.sets import SETS, files_of, open_set
from flows.session import Session
from prompts.offline.filter import judge
from prompts.text.words import fold_name
from tasks.retrieve.search import retrieve

TOP, DEPTH = 20, 12  # passages that are judged, and that a short question reads

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@measure(sets=files_of("2wiki_780", "hotpot_train100", "musique_train100"))
def filter_hint(run: Run) -> None:
    """How well does the filter without a model tell evidence from the rest?

    The first 20 passages that are retrieved for published questions are judged. A model's filter is measured with a
    model. `second hop`: evidence that the question does not name.
    """
    rows = {}
    for name in run.options.sets:
        with open_set(run, name) as session:
            rows[name] = asyncio.run(_figures(run, name, session))
    run.table("the filter's hint", rows)


async def _figures(run: Run, name: str, session: Session) -> dict[str, Cell]:
    questions = SETS[name].read_questions(run.options.data, run.limit)
    judgements = [await judged(session, question.question, question.gold_documents) for question in questions]
    ranks, gold, named = (np.concatenate([one[place] for one in judgements]) for place in range(3))
    second = ~(gold & named)
    entailed, first = (np.concatenate([one[place][:DEPTH] for one in judgements]) for place in (3, 1))
    return {
        "questions": len(questions),
        "AUC": area(-ranks, gold),
        "AUC, second hop": area(-ranks[second], gold[second]),
        f"evidence of the first {DEPTH} entailed": float(entailed[first].mean()),
        "rest not entailed": float(1 - entailed[~first].mean()),
    }


async def judged(session: Session, question: str, gold: Sequence[str]) -> tuple[Floats, Flags, Flags, Flags]:
    """The rank of each passage, whether it is evidence, whether the question names it, and whether it is entailed."""
    passages = await retrieve(session.index, [question], session.dense([question]), TOP)
    texts = [f"{passage.title}\n{passage.text}" for passage in passages]
    lexicon = session.index.lexicon
    verdicts = judge(question, texts, lexicon.idf_of, lexicon.languages)
    asked = f" {fold_name(question)} "
    evidence = [passage.document in gold for passage in passages]
    named = [bool(passage.title) and f" {fold_name(passage.title)} " in asked for passage in passages]
    entailed = [verdict.label == "entailment" for verdict in verdicts]
    flags = (np.array(one, bool) for one in (evidence, named, entailed))
    return np.arange(len(passages), dtype=float), *flags  # type: ignore[return-value]


def area(scores: Floats, gold: Flags) -> float:
    """The area under the ROC curve: how often a passage of evidence comes before another one; ties count half."""
    first, second = scores[gold], scores[~gold]
    higher = (first[:, None] > second[None, :]).sum() + 0.5 * (first[:, None] == second[None, :]).sum()
    return float(higher / max(len(first) * len(second), 1))
