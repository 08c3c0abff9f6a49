"""The characters of a text file: by its byte order mark, as UTF-8, as it declares, or as a detector
reads it.

Where the detector is not sure, the file is not read: a text in wrong letters would be quoted.
"""

import codecs
import io
import unicodedata

import chardet

from prompts.text.regex import regex
from storage.records import Record


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
# Code pages that browsers know, and older ones of DOS and the Mac, which are rare today.
_OLDER = "mac-roman mac-cyrillic cp850 cp852 cp866".split()
_KNOWN = (
    "gb18030 big5hkscs cp932 euc_jis_2004 iso2022_jp_2 cp949 "
    "cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp874 koi8-r koi8-u "
    "iso8859-2 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-13 iso8859-15"
).split() + _OLDER
_NONE_FITS = "ascii"  # it fits none of what the detector is asked about
_WIDE = "utf-16-le utf-16-be utf-32-le utf-32-be".split()
_CHARACTERS_OF_TWO_BYTES = frozenset({"gb18030", "big5hkscs", "cp932", "euc_jis_2004", "cp949"})
_SHORT, _SAMPLE = 4_000, 200_000  # bytes
# A guess is taken where no other one is as likely, but for this share of its confidence. Fitted on
# the sentences of this project's tests and on tables of names in 34 languages, 1 to 50 lines each.
_AHEAD, _AHEAD_OF_TWO_BYTES = 0.005, 0.4
# Below so much confidence a text tells little: it has a few accents among names and figures. Then
# the commonest code page is taken where it is nearly as likely as the best.
_LEAST, _LEAST_OF_OLDER, _NEARLY = 0.05, 0.1, 0.1
_COMMONEST = "cp1252"
_ASCII_CONTROL = regex("[\x00-\x08\x0e-\x19\x1c-\x1f\x7f]")
_CONTROL = regex("[\x00-\x08\x0e-\x19\x1c-\x1f\x7f-\x9f]")
# What browsers read where a page declares the name on the left: often it holds signs of the larger.
_LARGER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gb_2312-80": "gb18030",
    "csgb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "cn-big5": "big5hkscs",
    "shift_jis": "cp932",
    "cp31j": "cp932",
    "euc_kr": "cp949",
    "iso-8859-8-i": "iso8859-8",
}
_HALF = regex("[\ud800-\udfff]")  # of a character: some programs write them into UTF-8
_PLAIN = rb"+ADw- \u0041 ~{.xn--mnchen-3ya"  # what all page encodings read as ASCII


class Reading(Record):
    """How a sample reads by one codec, and how well the detector likes it."""

    codec: str
    confidence: float
    text: str

    def is_as_likely_as(self, other: "Reading", less: float) -> bool:
        """Whether it is, but for this share of the other's confidence."""
        return self.confidence >= other.confidence * (1 - less)

    def is_rivalled_by(self, other: "Reading") -> bool:
        """Whether the other is as likely and reads other letters.

        No rivals are old code pages, and those of one family, in which most letters are the same.
        """
        if self.codec in _CHARACTERS_OF_TWO_BYTES:
            near = other.is_as_likely_as(self, _AHEAD_OF_TWO_BYTES)
        else:
            near = other.codec not in _OLDER and other.is_as_likely_as(self, _AHEAD)
        return near and not self._is_much_like(other)

    def _is_much_like(self, other: "Reading") -> bool:
        if len(self.text) != len(other.text):
            return False
        pairs = zip(self.text, other.text, strict=True)
        same = [mine == its for mine, its in pairs if not mine.isascii()]
        return sum(same) * 2 >= len(same)


def decode(data: bytes, declared: str = "") -> str:
    """The characters of a text file; `declared` is the encoding that it states itself.

    Raises `Unreadable` ("binary", "encoding not recognised"). A few broken bytes stay as U+FFFD.
    """
    mark = next((mark for mark in _MARKS if data.startswith(mark)), None)
    text = data.decode(_MARKS[mark], "replace") if mark else _in_utf8(data)
    if not mark and ("\0" in text or _ESCAPE in data or not _mostly_read(text)):
        half_read = 0 < text.count("\ufffd") * 2 <= _not_ascii(text)
        text = _read_as_declared(data, declared) or ("" if half_read else _read_as_guessed(data))
        if not text:
            raise Unreadable(TWO_ENCODINGS)
    if "\0" in text:
        raise Unreadable(BINARY)
    return text


def _in_utf8(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
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
    return sum(1 for _ in _ASCII_CONTROL.finditer(text)) * 10 <= len(text)


def _read_as_declared(data: bytes, declared: str) -> str:
    """The text, or nothing where the declaration cannot be true."""
    codec = codec_of(declared)
    text = data.decode(codec, "replace") if codec else ""
    return text if _mostly_read(text) else ""


def _read_as_guessed(data: bytes) -> str:
    codec = _guess(data)
    text = data.decode(codec, "replace") if codec else ""
    if not text or not _mostly_read(text):
        raise Unreadable(NOT_RECOGNISED)
    return text


def _guess(data: bytes) -> str:
    """The codec that the detector is sure of, or nothing. Raises `Unreadable` ("binary")."""
    sample = _sample(data)
    # Behind a line break: by their first letters the detector takes "BMW …" for a picture.
    wide = b"\0" in sample
    found = chardet.detect_all(
        sample if wide else b"\n" + sample,
        ignore_threshold=True,
        compat_names=False,
        include_encodings=[_NONE_FITS, *(_WIDE if wide else _KNOWN)],
        no_match_encoding=_NONE_FITS,
    )
    readings = [
        Reading(codec=codec, confidence=guess["confidence"], text=text)
        for guess in found
        if (codec := guess["encoding"]) and (text := _read_sample(sample, codec))
    ]
    if not readings:
        raise Unreadable(BINARY)
    best = readings[0]
    older = best.codec in _OLDER
    if best.confidence < (_LEAST_OF_OLDER if older else _LEAST):
        less = _AHEAD if older else _NEARLY
        near = (one for one in readings if one.is_as_likely_as(best, less) or one.text == best.text)
        return _COMMONEST if any(one.codec == _COMMONEST for one in near) else ""
    return "" if any(best.is_rivalled_by(other) for other in readings[1:]) else best.codec


def _sample(data: bytes) -> bytes:
    """The lines that are not ASCII; the beginning of a short text and of one in UTF-16."""
    if b"\0" in data or len(data) <= _SHORT:
        return data[:_SAMPLE]
    lines, size = list[bytes](), 0
    for line in io.BytesIO(data):
        if size < _SAMPLE and (not line.isascii() or _ESCAPE in line):
            lines.append(line[:_SAMPLE])
            size += len(lines[-1])
    return b"".join(lines)[:_SAMPLE]


def _read_sample(sample: bytes, codec: str) -> str:
    """The sample's text, or nothing where the codec does not fit. Its last sign may be cut."""
    try:
        text = codecs.getincrementaldecoder(codec)().decode(sample)
    except ValueError:
        return ""
    # Any two bytes are a character of UTF-16, though few of them are one that a text holds.
    odd = codec in _WIDE and any(unicodedata.category(sign) in ("Cn", "Co") for sign in text)
    return "" if odd or _CONTROL.search(text) else text
