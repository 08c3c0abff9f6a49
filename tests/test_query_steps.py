"""Do the steps of a question work on a model: typed outputs, refused references, prompts as agreed?"""

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import dspy
import pytest
from dspy.utils import DummyLM
from prompts.reading.claims import Desk

from prompts.answer import AnswerQuestion, AnswerStep, AnswerWritten, read_written
from prompts.decompose import Decompose, DecomposeQuestion
from prompts.engine.models import Models
from prompts.engine.step import Step
from prompts.engine.wire import conversation
from prompts.filter import Filter, FilterKnowledge
from prompts.language.question import ask
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from prompts.structurize import BuildStructure, Structurize
from tasks.answer import bind
from tasks.evidence import Pool

GOLDEN = Path(__file__).parent / "golden"
QUESTION = "Who designed the Orla Bridge?"
UNSURE = "Who designed the Orla Bridge and who taught him in Velin?"
PIECES = (
    Evidence(0, "bridge", "Orla Bridge", "Orla Bridge was designed by Tomas Reyd."),
    Evidence(1, "bridge", "Orla Bridge", "It opened in 1931."),
)
Built = TypeVar("Built", bound=Step)


def scripted(step: type[Built], *answers: dict[str, Any]) -> Built:
    """A step whose model gives these answers in turn."""
    made = step(Models.offline())
    made.lm = DummyLM(list(answers), adapter=dspy.JSONAdapter())
    return made


def desk(question: str = QUESTION) -> Desk:
    taken = ask(question)
    return Desk(taken, PIECES, (), Relevance(taken, {}))


async def test_structurize_drops_elements_without_a_sentence() -> None:
    elements = [
        {"label": "Orla Bridge", "attribute": "designed by", "value": "Tomas Reyd", "sentence": 0},
        {"label": "Orla Bridge", "attribute": "owned by", "value": "nobody", "sentence": 7},
    ]
    model = scripted(Structurize, {"built": {"description": "who designed what", "elements": elements}})
    (built,) = await model.run("graph", PIECES, QUESTION)
    assert built.description == "Orla Bridge: 1 elements (who designed what)"
    assert [(one.number, one.value, one.text) for one in built.elements] == [(0, "Tomas Reyd", PIECES[0].text)]
    assert built.refused == 1


async def test_decompose_gives_the_parts_in_order() -> None:
    parts = ["Who designed the Orla Bridge?", "Where was {1} born?"]
    assert await scripted(Decompose, {"parts": {"questions": parts}}).run(ask(UNSURE), ["Bridges"]) == parts


async def test_answer_binds_sentences_to_evidence_and_drops_unknown_numbers() -> None:
    written = {
        "answer": "Tomas Reyd designed it [0, 8]. It opened in 1931 [1].",
        "values": ["Tomas Reyd"],
        "answerable": True,
    }
    reading = await scripted(AnswerStep, {"written": written}).run(desk(), [])
    assert [(said.text, said.evidence) for said in reading.claims] == [
        ("Tomas Reyd designed it", (0,)),
        ("It opened in 1931", (1,)),
    ]
    assert (reading.values, reading.support) == (("Tomas Reyd",), "none")


async def test_not_answerable_is_abstained() -> None:
    written = {"answer": "", "values": [], "answerable": False}
    reading = await scripted(AnswerStep, {"written": written}).run(desk(), [])
    assert (reading.support, reading.claims, reading.values) == ("abstained", (), ())


@pytest.mark.parametrize(
    ("answer", "support", "evidence"),
    [
        ("One [0][1].", "none", [(0, 1)]),
        ("One [0]. Two, which nothing shows.", "partial", [(0,), ()]),
        ("One [5]. Two [0].", "partial", [(), (0,)]),
        ("Nothing here is shown [7].", "abstained", []),
        ("Nothing here is cited.", "abstained", []),
    ],
)
def test_support_follows_from_the_markers(answer: str, support: str, evidence: list[tuple[int, ...]]) -> None:
    written = AnswerWritten(answer=answer, values=["x", "x "], answerable=True)
    reading = read_written(written, {0, 1}, ask(QUESTION))
    assert reading.support == support
    assert [said.evidence for said in reading.claims] == evidence
    assert reading.values == (() if support == "abstained" else ("x",))


def test_an_abstained_answer_has_no_citation() -> None:
    reading = read_written(AnswerWritten(answer="", answerable=False), {0}, ask("谁设计了奥拉桥?"))
    assert bind(reading, Pool((), ()), (), lambda names: {}) == ("文档中没有说明。", ())


ASKED: dict[type[dspy.Signature], dict[str, Any]] = {
    FilterKnowledge: {
        "question": QUESTION,
        "hypothesis": "The passage answers the question.",
        "known": ["Orla Bridge is in Velin."],
        "passages": ["[0] Orla Bridge was designed by Tomas Reyd.", "[1] It opened in 1931."],
    },
    BuildStructure: {
        "question": QUESTION,
        "structure": "graph",
        "title": "Orla Bridge",
        "sentences": ["[0] Orla Bridge was designed by Tomas Reyd."],
    },
    DecomposeQuestion: {"question": QUESTION, "knowledge": ["Orla Bridge: 2 elements"]},
    AnswerQuestion: {
        "question": QUESTION,
        "found": [],
        "evidence": ["[0] Orla Bridge: Orla Bridge was designed by Tomas Reyd."],
    },
}


@pytest.mark.parametrize("step", [AnswerStep, Decompose, Filter, Structurize])
def test_a_query_prompt_reads_like_the_golden_one(step: type[Step]) -> None:
    messages = conversation(step.step, step.task, step.wire, (), ASKED[step.task])
    rendered = "\n".join(f"--- {message.role}\n{message.content}" for message in messages) + "\n"
    assert rendered == (GOLDEN / f"prompt_{step.task.__name__}.txt").read_text(encoding="utf-8")


async def test_what_the_structure_read_out_of_prose_reaches_the_answering_model() -> None:
    triple = replace(PIECES[0], label="Orla Bridge", attribute="designed by", value="Tomas Reyd")
    seen: list[str] = []

    class Watched(AnswerStep):
        async def _written(self, **inputs: object) -> AnswerWritten:
            seen.extend(cast("list[str]", inputs["evidence"]))
            return AnswerWritten(answer="Tomas Reyd [0].", answerable=True)

    step = Watched(Models.offline())
    step.lm = DummyLM([])
    taken = ask(QUESTION)
    await step.run(Desk(taken, PIECES, (triple,), Relevance(taken, {})), [])
    assert seen[0].endswith("designed by Tomas Reyd. {Orla Bridge -[designed by]-> Tomas Reyd}")
    assert not seen[1].endswith("}")
