"""Rows for a rewriter (ERM4): a rewriting is kept only where it finds the gold better."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from prompts.rewrite import Rewrite, Rewriting, recent
from prompts.text.words import fold_name
from storage.answer_records import Passage
from storage.evaluation_records import EvaluationQuestion
from storage.training_records import RewriteRow
from tasks.batches import gather_or_cancel
from tasks.step import step
from tasks.train.lora import Dialogue
from tasks.train.rows import append, stored

# Searches a workspace without a model: the passages for queries, best first.
Find = Callable[[Sequence[str]], Awaitable[Sequence[Passage]]]


def gold_rank(question: EvaluationQuestion, passages: Sequence[Passage]) -> float:
    """Return the mean reciprocal rank (0 to 1) of the gold documents.

    Without gold documents, that of the first passage that holds an answer.
    """
    if question.gold_documents:
        documents = [passage.document for passage in passages]
        ranks = [documents.index(name) + 1 for name in question.gold_documents if name in documents]
        return sum(1 / rank for rank in ranks) / len(question.gold_documents)
    wanted = [fold_name(answer) for answer in question.answers]
    hits = (any(answer in fold_name(passage.text) for answer in wanted) for passage in passages)
    return next((1 / rank for rank, hit in enumerate(hits, 1) if hit), 0.0)


@step("rewrite", asks_model=True)
async def rewrite_questions(
    questions: Sequence[EvaluationQuestion],
    path: Path,
    rewrite: Rewrite,
    find: Find,
    tell: Callable[[int, int], None],
) -> list[RewriteRow]:
    """Rewrite each question, and store the rewriting with how well it and the question find gold.

    Questions that an earlier run stored are not asked again.
    """
    rows = stored(path, RewriteRow)
    done = {row.id for row in rows}

    async def rewritten(question: EvaluationQuestion) -> None:
        written = await rewrite.run(question.question, question.history)
        row = RewriteRow(
            id=question.id,
            question=question.question,
            history=question.history,
            rewritten=written.question,
            queries=tuple(written.queries),
            before=gold_rank(question, await find([question.question])),
            after=gold_rank(question, await find([written.question, *written.queries])),
            source="rewritten",
        )
        append(path, [row])
        rows.append(row)
        tell(len(rows), len(questions))

    await gather_or_cancel(rewritten(question) for question in questions if question.id not in done)
    return sorted(rows, key=lambda row: row.id)


def improving(rows: Sequence[RewriteRow]) -> list[RewriteRow]:
    """Keep the rows whose rewriting finds the gold better than the question itself."""
    return [row for row in rows if row.after > row.before]


def dialogues_of(rows: Sequence[RewriteRow], rewrite: Rewrite) -> list[Dialogue]:
    """Return what the rewriter's model reads of each row, with the rewriting as its answer."""
    dialogues = []
    for row in rows:
        shown = recent(row.history, rewrite.policy.limits.rate)
        rewriting = Rewriting(question=row.rewritten, queries=list(row.queries))
        prompt = rewrite.module.messages({"question": row.question, "history": shown})
        answer = rewrite.output_format.write(rewrite.module.signature, {"rewriting": rewriting})
        dialogues.append(Dialogue(prompt, answer))
    return dialogues


async def found_by(
    questions: Sequence[EvaluationQuestion], rewrite: Rewrite | None, find: Find
) -> dict[str, float]:
    """Return the mean `gold_rank` of questions, rewritten where a rewriter is given."""

    async def rank(question: EvaluationQuestion) -> float:
        if rewrite is None:
            return gold_rank(question, await find([question.question]))
        written = await rewrite.run(question.question, question.history)
        return gold_rank(question, await find([written.question, *written.queries]))

    ranks = await gather_or_cancel(rank(question) for question in questions)
    return {"gold rank": sum(ranks) / max(len(ranks), 1)}
