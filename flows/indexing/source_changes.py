"""Changes: what the sources say against the current generation, what of it the next one takes over
(sync), and what of it was made with prompts that a new version of the program words otherwise.

The hash of a prompt is part of the hash of what was made with it, so that another prompt makes just
that anew. Where nobody but a new version has changed it, the run keeps what there is, says so, and
leaves the decision to its user (`--remake`).
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from flows.runtime import Runtime, usage_of
from prompts.tailoring import Tailoring
from storage.errors import NoGeneration, NothingToIndex
from storage.provenance import MetaStore
from storage.records import Chunk, DeadLetter, Skipped, content_id
from storage.run_records import CommunityQuality, IndexReport, KeptPrompts
from storage.staging import Staging
from tasks.chunk import chunk
from tasks.load.sources import Loaded
from tasks.step import step
from tasks.sync import SyncPlan, exclude_forgotten, holds, plan_sync, with_gone_inside

COMMUNITY_QUALITY = "community_quality"  # key in `meta`


@dataclass(frozen=True)
class SourceChanges:
    """What was read from the sources and from the current generation before anything is written."""

    loaded: Loaded
    plan: SyncPlan
    full: bool
    generation: int | None
    fingerprint: str
    letters: tuple[DeadLetter, ...] = ()

    @property
    def outdated_letters(self) -> list[str]:
        """The items of stored dead letters from the sources that were read again: what still fails
        is reported anew.
        """
        return [
            letter.item
            for letter in self.letters
            if letter.step == "load"
            and any(holds(source, letter.item) for source in self.loaded.sources)
        ]

    @property
    def retry(self) -> bool:
        """Whether dead letters alone are a reason to run: work to try again, or rows that fail or
        no longer do.
        """
        rows = {letter.item for letter in self.loaded.dead_letters}
        return any(letter.step != "load" for letter in self.letters) or rows != set(
            self.outdated_letters
        )

    @property
    def weights(self) -> dict[tuple[str, str], float]:
        """The weight of each triple of the documents that are stored anew, by document and rendered
        line.
        """
        return {
            (d.id, t.rendered()): t.weight
            for d in self.plan.put
            for part in d.parts
            for t in part.triples
        }


@step("sync")
async def sync(loaded: Loaded, full: bool, allow_removals: bool, runtime: Runtime) -> SourceChanges:
    """Compare the sources with the current generation; NothingToIndex where there is none and they
    hold nothing.
    """
    try:
        generation = runtime.workspace.read()
    except NoGeneration:
        plan = plan_sync(loaded, (), lambda _: (), allow_removals)
        if not plan.put:
            skipped = [
                f"{skipped_file.path} ({skipped_file.reason})" for skipped_file in loaded.skipped
            ]
            failed = [f"{letter.item} ({letter.error})" for letter in loaded.dead_letters]
            raise NothingToIndex(loaded.sources, [*skipped, *failed]) from None
        return SourceChanges(loaded, plan, full, None, "")
    with generation:
        known, forgotten = generation.documents.parts(), generation.documents.forgotten()
        loaded = with_gone_inside(loaded, known)
        loaded = exclude_forgotten(
            loaded,
            forgotten,
            generation.documents.forgotten_texts(),
            {part.document for part in known},
        )
        plan = plan_sync(loaded, known, generation.documents.documents, allow_removals, anew=full)
        fingerprint = str(generation.meta.get_meta("fingerprint"))
        if fingerprint != runtime.fingerprint or full:
            # Another chunk size, model or embedder: everything is made again from the stored texts.
            everything = {d.id: d for d in generation.documents.documents()} | {
                d.id: d for d in plan.put
            }
            documents = tuple(
                everything[name] for name in sorted(set(everything) - set(plan.removed))
            )
            plan = plan.model_copy(update={"put": documents})
        letters = tuple(generation.extractions.dead_letters())
        return SourceChanges(loaded, plan, full, generation.number, fingerprint, letters)


def nothing_new(changes: SourceChanges, runtime: Runtime) -> bool:
    """Whether the current generation holds what the sources say, made as it would be made now."""
    return (
        changes.generation is not None
        and changes.plan.nothing_to_do
        and changes.fingerprint == runtime.fingerprint
    )


def only_failed_again(
    changes: SourceChanges, staging: Staging, runtime: Runtime, derived: bool = False
) -> bool:
    """Whether a run that had nothing but failed work to try again ends with the same failures: then
    nothing is new.

    Before what follows from the passages is `derived`, that is known only where nothing of it
    failed.
    """
    tried, left = (
        {(letter.item, letter.step) for letter in of}
        for of in (changes.letters, staging.extractions.dead_letters())
    )
    known = derived or all(step in ("extract", "load") for _, step in tried)
    return nothing_new(changes, runtime) and known and tried == left


async def chunk_documents(
    plan: SyncPlan, staging: Staging, runtime: Runtime
) -> tuple[list[Chunk], set[str]]:
    """Cut what is new and store it; what has gone is removed with all it had.

    Gives the chunks of the whole generation, and the documents that have other chunks than before,
    or some at another place.
    """
    chunks = await chunk(plan.put, runtime.settings.chunk_tokens, runtime.settings.chunk_overlap)
    owners = {*plan.removed, *(document.id for document in plan.put)}
    before = {
        (chunk.document, chunk.id, chunk.start)
        for chunk in staging.documents.chunks(documents=owners)
    }
    after = {(chunk.document, chunk.id, chunk.start) for chunk in chunks}
    with staging.transaction():
        staging.documents.remove_documents(list(plan.removed))
        staging.documents.put_documents(list(plan.put))
        staging.documents.put_chunks(list(chunks), documents=[document.id for document in plan.put])
    return staging.documents.chunks(), {document for document, _, _ in before ^ after}


def _unread(runtime: Runtime) -> Iterator[Skipped]:
    """What models wrote in another form than was asked for, told as what was not read."""
    for asked, model, spent in runtime.models.meter.rows():
        if lines := spent.unread_lines:
            number = f"{lines} {'line' if lines == 1 else 'lines'}"
            reason = f"left out {number} of its answers that hold no record"
            yield Skipped(path=f"{asked} ({model})", reason=reason)
    for row in runtime.models.meter.degraded():
        yield Skipped(
            path=row.step,
            reason=f"no usable answer {row.times} times, so {row.instead}: {row.reason}",
        )


def report_of(
    changes: SourceChanges,
    runtime: Runtime,
    started: float,
    published: int | None,
    kept_prompts: KeptPrompts | None,
) -> IndexReport:
    """The report of a run that published `published`, or found nothing to do (None)."""
    with runtime.workspace.read(published) as generation:
        counts = generation.meta.counts()
        number, quality = generation.number, generation.meta.get_meta(COMMUNITY_QUALITY)
    counted = (
        "chunks",
        "entities",
        "relations",
        "claims",
        "communities",
        "reports",
        "dead_letters",
    )
    seconds = time.monotonic() - started
    return IndexReport(
        generation=number,
        published=published is not None,
        documents=changes.plan.counts,
        skipped=(*changes.loaded.skipped, *_unread(runtime)),
        **{name: counts[name] for name in counted},
        usage=usage_of(runtime.models.meter, seconds),
        seconds=seconds,
        kept_prompts=kept_prompts,
        changed_answers=(),
        community_quality=None if quality is None else CommunityQuality.model_validate(quality),
    )


# --- prompts of earlier versions ------------------------------------------------------------------

# key in `meta`: by step who made it, and the hash of the user's settings that had a part in it
AUTHORS = "authors"


def with_earlier_prompts(runtime: Runtime, remake: bool) -> tuple[Runtime, KeptPrompts | None]:
    """The runtime that goes on as the current generation was made, where only a new version's
    prompts speak against it; else the runtime itself.
    """
    try:
        generation = runtime.workspace.read()
    except NoGeneration:
        return runtime, None
    with generation:
        noted = _noted(generation.meta)
    authors = {
        step: author
        for step, (author, settings) in noted.items()
        if step in runtime.makers
        and not runtime.makers[step].is_offline
        and author != runtime.authors[step]
        and settings == _settings_of(step, runtime)
    }
    if remake or not authors:
        return runtime, None
    return runtime.counted_as(authors), KeptPrompts(steps=tuple(sorted(authors)))


def in_words(prompts: KeptPrompts) -> str:
    """What was kept, and why, in a sentence."""
    return (
        f"This version words the prompts of {', '.join(prompts.steps)} otherwise. What models made "
        "with the earlier ones stays as it is until you ask for it with --remake."
    )


def author_of(step: str, meta: MetaStore, runtime: Runtime) -> str:
    """Who made a generation's work of this step; whoever would make it now where that was not
    noted.
    """
    return _noted(meta).get(step, (runtime.authors[step], ""))[0]


@step("publish")
async def publish(staging: Staging, runtime: Runtime) -> int:
    """Make what was built the current generation, with a note of who made it; its number."""
    staging.meta.put_meta("fingerprint", runtime.fingerprint)
    note_makers(staging, runtime)
    return staging.publish()


def note_makers(staging: Staging, runtime: Runtime) -> None:
    """Note in a generation who made it, for the next version."""
    makers: dict[str, JsonValue] = {
        step: [author, _settings_of(step, runtime)] for step, author in runtime.authors.items()
    }
    staging.meta.put_meta(AUTHORS, makers)


def _noted(meta: MetaStore) -> dict[str, tuple[str, str]]:
    noted = meta.get_meta(AUTHORS)
    pairs = noted.items() if isinstance(noted, dict) else ()
    return {step: (str(pair[0]), str(pair[1])) for step, pair in pairs if isinstance(pair, list)}


def _settings_of(step: str, runtime: Runtime) -> str:
    """The hash of all that a user has said of how a step works."""
    settings, models = runtime.settings, runtime.models
    settled = [models.name(runtime.makers[step].role), models.instructions.get(step, "")]
    settled += [
        content_id("prg", repr(program)) for program in models.programs if program["step"] == step
    ]
    if step != "resolve":
        settled.append(settings.tailoring.digest(*Tailoring.model_fields))
    if step == "extract":
        settled += [
            str(settings.gleanings),
            str(settings.claims),
            models.instructions.get("glean", ""),
        ]
        settled += [
            content_id("prg", repr(program))
            for program in models.programs
            if program["step"] == "glean"
        ]
    return content_id("set", *settled)
