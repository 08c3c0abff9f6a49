"""Examines models: each is asked once for each kind of step, with a tiny input.

The right outcome is beyond doubt, so that a model that fails is too weak for the step.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import dspy

from prompts.answer import AnswerStep, NumberedText, evidence_text
from prompts.decompose import Decompose
from prompts.engine.errors import EngineError
from prompts.engine.models import OFFLINE, ROLES, Models, Role
from prompts.engine.spending import Meter, Spent
from prompts.engine.step import Step
from prompts.extract import extractor
from prompts.filter import HYPOTHESES, Filter
from prompts.rewrite import Rewrite
from prompts.route import Route
from prompts.tailoring import UNTAILORED

SLOW = 20.0  # seconds for an answer of a few tokens
QUESTION, TEXT = "In which year was Ada Korb born?", "Ada Korb was born in Velin in 1912."
BESIDE = "The harbour of Orla has two cranes, which were painted in May."
NAMED = ("Ada Korb", "Velin", "1912")  # all that an extraction of the text may name


@dataclass(frozen=True)
class Probe:
    """A step with a tiny input, and whether its outcome is `right`.

    A message to the user describes the input by `asked` and a wrong outcome by `shown`.
    """

    step: Callable[[Models], Step]
    asked: str
    inputs: Mapping[str, object]
    shown: Callable[[dspy.Prediction], object]
    right: Callable[[dspy.Prediction], bool]


def _names(found: dspy.Prediction) -> set[str]:
    return {entity.name for entity in found.found.entities}


def _labels(found: dspy.Prediction) -> dict[int, str]:
    return {judgement.passage: judgement.label for judgement in found.judged.judgements}


_ANSWER = Probe(
    AnswerStep,
    f"what {TEXT!r} says",
    {
        "question": QUESTION,
        "response": "",
        "notes": "",
        "evidence": evidence_text([NumberedText(1, "Velin", TEXT)]),
    },
    lambda found: found.written.answer,
    lambda found: "1912" in found.written.answer,
)
# Roles whose steps have a form of their own; any other is examined by an answer.
PROBES: Mapping[Role, Probe] = {
    "extract": Probe(
        lambda models: extractor(models, 0, UNTAILORED, claims=False),
        f"what {TEXT!r} names",
        {"title": "", "passage": TEXT},
        lambda found: str(found.found),
        lambda found: {"Ada Korb", "Velin"} <= _names(found) <= set(NAMED),
    ),
    "filter": Probe(
        Filter,
        f"which passage tells {QUESTION!r}",
        {
            "passages": evidence_text(
                [NumberedText(1, "Orla", BESIDE), NumberedText(2, "Velin", TEXT)]
            ),
            "hypothesis": HYPOTHESES["either"],
            "question": QUESTION,
        },
        _labels,
        lambda found: _labels(found).get(2) == "entailment" != _labels(found).get(1),
    ),
    "rewrite": Probe(
        Rewrite,
        "what 'Where was she born?' means after 'Who taught Ada Korb?'",
        {"history": ["Who taught Ada Korb?"], "question": "Where was she born?"},
        lambda found: found.rewriting.question,
        lambda found: "Ada Korb" in found.rewriting.question,
    ),
    "decompose": Probe(
        Decompose,
        "for the parts of a question for two things",
        {"knowledge": [], "question": "Who designed Orla Bridge and when was Ada Korb born?"},
        lambda found: found.parts.questions,
        lambda found: len(found.parts.questions) > 1 and "Orla Bridge" in found.parts.questions[0],
    ),
    "route": Probe(
        Route,
        "for the form that compares figures of eight bridges",
        {
            "core_content": ["bridges.csv: rows of bridges with their length, cost and year"],
            "question": "Compare the costs of the eight bridges and add up their lengths.",
        },
        lambda found: found.routed.structure,
        lambda found: found.routed.structure == "table",
    ),
}


@dataclass(frozen=True, slots=True)
class ExaminedModel:
    """The examination of one role's model by a step.

    `structured` is the response format of its server; "offline" without a model.
    """

    role: Role
    step: str = ""
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
    """One row for each role, in the order of ROLES; roles that share model and probe share a call.

    A role whose step the profile spares is examined by an answer.
    """
    fresh = models.examined()
    asked: dict[object, asyncio.Task[ExaminedModel]] = {}
    probes = {
        role: _ANSWER if models.policy.spared(role) else PROBES.get(role, _ANSWER) for role in ROLES
    }
    async with asyncio.TaskGroup() as group:
        for role, choice in models.chosen.items():
            key = (choice, id(probes[role]))
            if key not in asked:
                asked[key] = group.create_task(
                    _examined(fresh.metered(Meter()), role, probes[role])
                )
    rows = {
        role: asked[choice, id(probes[role])].result() for role, choice in models.chosen.items()
    }
    return [
        replace(rows[role], role=role) if role in rows else ExaminedModel(role) for role in ROLES
    ]


async def _examined(models: Models, role: Role, probe: Probe) -> ExaminedModel:
    if models.encoder(role) is not None:  # it writes nothing that could be examined
        return ExaminedModel(role, model=models.name(role), structured="labels")
    step = probe.step(models)
    step.__dict__["role"] = role  # this one instance stands for the role
    problem, address, structured, advice = "", "", "", list[str]()
    try:
        lm = models.lm(role)
        address = lm.address
        found = await step.acall(**probe.inputs)
        structured = lm.structured
        if not probe.right(found):
            problem = f"asked {probe.asked}, it answered {probe.shown(found)!r}"
            advice.append(
                f"It is too weak for the step {step.step!r}: use a stronger model for this role."
            )
    except EngineError as error:
        problem, advice = error.message, [error.remedy]
    spent = next((spent for _, _, spent in models.meter.rows()), Spent())
    if structured in {"text", "json_object"} and role != "extract":
        advice.append(
            "The server does not hold answers to a schema: expect repairs; a server that does is "
            "more reliable."
        )
    if spent.calls > 1:
        advice.append(
            "The first answer was not in form and had to be repaired: expect up to twice the cost."
        )
    if spent.calls and spent.seconds / spent.calls > SLOW:
        slow = f"An answer took {spent.seconds / spent.calls:.0f} s"
        advice.append(f"{slow}: an index run will take long, and says how long before it starts.")
    return ExaminedModel(
        role=role,
        step=step.step,
        model=models.name(role),
        address=address,
        ok=not problem,
        seconds=spent.seconds,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        structured=structured or "unknown",
        problem=problem,
        advice=tuple(advice),
    )
