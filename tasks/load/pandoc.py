"""Read EPUB, RTF, OpenDocument, LaTeX, reStructuredText and notebooks by pandoc (extra `formats`).

pandoc runs as a program of its own, within bounds of time and memory. Its sandbox lets it read
nothing but the file itself: no `\\input`, no `include::`, no picture, no address.
"""

import codecs
import logging
import re
import subprocess
from pathlib import PurePosixPath

from tasks.load.encodings import Unreadable, codec_of, decode
from tasks.load.office import ENCRYPTED, open_archive
from tasks.load.text import LARGEST_DOCUMENT, PageText, one_line, read_html

log = logging.getLogger(__name__)
READERS = {
    ".epub": "epub",
    ".odt": "odt",
    ".rtf": "rtf",
    ".tex": "latex",
    ".rst": "rst",
    ".ipynb": "ipynb",
}
ARCHIVES = {
    ".epub": b"application/epub+zip",
    ".odt": b"application/vnd.oasis.opendocument.text",
}
_OPTIONS = (
    *("+RTS", "-M2G", "-RTS", "--sandbox", "--to=html", "--standalone", "--mathjax"),
    *("--wrap=none", "--verbose", "--syntax-highlighting=none"),
)
_SECONDS = 900
_FORMULA = re.compile(r'<span\s+class="math (?:inline|display)">\\[(\[]([^<]*)\\[)\]]</span>')
_CITATION = re.compile(r'<span\s+class="citation"\s+data-cites="([^"]{1,999})"></span>')
_RAW_CELL = re.compile(r'("cell_type":\s*)"raw"')
_INPUT_ENCODING = re.compile(rb"\\usepackage\s*\[([\w-]+)\]\s*\{inputenc\}")
_LATEX_NAMES = {"latin9": "iso8859-15", "ansinew": "cp1252", "applemac": "mac_roman"}
# The part of an archive that says what is encrypted: fonts alone often are.
_LOCKED = {
    ".epub": ("META-INF/encryption.xml", re.compile(rb"URI=[\"'][^\"']{1,999}\.x?html?[\"']")),
    ".odt": ("META-INF/manifest.xml", re.compile(rb"encryption-data")),
}


def read_by_pandoc(data: bytes, name: str) -> PageText:
    """Read a file of this name as Markdown with TeX equations.

    The log says what pandoc left out: other files, and commands of LaTeX that it does not know.
    Raises `Unreadable`, also without pandoc.
    """
    ending = PurePosixPath(name.lower().removesuffix(".gz")).suffix
    if ending in ARCHIVES:
        _check_archive(data, ending)
    elif ending == ".rtf":
        data = rtf_in_unicode(data)
    else:
        data = _text(data, ending).encode()
    markup, told = _converted(data, ending)
    if warnings := [line for line in told if line.startswith("[WARNING]")]:
        log.warning("%s: %s", name, _short(warnings))
    if left_out := [line for line in told if line.startswith("[INFO] Skipped")]:
        log.info("%s: %d commands left out: %s", name, len(left_out), _short(left_out))
    markup = _CITATION.sub(r"[\1]", _FORMULA.sub(_in_dollars, markup))
    page = read_html(markup.encode())
    return page.model_copy(update={"title": "" if page.title == "-" else page.title})


def _in_dollars(formula: re.Match[str]) -> str:
    """Write a formula as all formats do: `$x$`, `$$x$$` where it stands in a line of its own."""
    sign = "$$" if "math display" in formula[0] else "$"
    return f"<span>{sign}{one_line(formula[1])}{sign}</span>"


def _check_archive(data: bytes, ending: str) -> None:
    archive = open_archive(data)
    name, sign = _LOCKED[ending]
    if name in archive.namelist() and sign.search(archive.read(name)):
        raise Unreadable(ENCRYPTED)


def _text(data: bytes, ending: str) -> str:
    """Decode a text file; what a notebook calls a raw cell is read as Markdown."""
    stated = _INPUT_ENCODING.search(data) if ending == ".tex" else None
    label = stated[1].decode() if stated else ""
    text = decode(data, _LATEX_NAMES.get(label, label))
    return _RAW_CELL.sub(r'\1"markdown"', text) if ending == ".ipynb" else text


