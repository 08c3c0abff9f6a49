"""Prompts that a new version of the program words otherwise: what they would make anew, and whether that waits.

The hash of a prompt is part of the hash of what was made with it, so that another prompt makes just that anew. Where
nobody but a new version has changed it, and that is much of a workspace, the run keeps what there is, says so, and
leaves the decision to its user (`--remake`).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from flows.runtime import NO_AUTHOR, Runtime
from prompts.resolve import PAIRS_IN_ONE_CALL
from prompts.tailoring import Tailoring
from storage.errors import NoGeneration
from storage.generations import Generation
from storage.meta import MetaReader
from storage.records import content_id
from storage.run_records import KeptPrompts
from storage.staging import Staging
from tasks.summarize import RELATIONS_IN_ONE_CALL

AUTHORS, MADE = "authors", "made"  # keys in `meta`
LIMIT = 0.3


@dataclass(frozen=True)
class _Maker:
    """Who made something, and the hash of the user's settings that had a part in it."""

    author: str
    settings: str


def with_earlier_prompts(runtime: Runtime, remake: bool) -> tuple[Runtime, KeptPrompts | None]:
    """The runtime that goes on as the current generation was made, where only a new version's prompts speak against
    it and that would make more than LIMIT anew; else the runtime itself."""
    try:
        generation = runtime.workspace.read()
    except NoGeneration:
        return runtime, None
    with generation:
        now, then = _makers(runtime), _stored(generation, runtime)
        kept = {
            step: maker.author
            for step, maker in then.items()
            if maker.settings == now[step].settings and maker.author != now[step].author and _asks(step, runtime)
        }
        if remake or not kept:
            return runtime, None
        made = _calls(generation, runtime)
    calls = sum(made.get(step, 0) for step in kept)
    share = calls / max(sum(made.values()), 1)
    if share <= LIMIT:
        return runtime, None
    steps = tuple(sorted(step for step in kept if made.get(step)))
    return runtime.counted_as(kept), KeptPrompts(steps=steps, share=round(share, 2), calls=calls)


def in_words(kept: KeptPrompts) -> str:
    """What was kept, and why, in a sentence."""
    return (
        f"This version words the prompts of {', '.join(kept.steps)} otherwise. {kept.share:.0%} of what models made "
        f"would be made anew (about {kept.calls:,} calls), so it stays as it is until you ask for it with --remake."
    )


def author_of(step: str, meta: MetaReader, runtime: Runtime) -> str:
    """Who made a generation's work of this step; whoever would make it now where that was not noted."""
    noted = meta.get_meta(AUTHORS)
    pair = noted.get(step) if isinstance(noted, dict) else None
    if isinstance(pair, list):
        return str(pair[0])
    return str(meta.get_meta("extractor") or runtime.authors[step])


def _makers(runtime: Runtime) -> dict[str, _Maker]:
    return {step: _Maker(author, _settings_of(step, runtime)) for step, author in runtime.authors.items()}


def _settings_of(step: str, runtime: Runtime) -> str:
    """The hash of all that a user has said of how a step works."""
    settings, models = runtime.settings, runtime.models
    said = [models.name(runtime.makers[step].role), models.instructions.get(step, "")]
    if step != "resolve":
        said.append(settings.tailoring.digest(*Tailoring.model_fields))
    if step == "extract":
        said += [str(settings.gleanings), str(settings.claims), models.instructions.get("glean", "")]
    return content_id("set", *said)


def _asks(step: str, runtime: Runtime) -> bool:
    return not runtime.makers[step].is_offline


def _stored(generation: Generation, runtime: Runtime) -> Mapping[str, _Maker]:
    """The makers of a generation. Of one that an earlier version made without noting them, only that they had the
    settings of today can be told; else there are none."""
    noted = generation.meta.get_meta(AUTHORS)
    if isinstance(noted, dict):
        found = {step: _Maker(str(pair[0]), str(pair[1])) for step, pair in noted.items() if isinstance(pair, list)}
        return {step: maker for step, maker in found.items() if step in runtime.makers}
    earlier = _unnoted(runtime)
    if runtime.counted_as(earlier).fingerprint != generation.meta.get_meta("fingerprint"):
        return {}
    return {step: _Maker(author, _settings_of(step, runtime)) for step, author in earlier.items()}


def _unnoted(runtime: Runtime) -> dict[str, str]:
    """What authors were called when prompts had no part in it."""
    settings, models = runtime.settings, runtime.models

    def named(step: str, *values: str) -> str:
        told = "" if models.is_offline(runtime.makers[step].role) else settings.tailoring.digest(*values)
        return models.name(runtime.makers[step].role) + (f", tailored {told}" if told else "")

    if models.is_offline("extract"):
        extract = runtime.authors["extract"]
    else:
        asked = f", {settings.gleanings} gleanings" if settings.gleanings else ""
        asked += ", claims" if settings.claims else ""
        told = settings.tailoring.digest(*Tailoring.model_fields)
        extract = models.name("extract") + asked + (f", tailored {told}" if told else "")
    return {
        "extract": extract,
        "resolve": models.name("resolve"),
        "summarize": named("summarize", "persona", "language"),
        "relate": NO_AUTHOR,
        "report": named("report", "persona", "language"),
    }


def _calls(generation: Generation, runtime: Runtime) -> dict[str, int]:
    """About how many calls of each step made what there is."""
    noted = generation.meta.get_meta(MADE)
    if isinstance(noted, dict):
        calls = {step: number for step, number in noted.items() if isinstance(number, int)}
    else:
        counts = generation.meta.counts()
        calls = {"extract": counts["chunks"], "report": counts["reports"]}
    return {step: number for step, number in calls.items() if step in runtime.makers and _asks(step, runtime)}


def note_makers(staging: Staging, runtime: Runtime) -> None:
    """Note in a generation who made it, and about how many calls that takes, for the next version."""
    described = Counter(item.partition("_")[0] for item in staging.descriptions.inputs())
    made: dict[str, JsonValue] = {
        "extract": sum(chunk.kind == "text" for chunk in staging.documents.chunks()),
        "resolve": -(-len(staging.resolutions.decisions()) // PAIRS_IN_ONE_CALL),
        "summarize": described["ent"],
        "relate": -(-described["rel"] // RELATIONS_IN_ONE_CALL),
        "report": len(staging.communities.reports()),
    }
    staging.meta.put_meta(AUTHORS, {step: [maker.author, maker.settings] for step, maker in _makers(runtime).items()})
    staging.meta.put_meta(MADE, made)
