"""How do the PDF and DOCX files of the sample corpus come out of their text in `sources/`?

Run `python examples/make_binaries.py` with the packages below installed; the same text gives the
same bytes. They are needed to change these four documents only, so the project does not depend on
them.
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["python-docx==1.2.0", "reportlab==5.1.0"]
# ///

import re
import zipfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape

import docx
from docx.oxml import OxmlElement
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Spacer

HERE = Path(__file__).parent
PDFS = {
    "kestrel-bearing-manual": "manuals/kestrel-bearing-manual.pdf",
    "osf-annual-report-2023": "reports/osf-annual-report-2023.pdf",
}
DOCXS = {
    "well-switchover-procedure": "manuals/well-switchover-procedure.docx",
    "kestrel-survey-2024": "reports/kestrel-survey-2024.docx",
}
WRITTEN = datetime(2024, 4, 2, 9, 0, tzinfo=UTC)


class Block(NamedTuple):
    """A heading (`level` from 1), a paragraph, a numbered step (with its number) or a table (rows
    of cells).
    """

    kind: Literal["heading", "paragraph", "step", "table"]
    text: str = ""
    level: int = 0
    rows: tuple[tuple[str, ...], ...] = ()


def blocks_of(source: str) -> list[Block]:
    """The blocks of a source in its order. Only what the sources use is understood: #, 1., pipe
    tables, paragraphs.
    """
    blocks: list[Block] = []
    for part in re.split(r"\n\s*\n", source.strip()):
        if heading := re.fullmatch(r"(#+) (.+)", part):
            blocks.append(Block("heading", heading[2], level=len(heading[1])))
        elif part.startswith("| "):
            rows = [
                tuple(cell.strip() for cell in line.strip("| ").split("|"))
                for line in part.splitlines()
            ]
            blocks.append(Block("table", rows=tuple(row for row in rows if set(row) != {"---"})))
        elif re.match(r"1\. ", part):
            blocks.extend(Block("step", line) for line in part.splitlines())
        else:
            blocks.append(Block("paragraph", part))
    return blocks


def write_pdf(blocks: list[Block], target: Path) -> None:
    """Write an A4 PDF with a text layer. A table is an error: the PDF sources have none."""
    styles = getSampleStyleSheet()
    story: list[Flowable] = []
    for block in blocks:
        if block.kind == "table":
            raise ValueError(
                f"{target.name}: tables are written to DOCX only; move the table to a DOCX source"
            )
        style = styles[f"Heading{block.level}"] if block.kind == "heading" else styles["BodyText"]
        story += [Paragraph(escape(block.text), style), Spacer(1, 4)]
    title = blocks[0].text
    # `invariant` leaves the clock and random ids out of the file.
    SimpleDocTemplate(
        str(target), pagesize=A4, title=title, author="Sample corpus", invariant=1
    ).build(story)


def write_docx(blocks: list[Block], target: Path) -> None:
    """Write a DOCX with real headings, numbered steps as text, and grid tables whose first row is
    the header.
    """
    document = docx.Document()
    for block in blocks:
        if block.kind == "heading":
            document.add_heading(block.text, level=block.level)
        elif block.kind == "table":
            table = document.add_table(
                rows=len(block.rows), cols=len(block.rows[0]), style="Table Grid"
            )
            # Without this mark a reader takes the header for data; the library has no public way to
            # set it.
            table.rows[0]._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))  # noqa: SLF001
            for cells, row in zip(table.rows, block.rows, strict=True):
                for cell, text in zip(cells.cells, row, strict=True):
                    cell.text = text
        else:
            document.add_paragraph(block.text)
    about = document.core_properties
    about.title, about.author, about.created, about.modified = (
        blocks[0].text,
        "Sample corpus",
        WRITTEN,
        WRITTEN,
    )
    raw = BytesIO()
    document.save(raw)
    target.write_bytes(_with_fixed_dates(raw.getvalue()))


def _with_fixed_dates(archive: bytes) -> bytes:
    """The same ZIP archive with every member dated 1980-01-01, since the writer stamps the current
    time.
    """
    out = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(archive)) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(zipfile.ZipInfo(name), old.read(name), zipfile.ZIP_DEFLATED)
    return out.getvalue()


def main() -> None:
    """Write the four files into `corpus/`, replacing what is there."""
    for targets, write in ((PDFS, write_pdf), (DOCXS, write_docx)):
        for stem, path in targets.items():
            target = HERE / "corpus" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            write(blocks_of((HERE / "sources" / f"{stem}.md").read_text(encoding="utf-8")), target)


if __name__ == "__main__":
    main()