def _converted(data: bytes, ending: str) -> tuple[str, list[str]]:
    """Return the file as HTML, and what pandoc says about it."""
    try:
        import pypandoc  # the extra `formats`

        program = pypandoc.get_pandoc_path()
    except (ImportError, OSError) as error:
        raise Unreadable(f"{ending} needs pandoc: pip install 'trellis-rag[formats]'") from error
    command = [program, *_OPTIONS, f"--from={READERS[ending]}"]
    try:
        done = subprocess.run(  # noqa: S603 -- pandoc and our own words
            command, input=data, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Unreadable(f"pandoc needs more than {_SECONDS} s for it: divide it") from error
    told = done.stderr.decode("utf-8", "replace").splitlines()
    if done.returncode:
        reason = _short([line for line in told if not line.startswith("[")])
        raise Unreadable(f"broken {ending} file, or one too large for pandoc ({reason})")
    if len(done.stdout) > LARGEST_DOCUMENT:
        raise Unreadable("more than 100 MB of text: divide it")
    return done.stdout.decode("utf-8", "replace"), told


def _short(lines: list[str]) -> str:
    return one_line(" ".join(lines))[:300]


# --- the code pages of RTF, of which pandoc knows only cp1252 ---

_KNOWN = "cp1252"
_CHARSETS = {
    0: _KNOWN,
    128: "cp932",
    129: "cp949",
    134: "gb18030",
    136: "big5hkscs",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
}
_CODE_PAGE = re.compile(rb"\\ansicpg(\d{3,5})")
_FONT = re.compile(rb"\\f(\d{1,6})[^{};]{0,200}?\\fcharset(\d{1,3})")
# Escaped bytes, with the character behind them: the second half of a sign may be ASCII. Code
# points, with the characters behind them, which may repeat the point for older programs.
_TOKEN = re.compile(
    rb"(?P<bytes>(?:\\'[0-9A-Fa-f]{2}[\r\n]*)+)(?P<rest>[^\\{}\r\n]?)"
    rb"|\\u(?P<point>-?\d{1,6})[ ]?(?P<tail>[^\\{}\r\n]{0,2})"
    rb"|\\(?P<word>[A-Za-z]{1,32})(?P<number>-?\d{1,9})?[ ]?|\\[^A-Za-z']|[{}]"
)
_ESCAPED = re.compile(rb"\\'(..)")
_POINT = b"\\u%d\\'3f"  # a code point, and a question mark for programs that know none


def rtf_in_unicode(data: bytes) -> bytes:
    """Write an RTF file without code pages: all escaped bytes as code points in one form.

    Bytes are read by the charset of the font, or by the code page of the file. pandoc knows one
    code page, and of some forms of a code point it drops the letter that follows.
    """
    page = _CODE_PAGE.search(data, 0, 1_000)
    usual = codec_of(f"cp{page[1].decode()}") if page else ""
    fonts = {found[1]: _CHARSETS.get(int(found[2]), usual) for found in _FONT.finditer(data)}
    codec, repeats = usual, 1
    owed, place = 0, -1  # How many escaped bytes at this place repeat the point before it
    groups = list[tuple[str, int]]()

    def rewrite(token: re.Match[bytes]) -> bytes:
        nonlocal codec, repeats, owed, place
        if token["bytes"]:
            return _code_points(token, owed if token.start() == place else 0, codec)
        if token["point"]:
            tail = token["tail"]
            owed, place = repeats - len(tail), token.end()
            return _POINT % int(token["point"]) + tail[repeats:]
        match token["word"] or token[0]:
            case b"f":
                codec = fonts.get(token["number"], usual)
            case b"uc":
                repeats = int(token["number"] or 1)
                return b"\\uc1 "
            case b"{":
                groups.append((codec, repeats))
            case b"}" if groups:
                codec, repeats = groups.pop()
        return token[0]

    return _CODE_PAGE.sub(b"", _TOKEN.sub(rewrite, data), count=1)


def _code_points(token: re.Match[bytes], repeated: int, codec: str) -> bytes:
    """Write the escaped bytes of a token but the first `repeated` as code points."""
    escaped, rest = _ESCAPED.findall(token["bytes"])[max(repeated, 0) :], token["rest"]
    decoder = codecs.getincrementaldecoder(codec or _KNOWN)("replace")
    text = decoder.decode(bytes.fromhex(b"".join(escaped).decode()))
    if decoder.getstate()[0]:  # Half a sign is left.
        text += decoder.decode(rest, final=True)
        rest = b""
    units = memoryview(text.encode("utf-16-le")).cast("h")
    return b"".join([*(_POINT % unit for unit in units), rest])
