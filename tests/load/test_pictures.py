"""Text in scans and pictures, recognised by the real program (the extra `ocr`)."""

import io
import json
import shutil
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pptx
import pypdfium2
import pytest
from PIL import Image, ImageDraw, ImageFont
from pptx.util import Inches

from storage.records import Document
from tasks.load.pictures import READER, PictureReader
from tasks.load.sources import compose, read_sources
from tests.hostile.made import RELATIONS, SAMPLE, packed

NOTICE = Path(__file__).with_name("notice-zh.png")
needs_ocr = pytest.mark.skipif(not find_spec("rapidocr"), reason="needs the extra `ocr`")
HELD = "Sluice gate opened at 07:45"


@cache
def drawn(*lines: str, size: tuple[int, int] = (700, 120)) -> Image.Image:
    """Lines in Pillow's own font, black on white."""
    image = Image.new("L", size, "white")
    for number, line in enumerate(lines):
        font = ImageFont.load_default(34)
        ImageDraw.Draw(image).text((30, 30 + 54 * number), line, fill="black", font=font)
    return image


def png(image: Image.Image) -> bytes:
    made = io.BytesIO()
    image.save(made, "PNG")
    return made.getvalue()


def scan(path: Path) -> Path:
    """A PDF of three pages without characters."""
    pages = [
        drawn("Harbour Report", "The bridge was designed by Ada Frimm.", size=(850, 1100)),
        drawn("Harbour Report", "The lighthouse keeper was Jonas Korb.", size=(850, 1100)),
        drawn("Harbour Report", "The ferry to Orla leaves at noon.", size=(850, 1100)),
    ]
    pages[0].save(path, save_all=True, append_images=pages[1:], resolution=100)
    return path


def read(path: Path, kept: "Kept | None" = None) -> Document:
    token = READER.set(PictureReader(kept))
    try:
        loaded = read_sources([path])
    finally:
        READER.reset(token)
    assert not loaded.skipped
    (document,) = compose(loaded.parts)
    return document


class Kept(dict[str, str]):
    """Texts by key, as a workspace keeps them."""

    def put(self, key: str, answer: str) -> None:
        self[key] = answer


def in_slides(folder: Path) -> Path:
    show = pptx.Presentation()
    for title in ("Ferries", "Sluices"):
        slide = show.slides.add_slide(show.slide_layouts[5])
        slide.shapes.title.text = title
    slide.shapes.add_picture(io.BytesIO(png(drawn(HELD))), Inches(1), Inches(2))
    show.save(str(folder / "a.pptx"))
    return folder / "a.pptx"


BLIP = (
    "<w:p><w:r><w:drawing><wp:inline xmlns:wp='http://schemas.openxmlformats.org/drawingml/2006/"
    "wordprocessingDrawing'><a:graphic xmlns:a='http://schemas.openxmlformats.org/drawingml/2006/main'>"
    "<a:graphicData><pic:pic xmlns:pic='http://schemas.openxmlformats.org/drawingml/2006/picture'>"
    f"<pic:blipFill><a:blip xmlns:r='{RELATIONS}' r:embed='rP'/></pic:blipFill></pic:pic>"
    "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>"
)
RELATION = f"<Relationship Id='rP' Type='{RELATIONS}/image' Target='media/p.png'/>"


def in_word(folder: Path) -> Path:
    made = packed(
        SAMPLE.read_bytes(),
        {
            "word/document.xml": (b"</w:body>", BLIP.encode() + b"</w:body>"),
            "word/_rels/document.xml.rels": (
                b"</Relationships>",
                RELATION.encode() + b"</Relationships>",
            ),
        },
        **{"word/media/p.png": png(drawn(HELD))},
    )
    (folder / "a.docx").write_bytes(made)
    return folder / "a.docx"


