"""The examination of models: each is asked once, by a step of ours, with a tiny input whose answer is known."""

import asyncio
from dataclasses import dataclass, replace

from prompts.answer import AnswerStep, NumberedText, evidence_text
from prompts.engine.errors import EngineError
from prompts.engine.models import OFFLINE, ROLES, Models, Role
from prompts.engine.spending import Meter, Spent
from prompts.extract import extractor
from prompts.tailoring import UNTAILORED

SLOW = 20.0  # seconds for an answer of a few tokens
QUESTION, TEXT = "In which year was Ada Korb born?", "Ada Korb was born in Velin in 1912."
NAMED = ("Ada Korb", "Velin", "1912")  # all that an extraction of the text may name


@dataclass(frozen=True, slots=True)
class ExaminedModel:
    """What was seen of one role's model. `structured`: what holds its server to a form; "offline" without a model."""

    role: Role
    model: str = OFFLINE
    address: str = ""
    ok: bool = True
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    structured: str = OFFLINE
    problem: str = ""
    advice: tuple[str, ...] = ()


async def examine(models: Models) -> list[ExaminedModel]:
    """One row for each role, in the order of ROLES. A model that several roles share is asked once for each form."""
    fresh = models.examined()
    asked: dict[object, asyncio.Task[ExaminedModel]] = {}
    async with asyncio.TaskGroup() as group:
        for role, choice in models.chosen.items():
            if (choice, role == "extract") not in asked:
                asked[choice, role == "extract"] = group.create_task(_examined(fresh.metered(Meter()), role))
    rows = {role: asked[choice, role == "extract"].result() for role, choice in models.chosen.items()}
    return [replace(rows[role], role=role) if role in rows else ExaminedModel(role) for role in ROLES]


async def _examined(models: Models, role: Role) -> ExaminedModel:
    if models.encoder(role) is not None:  # it writes nothing that could be examined
        return ExaminedModel(role, models.name(role), structured="labels")
    # Extraction has a form of its own.
    step = extractor(models, 0, UNTAILORED, claims=False) if role == "extract" else AnswerStep(models)
    step.__dict__["role"] = role  # this one instance stands for the role
    problem, address, structured, advice = "", "", "", list[str]()
    try:
        lm = models.lm(role)
        address = lm.address
        if role == "extract":
            extracted = (await step.acall(title="", passage=TEXT)).found
            names = [entity.name for entity in extracted.entities]
            answer_text, right = str(extracted), {"Ada Korb", "Velin"} <= set(names) <= set(NAMED)
        else:
            evidence = evidence_text([NumberedText(1, "Velin", TEXT)])
            asked = await step.acall(question=QUESTION, response="", notes="", evidence=evidence)
            answer_text, right = asked.written.answer, "1912" in asked.written.answer
        structured = lm.structured
        if not right:
            problem = f"asked what {TEXT!r} says, it answered {answer_text!r}"
            advice.append("Use a stronger model for this role: it answered in form, but not what the text says.")
    except EngineError as error:
        problem, advice = error.message, [error.remedy]
    spent = next((spent for _, _, spent in models.meter.rows()), Spent())
    if structured in {"text", "json_object"} and role != "extract":
        advice.append(
            "The server does not hold answers to a schema: expect repairs; a server that does is more reliable."
        )
    if spent.calls > 1:
        advice.append("The first answer was not in form and had to be repaired: expect up to twice the cost.")
    if spent.calls and spent.seconds / spent.calls > SLOW:
        slow = f"An answer took {spent.seconds / spent.calls:.0f} s"
        advice.append(f"{slow}: an index run will take long, and says how long before it starts.")
    return ExaminedModel(
        role, models.name(role), address, not problem, spent.seconds, spent.input_tokens, spent.output_tokens,
        structured or "unknown", problem, tuple(advice)
    )  # fmt: skip
