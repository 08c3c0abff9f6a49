"""EPUB, OpenDocument, RTF, LaTeX, reStructuredText and notebooks, read by the real pandoc."""

import importlib.util
import io
import json
import logging
import zipfile
from pathlib import Path

import pytest

from storage.records import Document
from tasks.load.pandoc import read_by_pandoc
from tasks.load.sources import compose, read_sources

MISSING = importlib.util.find_spec("pypandoc") is None
needs_pandoc = pytest.mark.skipif(MISSING, reason="the extra `formats` is not installed")
SOURCE = r"""---
title: Orla Bridge
author: Ada Korb
---

# Loads

The load is $\frac{m g}{2}$ and was measured in 1931.[^1]

| port | fee |
|------|-----|
| Velin | 120 |

[^1]: By Tomas Reyd.

# 历史

奥拉桥于1931年通车。
"""
TABLE = "| port | fee |\n| --- | --- |\n| Velin | 120 |"
LATEX = r"""\documentclass{article}
\newcommand{\load}{\mathcal{L}}
\title{On Bridges}\author{Ada Korb}
\begin{document}\maketitle
\section{Loads}
As \cite{reyd} says, $\load = \frac{m g}{2}$.
\begin{align} E &= mc^2 \\ F &= ma \end{align}
\input{/etc/passwd}
\begin{tabular}{l|r} port & fee \\ \hline Velin & 120 \end{tabular}
\end{document}
"""
RESTRUCTURED = """
Orla Bridge
===========

The load is :math:`a^2`.

.. csv-table::
   :header: port, fee

   Velin, 120

.. note:: Keep the weir closed.
"""
FRAME = "<table><tr><th>port</th><th>fee</th></tr><tr><td>Velin</td><td>120</td></tr></table>"


def cell(kind: str, source: str, *outputs: object) -> dict[str, object]:
    ran = {"execution_count": 1, "outputs": outputs} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": [source], **ran}


