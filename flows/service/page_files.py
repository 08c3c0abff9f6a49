"""The page's files as the service sends them: nothing from elsewhere, and no text of them runs."""

from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent / "page"
# What is sent to who has no key yet: the page asks for it.
PATHS = frozenset({"/", *(f"/{path.name}" for path in FOLDER.iterdir())})
HEADERS = {
    # Scripts, styles and data come from the service alone; no string becomes HTML or a script.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # asked for again, and answered by 304: a new version is seen
}


class PageFiles(StaticFiles):
    """The files of the page, to be mounted at / behind everything else."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Send a file with the headers that keep the page to itself."""
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response
