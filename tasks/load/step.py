"""Load: the step that reads the sources."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from tasks.load.sources import Loaded, read_sources
from tasks.step import step


@step("load")
async def load(sources: Sequence[str | Path]) -> Loaded:
    """Read everything that the named sources hold; SourceNotFound before anything is read where one does not exist."""
    return await asyncio.to_thread(read_sources, sources)
