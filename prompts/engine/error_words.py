"""What the error body of a server says: JSON of any form, a page of HTML, or plain text."""

import json
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser

# The keys under which servers put their words, in the order in which they are read.
_SAYING = (
    "error", "message", "msg", "detail", "details", "error_msg", "error_message", "status_msg",
    "errors", "base_resp", "metadata", "raw", "reason", "title",
)  # fmt: skip
_CODES = ("code", "type", "error_code")
_DEEPEST = 6  # bodies within bodies: gateways quote one another


def words_of(body: str) -> str:
    """The words of an error body, on one line; the body itself where it has no known form."""
    data = _parsed(body)
    if data is None:
        words = _text_of_page(body) if body.lstrip()[:1] == "<" else body
    else:
        words = "; ".join(dict.fromkeys(_said(data))) or body
    return " ".join(words.split())


def as_openai_error(body: str) -> str:
    """The body as OpenAI's servers write it, which is the form that DSPy's client reads."""
    data = _parsed(body)
    outer = data if isinstance(data, dict) else {}
    inner = outer.get("error")
    told = inner if isinstance(inner, dict) else outer
    codes = {key: told[key] for key in _CODES if isinstance(told.get(key), str)}
    return json.dumps({"error": {**codes, "message": words_of(body)}})


class _Page(HTMLParser):
    """Gathers the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._unseen = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._unseen = tag in {"script", "style"}

    def handle_endtag(self, tag: str) -> None:
        self._unseen = False

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.texts.append(data)


def _text_of_page(body: str) -> str:
    page = _Page()
    page.feed(body)
    page.close()
    return " ".join(page.texts)


def _parsed(body: str) -> object | None:
    """The JSON value; None where the body is no object and no list."""
    if body.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(body)  # type: ignore[no-any-return]
    except (ValueError, RecursionError):
        return None


def _said(value: object, depth: int = 0) -> Iterator[str]:
    """The words in a value, the outer ones first."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str) and value.strip():
        quoted = _parsed(value)
        yield from [" ".join(value.split())] if quoted is None else _said(quoted, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _said(item, depth + 1)
    elif isinstance(value, dict):
        yield from _said_of(value, depth)


def _said_of(value: Mapping[str, object], depth: int) -> Iterator[str]:
    words = [text for key in _SAYING for text in _said(value.get(key), depth + 1)]
    if isinstance(place := value.get("loc"), list) and words:  # as FastAPI names a field
        words[0] = f"{'.'.join(map(str, place))}: {words[0]}"
    code = value.get("code")
    if isinstance(code, str) and not code.isdigit() and not any(code in text for text in words):
        words = [f"{words[0]} ({code})" if words else code, *words[1:]]
    yield from words
