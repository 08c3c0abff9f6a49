"""Writes a small workspace for later versions to read: `python -m tests.storage.make_format`.

Run it once for each schema version, and keep what it wrote.
"""

import asyncio
import tempfile
from pathlib import Path

from flows.index import IndexOptions, build_index
from storage.archive import write_archive
from storage.database import SCHEMA_VERSION
from tests.workspaces import opened, quays, write_rows


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        source, workspace = Path(name, "quays.jsonl"), Path(name, "ws")
        for count in (3, 4):
            rows = write_rows(source, quays(count))
            asyncio.run(build_index([rows], IndexOptions(), opened(workspace)))
        write_archive(workspace, Path(__file__).with_name(f"format_{SCHEMA_VERSION}.tar.gz"))


if __name__ == "__main__":
    main()
