"""Any bytes of a file, any filter and any reply give an error of ours or a sound result."""

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.answer import AnswerQuestion
from prompts.engine.adapter import StepAdapter
from prompts.engine.messages import NotAsAsked
from prompts.extract import Extract, ExtractGraph
from storage.errors import FilterError
from storage.filters import check_filter
from tasks.load.sources import read_sources
from tasks.tables.relations import relations_of
from tests.hostile.test_documents import sound

TOKENS = "( ) and or not = < in like is null , year title 'x' 1 2024-01-01 `".split()
FILTER = st.lists(st.sampled_from(TOKENS) | st.text(), max_size=12).map(" ".join)
SIGNS = ["E\t", "R\t", "END", "\n", "{", '"', "[", "found", ":"]
REPLY = st.lists(st.sampled_from(SIGNS) | st.text(), max_size=20).map("".join)
TEXT = st.text(max_size=400).map(lambda text: text.encode("utf-8", "replace"))


@pytest.mark.parametrize(
    "ending",
    [
        *("md", "html", "csv", "tsv", "json", "jsonl", "graphml", "txt.gz", "pdf", "docx", "xlsx"),
        *("eml", "xml", "py"),
    ],
)
@settings(max_examples=25)
@given(content=st.binary(max_size=400) | TEXT)
def test_any_bytes(ending: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, f"a.{ending}").write_bytes(content)
        relations_of(sound(read_sources([folder])))


@given(FILTER)
def test_any_filter(expression: str) -> None:
    with suppress(FilterError):
        check_filter(expression)


@given(REPLY)
def test_any_reply(reply: str) -> None:
    for form, signature in ((Extract.output_format, ExtractGraph), (StepAdapter(), AnswerQuestion)):
        with suppress(NotAsAsked):
            assert set(form.read(signature, reply)) == set(signature.output_fields)
