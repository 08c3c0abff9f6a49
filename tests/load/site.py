"""A site on this machine, which answers conditional requests as web servers do."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Page:
    """What the site sends for a path."""

    body: bytes = b""
    kind: str = "text/html"
    status: int = 200
    to: str = ""  # where a redirect leads
    tagged: bool = True

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:12]}"'


@dataclass
class Site:
    """The pages of a site by path, and what it was asked for: path and status."""

    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)
    passwords: set[str] = field(default_factory=set)
    url: str = ""

    def take_asked(self) -> list[tuple[str, int]]:
        """Return what was asked since the last time, sorted, for pages are fetched at once."""
        asked, self.asked = sorted(self.asked), []
        return asked


@contextmanager
def running_site() -> Iterator[Site]:
    """Serve a site until the end of the block."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = site.pages.get(self.path, Page(status=404))
            fresh = page.tagged and self.headers["If-None-Match"] == page.etag
            status = 304 if fresh else page.status
            site.asked.append((self.path, status))
            site.passwords |= {sent} if (sent := self.headers["Authorization"]) else set()
            self.send_response(status)
            headers = {"Content-Type": page.kind, "Location": page.to}
            headers |= {"ETag": page.etag if page.tagged and page.status == 200 else ""}
            body = page.body if status == 200 else b""
            for name, value in headers.items():
                if value:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep the output of tests clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
