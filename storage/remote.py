"""Addresses of remote files and of published indexes, and the stores behind them, which fsspec
opens.

Credentials are the business of the drivers (environment variables, profiles, roles of the
machine): an address that holds one is refused, because addresses are stored and shown.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import fsspec
from fsspec import AbstractFileSystem

from storage.errors import (
    SourceNotFound,
    SourceUnreachable,
    StorageError,
    TrellisError,
    UsageError,
)

# The extra that brings the driver of each kind of address. Pages are read by httpx.
DRIVERS = {"s3": "s3", "gs": "gcs", "az": "azure", "github": "github"}
PAGES = ("http", "https")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_REPOSITORY = re.compile(r"[^:@/]+:[^:@/]+@[^@/]+(?:/|$)")
# Names in a query that carry a key or a signature, as in presigned addresses of S3 and Azure.
_SECRET_NAMES = re.compile(
    r"(?:x-(?:amz|goog)-(?:credential|security-token|signature)|awsaccesskeyid|signature|sig"
    r"|(?:access_|auth_)?token|api_?key|key|password|secret)",
    re.IGNORECASE,
)
_REMEDY = (
    "Leave it out: the driver takes it from where its manual says, such as AWS_PROFILE, "
    "GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_CONNECTION_STRING, or for pages ~/.netrc."
)


def is_address(source: object) -> bool:
    """Say whether a source is an address, such as s3://bucket/folder, and not a path."""
    return isinstance(source, str) and _ADDRESS.match(source) is not None


def checked_address(address: str) -> str:
    """Return an address in the form in which it is stored.

    Raises UsageError where it is of a kind that cannot be read, where its driver is missing, and
    where it holds a password, a key or a signature; the error does not repeat that.
    """
    scheme, _, rest = address.partition("://")
    scheme = scheme.lower()
    if scheme not in (*DRIVERS, *PAGES) or (scheme in DRIVERS and "::" in rest):
        kinds = ", ".join(f"{known}://" for known in (*DRIVERS, *PAGES))
        raise UsageError(f"Addresses of the form {scheme}:// cannot be read.", f"Use {kinds}.")
    if scheme == "github" and not _REPOSITORY.match(rest):
        raise UsageError("The address names no version.", "Write github://OWNER:REPO@REF/PATH.")
    if scheme in DRIVERS:
        owner = "" if scheme == "github" else rest.partition("/")[0]
        _refuse_secret(scheme, rest, "@" in owner)
        _require_driver(scheme)
        if not rest.strip("/"):
            raise UsageError(f"{scheme}:// names no place.", "Write it as in s3://BUCKET/PATH.")
        return f"{scheme}://{rest.rstrip('/')}"
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:  # Its words may repeat a password.
        raise UsageError("This is no address of a page.", "Write https://HOST/PAGE.") from None
    signed = any(_SECRET_NAMES.fullmatch(name) for name, _ in parse_qsl(parts.query))
    _refuse_secret(scheme, f"{host}{parts.path}", signed or "@" in parts.netloc)
    if not host:
        raise UsageError(f"{address} names no host.", "Write https://HOST/PAGE.")
    host = f"[{host}]" if ":" in host else host
    place = host if port is None else f"{host}:{port}"
    return urlunsplit((scheme, place, parts.path or "/", parts.query, ""))


def _refuse_secret(scheme: str, rest: str, holds_one: bool) -> None:
    if holds_one:
        shown = f"{scheme}://{rest.rpartition('@')[2]}"
        raise UsageError(f"The address {shown} was given with a key or password.", _REMEDY)


def _require_driver(scheme: str) -> None:
    try:
        fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        raise UsageError(
            f"Addresses of the form {scheme}:// need a driver that is not installed.",
            f"pip install 'trellis-rag[{DRIVERS[scheme]}]'",
        ) from error


def open_store(address: str) -> tuple[AbstractFileSystem, str]:
    """Open the store of a checked address; return it, and the path in it.

    Listings are not kept, so that a later look sees what has changed.

    Raises SourceNotFound and SourceUnreachable.
    """
    try:
        store, path = fsspec.url_to_fs(address, skip_instance_cache=True, use_listings_cache=False)
    except FileNotFoundError as error:
        raise SourceNotFound(address) from error
    except Exception as error:  # Drivers promise no types.
        raise SourceUnreachable(address, error) from error
    return store, str(path)


def open_remote(address: str) -> tuple[AbstractFileSystem, str]:
    """Return the file system of an address, which keeps no listing, and the path in it.

    Raises UsageError where no driver for it is installed or known, or where it cannot be read.
    """
    protocol = address.partition("://")[0].lower()
    try:
        # An instance of its own: others could keep listings of what has changed since.
        fs, path = fsspec.url_to_fs(address, use_listings_cache=False, skip_instance_cache=True)
    except ImportError as error:
        extra = DRIVERS.get(protocol)
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
