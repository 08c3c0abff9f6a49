"""Remote sources, against a site and an S3 server (moto) on this machine."""

import asyncio
import logging
import re
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.index import IndexOptions, build_index
from flows.operations.forget import forget
from storage.errors import SourceNotFound, SourceUnreachable, UsageError
from storage.run_records import DocumentCounts, IndexReport
from tasks.load.discover import NamedSource
from tasks.load.encodings import Unreadable
from tasks.load.remote import PageSource, RemoteObject, too_large
from tasks.load.sources import compose, read_sources
from tests.load.site import Page, Site, running_site
from tests.workspaces import opened

FERRY = "The ferry from Orrelin to Velin takes {} minutes."
SITEMAP = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'
INDEX = '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</sitemapindex>'


@pytest.fixture(name="site")
def _site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Site]:
    monkeypatch.setenv("HOME", str(tmp_path))  # whose .netrc would be read
    with running_site() as site:
        yield site


def html(text: str) -> Page:
    return Page(f"<html><body><p>{text}</p></body></html>".encode())


def index(folder: Path, *sources: str, full: bool = False, allow: bool = False) -> IndexReport:
    """Index sources into the workspace of a folder."""
    options = IndexOptions(full, allow)
    return asyncio.run(build_index(sources, options, opened(folder / "ws")))


def texts(folder: Path) -> dict[str, str]:
    """The stored texts by document."""
    with opened(folder / "ws").workspace.read() as generation:
        return {document.id: document.text for document in generation.documents.documents()}


def reasons(report: IndexReport) -> dict[str, str]:
    return {one.path: one.reason for one in report.skipped}


def list_of(folder: Path, site: Site) -> str:
    """A list of all pages of a site."""
    lines = ["# pages", "", *(site.url + path for path in site.pages)]
    path = folder / "pages.urls"
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


# --- pages ---


def test_a_page_is_sent_again_only_where_it_changed(site: Site, tmp_path: Path) -> None:
    site.pages = {f"/{n}": html(FERRY.format(n)) for n in range(4)}
    pages = list_of(tmp_path, site)
    assert index(tmp_path, pages).documents == DocumentCounts(added=4)
    assert site.take_asked() == [(f"/{n}", 200) for n in range(4)]
    site.pages["/2"] = html(FERRY.format("thirty"))
    report = index(tmp_path, pages)
    assert report.documents == DocumentCounts(changed=1, unchanged=3)
    assert site.take_asked() == [(f"/{n}", 200 if n == 2 else 304) for n in range(4)]
    assert texts(tmp_path)[f"{site.url}/2"] == FERRY.format("thirty")
    assert not index(tmp_path, pages).published
    site.take_asked()
    index(tmp_path, pages, full=True)
    assert site.take_asked() == [(f"/{n}", 200) for n in range(4)]


FAILURES = {
    "/0": (Page(status=500), "unreadable (HTTP 500 Internal Server Error)"),
    "/1": (Page(status=403), "unreadable (HTTP 403 Forbidden)"),
    "/2": (Page(b"x", kind="video/mp4"), "unsupported type video/mp4"),
    "/3": (Page(status=404), "gone (HTTP 404 Not Found)"),
    "/4": (Page(status=410), "gone (HTTP 410 Gone)"),
}


def test_a_page_that_fails_costs_only_itself(site: Site, tmp_path: Path) -> None:
    site.pages = {f"/{n}": html(FERRY.format(n)) for n in range(9)}
    pages = list_of(tmp_path, site)
    index(tmp_path, pages)
    site.pages |= {path: page for path, (page, _) in FAILURES.items()}
    report = index(tmp_path, pages)
    assert reasons(report) == {site.url + path: why for path, (_, why) in FAILURES.items()}
    assert report.documents == DocumentCounts(removed=2, unchanged=7)


def test_a_page_without_versions_is_compared_by_content(site: Site, tmp_path: Path) -> None:
    site.pages["/a"] = replace(html("Quay one."), tagged=False)
    for published in (True, False):
        assert index(tmp_path, f"{site.url}/a").published is published
    assert site.take_asked() == [("/a", 200)] * 2


def test_a_missing_page_as_a_source_is_an_error(site: Site, tmp_path: Path) -> None:
    site.pages["/a"] = html("Quay one.")
    index(tmp_path, f"{site.url}/a")
    site.pages.clear()
    with pytest.raises(SourceNotFound):
        index(tmp_path, f"{site.url}/a")
    assert list(texts(tmp_path)) == [f"{site.url}/a"]


