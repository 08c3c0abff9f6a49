"""How are bytes told to people?"""

from collections.abc import Sequence

from flows.cli.screen import Screen
from storage.generations import GenerationSize, WorkspaceSizes
from storage.side import SidePart


def in_words(number: int) -> str:
    """Bytes as MB or GB."""
    return f"{number / 1e6:.1f} MB" if number < 1e9 else f"{number / 1e9:.2f} GB"


def show_sizes(found: WorkspaceSizes, caches: Sequence[SidePart], screen: Screen) -> None:
    """What each part of a workspace takes (`caches`: of a cache folder), what bounds it, what a clean-up frees."""
    screen.line("On disk", style="bold")
    rows = [(f"generation {one.number}", _generation(one)) for one in found.generations]
    rows += [(part.name, _part(part)) for part in found.side]
    rows += [(f"{part.name} (cache folder)", _part(part)) for part in caches]
    rows += [
        ("the file of these", f"{in_words(found.side_bytes)}, {in_words(found.holes_bytes)} of it empty"),
        ("left by runs", in_words(found.leftover_bytes)),
        *([("set aside", in_words(found.set_aside_bytes))] if found.set_aside_bytes else []),
        ("all of it", in_words(found.total_bytes)),
        ("`trellis clean`", f"frees about {in_words(found.freed_bytes)}"),
    ]
    screen.facts(rows, indent=2)


def _generation(one: GenerationSize) -> str:
    notes = [word for word, holds in (("current", one.current), ("read now", one.read), ("old", one.goes)) if holds]
    return ", ".join([in_words(one.size_bytes), *notes])


def _part(part: SidePart) -> str:
    most = f"{part.most_rows} rows" if part.most_rows else in_words(part.most_bytes or 0)
    return f"{part.rows} rows, {in_words(part.size_bytes)} (at most {most})"