def in_pdf(folder: Path) -> Path:
    """A page with a line of characters above a picture, and one below it."""
    document = pypdfium2.PdfDocument.new()
    page = document.new_page(400, 300)
    picture = pypdfium2.PdfImage.new(document)
    picture.set_bitmap(pypdfium2.PdfBitmap.from_pil(drawn(HELD).convert("RGB")))
    picture.set_matrix(pypdfium2.PdfMatrix().scale(350, 60).translate(20, 120))
    page.insert_obj(picture)
    for at, words in ((250, "Stands above it."), (40, "Stands below it.")):
        raw = pypdfium2.raw
        text = raw.FPDFPageObj_NewTextObj(document, b"Helvetica", 12)
        encoded = (words + "\0").encode("utf-16-le")
        raw.FPDFText_SetText(text, (raw.FPDF_WCHAR * (len(words) + 1)).from_buffer_copy(encoded))
        raw.FPDFPageObj_Transform(text, 1, 0, 0, 1, 20, at)
        raw.FPDFPage_InsertObject(page, text)
    page.gen_content()
    document.save(folder / "a.pdf")
    return folder / "a.pdf"


@needs_ocr
def test_a_scan_is_read_page_by_page(tmp_path: Path) -> None:
    document = read(scan(tmp_path / "report.pdf"))
    words = ("Ada Frimm", "Jonas Korb", "noon")
    assert [document.page_of(document.text.index(word)) for word in words] == [1, 2, 3]
    assert "Harbour Report" not in document.text  # the running head
    for place in document.recognized:
        assert document.page_of(place.start) == place.page
        assert place.confidence > 0.8
        left, top, right, bottom = place.box
        assert 0 < left < right < 1
        assert 0 < top < bottom < 1


@needs_ocr
@pytest.mark.parametrize("ending", ["png", "jpg", "tif", "webp"])
def test_a_chinese_picture_is_a_document(ending: str, tmp_path: Path) -> None:
    with Image.open(NOTICE) as notice:
        notice.convert("L").save(tmp_path / f"a.{ending}")
    document = read(tmp_path / f"a.{ending}")
    assert document.title == "港口通知"
    assert document.language == "zh"
    assert "灯塔看守人是周文远" in document.text


@needs_ocr
@pytest.mark.parametrize(
    ("made", "before", "after", "page"),
    [
        (in_word, "six vacancies.", "", None),
        (in_slides, "# Sluices", "", 2),
        (in_pdf, "Stands above it.", "Stands below it.", 1),
    ],
)
def test_a_picture_is_read_in_its_place(
    made: Callable[[Path], Path], before: str, after: str, page: int | None, tmp_path: Path
) -> None:
    document = read(made(tmp_path))
    start, end = document.text.index(before), document.text.index(HELD)
    assert document.text[start + len(before) : end].isspace()
    assert document.text[end + len(HELD) :].strip() == after
    (place,) = document.recognized
    assert document.text[place.start : place.end] == HELD
    assert place.page == document.page_of(place.start) == page


@needs_ocr
def test_what_was_recognised_is_kept_by_the_picture(tmp_path: Path) -> None:
    kept = Kept()
    shutil.copy(NOTICE, tmp_path / "a.png")
    first = read(tmp_path / "a.png", kept).text
    ((key, readings),) = kept.items()
    kept[key] = readings.replace("周文远", "李文远")
    assert read(tmp_path / "a.png", kept).text == first.replace("周文远", "李文远")
    assert json.loads(kept[key])


@pytest.mark.skipif(bool(find_spec("rapidocr")), reason="the extra `ocr` is installed")
@pytest.mark.parametrize("name", ["a.png", "a.pdf"])
def test_without_the_extra_the_remedy_is_told(name: str, tmp_path: Path) -> None:
    drawn(HELD).save(tmp_path / name)
    (skipped,) = read_sources([tmp_path / name]).skipped
    assert "pip install 'trellis-rag[ocr]'" in skipped.reason


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (png(drawn(HELD))[:300], "broken picture"),
        (b"GIF89a" + bytes(40), "broken picture"),
        (b"%PDF-1.7", "a PDF file under the name of .png"),
    ],
)
def test_a_broken_picture_says_why(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(content)
    (skipped,) = read_sources([tmp_path / "a.png"]).skipped
    assert skipped.reason.startswith(reason)