def test_only_what_a_sitemap_lists_is_read(site: Site) -> None:
    linking = f'See <a href="{site.url}/hidden">this</a> <a href="/hidden">page</a>.'
    site.pages = {"/a": html(linking), "/b": html("Quay two."), "/hidden": html("No.")}
    entries = f"<url><loc>{site.url}/{{}}</loc></url>"
    other = "<url><loc>http://169.254.169.254/latest</loc></url>"
    listed = SITEMAP.format(entries.format("a") + other + entries.format("b") * 2)
    site.pages["/inner.xml"] = Page(listed.encode(), "application/xml")
    inner = INDEX.format(f"<sitemap><loc>{site.url}/inner.xml</loc></sitemap>")
    site.pages["/sitemap.xml"] = Page(inner.encode(), "application/xml")
    loaded = read_sources([f"{site.url}/sitemap.xml"])
    assert [part.document for part in loaded.parts] == [f"{site.url}/a", f"{site.url}/b"]
    assert {part.source for part in loaded.parts} == {f"{site.url}/sitemap.xml"}
    reason = "of another host than its sitemap: name it as a source to read it"
    assert [(one.path, one.reason) for one in loaded.skipped] == [
        ("http://169.254.169.254/latest", reason)
    ]
    assert "/hidden" not in dict(site.asked)


def test_a_sitemap_that_cannot_be_read_removes_nothing(site: Site, tmp_path: Path) -> None:
    listed = SITEMAP.format(f"<url><loc>{site.url}/a</loc></url>")
    site.pages = {"/a": html("Quay one."), "/s.xml": Page(listed.encode(), "text/xml")}
    index(tmp_path, f"{site.url}/s.xml")
    for failing in (Page(status=500), Page(b"<urlset><url>", "text/xml"), Page(kind="text/xml")):
        site.pages["/s.xml"] = failing
        with pytest.raises(SourceUnreachable):
            index(tmp_path, f"{site.url}/s.xml", allow=True)
    assert list(texts(tmp_path)) == [f"{site.url}/a"]


def test_an_entity_in_a_sitemap_reads_no_file(site: Site, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("top", encoding="utf-8")
    bomb = f'<!DOCTYPE a [<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
    listed = SITEMAP.format(f"<url><loc>{site.url}/&x;</loc></url>")
    site.pages["/s.xml"] = Page((bomb + listed).encode(), "text/xml")
    read_sources([f"{site.url}/s.xml"])
    assert not any("top" in path for path, _ in site.asked)


def test_a_redirect_is_followed_on_its_host_only(site: Site, tmp_path: Path) -> None:
    elsewhere = site.url.replace("127.0.0.1", "localhost")
    site.pages = {
        "/old": Page(status=301, to="/new"),
        "/new": html("Quay one."),
        "/away": Page(status=302, to=f"{elsewhere}/new"),
        "/round": Page(status=302, to="/round"),
    }
    report = index(tmp_path, list_of(tmp_path, site))
    assert texts(tmp_path) == {f"{site.url}/{name}": "Quay one." for name in ("old", "new")}
    assert reasons(report) == {
        f"{site.url}/away": "redirected to another place (localhost): name that as a source",
        f"{site.url}/round": "redirected more than 10 times",
    }


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/guide?id=7", "# Quay\n\nOne.", "text/markdown"),
        ("/guide.md", "# Quay\n\nOne.", "text/plain"),
        ("/guide.php", "<h1>Quay</h1><p>One.</p>", "text/html; charset=utf-8"),
        ("/", "<h1>Quay</h1><p>One.</p>", "text/html"),
        ("/blob/guide.md", "<h1>Quay</h1><p>One.</p>", "text/html"),
    ],
)
def test_the_format_of_a_page_is_found(site: Site, path: str, body: str, kind: str) -> None:
    site.pages[path] = Page(body.encode(), kind)
    (document,) = compose(read_sources([f"{site.url}{path}#part"]).parts)
    assert (document.id, document.text) == (site.url + path, "# Quay\n\nOne.")
    assert document.title == "Quay"


def test_the_charset_of_the_server_counts(site: Site) -> None:
    site.pages["/a.txt"] = Page(
        "渡轮每天早上八点从奥雷林出发。".encode("gbk"), "text/plain; charset=GBK"
    )
    (part,) = read_sources([f"{site.url}/a.txt"]).parts
    assert part.text == "渡轮每天早上八点从奥雷林出发。"


def test_a_page_is_not_read_beyond_its_limit(site: Site) -> None:
    site.pages["/a.txt"] = Page(b"x" * 1_000, "text/plain")
    address = f"{site.url}/a.txt"
    pages = PageSource(NamedSource(key=address, base=address, kind="remote"))
    with pytest.raises(Unreadable, match="larger than 100 MB"):
        pages.fetch(RemoteObject(address), "", lambda _: 100)
    pages.close()
    assert too_large(1 << 30) == "larger than 1 GiB"


