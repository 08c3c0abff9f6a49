"""Make the hostile files that are too large or too odd for a table."""
# ruff: noqa: E501 -- markup

import gzip
import io
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

SAMPLE = Path(__file__).parents[2] / "examples" / "corpus" / "reports" / "kestrel-survey-2024.docx"
LAUGHS = "<!DOCTYPE l [<!ENTITY a0 'ha'>" + "".join(
    f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 10)
)

_LETTERS = zip("abcdefgh", "bcdefghi", strict=True)
YAML = (
    "---\na: &a [x,x]\n"
    + "".join(f"{b}: &{b} [{f'*{a},' * 9}]\n" for a, b in _LETTERS)
    + "---\ntext"
)


def zipped(entries: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return made.getvalue()


def docx(body: bytes = b"", head: bytes = b"", **others: bytes) -> bytes:
    """The sample document with more in its body, or before its first element."""
    with zipfile.ZipFile(SAMPLE) as sample:
        entries = {name: sample.read(name) for name in sample.namelist()}
    text = entries["word/document.xml"].replace(b"</w:body>", body + b"</w:body>")
    at = text.index(b"<w:document")
    return zipped({**entries, "word/document.xml": text[:at] + head + text[at:], **others})


def cells(last: str) -> bytes:
    import openpyxl

    book, made = openpyxl.Workbook(), io.BytesIO()
    sheet = book.active
    assert sheet is not None
    sheet["A1"], sheet[last] = "Orla Bridge", "opened in 1931"
    book.save(made)
    return made.getvalue()


RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"Attribute VB_Name Sub AutoOpen Shell calc" * 99


def packed(file: bytes, replaced: dict[str, tuple[bytes, bytes]], **others: bytes) -> bytes:
    """An office file with a text replaced in each of some entries, and more entries."""
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    for name, (old, new) in replaced.items():
        assert old in entries[name]
        entries[name] = entries[name].replace(old, new, 1)
    return zipped({**entries, **others})


def sheet(
    rows: str = "", replaced: dict[str, tuple[bytes, bytes]] | None = None, /, **others: bytes
) -> bytes:
    """A workbook with these additional rows."""
    row = ("xl/worksheets/sheet1.xml", (b"</sheetData>", rows.encode() + b"</sheetData>"))
    return packed(cells("B1"), dict([row]) | (replaced or {}), **others)


SHAPE = (
    b"<p:sp><p:nvSpPr><p:cNvPr id='9' name='x'/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr><a:prstGeom prst='rect'/></p:spPr>"
    b"<p:txBody><a:bodyPr/><a:p><a:r><a:t>a b</a:t></a:r></a:p></p:txBody></p:sp>"
)


def sheets(count: int) -> bytes:
    """A workbook whose sheets are all one entry."""
    more = (
        f"<sheet xmlns:r='{RELATIONS}' name='s{n}' sheetId='{n}' r:id='rId1'/>"
        for n in range(2, count)
    )
    return sheet("", {"xl/workbook.xml": (b"</sheets>", f"{''.join(more)}</sheets>".encode())})


def shared(rows: str, texts: bytes) -> bytes:
    """A workbook with these rows, whose cells refer to shared texts by number."""
    kind, place = (
        "application/vnd.openxmlformats-officedocument.spreadsheetml",
        "/xl/sharedStrings.xml",
    )
    named = (
        f"<Override PartName='{place}' ContentType='{kind}.sharedStrings+xml'/></Types>".encode()
    )
    space = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    table = b"<sst xmlns='" + space + b"'>" + texts + b"</sst>"
    return sheet(rows, {"[Content_Types].xml": (b"</Types>", named)}, **{place[1:]: table})


def slides() -> bytes:
    import pptx

    shown, made = pptx.Presentation(), io.BytesIO()
    slide = shown.slides.add_slide(shown.slide_layouts[5])
    slide.shapes.title.text = "Orla Bridge opened in 1931"
    shown.save(made)
    return made.getvalue()


def lying() -> bytes:
    """A document whose directory states false sizes."""
    return (
        docx().replace((26).to_bytes(4, "little"), (1 << 30).to_bytes(4, "little"))[:-4]
        + b"\xff\xff\xff\xff"
    )


def pdf_of(objects: Sequence[str], trailer: str = "") -> bytes:
    """A PDF of these objects, of which the first is the catalogue."""
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(f"{len(data):010d} 00000 n \n")
        data += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    size = len(objects) + 1
    table = f"xref\n0 {size}\n0000000000 65535 f \n{''.join(places)}"
    end = f"trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{len(data)}\n%%EOF"
    return data + f"{table}{end}".encode()


def pdf_stream(content: str) -> str:
    return f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"


def pdf(kids: str, pages: int, shown: str = "(The same line on every page.) Tj") -> bytes:
    page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 3 0 R /Resources << /Font << /F1 4 0 R >> >> >>"
    return pdf_of(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>",
            pdf_stream(f"BT /F1 12 Tf 72 720 Td {shown} ET"),
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            *[page] * pages,
        ]
    )


