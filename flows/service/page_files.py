"""The files of the page, sent with headers that forbid foreign content and inline scripts."""

from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent / "page"
# These need no key: the page itself asks the user for one.
PATHS = frozenset({"/", *(f"/{path.name}" for path in FOLDER.iterdir())})
HEADERS = {
    # Scripts, styles and data come only from the service; no string becomes HTML or a script.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # A browser asks again, so it sees a new version at once.
}


class PageFiles(StaticFiles):
    """The files of the page; mount it at / after all other routes."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Add the headers to a file."""
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response
