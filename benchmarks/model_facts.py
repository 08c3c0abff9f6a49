"""Whether a model plans questions over typed facts rightly, and knows which questions are such."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.rows import read_rows
from benchmarks.runner import EXAMPLES, Cell, Run, share
from benchmarks.sets import settings_in
from flows.runtime import open_runtime
from flows.session import Session, open_session
from prompts.choose import ChooseWithFacts
from prompts.engine.errors import NoUsableAnswer
from prompts.engine.models import Models
from prompts.plan_facts import PlanFacts
from prompts.text.question import parse_question
from tasks.facts.answer import answer_from_facts
from tests.facts.questions import QUESTIONS, TODAY, indexed_facts
from tests.server.client import serving

# The classes of the samples' questions that passages answer; of others facts may hold the answer.
PART = ("single-fact", "long-chain", "how-to", "summary", "s**", "s*o", "unanswerable", "chinese")
KINDS = ("right", "wrong", "wrong, not called supported", "does not fit", "no plan")
SAMPLES = ("questions.jsonl", "questions_extra.jsonl", "questions_global.jsonl")


def measure_facts(run: Run, models: Models, model: str) -> None:
    """Ask the model for plans, and for what holds the answer, over the samples' typed facts."""
    folder = run.workspace("facts") / "workspace"
    if not (folder / "CURRENT").is_file():
        with serving() as server:
            indexed_facts(folder, server)
    with open_session(open_runtime(settings_in(folder.parent, embedding="none"))) as session:
        run.table(f"plans over facts, {model}", asyncio.run(_planned(run, models, session)))
        run.table(f"choice with facts, {model}", asyncio.run(_chosen(run, models, session)))


async def _planned(run: Run, models: Models, session: Session) -> dict[str, dict[str, Cell]]:
    """Compute each question by the model's plan; what differs from the right values is shown."""
    planner, typed = PlanFacts(models), session.graph.typed(None)
    kinds: Counter[str] = Counter()
    asked = QUESTIONS[: run.limit]
    began = time.perf_counter()
    for question, plan, values, _ in asked:
        answered = await answer_from_facts(question, typed, planner, TODAY)
        given, told = answered.result.values, answered.result.plan
        if answered.is_computed:
            supported = answered.stated.fallback == "none"
            kind = "wrong" if supported else "wrong, not called supported"
            kind = "right" if sorted(given) == sorted(values) else kind
        else:
            kind = "does not fit" if told else "no plan"
        kinds[kind] += 1
        run.show([f"{kind}: {question} | {plan['operation']} {values} | {list(given)} | {told}"])
    row = {name: kinds[name] for name in KINDS}
    return {"plans": {"n": len(asked), **row, "s": (time.perf_counter() - began) / len(asked)}}


def _questions() -> Mapping[str, Sequence[str]]:
    """The questions by what holds their answer."""
    rows = [row for name in SAMPLES for row in read_rows(EXAMPLES / name)]
    return {
        "facts": [question for question, *_ in QUESTIONS],
        "part": [row["question"] for row in rows if row["class"] in PART],
        "whole": [row["question"] for row in rows if row["class"] == "global"],
    }


async def _chosen(run: Run, models: Models, session: Session) -> dict[str, dict[str, Cell]]:
    """A row for each source of answers: which one the model names, also where wording is plain."""
    always = replace(models, policy=replace(models.policy, effort="high"))
    titles, step = session.titles, ChooseWithFacts(always, session.graph.fact_types)
    table: dict[str, dict[str, Cell]] = {}
    for about, questions in _questions().items():
        said: list[str] = []
        for question in questions[: run.limit]:
            ask = parse_question(question)
            try:
                said.append((await step.run(ask, titles)).about)
            except NoUsableAnswer:
                said.append("failed")
            run.show([f"{about}: {said[-1]} | {question}"])
        table[about] = {
            "n": len(said),
            **{name: share([one == name for one in said]) for name in ("facts", "part", "whole")},
            "failed": share([one == "failed" for one in said]),
        }
    return table
