"""The characters of a text file: by its mark, as UTF-8, as it declares, or as chardet says.

Where chardet is not sure, the file is not read: a text in wrong letters would be quoted.
"""

import codecs
import re

import chardet


class Unreadable(Exception):
    """A file is not a document; the text is the reason that the report gives."""


BINARY = "binary, or text of an unknown encoding (convert it to UTF-8)"
TWO_ENCODINGS = "partly UTF-8, partly of another encoding: convert all of it to UTF-8"
NOT_RECOGNISED = "encoding not recognised: convert it to UTF-8"
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # it begins as that of UTF-16 does
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_ESCAPE = b"\x1b$"  # ISO-2022-JP is written in ASCII
# Code pages that browsers know; others are rare today.
_KNOWN = (
    "gb18030 big5hkscs cp932 euc_jis_2004 iso2022_jp_2 cp949 cp1250 cp1251 cp1252 cp1253 cp1254 "
    "cp1255 cp1256 cp1257 cp1258 cp874 koi8-r koi8-u iso8859-2 iso8859-5 iso8859-6 iso8859-7 "
    "iso8859-8 iso8859-13 iso8859-15"
).split()
_OF_TWO_BYTES = frozenset({"gb18030", "big5hkscs", "cp932", "euc_jis_2004", "cp949"})
_NONE_FITS = "ascii"  # it fits none of what chardet is asked about
_WIDE = "utf-16-le utf-16-be".split()
_SHORT, _SAMPLE = 4_000, 200_000  # bytes
# A guess is taken where no other one reads other letters and is as likely, but for this share of
# its confidence. Fitted on tables of names in 34 languages, 1 to 50 lines each.
_AHEAD, _AHEAD_OF_TWO_BYTES = 0.005, 0.4
_LEAST, _NEARLY = (
    0.05,
    0.1,
)  # below so much it has a few accents, and the commonest is nearly as likely
_COMMONEST = "cp1252"
_CONTROL = re.compile("[\x00-\x08\x0e-\x19\x1c-\x1f\x7f]")
_HALF = re.compile("[\ud800-\udfff]")  # of a character: some programs write them into UTF-8
# What browsers read where a page declares the name on the left: often it holds signs of the larger.
_LARGER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "cp31j": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_PLAIN = rb"+ADw- \u0041 ~{.xn--mnchen-3ya"  # what all page encodings read as ASCII


def decode(data: bytes, declared: str = "") -> str:
    """The characters of a text file; `declared` is the encoding that it states itself.

    Raises `Unreadable` ("binary", "encoding not recognised"). A few broken bytes stay as U+FFFD.
    """
    mark = next((mark for mark in _MARKS if data.startswith(mark)), None)
    text = data.decode(_MARKS[mark], "replace") if mark else _in_utf8(data)
    if not mark and ("\0" in text or _ESCAPE in data or not _mostly_read(text)):
        codec = codec_of(declared)
        stated = data.decode(codec, "replace") if codec else ""
        if stated and _mostly_read(stated):
            text = stated
        elif 0 < text.count("\ufffd") * 2 <= _not_ascii(text):
            raise Unreadable(TWO_ENCODINGS)
        else:
            text = _as_guessed(data)
    if "\0" in text:
        raise Unreadable(BINARY)
    return text


def _in_utf8(data: bytes) -> str:
    try:
        return _HALF.sub("", data.decode("utf-8-sig", "surrogatepass"))
    except UnicodeDecodeError:
        return data.decode("utf-8-sig", "replace")


def codec_of(label: str) -> str:
    """The codec of what a page declares, as browsers take it; empty where none has this name."""
    name = label.strip().lower().removeprefix("x-").replace("windows-", "cp")
    try:
        codec = codecs.lookup(_LARGER.get(name, name)).name
        codec = _LARGER.get(codec, codec)
        return codec if _PLAIN.decode(codec) == _PLAIN.decode() else ""
    except (LookupError, ValueError):
        return ""


def _not_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _mostly_read(text: str) -> bool:
    """Whether at most a tenth of what is not ASCII is broken, and a tenth of all is controls."""
    broken = text.count("\ufffd")
    if broken and broken * 10 > _not_ascii(text) - broken:
        return False
    return sum(1 for _ in _CONTROL.finditer(text)) * 10 <= len(text)


def _as_guessed(data: bytes) -> str:
    """The text by the codec that chardet is sure of; raises `Unreadable` where it is of none."""
    wide = b"\0" in data
    sample = data[:_SAMPLE] if wide else _lines_beyond_ascii(data)
    # Behind a line break: by their first letters chardet takes "BMW …" for a picture.
    guesses = chardet.detect_all(
        sample if wide else b"\n" + sample,
        ignore_threshold=True,
        compat_names=False,
        include_encodings=[_NONE_FITS, *(_WIDE if wide else _KNOWN)],
        no_match_encoding=_NONE_FITS,
    )
    readings = {
        str(guess["encoding"]): (guess["confidence"], text)
        for guess in guesses
        if (text := _read_sample(sample, str(guess["encoding"])))
    }
    if not readings:
        raise Unreadable(BINARY)
    codec, (confidence, text) = next(iter(readings.items()))
    less = _AHEAD_OF_TWO_BYTES if codec in _OF_TWO_BYTES else _AHEAD
    rivals = [other for sure, other in readings.values() if sure >= confidence * (1 - less)]
    if confidence < _LEAST:
        common, same = readings.get(_COMMONEST, (0.0, ""))
        codec = _COMMONEST if common >= confidence * (1 - _NEARLY) or same == text else ""
    elif any(not _much_alike(text, other) for other in rivals):
        codec = ""
    read = data.decode(codec, "replace") if codec else ""
    if not read or not _mostly_read(read):
        raise Unreadable(NOT_RECOGNISED)
    return read


def _much_alike(text: str, other: str) -> bool:
    """Whether two readings share half of their letters, as those of one family of code pages do."""
    if len(text) != len(other):
        return False
    same = [mine == its for mine, its in zip(text, other, strict=True) if not mine.isascii()]
    return sum(same) * 2 >= len(same)


def _lines_beyond_ascii(data: bytes) -> bytes:
    """The lines that tell something of the encoding, up to the size of a sample; a short text
    whole.
    """
    if len(data) <= _SHORT:
        return data
    lines = (line for line in data.split(b"\n") if not line.isascii() or _ESCAPE in line)
    return b"\n".join(lines)[:_SAMPLE]


def _read_sample(sample: bytes, codec: str) -> str:
    """The sample's text, or nothing where the codec does not fit; its last sign may be cut."""
    try:
        text = codecs.getincrementaldecoder(codec)().decode(sample)
    except (LookupError, ValueError):
        return ""
    is_text = all(sign.isprintable() or sign.isspace() for sign in text)
    return text if is_text else ""