def test_a_netrc_gives_the_password(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "passwords"
    netrc.write_text("machine 127.0.0.1 login me password made-up\nnonsense", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    with pytest.raises(UsageError) as refused:
        read_sources([f"{site.url}/a"])
    assert "made-up" not in str(refused.value)
    netrc.write_text("machine 127.0.0.1 login me password made-up", encoding="utf-8")
    site.pages["/a"] = html("Quay one.")
    assert len(read_sources([f"{site.url}/a"]).parts) == 1
    assert site.passwords == {f"Basic {b64encode(b'me:made-up').decode()}"}


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("https://me:made-up-secret@example.org/a", "given with a key or password"),
        ("https://made-up-secret@example.org/a", "given with a key or password"),
        ("https://example.org/a?X-Amz-Signature=made-up-secret", "given with a key or password"),
        ("https://c.blob.core.windows.net/a?sv=1&sig=made-up-secret", "given with a key"),
        ("s3://key:made-up-secret@bucket/a", "given with a key or password"),
        ("github://encode/httpx/docs", "OWNER:REPO@REF"),
        ("file:///etc/passwd", "file:// cannot be read"),
        ("s3://bucket/a::zip://b", "cannot be read"),
        ("https://", "names no host"),
        ("github:///", "names no version"),
        ("https://me:made-up-secret", "no address"),
        ("github://made-up-secret@github.com/a", "names no version"),
        ("https://[::1", "no address"),
    ],
)
def test_an_address_that_cannot_be_stored_is_refused(address: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as refused:
        read_sources([address])
    assert "made-up-secret" not in str(refused.value)


@pytest.mark.parametrize("line", ["s3://bucket/a", "/etc/passwd", "example.org"])
def test_a_list_holds_pages_only(tmp_path: Path, line: str) -> None:
    path = tmp_path / "pages.urls"
    path.write_text(f"# remark\n{line}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="Line 2 of"):
        read_sources([path])


def test_a_list_that_only_lies_in_a_folder_is_not_followed(site: Site, tmp_path: Path) -> None:
    site.pages["/a"] = html("Quay one.")
    list_of(tmp_path, site)
    assert read_sources([tmp_path]).parts == ()
    assert site.asked == []


def test_a_missing_driver_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    # Python's own way to say that a module cannot be imported.
    monkeypatch.setitem(sys.modules, "adlfs", None)
    with pytest.raises(UsageError, match=r"pip install 'trellis-rag\[azure\]'"):
        read_sources(["az://papers/docs"])


# --- a store ---


@pytest.fixture(scope="module", name="server")
def _server() -> Iterator[str]:
    pytest.importorskip("s3fs", reason="the extra s3 is not installed")
    moto = pytest.importorskip("moto.server", reason="moto is not installed")
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    server.stop()


class Bucket:
    """A bucket of the S3 server, and the keys that were fetched from it."""

    def __init__(self, client: Any, log: pytest.LogCaptureFixture) -> None:
        self._client, self._log = client, log
        self.name = "papers"

    def put(self, key: str, text: str | bytes) -> None:
        body = text if isinstance(text, bytes) else text.encode()
        self._client.put_object(Bucket=self.name, Key=key, Body=body)

    def remove(self, key: str) -> None:
        self._client.delete_object(Bucket=self.name, Key=key)

    def fetched(self) -> list[str]:
        """The keys that were fetched since the last time, sorted."""
        lines = [record.getMessage() for record in self._log.records]
        self._log.clear()
        return sorted(key for line in lines for key in re.findall(r"GET /papers/(\S+) HTTP", line))


SECRETS = {"AWS_ACCESS_KEY_ID": "made-up-key-id-4711", "AWS_SECRET_ACCESS_KEY": "made-up-key-4712"}


@pytest.fixture(name="bucket")
def _bucket(
    server: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[Bucket]:
    boto3 = pytest.importorskip("boto3")
    places = {"AWS_ENDPOINT_URL": server, "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in (SECRETS | places | {"AWS_MAX_ATTEMPTS": "1"}).items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket="papers")
    caplog.set_level(logging.INFO, logger="werkzeug")
    yield Bucket(client, caplog)
    for entry in client.list_objects_v2(Bucket="papers").get("Contents", ()):
        client.delete_object(Bucket="papers", Key=entry["Key"])
    client.delete_bucket(Bucket="papers")


def filled(bucket: Bucket) -> None:
    for name in ("a.md", "b.txt", "zh/渡轮.md", "deep/er/c 1.md"):
        bucket.put(f"docs/{name}", FERRY.format(name))
    bucket.put("docs/.git/config.md", "hidden")
    bucket.put("docs/tool.bin", "not a document")
    bucket.put("other.md", "outside of the folder")


DOCUMENTS = ["s3://papers/docs/a.md", "s3://papers/docs/b.txt", "s3://papers/docs/deep/er/c 1.md"]
ZH = "s3://papers/docs/zh/渡轮.md"


def test_only_what_changed_in_a_bucket_is_fetched(bucket: Bucket, tmp_path: Path) -> None:
    filled(bucket)
    report = index(tmp_path, "s3://papers/docs")
    assert report.documents == DocumentCounts(added=4)
    assert reasons(report) == {"s3://papers/docs/tool.bin": "unsupported type .bin"}
    assert sorted(texts(tmp_path)) == [*DOCUMENTS, ZH]
    assert len(bucket.fetched()) == 4
    assert not index(tmp_path, "s3://papers/docs/").published
    assert bucket.fetched() == []
    bucket.put("docs/a.md", FERRY.format("ninety"))
    bucket.remove("docs/b.txt")
    report = index(tmp_path, "s3://papers/docs")
    assert report.documents == DocumentCounts(changed=1, removed=1, unchanged=2)
    assert bucket.fetched() == ["docs/a.md"]
    assert texts(tmp_path)[DOCUMENTS[0]] == FERRY.format("ninety")
    stored = b"".join(path.read_bytes() for path in (tmp_path / "ws").rglob("*") if path.is_file())
    assert not [name for name, value in SECRETS.items() if value.encode() in stored]


@pytest.mark.parametrize(
    ("source", "documents"),
    [
        ("s3://papers/docs/zh/渡轮.md", [ZH]),
        ("s3://papers/docs/*.md", DOCUMENTS[:1]),
        ("s3://papers/docs/**/*.md", [DOCUMENTS[0], DOCUMENTS[2], ZH]),
        ("s3://papers/docs/*", [*DOCUMENTS, ZH]),
        ("s3://papers", [*DOCUMENTS, ZH, "s3://papers/other.md"]),
    ],
)
def test_an_object_a_pattern_and_a_bucket_are_sources(
    bucket: Bucket, source: str, documents: list[str]
) -> None:
    filled(bucket)
    assert [part.document for part in read_sources([source]).parts] == documents


def test_rows_and_their_dead_letters_outlast_a_run(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("rows.jsonl", '{"id": "r1", "text": "Quay one."}\n{"bad": 1}\n')
    bucket.put("broken.pdf", b"%PDF-1.4 broken")
    first = index(tmp_path, "s3://papers")
    assert (first.dead_letters, bucket.fetched()) == (1, ["broken.pdf", "rows.jsonl"])
    second = index(tmp_path, "s3://papers")
    assert not second.published
    assert (second.dead_letters, second.skipped, bucket.fetched()) == (1, first.skipped, [])


def test_a_row_of_a_new_file_leaves_a_kept_text_alone(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("a.jsonl", '{"id": "r1", "text": "Quay one."}')
    index(tmp_path, "s3://papers")
    bucket.put("b.jsonl", '{"id": "r1", "text": "Quay two."}')
    report = index(tmp_path, "s3://papers")
    assert (report.dead_letters, texts(tmp_path)) == (1, {"r1": "Quay one."})


def test_a_forgotten_object_stays_away(bucket: Bucket, tmp_path: Path) -> None:
    filled(bucket)
    index(tmp_path, "s3://papers/docs")
    asyncio.run(forget([ZH], opened(tmp_path / "ws")))
    report = index(tmp_path, "s3://papers/docs")
    assert (sorted(texts(tmp_path)), reasons(report)[ZH]) == (DOCUMENTS, f"forgotten: {ZH}")


def test_a_rollback_does_not_mistake_what_it_holds(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("a.md", "Quay one.")
    index(tmp_path, "s3://papers")
    bucket.put("a.md", "Quay two.")
    index(tmp_path, "s3://papers")
    opened(tmp_path / "ws").workspace.rollback(1)
    assert texts(tmp_path) == {"s3://papers/a.md": "Quay one."}
    assert index(tmp_path, "s3://papers").documents == DocumentCounts(changed=1)


def test_a_folder_covers_a_source_inside_of_it(bucket: Bucket, tmp_path: Path) -> None:
    filled(bucket)
    index(tmp_path, "s3://papers/docs/zh")
    bucket.put("docs/zh/渡轮.md", FERRY.format("九十"))
    report = index(tmp_path, "s3://papers/docs")
    assert report.documents == DocumentCounts(added=3, changed=1)
    bucket.remove("docs/zh/渡轮.md")
    assert index(tmp_path, "s3://papers/docs").documents.removed == 1


def test_a_store_that_cannot_be_listed_removes_nothing(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(bucket)
    index(tmp_path, "s3://papers/docs")
    for missing in ("s3://papers/none", "s3://papers/*.none", "s3://no-such-bucket/docs"):
        with pytest.raises(SourceNotFound, match=re.escape(missing)):
            index(tmp_path, missing, allow=True)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(SourceUnreachable, match="s3://papers/docs cannot be listed"):
        index(tmp_path, "s3://papers/docs", allow=True)
    assert len(texts(tmp_path)) == 4
