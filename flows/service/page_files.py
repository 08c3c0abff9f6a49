"""The page's files as the service sends them, and /docs, the page of its interface: nothing from elsewhere, and nothing
that is text runs."""

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent / "page"
# What is sent to who has no key yet: the page asks for it.
PATHS = frozenset({"/", *(f"/{path.name}" for path in FOLDER.iterdir())})
# Scripts, styles and data come from the service alone; no string becomes HTML or a script.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # asked for again, and answered by 304: a new version is seen at once
}


class PageFiles(StaticFiles):
    """The files of the page, to be mounted at / behind everything else."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file, with the headers that keep the page to itself."""
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response


# --- /docs -----------------------------------------------------------------------------------------------------------

_STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;"
    "padding:0 1rem}code{font-size:.9em}summary{cursor:pointer}td{padding:.1rem .8rem .1rem 0;vertical-align:top}"
)


def api_page(description: Mapping[str, Any]) -> str:
    """The page of an OpenAPI description."""
    groups: dict[str, list[str]] = {}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            entry = "".join(_operation(method, path, operation, description))
            groups.setdefault((operation.get("tags") or ["service"])[0], []).append(entry)
    body = "".join(f"<h2>{escape(name)}</h2>{''.join(entries)}" for name, entries in groups.items())
    info = description["info"]
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{escape(info['title'])} API</title><style>{_STYLE}</style><h1>{escape(info['title'])} "
        f"{escape(info['version'])}</h1><p>{escape(info['description'])}</p><p>For programs: <a href=openapi.json>"
        f"openapi.json</a></p>{body}</html>"
    )


def _operation(method: str, path: str, operation: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[str]:
    yield f"<details><summary><code>{method.upper()} {escape(path)}</code></summary>"
    yield f"<p>{escape(operation.get('description', ''))}</p><table>"
    for parameter in operation.get("parameters", ()):
        yield _row(parameter["name"], parameter.get("schema", {}), parameter.get("required", False))
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    schema = whole["components"]["schemas"].get(content.get("$ref", "").rpartition("/")[2], {})
    for name, field in schema.get("properties", {}).items():
        yield _row(name, field, name in schema.get("required", ()))
    yield "</table></details>"


def _row(name: str, field: Mapping[str, Any], required: bool) -> str:
    kinds = [part.get("type", part.get("$ref", "").rpartition("/")[2]) for part in (field, *field.get("anyOf", ()))]
    kind = ", ".join(kind for kind in kinds if kind and kind != "null")
    note = "required" if required else f"default {field['default']}" if field.get("default") is not None else ""
    cells = (f"<code>{escape(name)}</code>", escape(kind), escape(note), escape(field.get("description", "")))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
