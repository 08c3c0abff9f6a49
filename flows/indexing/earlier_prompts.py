"""Prompts that a new version of the program words otherwise: what the earlier ones made stays until `--remake`.

The hash of a prompt is part of the hash of what was made with it, so that another prompt makes just that anew. Where
nobody but a new version has changed it, the run keeps what there is, says so, and leaves the decision to its user.
"""

from flows.runtime import Runtime
from prompts.tailoring.values import Tailoring
from storage.errors import NoGeneration
from storage.meta import MetaReader
from storage.records import content_id
from storage.run_records import KeptPrompts
from storage.staging import Staging

AUTHORS = "authors"  # key in `meta`: by step who made it, and the hash of the user's settings that had a part in it


def with_earlier_prompts(runtime: Runtime, remake: bool) -> tuple[Runtime, KeptPrompts | None]:
    """The runtime that goes on as the current generation was made, where only a new version's prompts speak against
    it; else the runtime itself."""
    try:
        generation = runtime.workspace.read()
    except NoGeneration:
        return runtime, None
    with generation:
        noted = _noted(generation.meta)
    kept = {
        step: author
        for step, (author, settings) in noted.items()
        if step in runtime.makers
        and not runtime.makers[step].is_offline
        and author != runtime.authors[step]
        and settings == _settings_of(step, runtime)
    }
    if remake or not kept:
        return runtime, None
    return runtime.counted_as(kept), KeptPrompts(steps=tuple(sorted(kept)))


def in_words(kept: KeptPrompts) -> str:
    """What was kept, and why, in a sentence."""
    return (
        f"This version words the prompts of {', '.join(kept.steps)} otherwise. What models made with the earlier ones "
        "stays as it is until you ask for it with --remake."
    )


def author_of(step: str, meta: MetaReader, runtime: Runtime) -> str:
    """Who made a generation's work of this step; whoever would make it now where that was not noted."""
    return _noted(meta).get(step, (runtime.authors[step], ""))[0]


def note_makers(staging: Staging, runtime: Runtime) -> None:
    """Note in a generation who made it, for the next version."""
    made = {step: [author, _settings_of(step, runtime)] for step, author in runtime.authors.items()}
    staging.meta.put_meta(AUTHORS, {**made})


def _noted(meta: MetaReader) -> dict[str, tuple[str, str]]:
    noted = meta.get_meta(AUTHORS)
    pairs = noted.items() if isinstance(noted, dict) else ()
    return {step: (str(pair[0]), str(pair[1])) for step, pair in pairs if isinstance(pair, list)}


def _settings_of(step: str, runtime: Runtime) -> str:
    """The hash of all that a user has said of how a step works."""
    settings, models = runtime.settings, runtime.models
    said = [models.name(runtime.makers[step].role), models.instructions.get(step, "")]
    if step != "resolve":
        said.append(settings.tailoring.digest(*Tailoring.model_fields))
    if step == "extract":
        said += [str(settings.gleanings), str(settings.claims), models.instructions.get("glean", "")]
    return content_id("set", *said)
