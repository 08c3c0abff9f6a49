"""Does each step's model do what its step needs? Each is asked once, with a tiny input whose answer is known."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import dspy
from pydantic import BaseModel

from prompts.engine.errors import EngineError
from prompts.engine.json_wire import JsonWire
from prompts.engine.meter import Meter
from prompts.engine.models import Models
from prompts.engine.records_wire import RecordsWire
from prompts.engine.roles import ROLES, Role
from prompts.engine.step import Step

SLOW = 20.0  # seconds for an answer of a few tokens


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


TEXT = "Ada Korb was born in Velin in 1912."


class _ObjectStep(Step):
    """The form that most steps have."""

    step = "doctor"
    role: ClassVar[Role] = "answer"
    task = _CheckObject
    wire = JsonWire()


class _RecordsStep(Step):
    """The form that extraction has."""

    step = "doctor"
    role: ClassVar[Role] = "extract"
    task = _CheckRecords
    wire = RecordsWire(P="found")


@dataclass(frozen=True, slots=True)
class Examined:
    """What was seen of one role's model. `structured`: what holds its server to a form; "offline" without a model."""

    role: Role
    model: str
    address: str
    ok: bool
    seconds: float
    input_tokens: int
    output_tokens: int
    structured: str
    problem: str = ""
    advice: tuple[str, ...] = field(default=())


async def examine(models: Models) -> list[Examined]:
    """One row for each role, in the order of ROLES. A model that several roles share is asked once for each form."""
    fresh = models.uncached()
    asked: dict[tuple[str, str | None, bool], asyncio.Task[Examined]] = {}
    rows = []
    async with asyncio.TaskGroup() as group:
        for role in ROLES:
            choice = models.choices.get(role)
            if choice is None:
                continue
            key = (choice.name, choice.base_url, role == "extract")
            if key not in asked:
                asked[key] = group.create_task(_examined(fresh, role))
    for role in ROLES:
        choice = models.choices.get(role)
        if choice is None:
            rows.append(
                Examined(
                    role, "offline", "", ok=True, seconds=0.0, input_tokens=0, output_tokens=0, structured="offline"
                )
            )
            continue
        seen = asked[choice.name, choice.base_url, role == "extract"].result()
        rows.append(_for_role(seen, role))
    return rows


def _for_role(seen: Examined, role: Role) -> Examined:
    values = {name: getattr(seen, name) for name in seen.__slots__}
    return Examined(**{**values, "role": role})


async def _examined(models: Models, role: Role) -> Examined:
    meter = Meter()
    view = models.metered(meter)
    step = _RecordsStep(view) if role == "extract" else _ObjectStep(view)
    step.__dict__["role"] = role  # this one instance stands for the role
    problem, advice = "", list[str]()
    address, structured = "", ""
    try:
        client = view.client(role)
        assert client is not None  # noqa: S101 - only roles with a model are examined
        address = client.transport.address
        prediction = await step.acall(text=TEXT)
        problem = _wrong(prediction.checked)
        if problem:
            advice.append("Use a stronger model for this role: it answered in form, but not what the text says.")
        structured = client.transport.structured
    except EngineError as error:
        problem, advice = error.message, [error.remedy]
    spent = {name: row for name, _, row in meter.rows()}.get("doctor")
    seconds = spent.seconds if spent else 0.0
    advice += _remarks(structured, role, spent.calls if spent else 0, seconds)
    return Examined(
        role,
        view.name(role),
        address,
        ok=not problem,
        seconds=seconds,
        input_tokens=spent.input_tokens if spent else 0,
        output_tokens=spent.output_tokens if spent else 0,
        structured=structured or "unknown",
        problem=problem,
        advice=tuple(advice),
    )


def _wrong(checked: object) -> str:
    found = checked.found if isinstance(checked, CheckedList) else [checked]
    right = any(isinstance(one, Checked) and one.year == 1912 and "Korb" in one.name for one in found)
    return "" if right else f"asked who was born when in {TEXT!r}, it answered {found!r}"


def _remarks(structured: str, role: Role, calls: int, seconds: float) -> list[str]:
    remarks = []
    if structured in {"text", "json_object"} and role != "extract":
        remarks.append(
            "The server does not hold answers to a schema: expect repairs; a server that does is more reliable."
        )
    if calls > 1:
        remarks.append("The first answer was not in form and had to be repaired: expect up to twice the cost.")
    if calls and seconds / calls > SLOW:
        remarks.append(
            f"An answer took {seconds / calls:.0f} s: raise `timeout` or lower `concurrency` before indexing."
        )
    return remarks


def summary(rows: list[Examined]) -> Mapping[str, int]:
    """How many roles are fine, failing and offline."""
    offline = sum(row.structured == "offline" for row in rows)
    fine = sum(row.ok for row in rows) - offline
    return {"fine": fine, "failing": len(rows) - fine - offline, "offline": offline}
