"""Opens the file system of an address (`s3://BUCKET/PREFIX`, `file:///FOLDER`) by fsspec.

A driver finds its credentials and its server by variables and files of its own (`AWS_PROFILE`,
`AWS_ENDPOINT_URL`): nothing of them is read, stored or shown here.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs

from storage.errors import StorageError, TrellisError, UsageError

EXTRAS = {"s3": "s3", "s3a": "s3"}  # the extra of ours that brings the driver


def is_address(value: object) -> bool:
    """Whether a value names a place by a protocol, not a folder."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", str(value)) is not None


def open_remote(address: str) -> tuple[AbstractFileSystem, str]:
    """Return the file system of an address, which keeps no listing, and the path in it.

    Raises UsageError where no driver for it is installed or known, or where it cannot be read.
    """
    protocol = address.partition("://")[0].lower()
    try:
        # An instance of its own: others could keep listings of what has changed since.
        fs, path = url_to_fs(address, use_listings_cache=False, skip_instance_cache=True)
    except ImportError as error:
        extra = EXTRAS.get(protocol)
        remedy = f"Run: pip install 'trellis-rag[{extra}]'" if extra else f"{error}."
        raise UsageError(f"No driver for {address} is installed.", remedy) from error
    except ValueError as error:
        problem = f"{address} is no address that can be opened ({error})."
        raise UsageError(problem, "Use one of fsspec, such as s3://BUCKET/PREFIX.") from error
    return fs, path.rstrip("/")


@contextmanager
def remote_faults(address: str) -> Iterator[None]:
    """Turn the errors of a driver into a StorageError about this address."""
    try:
        yield
    except TrellisError:
        raise
    except Exception as error:  # each driver has errors of its own
        words = (str(error).splitlines() or [""])[0][:200] or type(error).__name__
        remedy = (
            "Check the address, the network, and what the driver reads its credentials and its "
            "server from (for S3: AWS_PROFILE, AWS_ENDPOINT_URL)."
        )
        raise StorageError(address, f"it cannot be used ({words})", remedy) from error
