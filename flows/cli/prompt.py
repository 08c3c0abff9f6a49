"""`trellis prompt`: what a model is told for a step."""

import difflib
from argparse import Namespace
from collections.abc import Sequence

from flows.cli.screen import Screen
from flows.runtime import Runtime, open_runtime
from flows.settings import load_settings
from prompts.engine.step import Step
from prompts.engine.wire import unwrapped
from prompts.registry import build, steps
from storage.errors import UsageError
from storage.records import Record


class Turn(Record):
    """One message of a prompt."""

    role: str
    content: str


class PromptView(Record):
    """A step's prompt: its role and model, its instruction, and all messages; `replaced`: the instruction is a user's.

    Inputs that differ from call to call stand as their names in angle brackets. Where a step writes in several forms,
    there is a view of each, by `signature`.
    """

    step: str
    signature: str
    role: str
    model: str
    replaced: bool
    hash: str
    instruction: str
    messages: tuple[Turn, ...]


def prompt(options: Namespace, screen: Screen) -> int:
    """Print the prompt of a step, or the names of all steps."""
    runtime = open_runtime(load_settings({"workspace": options.workspace}))
    known = steps()
    if options.step is None:
        _list(runtime, screen)
        return 0
    if options.step not in known:
        near = difflib.get_close_matches(options.step, known, n=3)
        meant = f"Nearest: {', '.join(near)}. " if near else ""
        raise UsageError(f"There is no step {options.step!r}.", f"{meant}The steps are: {', '.join(known)}.")
    views = [_view(made) for made in built(options.step, runtime)]
    if screen.as_json:
        screen.json(views)
    elif options.own:
        screen.exactly(f"{views[0].instruction}\n")
    else:
        for view in views:
            screen.exactly("".join(f"--- {turn.role}\n{turn.content}\n" for turn in view.messages))
    return 0


def built(name: str, runtime: Runtime) -> list[Step]:
    """The step as the settings make it; one for each form that it writes in."""
    settings = runtime.settings
    tailoring = settings.tailoring
    found = [
        build(
            one, models=runtime.models, tailoring=tailoring, language=tailoring.language, gleanings=settings.gleanings
        )
        for one in steps()[name]
    ]
    with_claims = [one for one in found if type(one).__name__.endswith("WithClaims")]
    if with_claims:
        return with_claims if settings.claims else [one for one in found if one not in with_claims]
    return found


def _view(step: Step) -> PromptView:
    messages: Sequence[Turn] = [Turn(role=one.role, content=one.content) for one in step.prompt]
    return PromptView(
        step=step.step, signature=step.task.__name__, role=step.role, model=step.models.name(step.role),
        replaced=step.step in step.models.instructions, hash=step.prompt_hash,
        instruction=unwrapped(str(step.signature.instructions)), messages=tuple(messages),
    )  # fmt: skip


def _list(runtime: Runtime, screen: Screen) -> None:
    views = [_view(made) for name in steps() for made in built(name, runtime)[:1]]
    if screen.as_json:
        screen.json(views)
        return
    for view in views:
        mine = ", your instruction" if view.replaced else ""
        screen.line(f"{view.step:12} role {view.role} ({view.model}){mine}")
