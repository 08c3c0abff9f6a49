"""All steps that ask a model, by name."""

import inspect
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module

import prompts
from prompts.engine.errors import ModelMisconfigured
from prompts.engine.models import Models, Program
from prompts.engine.step import Step
from prompts.offline.route import classifier_of
from prompts.route import LINEAR, Route
from prompts.structures import StructureName
from prompts.structurize import Structurize

# Packages and modules without steps.
_NO_STEPS = ("prompts.engine", "prompts.text", "prompts.registry")


@cache
def steps() -> Mapping[str, tuple[type[Step], ...]]:
    """The classes of each step by its name, sorted by name; the plainest class first."""
    classes: dict[str, list[type[Step]]] = {}
    for module in pkgutil.walk_packages(prompts.__path__, "prompts."):
        if module.name.startswith(_NO_STEPS):
            continue
        for value in vars(import_module(module.name)).values():
            ours = (
                inspect.isclass(value)
                and issubclass(value, Step)
                and value.__module__ == module.name
            )
            if ours and hasattr(value, "step"):
                classes.setdefault(value.step, []).append(value)
    return {
        name: tuple(sorted(classes[name], key=lambda step: len(step.__mro__)))
        for name in sorted(classes)
    }


def build(step: type[Step], **settings: object) -> Step:
    """A step with the settings that its constructor takes, such as `models` and `language`."""
    parameters = inspect.signature(step.__init__).parameters
    factory: Callable[..., Step] = step
    return factory(**{name: value for name, value in settings.items() if name in parameters})


_STRUCTURES: Mapping[str, StructureName] = {
    f"{Structurize.step}_{form}": form for form in Structurize.forms
}


def instruction_names() -> list[str]:
    """The names that a user's own instructions may have: the steps, and structurize's forms."""
    return sorted([*steps(), *_STRUCTURES])


def forms(name: str, models: Models, **settings: object) -> list[Step]:
    """The step with these settings, once for each of its forms, or only in the form named."""
    if name in _STRUCTURES:
        return [Structurize(models, _STRUCTURES[name])]
    if name == Structurize.step:
        return [Structurize(models, form) for form in Structurize.forms]
    return [build(kind, models=models, **settings) for kind in steps()[name]]


def misfit(program: Program) -> str:
    """What a folder should hold instead of this compiled step; empty where it can be loaded."""
    name, shape = str(program["step"]), program["shape"]
    if name not in steps():
        return f"a program for one of the steps {', '.join(steps())}, not for {name!r}"
    if name == Route.step and shape == LINEAR:
        try:
            classifier_of(program)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return f"a classifier as `trellis train router` writes it ({error})"
        return ""
    known = forms(name, Models.offline())
    fitting = [step.module for step in known if step.module.shape == shape]
    if not fitting:
        shapes = "; ".join(step.module.shape for step in known)
        return (
            f"a program compiled with this version: the step {name!r} is now ({shapes}), that was "
            f"({shape})"
        )
    try:
        fitting[0].load_state(dict(program))
    except ModelMisconfigured as problem:
        return f"a program compiled with this version: {problem.message}"
    return ""
