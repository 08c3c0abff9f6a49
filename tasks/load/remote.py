"""Remote sources: what a store or a site lists, fetched only where it has changed.

Stores (S3, Google, Azure, GitHub) are opened by fsspec, pages by httpx. A version (an etag, a
revision, or time and size) tells whether an object is still what the index holds. A source is an
object, a folder, a pattern, a page, a sitemap, or a local file that lists pages. No link in a
document is followed, and a page may redirect to its own host only.
"""

import glob
import gzip
import io
import netrc
import os
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Protocol

import httpx
from lxml import etree

from prompts.engine.key_masking import mask_keys
from storage.documents import PartSummary
from storage.errors import SourceNotFound, SourceUnreachable, UsageError
from storage.records import DeadLetter, Part, Skipped, by_key, content_id
from storage.remote import PAGES, checked_address, is_address, open_store
from storage.workspace_db import ObjectNote, ObjectNotes
from tasks.load.discover import NamedSource, SourceFile, file_of, is_ignored, printable
from tasks.load.encodings import Unreadable, codec_of
from tasks.load.loaders import loaders
from tasks.load.text import one_line

GONE = "gone"  # begins the reason of an object that is there no longer
CHANGING = "it is being written: index again when that is done"
_PROGRAM = version("trellis-rag")
_MOST_REDIRECTS = 10
_LONGEST_WAIT = 30.0  # seconds for a server to answer or to go on
_LONGEST_FETCH = 600.0  # seconds for one page
_LARGEST_SITEMAP = 52_428_800  # bytes unpacked, as sitemaps.org limits them
_DEFAULT_PORTS = {"http": 80, "https": 443}
_VERSIONS = ("ETag", "etag", "sha", "generation")
_TIMES = ("LastModified", "last_modified", "updated", "mtime")
_CONDITIONS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
_HTML = {"text/html": ".html", "application/xhtml+xml": ".xhtml"}
_OFFICE = "application/vnd.openxmlformats-officedocument."
_ENDINGS = {
    **_HTML,
    "text/plain": ".txt",
    "text/markdown": ".md",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "application/json": ".json",
    "application/jsonl": ".jsonl",
    "application/x-ndjson": ".jsonl",
    "application/pdf": ".pdf",
    f"{_OFFICE}wordprocessingml.document": ".docx",
    f"{_OFFICE}presentationml.presentation": ".pptx",
    f"{_OFFICE}spreadsheetml.sheet": ".xlsx",
}

# Returns how many bytes a file of this name may have; raises `Unreadable` for another format.
Largest = Callable[[PurePosixPath], int]


class Gone(Unreadable):
    """Raised where an object that was listed is there no longer."""


@dataclass(frozen=True, slots=True)
class RemoteObject:
    """An object as it was listed; a page tells its version and size only when it is fetched."""

    address: str
    version: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """The content of an object; `served_as` is the name that tells its format, if not its own."""

    data: bytes
    version: str
    served_as: str = ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """An object of a source: its content, or the note of an unchanged one, or a problem."""

    file: SourceFile
    data: bytes = b""
    version: str = ""
    note: ObjectNote | None = None
    problem: str = ""


def too_large(most: int) -> str:
    """Return the reason why a file of more bytes is not read."""
    if most >= 1 << 30:
        return "larger than 1 GiB"
    return "larger than 100 MB: divide it, or make it JSON Lines of smaller documents"


# --- what the index holds ---


class Seen:
    """What earlier runs noted of remote objects. A note counts if the index holds just that."""

    def __init__(
        self,
        parts: Iterable[PartSummary] = (),
        notes: ObjectNotes | None = None,
        anew: bool = False,
        describes: bool = False,
    ) -> None:
        """`parts` are those of the index; with `anew` everything is fetched again, `describes`: a
        model describes pictures.
        """
        remote = (part for part in parts if is_address(part.path))
        self._held = by_key(((part.source, file_of(part.path)), part) for part in remote)
        self._notes = notes
        self._anew = anew
        # Another version, or what is installed beside it, may read more of the same object.
        readers = (str(find_spec(name) is not None) for name in ("rapidocr", "pypandoc"))
        self._readers = " ".join((_PROGRAM, *readers, str(describes), *sorted(loaders())))
        self._new: dict[str, ObjectNote] = {}

    def held(self, file: SourceFile) -> list[PartSummary]:
        """Return the parts that the index holds of an object."""
        return self._held.get((file.source, file_of(file.path)), [])

    def notes(self, files: Sequence[SourceFile]) -> dict[str, ObjectNote]:
        """Return the notes on objects that the index holds as they were read, by address."""
        if self._notes is None or self._anew or not self._held:
            return {}
        keys = {self._key(file): file for file in files}
        return {
            keys[key].path: note
            for key, note in self._notes.get_many(keys).items()
            if note.held == _digest(self.held(keys[key]))
        }

    def add(
        self, arrival: Arrival, parts: Sequence[Part], letters: tuple[DeadLetter, ...] = ()
    ) -> None:
        """Note what was read of an object that has a version."""
        note = ObjectNote(version=arrival.version, held=_digest(parts), dead_letters=letters)
        self._new |= {self._key(arrival.file): note} if arrival.version else {}

    def add_skipped(self, arrival: Arrival, reason: str) -> None:
        """Note why an object cannot be read; the index keeps what it holds of it."""
        held = _digest(self.held(arrival.file))
        note = ObjectNote(version=arrival.version, held=held, skipped=reason)
        self._new |= {self._key(arrival.file): note} if arrival.version else {}

    def _key(self, file: SourceFile) -> str:
        return content_id("obj", self._readers, file.source, file.path)

    def save(self) -> None:
        """Store the new notes."""
        if self._notes is not None and self._new:
            self._notes.put_many(self._new)


