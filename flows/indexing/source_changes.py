"""Changes of the sources and of prompts since the current generation.

The hash of a prompt is part of the hash of what was made with it, so that another prompt makes
exactly that anew. If only a new version of the program has changed the prompt, the run keeps what
there is and says so; the user decides (`--remake`).
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from flows.runtime import Runtime, usage_of
from prompts.tailoring import Tailoring
from storage.errors import NoGeneration, NothingToIndex
from storage.facts import LeftOutCount
from storage.provenance import SCHEMA, MetaStore
from storage.records import Chunk, DeadLetter, Skipped, content_id
from storage.run_records import CommunityQuality, IndexReport, KeptPrompts
from storage.staging import Staging
from tasks.chunk import chunk
from tasks.load.discover import file_of
from tasks.load.remote import Seen
from tasks.load.sources import Loaded
from tasks.step import step
from tasks.sync import SyncPlan, exclude_forgotten, holds, plan_sync, with_gone_inside

COMMUNITY_QUALITY = "community_quality"  # key in `meta`
COUNTED = ("chunks", "entities", "relations", "claims", "communities", "reports", "dead_letters")


@dataclass(frozen=True)
class SourceChanges:
    """What was read from the sources and the current generation before anything is written."""

    loaded: Loaded
    plan: SyncPlan
    full: bool
    generation: int | None
    fingerprint: str
    letters: tuple[DeadLetter, ...] = ()

    @property
    def outdated_letters(self) -> list[str]:
        """The items of stored dead letters of the sources that were read again."""
        return [
            letter.item
            for letter in self.letters
            if letter.step == "load"
            and (
                file_of(letter.item) in self.loaded.addresses
                or any(holds(source, letter.item) for source in self.loaded.sources)
            )
        ]

    @property
    def retry(self) -> bool:
        """Whether dead letters alone are a reason to run: failed work, or other failing rows."""
        rows = {letter.item for letter in self.loaded.dead_letters}
        return any(letter.step != "load" for letter in self.letters) or rows != set(
            self.outdated_letters
        )

    @property
    def weights(self) -> dict[tuple[str, str], float]:
        """The weight of each triple of the new documents, by document and rendered line."""
        return {
            (document.id, triple.rendered()): triple.weight
            for document in self.plan.put
            for part in document.parts
            for triple in part.triples
        }


def seen_before(runtime: Runtime, *, describes: bool = False, anew: bool = False) -> Seen:
    """Return what the current generation holds of remote objects, and the notes on them.

    With `anew` the run fetches all of them again. `describes`: a model describes pictures.
    """
    try:
        with runtime.workspace.read() as generation:
            parts = generation.documents.parts()
    except NoGeneration:
        parts = []
    return Seen(parts, runtime.workspace.database.objects, anew, describes)


@step("sync")
async def sync(loaded: Loaded, full: bool, allow_removals: bool, runtime: Runtime) -> SourceChanges:
    """Compare the sources with the current generation.

    Raises NothingToIndex if there is no generation and the sources hold nothing.
    """
    try:
        generation = runtime.workspace.read()
    except NoGeneration:
        plan = plan_sync(loaded, (), lambda _: (), allow_removals)
        if not plan.put:
            skipped = [f"{file.path} ({file.reason})" for file in loaded.skipped]
            failed = [f"{letter.item} ({letter.error})" for letter in loaded.dead_letters]
            raise NothingToIndex(loaded.sources, [*skipped, *failed]) from None
        return SourceChanges(loaded, plan, full, None, "")
    with generation:
        stored = generation.documents
        known = stored.parts()
        loaded = exclude_forgotten(
            with_gone_inside(loaded, known),
            stored.forgotten(),
            stored.forgotten_texts(),
            {part.document for part in known},
        )
        plan = plan_sync(loaded, known, stored.documents, allow_removals, anew=full)
        fingerprint = str(generation.meta.get_meta("fingerprint"))
        if fingerprint != runtime.fingerprint or full:
            # Another chunk size, model or embedder: make everything again from the stored texts.
            everything = {document.id: document for document in (*stored.documents(), *plan.put)}
            kept = sorted(everything.keys() - set(plan.removed))
            plan = plan.model_copy(update={"put": tuple(everything[name] for name in kept)})
        letters = tuple(generation.extractions.dead_letters())
        return SourceChanges(loaded, plan, full, generation.number, fingerprint, letters)


def nothing_new(changes: SourceChanges, runtime: Runtime) -> bool:
    """Whether the current generation is up to date with the sources and the settings."""
    return (
        changes.generation is not None
        and changes.plan.nothing_to_do
        and changes.fingerprint == runtime.fingerprint
    )


def only_failed_again(
    changes: SourceChanges, staging: Staging, runtime: Runtime, derived: bool = False
) -> bool:
    """Whether a run only tried failed work again, and all of it failed again.

    Before the graph is `derived`, this is known only if all failures are passages or rows.
    """
    tried, left = (
        {(letter.item, letter.step) for letter in letters}
        for letters in (changes.letters, staging.extractions.dead_letters())
    )
    known = derived or all(step in ("extract", "load") for _, step in tried)
    return nothing_new(changes, runtime) and known and tried == left


async def chunk_documents(
    plan: SyncPlan, staging: Staging, runtime: Runtime
) -> tuple[list[Chunk], set[str]]:
    """Cut and store new documents, and remove lost ones.

    Returns the chunks of the whole generation, and the documents whose chunks or their places have
    changed.
    """
    chunks = await chunk(plan.put, runtime.settings.chunk_tokens, runtime.settings.chunk_overlap)
    owners = {*plan.removed, *(document.id for document in plan.put)}
    stored = staging.documents
    before, after = (
        {(part.document, part.id, part.start) for part in parts}
        for parts in (stored.chunks(documents=owners), chunks)
    )
    with staging.transaction():
        stored.remove_documents(list(plan.removed))
        stored.put_documents(list(plan.put))
        stored.put_chunks(list(chunks), documents=[document.id for document in plan.put])
    return stored.chunks(), {document for document, _, _ in before ^ after}


def _unread(runtime: Runtime) -> Iterator[Skipped]:
    """Yield the answers of models that were not in the form that was asked for."""
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


def _left_out(counts: Sequence[LeftOutCount]) -> Iterator[Skipped]:
    """Yield what breaks the schema, of each type and reason how often, with one case."""
    for row in counts:
        number = f"{row.facts} {'fact' if row.facts == 1 else 'facts'}"
        case = f"{row.subject}: {row.value}"
        yield Skipped(
            path=f"schema: {row.type}", reason=f"left out {number}: {row.reason} ({case})"
        )


def report_of(
    changes: SourceChanges,
    runtime: Runtime,
    started: float,
    published: int | None,
    kept_prompts: KeptPrompts | None,
) -> IndexReport:
    """Return the report of a run that published generation `published`, or nothing (None)."""
    with runtime.workspace.read(published) as generation:
        counts = generation.meta.counts()
        number, quality = generation.number, generation.meta.get_meta(COMMUNITY_QUALITY)
        left_out = generation.facts.left_out()
    seconds = time.monotonic() - started
    return IndexReport(
        generation=number,
        published=published is not None,
        documents=changes.plan.counts,
        skipped=(*changes.loaded.skipped, *_unread(runtime), *_left_out(left_out)),
        **{name: counts[name] for name in COUNTED},
        usage=usage_of(runtime.models.meter, seconds),
        seconds=seconds,
        kept_prompts=kept_prompts,
        changed_answers=(),
        community_quality=None if quality is None else CommunityQuality.model_validate(quality),
    )


# --- prompts of earlier versions ------------------------------------------------------------------

# Key in `meta`: the author of each step, and the hash of the user's settings for it.
AUTHORS = "authors"


def with_earlier_prompts(runtime: Runtime, remake: bool) -> tuple[Runtime, KeptPrompts | None]:
    """Return a runtime with the authors of the current generation, if only a new version's prompts
    differ; otherwise the runtime itself.
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
    """Say what was kept, and why."""
    return (
        f"This version has other prompts for {', '.join(prompts.steps)}. What models made with the "
        "earlier ones is kept until you run with --remake."
    )


