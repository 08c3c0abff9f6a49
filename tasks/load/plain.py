"""Text files: from their bytes to stored text and its title.

Stored text has `\\n` newlines only (form feeds and the like count as line breaks) and holds no lone surrogates and no
control characters but newline and tab, so that offsets mean the same for every reader.
"""

import codecs
import datetime
import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from storage.records import Scalar

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DETECTED = ["gb18030", "big5", "shift_jis", "euc_jp", "euc_kr", "cp1252", "cp1251"]
_BREAKS = re.compile("\r\n|[\r\v\f\x85]")
_UNWANTED = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_FRONT = re.compile(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|$)\n*", re.DOTALL)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_MARKS = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")
_LONGEST_TITLE = 100
_WORDS_OF_A_SENTENCE = 5
_LONGEST_FRONT = 65_536
_MOST_VALUES = 300


class Unreadable(Exception):
    """A file is not a document; the text is the reason that the report gives."""


def clean(text: str) -> str:
    """The text as it is stored."""
    text = text.removeprefix("\ufeff")
    if _BREAKS.search(text):
        text = _BREAKS.sub("\n", text)
    return _UNWANTED.sub("", text)


def read_text(data: bytes) -> str:
    """Stored text of a text file; raises `Unreadable` ("binary", "empty")."""
    return not_empty(clean(decode(data)))


def not_empty(text: str) -> str:
    """The text; raises `Unreadable` ("empty") where it holds white space only."""
    if not text.strip():
        raise Unreadable("empty")
    return text


def decode(data: bytes) -> str:
    """The characters of a text file: by its byte order mark, else strict UTF-8, else the encoding that fits best.

    Raises `Unreadable` ("binary"). A UTF-8 file with a few broken bytes keeps them as U+FFFD.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    if b"\0" in data:
        raise Unreadable("binary")
    return _without_mark(data)


def _without_mark(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        loose = data.decode("utf-8", "replace")
    broken = loose.count("\ufffd")
    if broken * 10 <= sum(1 for character in loose if character > "\x7f") - broken:
        return loose
    from charset_normalizer import from_bytes

    best = from_bytes(data, cp_isolation=_DETECTED, threshold=0.3).best()
    if best is None or _share_of_controls(data) > 0.02:
        raise Unreadable("binary")
    return str(best)


def _share_of_controls(data: bytes) -> float:
    return sum(data.count(byte) for byte in range(32) if byte not in (9, 10, 12, 13, 27)) / len(data)


# --- front matter and titles -----------------------------------------------------------------------------------


def split_front_matter(text: str) -> tuple[str, dict[str, Scalar]]:
    """The text after its YAML front matter, and the front matter; a text without one is given back whole."""
    match = _FRONT.match(text)
    if not match or len(match.group(1)) > _LONGEST_FRONT:
        return text, {}
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        front = YAML(typ="safe", pure=False).load(match.group(1))
    except (YAMLError, ValueError, RecursionError):
        return text, {}  # two rules around ordinary text are no front matter
    return (text[match.end() :], scalars(front)) if isinstance(front, dict) else (text, {})


def scalars(values: Mapping[object, object]) -> dict[str, Scalar]:
    """Metadata to compare by: lists joined by commas, mappings flattened to `outer.inner`, deeper ones as JSON."""
    flat: dict[str, Scalar] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat.update({f"{key}.{inner}": _scalar(item) for inner, item in value.items()})
        else:
            flat[str(key)] = _scalar(value)
    return flat


def _scalar(value: object) -> Scalar:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, datetime.date | datetime.datetime):
        return value.isoformat()
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return clean(", ".join(map(str, value)))
    if isinstance(value, list | dict) and _size(value, 0) <= _MOST_VALUES:
        return clean(json.dumps(value, ensure_ascii=False, default=str))
    return "(too large)"


def _size(value: object, so_far: int) -> int:
    """Values inside, counting no further than needed: aliases in YAML can stand for billions."""
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    for item in items:
        so_far += 1
        if so_far > _MOST_VALUES:
            break
        so_far = _size(item, so_far)
    return so_far


def title_of(text: str, fallback: str, metadata: Mapping[str, Scalar], headings: bool = True) -> str:
    """The title in the metadata, else the first Markdown heading, else a short first line, else the fallback.

    A line that is a sentence is no title.
    """
    given = metadata.get("title")
    if isinstance(given, str) and given.strip():
        return one_line(given)
    heading = _HEADING.search(_FENCED.sub("", text) if "```" in text or "~~~" in text else text) if headings else None
    if heading:
        return one_line(_MARKS.sub(r"\1", heading.group(1)))
    first = one_line(text.lstrip()[:500].split("\n", 1)[0]).lstrip("#").strip()
    marked = first.startswith(("http://", "https://", "|", "---", "```"))
    return first if 0 < len(first) < _LONGEST_TITLE and not marked and not _is_sentence(first) else fallback


def _is_sentence(line: str) -> bool:
    """Whether a line says something instead of naming it; "Nordlicht Ltd." is still a name."""
    return line.endswith(("。", "！", "；")) or (
        line.endswith((".", "!", ";")) and line.count(" ") >= _WORDS_OF_A_SENTENCE
    )


def one_line(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())


def stem(name: str) -> str:
    """The file name without its folder and endings (`.jsonl.gz` counts as one)."""
    return PurePosixPath(name.removesuffix(".gz")).stem


def pretty_stem(name: str) -> str:
    """A file name as words: `bridge_report-2020.md` is "Bridge report 2020"."""
    words = one_line(re.sub(r"[_\-]+", " ", stem(name)))
    return words[:1].upper() + words[1:] or name
