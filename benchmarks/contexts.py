"""How often the answer stands in what a mode lays before the answering step: LightRAG's ablation
(arXiv 2410.05779) without a model.
"""

from collections.abc import Sequence
from dataclasses import replace

from flows.modes.dual_level_search import LEVEL_OF, dual_level_search
from flows.question import AskOptions, resources_for
from flows.session import Session
from prompts.engine.effort import Policy
from prompts.engine.models import Models
from storage.answer_records import Mode
from storage.evaluation_records import EvaluationQuestion
from tasks.evaluate.measures import holds

# The modes, and whether the texts of the passages are left out.
CONTEXTS: dict[str, tuple[Mode, bool]] = {
    "auto": ("auto", False),
    "naive": ("naive", False),
    "mix": ("mix", False),
    "hybrid": ("hybrid", False),
    "-High": ("low", False),
    "-Low": ("high", False),
    "-Origin": ("hybrid", True),
}
CONTEXT_TOKENS = 1_400


async def standing(
    questions: Sequence[EvaluationQuestion], session: Session
) -> tuple[int, dict[str, float]]:
    """How many questions can tell, and the share of them whose answer stands in each context.

    Questions that hold an answer themselves, as one to choose from, and those of yes or no are left
    out.
    """
    asked = [question for question in questions if _tells(question)]
    hits = dict.fromkeys(CONTEXTS, 0)
    for question in asked:
        for name, (mode, tables_alone) in CONTEXTS.items():
            hits[name] += holds(
                await context(question.question, mode, session, tables_alone), question.answers
            )
    return len(asked), {name: round(count / max(len(asked), 1), 4) for name, count in hits.items()}


async def context(question: str, mode: Mode, session: Session, tables_alone: bool = False) -> str:
    """What a mode lays before the answering step, in CONTEXT_TOKENS: its tables and its
    passages.
    """
    asked = await resources_for(question, AskOptions(mode=mode), session)
    search = replace(asked.search, most=CONTEXT_TOKENS)
    if mode in LEVEL_OF:
        models = Models({}, policy=Policy.of("medium", given={"answer": CONTEXT_TOKENS}))
        laid = (await dual_level_search(replace(asked, search=search, models=models))).context
        texts = (
            [] if tables_alone else [f"{passage.title}: {passage.text}" for passage in laid.sources]
        )
        return "\n".join([*(note.text for note in laid.notes), *texts])
    found = search.sources(await search.passages([question], search.depth, graph=mode != "naive"))
    return "\n".join(f"{passage.title}: {passage.text}" for passage in found)


def _tells(question: EvaluationQuestion) -> bool:
    yes_or_no = {"yes", "no"} & {answer.lower() for answer in question.answers}
    return (
        bool(question.answers) and not yes_or_no and not holds(question.question, question.answers)
    )
