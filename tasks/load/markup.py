"""HTML as text: headings as `# …` lines, lists and tables as Markdown, without scripts and navigation."""

import re

from storage.records import Record, Scalar
from tasks.load.plain import clean, one_line

_DROPPED = ["script", "style", "noscript", "template", "nav", "svg", "iframe", "form", "button", "select", "head"]
_BLANKS = re.compile(r"\n{3,}")
_TRAILING = re.compile(r"[ \t\u00a0]+$", re.MULTILINE)


class Page(Record):
    """Readable text, the title that the markup gives (or empty), and metadata."""

    text: str
    title: str
    metadata: dict[str, Scalar]


def read_html(markup: str | bytes) -> Page:
    """The page; bytes are decoded as the page itself declares, else as they look."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(markup, "lxml")
    metadata: dict[str, Scalar] = {}
    for name in ("author", "description", "date", "keywords"):
        tag = soup.find("meta", attrs={"name": name})
        if tag and tag.get("content"):
            metadata[name] = clean(one_line(str(tag["content"])))
    given = soup.title.get_text() if soup.title else ""
    for tag in soup(_DROPPED):
        tag.decompose()
    for tag in soup.select('[hidden], [aria-hidden="true"], [role="navigation"]'):
        tag.decompose()
    top = soup.find("h1")
    title = one_line(given) or (one_line(top.get_text()) if top else "")
    return Page(text=to_markdown(str(soup.body or soup)), title=clean(title), metadata=metadata)


def to_markdown(markup: str) -> str:
    """Stored text of an HTML fragment; links and emphasis keep their words only, so that quotes read as on the page."""
    from markdownify import markdownify

    text = markdownify(
        markup,
        heading_style="ATX",
        bullets="-",
        strip=["a", "b", "strong", "i", "em", "img", "code"],
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
        newline_style="backslash",
        table_infer_header=True,
    )
    text = clean(text).replace("\\\n", "\n")
    return _BLANKS.sub("\n\n", _TRAILING.sub("", text)).strip("\n")