MADE: dict[str, Callable[[], bytes]] = {
    "yaml_bomb": YAML.encode,
    "laughs": f"{LAUGHS}]><graphml><graph edgedefault='directed'><node id='&a9;'/></graph></graphml>".encode,
    "gzip_bomb": lambda: gzip.compress(bytes(101_000_000), 1),
    "far_cells": lambda: cells("XFD3000"),
    "corners": lambda: cells("XFD1048576"),
    "xlsx_bomb": lambda: zipped({"xl/worksheets/sheet1.xml": b" " * 101_000_000}),
    "docx_tags": lambda: docx(b"<w:p/>" * 3_000_000),
    "docx_long": lambda: docx(
        b"<w:p><w:r><w:t>" + b"words and words " * 2_500_000 + b"</w:t></w:r></w:p>"
    ),
    "docx_entity": lambda: docx(
        b"<w:p><w:r><w:t>&x;</w:t></w:r></w:p>",
        b"<!DOCTYPE d [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>",
    ),
    "docx_laughs": lambda: docx(b"<w:p><w:r><w:t>&a9;</w:t></w:r></w:p>", f"{LAUGHS}]>".encode()),
    "docx_picture": lambda: docx(
        **{
            "word/_rels/document.xml.rels": b"<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/"
            b"relationships'><Relationship Id='r1' Type='http://schemas.openxmlformats.org/officeDocument/2006/"
            b"relationships/image' Target='http://127.0.0.1:9/x.png' TargetMode='External'/></Relationships>"
        }
    ),
    "docx_macros": lambda: docx(
        **{"word/vbaProject.bin": OLE, "word/vbaData.xml": b"<wne:vbaSuppData xmlns:wne='x'/>"}
    ),
    "docx_template": lambda: packed(
        SAMPLE.read_bytes(),
        {},
        **{
            "word/_rels/settings.xml.rels": f"<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/"
            f"relationships'><Relationship Id='r1' Type='{RELATIONS}/attachedTemplate' Target='http://127.0.0.1:9/t.dotm' "
            f"TargetMode='External'/></Relationships>".encode()
        },
    ),
    "docx_dde": lambda: docx(
        b"<w:p><w:fldSimple w:instr='DDEAUTO c:\\\\windows\\\\system32\\\\cmd.exe \"/k calc\"'><w:r><w:t>shown</w:t></w:r>"
        b"</w:fldSimple><w:fldSimple w:instr='INCLUDETEXT \"file:///etc/passwd\"'><w:r><w:t>too</w:t></w:r></w:fldSimple></w:p>"
    ),
    "xlsx_macros": lambda: sheet(**{"xl/vbaProject.bin": OLE}),
    "xlsx_macro_sheet": lambda: sheet(
        "",
        {
            "xl/_rels/workbook.xml.rels": (
                b"</Relationships>",
                b"<Relationship Id='rm' Type='http://schemas.microsoft.com/office/2006/relationships/xlMacrosheet' "
                b"Target='macrosheets/sheet1.xml'/></Relationships>",
            ),
            "xl/workbook.xml": (
                b"</sheets>",
                f"<sheet xmlns:r='{RELATIONS}' name='Auto_Open' sheetId='9' r:id='rm'/></sheets>".encode(),
            ),
        },
        **{
            "xl/macrosheets/sheet1.xml": b"<xm:macrosheet xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main' "
            b"xmlns:xm='http://schemas.microsoft.com/office/excel/2006/main'><sheetData><row r='1'><c r='A1'><f>EXEC(\"calc\")"
            b"</f></c></row></sheetData></xm:macrosheet>"
        },
    ),
    "xlsx_dde": lambda: sheet(
        "<row r='2'><c r='A2'><f>cmd|'/C calc'!A0</f><v>7</v></c><c r='B2'><f>WEBSERVICE(\"http://127.0.0.1:9/\")</f></c></row>"
    ),
    "xlsx_links": lambda: sheet(
        "",
        {
            "xl/_rels/workbook.xml.rels": (
                b"</Relationships>",
                f"<Relationship Id='rx' Type='{RELATIONS}/externalLink' Target='externalLinks/externalLink1.xml'/>"
                f"</Relationships>".encode(),
            )
        },
        **{
            "xl/externalLinks/externalLink1.xml": f"<externalLink xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/"
            f"main'><externalBook xmlns:r='{RELATIONS}' r:id='r1'/></externalLink>".encode(),
            "xl/externalLinks/_rels/externalLink1.xml.rels": f"<Relationships xmlns='http://schemas.openxmlformats.org/package/"
            f"2006/relationships'><Relationship Id='r1' Type='{RELATIONS}/externalLinkPath' Target='file:///etc/passwd' "
            f"TargetMode='External'/></Relationships>".encode(),
        },
    ),
    "empty_cells": lambda: sheet(f"<row>{'<c/>' * 5_000_000}</row>"),
    "xlsx_merged": lambda: sheet(
        "",
        {
            "xl/worksheets/sheet1.xml": (
                b"</sheetData>",
                b"</sheetData><mergeCells>"
                + b"<mergeCell ref='A1:XFD1048576'/>" * 100_000
                + b"</mergeCells>",
            )
        },
    ),
    "xlsx_sheets": lambda: sheets(2_000),
    "xlsx_repeats": lambda: shared(
        "<row>" + "<c t='s'><v>0</v></c>" * 2_000 + "</row>",
        b"<si><t>" + b"long " * 20_000 + b"</t></si>",
    ),
    "xlsx_same_sheets": lambda: packed(
        sheets(99),
        {
            "xl/worksheets/sheet1.xml": (
                b"</sheetData>",
                b"<row>" + b"<c/>" * 50_000 + b"</row></sheetData>",
            )
        },
    ),
    "pptx_shapes": lambda: packed(
        slides(), {"ppt/slides/slide1.xml": (b"</p:spTree>", SHAPE * 5_000 + b"</p:spTree>")}
    ),
    "pptx_groups": lambda: packed(
        slides(),
        {
            "ppt/slides/slide1.xml": (
                b"</p:spTree>",
                b"<p:grpSp><p:nvGrpSpPr><p:cNvPr id='9' name='x'/></p:nvGrpSpPr><p:grpSpPr/>"
                * 2_000
                + SHAPE
                + b"</p:grpSp>" * 2_000
                + b"</p:spTree>",
            )
        },
    ),
    "zip_twice": lambda: packed(docx(), {}) + docx(),
    "zip_many": lambda: zipped({f"ppt/{number}.xml": b"" for number in range(300_000)}),
    "gzip_tags": lambda: gzip.compress(b"<b>" * 2_100_000, 1),
    "docx_deep": lambda: docx(b"<w:tbl><w:tr><w:tc>" * 5_000 + b"</w:tc></w:tr></w:tbl>" * 5_000),
    "zip_slip": lambda: zipped({"../../../escaped": b"x", "word/document.xml": b"<x/>"}),
    "zip_lies": lying,
    "pdf_loop": lambda: pdf("2 0 R", 1),
    "pdf_pages": lambda: pdf(" ".join(f"{number + 5} 0 R" for number in range(3_000)), 3_000),
    "pdf_repeats": lambda: pdf("5 0 R " * 3_000, 1),
    "pdf_shows": lambda: pdf(
        " ".join(f"{n + 5} 0 R" for n in range(120)), 120, "(The same words. ) Tj " * 65_000
    ),
}


def text_of(pieces: list[object], share: int = 1) -> str:
    """Join the pieces of a case: a text, or [text, times], of which the share is taken."""
    return "".join(
        str(p[0]) * (int(p[1]) // share) if isinstance(p, list) else str(p) for p in pieces
    )
