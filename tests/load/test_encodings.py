"""Text in old encodings is read right, or refused with a remedy; never in the wrong letters."""

import random
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tasks.load.encodings import BINARY, NOT_RECOGNISED, TWO_ENCODINGS, Unreadable, codec_of, decode
from tasks.load.sources import compose, read_sources

TEXTS = tomllib.loads(Path(__file__).with_name("encodings.toml").read_text("utf-8"))["texts"]


def read(data: bytes) -> str:
    """Return the text, or why it is not read."""
    try:
        return decode(data)
    except Unreadable as reason:
        return str(reason)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        pytest.param(text, encoding, id=f"{text['language']}-{encoding}")
        for text in TEXTS
        for encoding in [*text["encodings"], "utf_16_le", "utf_16_be"]
    ],
)
def test_a_text_is_read_right_or_not_at_all(text: dict[str, Any], encoding: str) -> None:
    lines = text["lines"]
    for whole in ("\n".join(lines), "\n".join(lines * 9)):
        assert read(whole.encode(encoding)) == whole
    pairs = ["\n".join(pair) for pair in zip(lines[::2], lines[1::2], strict=True)]
    for part in lines + pairs:
        assert read(part.encode(encoding)) in (part, BINARY, NOT_RECOGNISED)


@pytest.mark.parametrize(
    ("table", "encoding"),
    [
        ("姓名,城市,费用\n林海东,青石,55\n", "gb18030"),
        ("編號,名稱\n1,水庫\n2,大壩\n", "big5"),
        ("이름,도시\n김도윤,한빛\n", "cp949"),
        ("番号,品名\n1,お茶\n2,みかん\n", "cp932"),
        ("Name;Ort\nMüller;Köln\nGroß;Jülich\n", "cp1252"),
        ("price;55 €\nname;Zoë\n", "cp1252"),
        ("nazwa;miasto\nŁukasz;Łódź\nJan;Kraków\n", "cp1250"),
        ("имя;город\nФёдор;Заречье\n", "cp1251"),
        ("BMW;Größe\nMünchen;7\n", "cp1252"),
    ],
)
def test_a_short_table_is_read_right(table: str, encoding: str) -> None:
    assert read(table.encode(encoding)) == table


def test_a_few_accents_among_many_figures_are_found() -> None:
    figures = "".join(f"{n},{n * 7 % 1000}\n" for n in range(50_000))
    table = f"{figures}Die Brücke führt über die Spree nach Köpenick,1\nSie ist fünf Meter hoch,2\n"
    assert read(table.encode("cp1252")) == table


def test_a_text_in_two_encodings_is_refused() -> None:
    line = "Die Brücke führt über die Spree.\n"
    assert read(line.encode("utf-8") * 5 + line.encode("cp1252") * 4) == TWO_ENCODINGS
    assert read(line.encode("utf-8") * 50 + line.encode("cp1252")).count("\ufffd") == 3


def test_lone_surrogates_in_utf_8_are_dropped() -> None:
    assert read(b"Orla \xed\xa0\xbd Bridge \xed\xb8\x80") == "Orla  Bridge "


@pytest.mark.parametrize(
    "data",
    [
        *[random.Random(seed).randbytes(1_000) for seed in range(5)],  # noqa: S311 - no secret
        b"\x7fELF" + bytes(range(256)) * 40,
        b"abc\0def",
        b"\x01\x02\x03\x04 text \x05\x06\x07",
        b"*0\x0e" * 9,  # Thai in UTF-16, whose bytes are all ASCII
    ],
)
def test_what_is_no_text_is_binary(data: bytes) -> None:
    assert read(data) == BINARY


PAGES = [
    "<html><head><meta charset={}><title>Weir</title></head><body><p>{}</p></body></html>",
    '<meta http-equiv="Content-Type" content="x; charset={}"><title>Weir</title><p>{}</p>',
    '<?xml version="1.0" encoding="{}"?><html><title>Weir</title><body><p>{}</p></body></html>',
]
LABELS = [
    ("gb2312", "朱镕基、喆、€"),
    ("shift_jis", "①髙橋"),
    ("x-sjis", "①髙橋"),
    ("windows-31j", "①髙橋"),
    ("euc-kr", "똠방각하"),
    ("ks_c_5601-1987", "똠방각하"),
    ("big5", "深水埗嘅"),
    ("us-ascii", "55 € – “old”"),
    ("iso-8859-9", "Işık – “eski”"),
    ("tis-620", "สะพาน…"),
    ("iso-8859-2", "Łukasz Świątek"),
    ("windows-1251", "Фёдор Щукин"),
]


@pytest.mark.parametrize(
    ("page", "label", "signs"),
    [(PAGES[0], *case) for case in LABELS] + [(page, "GBK", "镕㐂") for page in PAGES[1:]],
)
def test_a_page_is_read_as_browsers_read_it(
    page: str, label: str, signs: str, tmp_path: Path
) -> None:
    codec = {"us-ascii": "cp1252", "big5": "big5hkscs"}.get(label, codec_of(label))
    (tmp_path / "a.html").write_bytes(page.format(label, signs).encode(codec))
    loaded = read_sources([tmp_path])
    assert not loaded.skipped
    [document] = compose(loaded.parts)
    assert (document.text.strip(), document.title) == (signs, "Weir")


@pytest.mark.parametrize(
    "label", ["utf-16", "utf-7", "unicode_escape", "hz", "cp037", "hex", "idna", "none", "", "a\0b"]
)
def test_a_label_of_no_page_encoding_is_ignored(label: str) -> None:
    assert codec_of(label) == ""


@pytest.mark.parametrize(("encoding", "label"), [("utf-8", "gb2312"), ("cp1251", "utf-8")])
def test_a_false_label_gives_way_to_the_bytes(encoding: str, label: str) -> None:
    text = "<p>Мост построил инженер Фёдор Щукин, и маяк сгорел зимой.</p>"
    assert decode(text.encode(encoding), label) == text


def test_a_doubtful_file_is_skipped_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("名前,町\n佐藤健三,北浜\n".encode("euc_jp"))
    (tmp_path / "b.csv").write_bytes("港口,长度\n南浜,412\n".encode("gb18030"))
    assert [one.reason for one in read_sources([tmp_path]).skipped] == [NOT_RECOGNISED] * 2
    assert "convert it to UTF-8" in NOT_RECOGNISED
