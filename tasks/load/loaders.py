"""Loaders of other packages, by the entry points of the group `trellis.loaders`.

The name of an entry point is the ending of the files that it reads, such as `pdf`; it comes before
our own reader of that ending. It names a function that returns the text of a file:

    def read(data: bytes, name: str) -> PageText: ...

`name` is the path of the file within its source. What the function raises is the reason why the
file is skipped.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TypeAlias

from tasks.load.encodings import Unreadable
from tasks.load.text import PageText, clean, join_pages

Loader: TypeAlias = Callable[[bytes, str], PageText]
GROUP = "trellis.loaders"


@cache
def loaders() -> Mapping[str, EntryPoint]:
    """Return the installed loaders by the ending of their files, with its dot, in lower case."""
    return {f".{entry.name.lower().lstrip('.')}": entry for entry in entry_points(group=GROUP)}


def read_by(entry: EntryPoint, data: bytes, name: str) -> PageText:
    """Read a file by the loader of another package.

    Raises `Unreadable` where the loader cannot be imported or returns something else.
    """
    try:
        load: Loader = entry.load()
    except (ImportError, AttributeError) as error:
        raise Unreadable(f"its loader {entry.value} cannot be loaded ({error})") from error
    page: object = load(data, name)  # Nothing has checked that it keeps to its type.
    if not isinstance(page, PageText):
        kind = type(page).__name__
        raise Unreadable(f"its loader {entry.value} returned no PageText but a {kind}")
    return _stored(page)


def _stored(page: PageText) -> PageText:
    """Clean the text as it is stored, page by page; then the places of tables no longer hold."""
    if clean(page.text) == page.text:
        return page
    starts = page.pages or (0,)
    pages = [
        clean(page.text[start:end])
        for start, end in zip((0, *starts[1:]), (*starts[1:], None), strict=True)
    ]
    text, cleaned = join_pages(pages, [""] * len(pages))
    return page.model_copy(
        update={"text": text, "pages": cleaned if page.pages else (), "tables": ()}
    )