NOTEBOOK = {
    "cells": [
        cell("markdown", "# Loads\n\nWith $E=mc^2$."),
        cell(
            "code",
            "def f(x):\n    return x < 2",
            {"output_type": "stream", "name": "stdout", "text": ["total 42\n"]},
            {
                "output_type": "display_data",
                "metadata": {},
                "data": {"text/plain": "Velin", "text/html": f"{FRAME}<script>1</script>"},
            },
        ),
        cell("raw", "raw words"),
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def written_by_pandoc(path: Path) -> Path:
    import pypandoc

    options = ["--mathml"] if path.suffix == ".epub" else []
    pypandoc.convert_text(
        SOURCE, path.suffix[1:], "markdown", outputfile=path, extra_args=["-s", *options]
    )
    return path


def read(path: Path) -> Document:
    loaded = read_sources([path])
    assert not loaded.skipped
    return compose(loaded.parts)[0]


def reason(path: Path) -> str:
    (skipped,) = read_sources([path]).skipped
    return skipped.reason


@needs_pandoc
@pytest.mark.parametrize("ending", ["epub", "odt", "rtf"])
def test_a_book_or_letter_keeps_headings_tables_and_notes(ending: str, tmp_path: Path) -> None:
    document = read(written_by_pandoc(tmp_path / f"a.{ending}"))
    assert document.title == "Orla Bridge"
    assert "# Loads\n\nThe load is" in document.text
    assert TABLE in document.text
    assert "# 历史\n\n奥拉桥于1931年通车。" in document.text
    assert len(document.parts[0].tables) == 1
    assert ("By Tomas Reyd." in document.text) == (ending != "rtf")


@needs_pandoc
def test_formulas_of_a_book_are_tex(tmp_path: Path) -> None:
    assert r"The load is $\frac{m g}{2}$ and" in read(written_by_pandoc(tmp_path / "a.epub")).text


@needs_pandoc
def test_latex_keeps_formulas_tables_and_citations(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.tex").write_text(LATEX)
    with caplog.at_level(logging.WARNING):
        document = read(tmp_path / "a.tex")
    assert (document.title, document.metadata) == ("On Bridges", {"author": "Ada Korb"})
    assert r"As [reyd] says, $\mathcal{L}= \frac{m g}{2}$." in document.text
    assert r"$$\begin{align} E &= mc^2 \\ F &= ma \end{align}$$" in document.text
    assert TABLE in document.text
    assert "root:" not in document.text
    assert "/etc/passwd" in caplog.text


@needs_pandoc
def test_a_notebook_keeps_cells_and_their_output(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(json.dumps(NOTEBOOK))
    assert read(tmp_path / "a.ipynb").text == "\n\n".join(
        [
            "# Loads\n\nWith $E=mc^2$.",
            "```\ndef f(x):\n    return x < 2\n```",
            "```\ntotal 42\n```",
            TABLE,
            "raw words",
        ]
    )


@needs_pandoc
def test_restructured_text_keeps_its_directives(tmp_path: Path) -> None:
    (tmp_path / "a.rst").write_text(RESTRUCTURED)
    document = read(tmp_path / "a.rst")
    assert document.title == "Orla Bridge"
    for words in ("The load is $a^2$.", TABLE, "Keep the weir closed."):
        assert words in document.text


def test_restructured_text_with_rows_elsewhere_stays_plain(tmp_path: Path) -> None:
    text = "Orla\n====\n\n.. csv-table::\n   :file: /etc/passwd\n\nThe fee is 55."
    (tmp_path / "a.rst").write_text(text)
    assert read(tmp_path / "a.rst").text == text


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        (rb"\ansicpg936 \'b0\'c2\'c0\'ad\'c7\'c5", "奥拉桥"),
        (rb"\ansicpg1251 \'cc\'ee\'f1\'f2", "Мост"),
        (rb"\ansicpg932 \'83A\'83C\'83\'5c", "アイソ"),  # Half a sign is an ASCII letter.
        (rb"\ansicpg1252{\fonttbl{\f1\fcharset134 S;}}{\f1 \'b0\'c2}caf\'e9", "奥café"),
        (rb"\ansicpg936\uc2 \u22885\'b0\'c2\u25289\'c0\'ad\'c7\'c5", "奥拉桥"),
        (rb"\ansicpg936\uc0 \u22885 \'f7\'c8", "奥魅"),
        (
            rb"\u22885?xyz caf\u233\'e9s {\pard\uc2\u22885 ??1931}\u233 ?s",
            "奥xyz cafés\n\n奥1931és",
        ),
        (rb"\u-24679?caf\'e9", "龙café"),
    ],
)
@needs_pandoc
def test_rtf_is_read_in_any_code_page(markup: bytes, words: str) -> None:
    assert read_by_pandoc(rb"{\rtf1\ansi" + markup + rb"\par}", "a.rtf").text == words


def archive(**files: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as written:
        for name, text in files.items():
            written.writestr(name.replace("__", "/").replace("_xml", ".xml"), text)
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "a.odt",
            archive(
                mimetype="application/vnd.oasis.opendocument.text",
                **{"META-INF__manifest_xml": "<manifest:encryption-data/>"},
            ),
            "encrypted",
        ),
        (
            "a.epub",
            archive(
                mimetype="application/epub+zip",
                **{"META-INF__encryption_xml": "<CipherReference URI='OEBPS/1.xhtml'/>"},
            ),
            "encrypted",
        ),
        ("a.epub", b"PK\x03\x04 broken", "broken file"),
        ("a.txt", archive(mimetype="application/epub+zip"), "name it .epub"),
        ("a.txt", rb"{\rtf1 Orla}", "name it .rtf"),
        pytest.param("a.ipynb", b'{"cells": 3}', "broken .ipynb", marks=needs_pandoc),
        pytest.param("a.tex", rb"\begin{document} \textbf{a", "broken .tex", marks=needs_pandoc),
        pytest.param("a.odt", archive(a="b"), "broken .odt", marks=needs_pandoc),
    ],
)
def test_a_locked_or_broken_file_is_skipped(
    name: str, content: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    assert said in reason(tmp_path / name)


@pytest.mark.skipif(not MISSING, reason="the extra `formats` is installed")
def test_without_the_extra_the_reason_names_it(tmp_path: Path) -> None:
    (tmp_path / "a.tex").write_text(LATEX)
    assert reason(tmp_path / "a.tex").endswith("pip install 'trellis-rag[formats]'")
