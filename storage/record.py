"""What is a record, and how does it get its id?"""

import hashlib

from pydantic import BaseModel, ConfigDict


def content_id(prefix: str, *parts: str) -> str:
    """A stable id: `prefix_` and 16 hexadecimal digits of SHA-256 over the parts (kept apart by a separator)."""
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{prefix}_{digest[:16]}"


class Record(BaseModel):
    """Base of all records: immutable, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
