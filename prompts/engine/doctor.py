"""The examination of models: each is asked once, with a tiny input whose answer is known."""

import asyncio
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import dspy
from pydantic import BaseModel

from prompts.engine.errors import EngineError
from prompts.engine.models import OFFLINE, ROLES, Models, Role
from prompts.engine.output_formats import RecordsFormat
from prompts.engine.spending import Meter, Spent
from prompts.engine.step import Step

SLOW = 20.0  # seconds for an answer of a few tokens
TEXT = "Ada Korb was born in Velin in 1912."


class Checked(BaseModel):
    """What the examination asks for."""

    name: str
    year: int
    kind: Literal["person", "place"]


class CheckedList(BaseModel):
    """The same as records."""

    found: list[Checked]


class _CheckObject(dspy.Signature):
    """Name the one person in the text and the year of birth that it gives."""

    text: str = dspy.InputField()
    checked: Checked = dspy.OutputField()


class _CheckRecords(dspy.Signature):
    """Name each person in the text and the year of birth that it gives."""

    text: str = dspy.InputField()
    checked: CheckedList = dspy.OutputField()


class _ObjectStep(Step):
    """The form that most steps have."""

    step = "doctor"
    role: ClassVar[Role] = "answer"
    task = _CheckObject


class _RecordsStep(Step):
    """The form that extraction has."""

    step = "doctor"
    role: ClassVar[Role] = "extract"
    task = _CheckRecords
    output_format = RecordsFormat(P="found")


@dataclass(frozen=True, slots=True)
class Examined:
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


async def examine(models: Models) -> list[Examined]:
    """One row for each role, in the order of ROLES. A model that several roles share is asked once for each form."""
    fresh = models.examined()
    asked: dict[object, asyncio.Task[Examined]] = {}
    async with asyncio.TaskGroup() as group:
        for role, choice in models.chosen.items():
            if (choice, role == "extract") not in asked:
                asked[choice, role == "extract"] = group.create_task(_examined(fresh.metered(Meter()), role))
    rows = {role: asked[choice, role == "extract"].result() for role, choice in models.chosen.items()}
    return [replace(rows[role], role=role) if role in rows else Examined(role) for role in ROLES]


async def _examined(models: Models, role: Role) -> Examined:
    if models.encoder(role) is not None:  # it writes nothing that could be examined
        return Examined(role, models.name(role), structured="labels")
    step = _RecordsStep(models) if role == "extract" else _ObjectStep(models)
    step.__dict__["role"] = role  # this one instance stands for the role
    problem, address, structured, advice = "", "", "", list[str]()
    try:
        client = models.client(role)
        assert client is not None  # noqa: S101 - only roles with a model are examined
        address = client.transport.address
        checked = (await step.acall(text=TEXT)).checked
        structured = client.transport.structured
        people = checked.found if isinstance(checked, CheckedList) else [checked]
        if not any(person.year == 1912 and "Korb" in person.name for person in people):
            problem = f"asked who was born when in {TEXT!r}, it answered {people!r}"
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
        advice.append(f"{slow}: raise `timeout` or lower `concurrency` before indexing.")
    return Examined(
        role, models.name(role), address, not problem, spent.seconds, spent.input_tokens, spent.output_tokens,
        structured or "unknown", problem, tuple(advice)
    )  # fmt: skip