def author_of(step: str, meta: MetaStore, runtime: Runtime) -> str:
    """Return the author of a step in a generation; if not noted, the author of now, which is empty
    where the settings leave the step out.
    """
    return _noted(meta).get(step, (runtime.authors.get(step, ""), ""))[0]


@step("publish")
async def publish(staging: Staging, runtime: Runtime) -> int:
    """Make the staging the current generation; return its number."""
    staging.meta.put_meta("fingerprint", runtime.fingerprint)
    staging.meta.put_meta(SCHEMA, runtime.settings.graph_schema.model_dump(mode="json"))
    note_makers(staging, runtime)
    return staging.publish()


def note_makers(staging: Staging, runtime: Runtime) -> None:
    """Note in a generation the author of each step."""
    makers: dict[str, JsonValue] = {
        step: [author, _settings_of(step, runtime)] for step, author in runtime.authors.items()
    }
    staging.meta.put_meta(AUTHORS, makers)


def _noted(meta: MetaStore) -> dict[str, tuple[str, str]]:
    noted = meta.get_meta(AUTHORS)
    pairs = noted.items() if isinstance(noted, dict) else ()
    return {step: (str(pair[0]), str(pair[1])) for step, pair in pairs if isinstance(pair, list)}


def _settings_of(step: str, runtime: Runtime) -> str:
    """Return the hash of all that the user has set for a step."""
    settings, models = runtime.settings, runtime.models

    def own_prompts(name: str) -> list[str]:
        programs = [program for program in models.programs if program["step"] == name]
        hashes = [content_id("prg", repr(program)) for program in programs]
        return [models.instructions.get(name, ""), *hashes]

    settled = [models.name(runtime.makers[step].role), *own_prompts(step)]
    if step != "resolve":
        settled.append(settings.tailoring.digest(*Tailoring.model_fields))
    if step == "extract":
        settled += [str(settings.gleanings), str(settings.claims), *own_prompts("glean")]
        settled.append(settings.graph_schema.digest)
    return content_id("set", *settled)