def _digest(parts: Iterable[Part | PartSummary]) -> str:
    return content_id("held", *sorted(f"{it.document}\n{it.kind}\n{it.hash}" for it in parts))


# --- what a source lists ---


class Remote(Protocol):
    """A remote source that is open; `ahead` objects of it are fetched at a time."""

    ahead: ClassVar[int]

    def objects(self, skipped: list[Skipped]) -> list[RemoteObject]:
        """List the source; raises SourceNotFound and SourceUnreachable."""

    def fetch(self, found: RemoteObject, known: str, largest: Largest) -> Fetched | None:
        """Fetch an object, or return None if it still has the known version.

        Raises `Unreadable` and the errors of the driver.
        """

    def close(self) -> None: ...


def arrivals(
    source: NamedSource, seen: Seen, largest: Largest, skipped: list[Skipped]
) -> Iterator[Arrival]:
    """Yield the objects of a source in its order, fetched a few at a time.

    Raises SourceNotFound and SourceUnreachable where the source cannot be listed.
    """
    pages = source.kind == "list" or source.key.startswith(PAGES)
    remote: Remote = PageSource(source) if pages else StoreSource(source.key)
    with closing(remote), ThreadPoolExecutor(remote.ahead) as pool:
        objects = remote.objects(skipped)
        files = [_file(source, found) for found in objects]
        notes = seen.notes(files)
        waiting = deque[Future[Arrival]]()
        for found, file in zip(objects, files, strict=True):
            note = notes.get(file.path)
            waiting.append(pool.submit(_arrive, remote, found, file, note, largest))
            if len(waiting) > remote.ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _file(source: NamedSource, found: RemoteObject) -> SourceFile:
    address = printable(found.address)
    return SourceFile(source=printable(source.key), path=address, id=address)


def _arrive(
    remote: Remote, found: RemoteObject, file: SourceFile, note: ObjectNote | None, largest: Largest
) -> Arrival:
    if note and found.version == note.version:
        return Arrival(file, note=note)
    try:
        fetched = _fetch(remote, found, note.version if note else "", largest)
    except Gone as reason:
        if file.path == file.source:
            raise SourceNotFound(file.path) from reason
        return Arrival(file, problem=f"{GONE} ({reason})")
    except Unreadable as reason:
        return Arrival(file, problem=str(reason))
    if fetched is None:
        return Arrival(file, note=note)
    file = file.model_copy(update={"served_as": fetched.served_as})
    return Arrival(file, fetched.data, fetched.version)


def _fetch(remote: Remote, found: RemoteObject, known: str, largest: Largest) -> Fetched | None:
    """Fetch an object; raises `Unreadable` whatever goes wrong, and `Gone`."""
    try:
        return remote.fetch(found, known, largest)
    except Unreadable:
        raise
    except FileNotFoundError as error:
        raise Gone("not found") from error
    except Exception as error:  # Drivers promise no types; one object must not cost the others.
        words = one_line(mask_keys(f"{type(error).__name__}: {error}"))[:200]
        raise Unreadable(f"unreadable ({words})") from error


# --- stores ---


