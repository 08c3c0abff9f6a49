"""Is a model asked only where rules are not sure, and does it read no more than the budget allows?"""

import dspy
import pytest
from dspy.utils import DummyLM
from prompts.reading.claims import Desk

from prompts.answer import EVIDENCE_TOKENS, AnswerStep
from prompts.decompose import Decompose
from prompts.engine.calls import rough_tokens
from prompts.engine.models import Models
from prompts.language.question import ask
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from prompts.reading.sure import is_plain, nearest
from prompts.structurize import Structurize
from storage.records import RouteDecision
from tasks.evidence import Place, Pool
from tasks.route import hop_count
from tasks.structurize.step import structurize

PLAIN = ("When was Teutberga born?", "Who designed the Orla Bridge?", "奥拉桥何时通车？")
NOT_PLAIN = (
    "Are Orla Bridge and Kestrel Bridge in the same country?",
    "Who designed the Orla Bridge and when did it open?",
    "Tell me why Teutberga mattered in the end",
    "奥拉桥的设计者的老师是谁？",
)


def silent(step: type[dspy.Module]) -> tuple[dspy.Module, DummyLM]:
    """A step with a model that has nothing to say."""
    made, model = step(Models.offline()), DummyLM([], adapter=dspy.JSONAdapter())
    made.lm = model
    return made, model


def piece(number: int, text: str, document: str = "d") -> Evidence:
    return Evidence(number, document, document.title(), text)


@pytest.mark.parametrize("question", PLAIN)
def test_a_short_question_for_one_thing_is_plain(question: str) -> None:
    assert is_plain(ask(question))
    assert hop_count(ask(question)) == 1


@pytest.mark.parametrize("question", NOT_PLAIN)
def test_other_questions_are_not_plain(question: str) -> None:
    assert not is_plain(ask(question))


async def test_a_chain_that_rules_take_apart_is_not_sent_to_a_model() -> None:
    made, model = silent(Decompose)
    assert await made.run(ask("Where was the father of Teutberga born?"), []) == [
        "Who is the father of Teutberga?",
        "Where was {1} born?",
    ]
    assert model.history == []


async def test_all_documents_are_structured_in_one_call() -> None:
    texts = ["Orla Bridge was designed by Tomas Reyd.", "Kestrel Bridge was designed by Ana Korb."]
    pieces = tuple(piece(number, text, f"d{number}") for number, text in enumerate(texts))
    places = tuple(
        Place(document=p.document, title=p.title, chunk=p.document, start=0, end=len(p.text)) for p in pieces
    )
    made = Structurize(Models.offline())
    element = {"label": "Kestrel Bridge", "attribute": "designed by", "value": "Ana Korb", "sentence": 1}
    model = DummyLM([{"built": {"description": "who", "elements": [element]}}], adapter=dspy.JSONAdapter())
    made.lm = model
    route = RouteDecision(type="graph", confidence=1.0, margin=1.0, reason="")
    relevance = Relevance(ask("Who designed the Orla Bridge?"), {})
    found = await structurize(route, Pool(pieces, places), relevance, made)
    assert [(one.number, one.value) for one in found.elements] == [(1, "Ana Korb")]
    assert len(model.history) == 1
    plain = await structurize(route.model_copy(update={"type": "chunk"}), Pool(pieces, places), relevance, made)
    assert len(plain.elements) == 2
    assert len(model.history) == 1


async def test_an_answer_reads_the_nearest_evidence_within_its_budget() -> None:
    taken = ask("Who designed the Orla Bridge?")
    many = [piece(number, f"Note {number} on baking bread from flour in an oven of stone.") for number in range(400)]
    told = piece(400, "Orla Bridge was designed by Tomas Reyd.")
    made = AnswerStep(Models.offline())
    written = {"answer": "Tomas Reyd designed it [400].", "values": ["Tomas Reyd"], "answerable": True}
    model = DummyLM([{"written": written}], adapter=dspy.JSONAdapter())
    made.lm = model
    reading = await made.run(Desk(taken, [*many, told], (), Relevance(taken, {})), [])
    assert reading.claims[0].evidence == (400,)
    assert rough_tokens(model.history[0]["messages"][-1]["content"]) < 1.3 * EVIDENCE_TOKENS + 200


def test_one_piece_is_always_shown() -> None:
    long = piece(0, "word " * 500)
    assert nearest([long], Relevance(ask("Who?"), {}), 10) == [long]
