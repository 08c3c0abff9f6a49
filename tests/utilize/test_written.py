"""Figures that a model reads out of sentences: as they stand in the text, and only where the text speaks of them."""

import dspy
import pytest
from dspy.utils.dummies import DummyLM

from prompts.engine.models import Models
from prompts.language.table_plan import TablePlan
from prompts.structures.table import WriteTable
from storage.records import Document
from tasks.utilize.subjects import Subject
from tasks.utilize.written import nearest_to, with_written

TEXT = "Port Ister is old. Its throughput, all quays together, came to 1,308,463 boxes. Whales pass by in May of 2023."
PLAN = TablePlan(operation="lookup", attribute="throughput")


def subject(name: str) -> Subject:
    return Subject(name, name, (), ())


def document(name: str, text: str) -> Document:
    return Document(id=name, title=name, text=text, language="en", parts=())


def writer(raw: str) -> tuple[WriteTable, DummyLM]:
    made = WriteTable(Models.offline())
    cell = {"thing": "Port Ister", "attribute": 0, "raw": raw, "period": "", "sentence": 0}
    made.lm = model = DummyLM([{"table": {"cells": [cell]}}], adapter=dspy.JSONAdapter())
    return made, model


@pytest.mark.parametrize(("raw", "kept"), [("1,308,463", ["1,308,463"]), ("1308463", ["1,308,463"]), ("138463", [])])
async def test_a_figure_keeps_its_format_and_a_changed_one_is_refused(raw: str, kept: list[str]) -> None:
    made, _ = writer(raw)
    (found,) = await with_written(PLAN, [subject("ister")], {"ister": document("ister", TEXT)}, made)
    assert [TEXT[cell.start : cell.end] for cell in found.cells] == [cell.raw for cell in found.cells] == kept


async def test_a_document_that_does_not_speak_of_it_costs_no_call() -> None:
    made, model = writer("3")
    texts = {"ister": TEXT, "poem": "The sea is wide in 1931."}
    stored = {name: document(name, text) for name, text in texts.items()}
    found = await with_written(PLAN, [subject("ister"), subject("poem")], stored, made)
    assert len(model.history) == 1
    assert [len(one.cells) for one in found] == [0, 0]
    sent = model.history[0]["messages"][-1]["content"]
    assert "throughput" in sent
    assert "Whales" not in sent


def test_only_sentences_with_figures_are_shown() -> None:
    assert nearest_to("throughput", "The throughput is high. The throughput is 4.") == [(24, 44)]