class StoreSource:
    """An object, a folder or a pattern in a store."""

    ahead: ClassVar[int] = 8

    def __init__(self, address: str) -> None:
        """Open the store. Raises SourceUnreachable, and UsageError for another form of address."""
        self._address = address.rstrip("/")
        self._store, root = open_store(address)
        self._root = root.rstrip("/")
        if not self._address.endswith(self._root):
            raise UsageError(
                f"{address} is read as {self._root}.", "Write STORE://BUCKET/PATH, and no more."
            )
        end = len(self._address) - len(self._root)
        self._before = self._address[:end] if self._root else f"{self._address}/"

    def objects(self, skipped: list[Skipped]) -> list[RemoteObject]:
        """List the objects by name, without hidden ones and those of ignored folders."""
        try:
            listed = self._listed()
        except FileNotFoundError as error:
            raise SourceNotFound(self._address) from error
        except Exception as error:  # Drivers promise no types.
            raise SourceUnreachable(self._address, error) from error
        base = self._root
        if glob.has_magic(base):
            parts = PurePosixPath(base).parts
            plain = next(n for n, part in enumerate(parts) if glob.has_magic(part))
            base = "/".join(parts[:plain])
        return [
            RemoteObject(self._before + name, _version(info), info.get("size"))
            for name, info in sorted(listed.items())
            if info.get("type") == "file" and not name.endswith("/")
            if not any(is_ignored(part) for part in name.removeprefix(base).split("/") if part)
            or name == self._root
        ]

    def _listed(self) -> Mapping[str, Mapping[str, Any]]:
        store, root = self._store, self._root
        if not root:
            return self._below(root)
        if glob.has_magic(root) and not store.exists(root):
            found: dict[str, Mapping[str, Any]] = {}
            for name, info in store.glob(root, detail=True).items():
                found |= self._below(name) if info.get("type") == "directory" else {name: info}
            if not found:
                raise FileNotFoundError(root)
            return found
        info = store.info(root)
        return self._below(root) if info.get("type") == "directory" else {root: info}

    def _below(self, folder: str) -> dict[str, Mapping[str, Any]]:
        return dict(self._store.find(folder, detail=True))

    def fetch(self, found: RemoteObject, known: str, largest: Largest) -> Fetched | None:
        """Fetch an object by one request, of the size that was listed."""
        most = largest(PurePosixPath(found.address.lower()))
        if found.size == 0:
            return Fetched(b"", found.version)
        if found.size is not None and found.size > most:
            raise Unreadable(too_large(most))
        name = found.address[len(self._before) :]
        end = most if found.size is None else found.size
        data = bytes(self._store.cat_file(name, start=0, end=end + 1))
        if found.size is not None and len(data) != found.size:
            raise Unreadable(CHANGING)
        return Fetched(data, found.version)

    def close(self) -> None:
        """Leave the store to its driver, which closes it with the last reference."""


def _version(info: Mapping[str, Any]) -> str:
    named = next((f"{name} {info[name]}" for name in _VERSIONS if info.get(name)), "")
    changed = next((f"{info[name]} {info.get('size')}" for name in _TIMES if info.get(name)), "")
    return named or changed


# --- pages ---


class PageSource:
    """A page, the pages of a sitemap, or the pages that a local file lists."""

    ahead: ClassVar[int] = 4

    def __init__(self, source: NamedSource) -> None:
        self._source = source
        self._client = httpx.Client(
            auth=_own_passwords(),
            headers={"User-Agent": f"trellis-rag/{_PROGRAM}"},
            timeout=_LONGEST_WAIT,
        )

    def close(self) -> None:
        self._client.close()

    def objects(self, skipped: list[Skipped]) -> list[RemoteObject]:
        """List the pages in the order of their sitemap or list, each once."""
        key = self._source.key
        if self._source.kind == "list":
            addresses = _of_list(Path(key))
        elif httpx.URL(key).path.lower().endswith((".xml", ".xml.gz")):
            addresses = self._of_sitemap(key, skipped) or [key]
        else:
            addresses = [key]
        return [RemoteObject(address) for address in dict.fromkeys(addresses)]

    def _of_sitemap(self, address: str, skipped: list[Skipped], inner: bool = False) -> list[str]:
        """Return the addresses in a sitemap, or in those of an index; nothing of other XML.

        Addresses of another host are skipped. Raises SourceNotFound and SourceUnreachable.
        """
        try:
            fetched = self._get(address, "", lambda _: _LARGEST_SITEMAP)
            root = _parse(fetched.data if fetched else b"")
        except Gone as error:
            raise SourceNotFound(address) from error
        except (
            Unreadable,
            httpx.HTTPError,
            etree.LxmlError,
            zlib.error,
            EOFError,
            OSError,
        ) as error:
            raise SourceUnreachable(address, error) from error
        kind = etree.QName(root).localname
        if kind not in {"urlset", "sitemapindex"} and not inner:
            return []
        if kind != "urlset" and inner:
            raise SourceUnreachable(address, Unreadable("no sitemap, as its index says"))
        listed = []
        for place in root.iterfind("{*}url/{*}loc" if kind == "urlset" else "{*}sitemap/{*}loc"):
            named = (place.text or "").strip()
            try:
                page = checked_address(named)
            except UsageError as error:
                skipped.append(Skipped(path=printable(address), reason=str(error)))
                continue
            if _same_site(httpx.URL(address), httpx.URL(page)):
                listed.append(page)
            else:
                reason = "of another host than its sitemap: name it as a source to read it"
                skipped.append(Skipped(path=printable(page), reason=reason))
        if kind == "urlset":
            return listed
        return [page for inside in listed for page in self._of_sitemap(inside, skipped, True)]

    def fetch(self, found: RemoteObject, known: str, largest: Largest) -> Fetched | None:
        return self._get(found.address, known, largest)

    def _get(self, address: str, known: str, largest: Largest) -> Fetched | None:
        """Get a page, or None if it still has the known version.

        Raises `Unreadable`, and `Gone` where the server says so.
        """
        kind, _, value = known.partition(" ")
        headers = {_CONDITIONS[kind]: value} if value else {}
        request = self._client.build_request("GET", address, headers=headers)
        for _ in range(_MOST_REDIRECTS):
            with closing(self._client.send(request, stream=True)) as response:
                if response.next_request is None:
                    return _content(response, largest)
                following = response.next_request
            if not _same_site(request.url, following.url):
                host = following.url.host
                raise Unreadable(f"redirected to another place ({host}): name that as a source")
            request = following
        raise Unreadable(f"redirected more than {_MOST_REDIRECTS} times")


