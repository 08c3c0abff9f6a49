"""XML: prose, data and tables; what refers to other files, or grows without bound, is refused."""

from pathlib import Path

import pytest

from tasks.load.sources import compose, read_sources

ORDER = """<?xml version="1.0"?>
<order id="7" xmlns="urn:x"><!-- c --><customer><name>Ada Korb</name></customer>
<item sku="a1"><name>Bolt</name><price>4</price></item>
<item sku="b2"><name>Nut &amp; washer</name></item>
<part no="1">Arm</part><part no="2">Leg</part>
<note lang="fr">caf&eacute;</note><note><by>Ada</by><by>Eva</by></note></order>"""
GROWING = "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))


def load(folder: Path, text: str | bytes) -> str:
    (folder / "a.xml").write_bytes(text if isinstance(text, bytes) else text.encode())
    loaded = read_sources([folder])
    return loaded.skipped[0].reason if loaded.skipped else compose(loaded.parts)[0].text


def test_data_become_named_values_and_tables(tmp_path: Path) -> None:
    assert load(tmp_path, ORDER).split("\n") == [
        "order.id: 7",
        "order.customer.name: Ada Korb",
        "order.item:",
        "sku: a1 | name: Bolt | price: 4",
        "sku: b2 | name: Nut & washer",
        "order.part:",
        "no: 1 | part: Arm",
        "no: 2 | part: Leg",
        "order.note[1].lang: fr",
        "order.note[1]: café",
        "order.note[2].by[1]: Ada",
        "order.note[2].by[2]: Eva",
    ]
    (part,) = read_sources([tmp_path]).parts
    assert [table.columns for table in part.tables] == [("sku", "name", "price"), ("no", "part")]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (
            "<book><title>Orla</title><para>It <em>opened</em> in 1931.</para></book>",
            "# Orla\n\nIt opened in 1931.\n",
        ),
        ("<html><body><h1>Orla</h1><script>x</script><p>Open</p></body></html>", "# Orla\n\nOpen"),
        ('<!DOCTYPE a [<!ENTITY v "2.0">]><a>Version &v;</a>', "a: Version 2.0"),
        ('<?xml version="1.0" encoding="gb2312"?><a>奥拉桥</a>'.encode("gb18030"), "a: 奥拉桥"),
        ("<a><![CDATA[x < y]]></a>", "a: x < y"),
    ],
)
def test_xml_is_read_as_what_it_is(text: str | bytes, read: str, tmp_path: Path) -> None:
    assert load(tmp_path, text) == read


@pytest.mark.parametrize(
    "text",
    [
        "<a><b></a>",
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        '<!DOCTYPE a [<!ENTITY % x SYSTEM "file:///etc/passwd"> %x;]><a>&y;</a>',
        f'<!DOCTYPE a [<!ENTITY a "lol">{GROWING}]><a>&j;</a>',
        f'<!DOCTYPE a [<!ENTITY a "lol">{GROWING}]><a b="&j;"/>',
        "<a>" * 1_000,
    ],
)
def test_broken_and_hostile_xml_is_skipped(text: str, tmp_path: Path) -> None:
    assert load(tmp_path, text).startswith("broken XML")
