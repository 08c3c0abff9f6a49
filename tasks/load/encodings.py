"""Decode text files: by byte order mark, as UTF-8, as the file declares, or as chardet guesses.

A file whose encoding stays in doubt is refused: a text in wrong letters would be quoted.
"""

import codecs
import re

import chardet


class Unreadable(Exception):
    """Raised where a file is not a document; its text is the reason that the report gives."""


BINARY = "binary, or text of an unknown encoding (convert it to UTF-8)"
TWO_ENCODINGS = "partly UTF-8, partly of another encoding: convert all of it to UTF-8"
NOT_RECOGNISED = "encoding not recognised: convert it to UTF-8"
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # First, because it begins like that of UTF-16.
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_ISO_2022_ESCAPE = b"\x1b$"  # ISO-2022-JP consists of ASCII bytes.
# What chardet may guess: code pages that browsers know. Others are rare today.
_CODE_PAGES = (
    "gb18030 big5hkscs cp932 euc_jis_2004 iso2022_jp_2 cp949 cp1250 cp1251 cp1252 cp1253 cp1254 "
    "cp1255 cp1256 cp1257 cp1258 cp874 koi8-r koi8-u iso8859-2 iso8859-5 iso8859-6 iso8859-7 "
    "iso8859-8 iso8859-13 iso8859-15"
).split()
_TWO_BYTE_CODE_PAGES = frozenset({"gb18030", "big5hkscs", "cp932", "euc_jis_2004", "cp949"})
_COMMONEST = "cp1252"
_NO_MATCH = "ascii"  # chardet's answer where no code page fits
_SHORT, _SAMPLE = 4_000, 200_000  # bytes
# A guess is refused where a rival with other letters comes within this share of its confidence.
# Fitted on tables of names in 34 languages, 1 to 50 lines each.
_MARGIN, _TWO_BYTE_MARGIN = 0.005, 0.4
# Below this confidence the text has only a few accents: the commonest code page is taken where it
# comes within the wider margin.
_FEW_ACCENTS, _FEW_ACCENTS_MARGIN = 0.05, 0.1
_CONTROL = re.compile("[\x00-\x08\x0e-\x19\x1c-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# The larger code page that browsers read where a page declares the smaller one.
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
_PLAIN = rb"+ADw- \u0041 ~{.xn--mnchen-3ya"  # ASCII to every encoding that pages are written in


def decode(data: bytes, declared: str = "") -> str:
    """Decode a text file; `declared` is the encoding that the file itself states.

    A few broken bytes become U+FFFD. Raises `Unreadable` for a binary or doubtful file.
    """
    mark = next((mark for mark in _BYTE_ORDER_MARKS if data.startswith(mark)), None)
    text = data.decode(_BYTE_ORDER_MARKS[mark], "replace") if mark else _decode_utf8(data)
    if not mark and ("\0" in text or _ISO_2022_ESCAPE in data or not _is_mostly_sound(text)):
        codec = codec_of(declared)
        stated = data.decode(codec, "replace") if codec else ""
        if stated and _is_mostly_sound(stated):
            text = stated
        elif 0 < text.count("\ufffd") * 2 <= _count_beyond_ascii(text):
            raise Unreadable(TWO_ENCODINGS)
        else:
            text = _decode_by_guess(data)
    if "\0" in text:
        raise Unreadable(BINARY)
    return text


def _decode_utf8(data: bytes) -> str:
    """Decode UTF-8; drop the lone surrogates that some programs write into it."""
    try:
        return _SURROGATE.sub("", data.decode("utf-8-sig", "surrogatepass"))
    except UnicodeDecodeError:
        return data.decode("utf-8-sig", "replace")


def codec_of(label: str) -> str:
    """Return the codec that browsers use for a declared encoding, or an empty text."""
    name = label.strip().lower().removeprefix("x-").replace("windows-", "cp")
    try:
        codec = codecs.lookup(_LARGER.get(name, name)).name
        codec = _LARGER.get(codec, codec)
        return codec if _PLAIN.decode(codec) == _PLAIN.decode() else ""
    except (LookupError, ValueError):
        return ""


def _count_beyond_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _is_mostly_sound(text: str) -> bool:
    """Say whether at most a tenth is control characters, and a tenth of the non-ASCII broken."""
    broken = text.count("\ufffd")
    if broken and broken * 10 > _count_beyond_ascii(text) - broken:
        return False
    return sum(1 for _ in _CONTROL.finditer(text)) * 10 <= len(text)


def _decode_by_guess(data: bytes) -> str:
    """Decode by the codec that chardet is sure of; raises `Unreadable` where there is none."""
    wide = b"\0" in data
    sample = data[:_SAMPLE] if wide else _lines_beyond_ascii(data)
    guesses = chardet.detect_all(
        # After a line break, because chardet takes a text that begins "BMW …" for a picture.
        sample if wide else b"\n" + sample,
        ignore_threshold=True,
        compat_names=False,
        include_encodings=[_NO_MATCH, *(["utf-16-le", "utf-16-be"] if wide else _CODE_PAGES)],
        no_match_encoding=_NO_MATCH,
    )
    readings = {
        codec: (guess["confidence"], text)
        for guess in guesses
        if (text := _decode_sample(sample, codec := str(guess["encoding"])))
    }
    if not readings:
        raise Unreadable(BINARY)
    codec, (confidence, text) = next(iter(readings.items()))
    margin = _TWO_BYTE_MARGIN if codec in _TWO_BYTE_CODE_PAGES else _MARGIN
    rivals = [other for sure, other in readings.values() if sure >= confidence * (1 - margin)]
    if confidence < _FEW_ACCENTS:
        common, same = readings.get(_COMMONEST, (0.0, ""))
        near = common >= confidence * (1 - _FEW_ACCENTS_MARGIN)
        codec = _COMMONEST if near or same == text else ""
    elif not all(_shares_letters(text, other) for other in rivals):
        codec = ""
    decoded = data.decode(codec, "replace") if codec else ""
    if not decoded or not _is_mostly_sound(decoded):
        raise Unreadable(NOT_RECOGNISED)
    return decoded


def _shares_letters(text: str, other: str) -> bool:
    """Say whether two readings agree in half of their letters, as in a family of code pages."""
    if len(text) != len(other):
        return False
    same = [mine == its for mine, its in zip(text, other, strict=True) if not mine.isascii()]
    return sum(same) * 2 >= len(same)


def _lines_beyond_ascii(data: bytes) -> bytes:
    """Return a sample of the lines that are not ASCII, or a short text whole."""
    if len(data) <= _SHORT:
        return data
    lines = (line for line in data.split(b"\n") if not line.isascii() or _ISO_2022_ESCAPE in line)
    return b"\n".join(lines)[:_SAMPLE]


def _decode_sample(sample: bytes, codec: str) -> str:
    """Decode a sample, whose last character may be cut; empty where the codec does not fit."""
    try:
        text = codecs.getincrementaldecoder(codec)().decode(sample)
    except (LookupError, ValueError):
        return ""
    is_text = all(sign.isprintable() or sign.isspace() for sign in text)
    return text if is_text else ""
