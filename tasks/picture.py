"""Picture: the pictures of what was read become text, written by a model that sees."""

from bisect import bisect_right
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace

from prompts.engine.errors import BudgetSpent
from prompts.engine.helper import helped
from prompts.engine.spending import SpendBudget
from prompts.picture import DESCRIPTION_TOKENS, ReadPicture
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
Describer = Callable[[str, bytes], Coroutine[object, object, str]]


@step("picture", PATIENT, asks_model=True)
async def describe(loaded: Loaded, reader: ReadPicture) -> Loaded:
    """Put the model's description in the place of each picture; equal ones are described once.

    A picture that the model has no usable answer about is left without one. A document that is
    nothing but such a picture is skipped.
    """

    async def described(beside: str, picture: bytes) -> str:
        return await helped(
            reader,
            lambda asked: asked.run(beside, picture),
            "the picture has no description",
            wanted=True,
        )

    return _with_texts(loaded, reader, await _descriptions(loaded, described))


async def described_before(loaded: Loaded, reader: ReadPicture) -> tuple[Loaded, int]:
    """Put in the descriptions that are kept from earlier calls, and count those to ask for.

    Instead of the latter stand as many words as a description has.
    """
    kept = ReadPicture(reader.models.within(SpendBudget(tokens=0)))
    unknown = 0

    async def described(beside: str, picture: bytes) -> str:
        nonlocal unknown
        try:
            return await kept.run(beside, picture)
        except BudgetSpent:
            unknown += 1
            return "word " * DESCRIPTION_TOKENS

    return _with_texts(loaded, reader, await _descriptions(loaded, described)), unknown


async def _descriptions(loaded: Loaded, describer: Describer) -> dict[str, str]:
    """Return the description of each picture by its marker."""
    beside: dict[str, str] = {}
    for part in loaded.parts:
        for found in MARKER.finditer(part.text):
            around = part.text[max(0, found.start() - BESIDE) : found.end() + BESIDE]
            beside.setdefault(found[1], f"{part.title}\n{MARKER.sub(GAP, around)}".strip())
    pictures = [marker for marker in beside if marker in loaded.figures]
    said = await gather_or_cancel(describer(beside[it], loaded.figures[it]) for it in pictures)
    return dict(zip(pictures, said, strict=True))


def _with_texts(loaded: Loaded, reader: ReadPicture, said: Mapping[str, str]) -> Loaded:
    by = reader.models.name(reader.role)
    texts = {
        marker: f"[Picture, described by {by}: {words}]" if words else ""
        for marker, words in said.items()
    }
    parts = [with_descriptions(part, texts) for part in loaded.parts]
    empty = [Skipped(path=part.path, reason=NO_TEXT) for part in parts if not part.text.strip()]
    kept = tuple(part for part in parts if part.text.strip())
    skipped = (*loaded.skipped, *empty)
    return loaded.model_copy(update={"parts": kept, "skipped": skipped, "figures": {}})


def with_descriptions(part: Part, texts: Mapping[str, str]) -> Part:
    """Return a part with a text, as a paragraph, for each picture; all places move with it.

    An empty text leaves nothing of the picture.
    """
    pieces, ends, shifts, at = list[str](), list[int](), [0], 0
    for found in MARKER.finditer(part.text):
        if (words := texts.get(found[1])) is None:  # Somebody has written it.
            continue
        gaps = [GAP if found.start() > 0 else "", GAP if found.end() < len(part.text) else ""]
        shown = words.join(gaps) if words else min(gaps)
        pieces += [part.text[at : found.start()], shown]
        at = found.end()
        ends.append(at)
        shifts.append(shifts[-1] + len(shown) - len(found[0]))
    if not ends:
        return part

    def moved(offset: int) -> int:
        return offset + shifts[bisect_right(ends, offset)]

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
