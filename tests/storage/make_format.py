"""Writes a small workspace as this version does, to be opened by later ones: `python -m
tests.storage.make_format`.

To be run once for each version of the schema, before the next one comes; what it wrote stays.
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
        asyncio.run(build_index([write_rows(source, quays(3))], IndexOptions(), opened(workspace)))
        asyncio.run(build_index([write_rows(source, quays(4))], IndexOptions(), opened(workspace)))
        write_archive(workspace, Path(__file__).with_name(f"format_{SCHEMA_VERSION}.tar.gz"))


if __name__ == "__main__":
    main()
