"""Describe: the pictures of what was read become text, written by a model that sees."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace

from prompts.describe import Describe
from prompts.engine.helper import helped
from storage.records import Part, Skipped
from tasks.batches import gather_or_cancel
from tasks.load.pictures import MARKER
from tasks.load.sources import Loaded
from tasks.load.tables import moved_table
from tasks.retrying import PATIENT
from tasks.step import step

BESIDE = 300  # characters before and after a picture, where its caption stands
GAP = "\n\n"
NO_TEXT = "nothing is recognised in it, and the model did not describe it"


@step("describe", PATIENT, asks_model=True)
async def describe(loaded: Loaded, describer: Describe) -> Loaded:
    """Put the model's description in the place of each picture, equal ones described once.

    A picture that the model has no usable answer about is left without one. A document that is
    nothing but such a picture is skipped.
    """
    beside: dict[str, str] = {}
    for part in loaded.parts:
        for found in MARKER.finditer(part.text):
            around = part.text[max(0, found.start() - BESIDE) : found.end() + BESIDE]
            beside.setdefault(found[1], f"{part.title}\n{MARKER.sub(' ', around)}".strip())
    pictures = [marker for marker in beside if marker in loaded.figures]
    descriptions = await gather_or_cancel(
        helped(
            describer,
            lambda step, marker=marker: step.run(beside[marker], loaded.figures[marker]),
            "it has no description",
            wanted=True,
        )
        for marker in pictures
    )
    texts = {
        marker: f"[Picture, described by {describer.models.name(describer.role)}: {words}]"
        for marker, words in zip(pictures, descriptions, strict=True)
        if words
    }
    parts = [with_descriptions(part, texts) for part in loaded.parts]
    empty = [Skipped(path=part.path, reason=NO_TEXT) for part in parts if not part.text.strip()]
    kept = tuple(part for part in parts if part.text.strip())
    return loaded.model_copy(
        update={"parts": kept, "skipped": (*loaded.skipped, *empty), "figures": {}}
    )


def with_descriptions(part: Part, texts: Mapping[str, str]) -> Part:
    """Return a part with a text, as a paragraph, for each picture; all places move with it."""
    pieces, ends, shifts, at = list[str](), list[int](), [0], 0
    for found in MARKER.finditer(part.text):
        words = texts.get(found[1], "")
        gaps = [GAP if found.start() > 0 else "", GAP if found.end() < len(part.text) else ""]
        shown = words.join(gaps) if words else min(gaps)
        pieces += [part.text[at : found.start()], shown]
        at = found.end()
        ends.append(at)
        shifts.append(shifts[-1] + len(shown) - len(found[0]))
    if not ends:
        return part

    def moved(offset: int) -> int:
        return offset + shifts[bisect_left(ends, offset + 1)]

    return replace(
        part,
        text="".join(pieces) + part.text[at:],
        pages=tuple(map(moved, part.pages)),
        tables=tuple(moved_table(table, moved) for table in part.tables),
        recognized=tuple(
            replace(it, start=moved(it.start), end=moved(it.start) + it.end - it.start)
            for it in part.recognized
        ),
    )
