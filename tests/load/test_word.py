"""Word and PowerPoint files: raised, moved and hidden text, and what stands in boxes."""

import io
import zipfile
from pathlib import Path

import pptx
import pytest

from storage.records import Part
from tasks.load.sources import read_sources
from tests.hostile.made import docx


def run(text: str, look: str = "") -> str:
    return f"<w:r><w:rPr>{look}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"


def high(text: str) -> str:
    return run(text, "<w:vertAlign w:val='superscript'/>")


def read(folder: Path) -> Part:
    loaded = read_sources([folder])
    assert not loaded.skipped
    return loaded.parts[0]


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        (run("The pond holds 10") + high("6") + run(" litres."), "The pond holds 10^6 litres."),
        (run("3.2×10") + high("-") + high("12") + run(" m"), "3.2×10^-12 m"),
        (run("It was sold in 1931") + high("2") + run("."), "It was sold in 1931^2."),
        (run("H") + run("2", "<w:vertAlign w:val='subscript'/>") + run("O"), "H2O"),
        (run("The 21") + high("st") + run(" pier"), "The 21st pier"),
        (run("x") + high("n") + run(" grows"), "x^n grows"),
        (run("Kestrel") + high("®") + run(" ferries"), "Kestrel® ferries"),
        (f"<w:moveFrom w:id='1'>{run('Old place.')}</w:moveFrom>{run('Rest.')}", "Rest."),
        (f"{run('Rest. ')}<w:moveTo w:id='1'>{run('New.')}</w:moveTo>", "Rest. New."),
        (f"<w:fldSimple w:instr='SEQ'>{run('7')}</w:fldSimple>{run(' piers')}", "7 piers"),
        (f"<w:dir w:val='rtl'>{run('גשר')}</w:dir>{run(' bridge')}", "גשר bridge"),
        (run("Seen.") + run(" Not seen.", "<w:vanish/>"), "Seen."),
    ],
)
def test_a_paragraph_is_read_as_it_looks(runs: str, text: str, tmp_path: Path) -> None:
    made = docx(f"<w:p>{run('It begins here.')}</w:p><w:p>{runs}</w:p>".encode())
    (tmp_path / "a.docx").write_bytes(made)
    assert read(tmp_path).text.rpartition("\n\n")[2] == text


def test_raised_digits_of_a_slide_stay_raised(tmp_path: Path) -> None:
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[1])
    slide.shapes.title.text = "Ponds"
    paragraph = slide.placeholders[1].text_frame.paragraphs[0]
    for text, baseline in (("10", ""), ("6", "30000"), (" litres of H", ""), ("2", "-25000")):
        added = paragraph.add_run()
        added.text = text
        if baseline:
            added.font._element.set("baseline", baseline)
    slides.save(str(tmp_path / "a.pptx"))
    assert read(tmp_path).text == "# Ponds\n10^6 litres of H2"


MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
COMPATIBLE = "http://schemas.openxmlformats.org/markup-compatibility/2006"
FORMULA = (
    f"<a14:m xmlns:a14='http://schemas.microsoft.com/office/drawing/2010/main'>"
    f"<m:oMathPara xmlns:m='{MATH}'><m:oMath><m:f>{{}}<m:num><m:r><m:t>a</m:t></m:r></m:num>"
    "<m:den><m:r><m:t>b</m:t></m:r></m:den></m:f></m:oMath></m:oMathPara></a14:m>"
)


@pytest.mark.parametrize(
    ("properties", "said"),
    [("<m:fPr/>", r"$\frac{a}{b}$"), ("", "a b")],
    ids=["as LaTeX", "as words where markitdown fails"],
)
def test_a_formula_on_a_slide_is_read(properties: str, said: str, tmp_path: Path) -> None:
    show = pptx.Presentation()
    box = show.slides.add_slide(show.slide_layouts[6]).shapes.add_textbox(0, 0, 9_000, 9_000)
    box.text_frame.text = "The share is "
    show.save(str(tmp_path / "made"))
    with (
        zipfile.ZipFile(tmp_path / "made") as made,
        zipfile.ZipFile(tmp_path / "a.pptx", "w") as to,
    ):
        for name in made.namelist():
            part = made.read(name).decode("utf-8", "surrogateescape")
            if name == "ppt/slides/slide1.xml":
                part = part.replace("</a:p>", f"{FORMULA.format(properties)}</a:p>")
                part = part.replace(
                    "<p:sp>",
                    f"<mc:AlternateContent xmlns:mc='{COMPATIBLE}'><mc:Choice><p:sp>",
                )
                part = part.replace(
                    "</p:sp>",
                    "</p:sp></mc:Choice><mc:Fallback><p:sp/></mc:Fallback></mc:AlternateContent>",
                )
            to.writestr(name, part.encode("utf-8", "surrogateescape"))
    (tmp_path / "made").unlink()
    assert read(tmp_path).text == f"The share is {said}"


def test_an_encrypted_part_is_reported(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("word/document.xml", "<x/>")
    marked = bytearray(made.getvalue())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        marked[marked.index(header) + flags] |= 1
    (tmp_path / "a.docx").write_bytes(marked)
    assert read_sources([tmp_path]).skipped[0].reason == "encrypted (a password is needed)"