def _own_passwords() -> httpx.Auth | None:
    """Return the user's passwords for hosts from ~/.netrc or the file that NETRC names, if any."""
    try:
        return httpx.NetRCAuth(os.environ.get("NETRC"))
    except FileNotFoundError:
        return None
    except (netrc.NetrcParseError, OSError) as error:
        where = f"line {error.lineno}" if isinstance(error, netrc.NetrcParseError) else str(error)
        raise UsageError(f"The file .netrc cannot be read ({where}).", "Correct it.") from None


def _of_list(path: Path) -> list[str]:
    """Return the addresses of pages in a file, one a line; `#` begins a remark.

    Raises UsageError for another line.
    """
    addresses = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
        named = line.strip()
        if named and not named.startswith("#"):
            if not named.lower().startswith(PAGES) or not is_address(named):
                problem = "is no address of a page (https://…)"
                remedy = "A list holds pages; name buckets as sources of their own."
                raise UsageError(f"Line {number} of {path} {problem}.", remedy)
            addresses.append(checked_address(named))
    return addresses


def _parse(data: bytes) -> Any:
    if data.startswith(b"\x1f\x8b"):
        data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(_LARGEST_SITEMAP + 1)
    if len(data) > _LARGEST_SITEMAP:
        raise Unreadable("a sitemap of more than 50 MB: divide it")
    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))


def _same_site(url: httpx.URL, other: httpx.URL) -> bool:
    """Say whether another address has the same host and port, or is the same by https."""

    def site(it: httpx.URL) -> tuple[str, str, int | None]:
        return it.scheme, it.host, it.port or _DEFAULT_PORTS.get(it.scheme)

    return site(url) == site(other) or (site(url), site(other)) == (
        ("http", url.host, 80),
        ("https", url.host, 443),
    )


def _content(response: httpx.Response, largest: Largest) -> Fetched | None:
    status = response.status_code
    if status == httpx.codes.NOT_MODIFIED:
        return None
    words = f"HTTP {status} {response.reason_phrase}".strip()
    if status in {httpx.codes.NOT_FOUND, httpx.codes.GONE}:
        raise Gone(words)
    if not response.is_success:
        raise Unreadable(f"unreadable ({words})")
    name, most = _format(response, largest)
    data, started = bytearray(), time.monotonic()
    for block in response.iter_bytes():
        data += block
        if len(data) > most:
            raise Unreadable(too_large(most))
        if time.monotonic() - started > _LONGEST_FETCH:
            raise Unreadable(f"unreadable (not sent within {_LONGEST_FETCH:.0f} s)")
    told = ((kind, response.headers.get(kind)) for kind in _CONDITIONS)
    known = next((f"{kind} {value}" for kind, value in told if value), "")
    return Fetched(_in_utf8(bytes(data), response), known, name)


def _format(response: httpx.Response, largest: Largest) -> tuple[str, int]:
    """Return a name that tells the format of a page, and how many bytes it may have.

    HTML is what the server calls HTML; otherwise the ending of the address counts before the type.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    own = PurePosixPath(response.url.path).name or "page"
    by_type = f"page{_ENDINGS.get(kind, '')}"
    for name in (by_type, own) if kind in _HTML else (own, by_type):
        try:
            return name, largest(PurePosixPath(name.lower()))
        except Unreadable:
            continue
    raise Unreadable(f"unsupported type {kind or own}")


def _in_utf8(data: bytes, response: httpx.Response) -> bytes:
    """Return a text of the charset that only the server tells as UTF-8, anything else as it is."""
    codec = codec_of(response.charset_encoding or "")
    if not codec or b"\0" in data[:1000]:
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        try:
            return data.decode(codec).encode()
        except UnicodeDecodeError:
            return data
    return data
