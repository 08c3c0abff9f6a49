"""Is a question whose parts need different structures answered part by part, each with its route and its sources?"""

import re
from pathlib import Path

from flows.query import ask
from prompts.reading.claims import Reading, Support
from storage.records import Answer, Citation, RouteDecision
from tasks.answer import Answered
from tasks.join_parts import PartAnswered, join_parts
from tests.flows.conftest import Command
from tests.server.client import Server

TWO = "When was the Orla Bridge opened, and what connects Orla Bridge and Ana Korb?"
WHOLE = "Who designed Orla Bridge, and who taught Tomas Reyd?"


def markers(text: str) -> set[str]:
    return set(re.findall(r"\[\d+\]", text))


def routes(answer: Answer) -> list[str | None]:
    return [part.route.type if part.route else None for part in answer.trace.subquestions]


def test_each_part_gets_its_own_structure_and_all_are_told(indexed: Path) -> None:
    answer = ask(TWO, workspace=indexed)
    assert routes(answer) == ["chunk", "graph"]
    assert [part.question for part in answer.trace.subquestions] == [
        "When was the Orla Bridge opened?",
        "What connects Orla Bridge and Ana Korb?",
    ]
    assert answer.values[0] == "1931", "the values of the parts, in their order"
    assert answer.trace.structure == "chunk + graph"
    assert answer.trace.question_type == "nested"
    assert answer.trace.route.reason.startswith("each part by itself: chunk (")
    assert markers(answer.answer) == {citation.marker for citation in answer.citations}
    assert [citation.marker for citation in answer.citations] == [f"[{n + 1}]" for n in range(len(answer.citations))]
    assert all(citation.verified for citation in answer.citations)


def test_a_chinese_question_too(indexed: Path) -> None:
    answer = ask("奥拉桥是哪一年通车的？另外，奥拉桥和托马斯·雷德之间有什么关系？", workspace=indexed)
    assert routes(answer) == ["chunk", "graph"]
    assert answer.values[0] == "1931年"


def test_a_part_that_points_back_is_asked_with_what_was_answered(indexed: Path) -> None:
    answer = ask("Who designed Orla Bridge, and how is he connected to Ana Korb?", workspace=indexed)
    assert [part.question for part in answer.trace.subquestions] == [
        "Who designed Orla Bridge?",
        "How is Tomas Reyd connected to Ana Korb?",
    ]


def test_one_structure_serves_all_parts_where_they_agree(indexed: Path) -> None:
    answer = ask(WHOLE, workspace=indexed)
    assert set(routes(answer)) == {None}
    assert " + " not in answer.trace.structure


def test_a_structure_that_is_asked_for_is_that_of_the_whole(indexed: Path) -> None:
    answer = ask(TWO, workspace=indexed, structure="table")
    assert answer.trace.route.reason == "asked for by the caller"
    assert set(routes(answer)) == {None}


def test_a_model_answers_the_parts_as_well(copied: Command, model_server: Server) -> None:
    answer = copied("ask", TWO, "--json").json
    assert [part["route"]["type"] for part in answer["trace"]["subquestions"]] == ["chunk", "graph"]
    assert model_server.stats()["steps"]["answer"]["calls"] == 2
    again = copied("ask", TWO, "--json").json
    assert (again["answer"], again["usage"]["calls"]) == (answer["answer"], 0)


def test_a_router_that_fails_is_an_error_and_no_answer(copied: Command, model_server: Server) -> None:
    model_server.misbehave({"kind": "malformed", "step": "route"})
    done = copied("ask", "Tell me why the Orla Bridge mattered in the end", "--json")
    assert done.code == 1
    assert "route" in done.err
    assert "sorry" not in (done.out + done.err).lower()


# --- the joining ---


def cited(number: int, start: int) -> Citation:
    return Citation(
        marker=f"[{number}]", document="d", title="D", chunk=f"chk_{start}", start=start, end=start + 3, page=None,
        quote="abc", verified=True,
    )  # fmt: skip


def part(question: str, text: str, *places: Citation, support: Support = "none", value: str = "") -> PartAnswered:
    reading = Reading(values=(value,) if value else (), support=support)
    route = RouteDecision(type="chunk", confidence=1.0, margin=1.0, reason="")
    return PartAnswered(question, route, Answered(text, reading, places, ()))


def test_markers_are_numbered_through_and_a_place_keeps_its_number() -> None:
    one = part("A?", "One. [1]\nTwo. [2]", cited(1, 0), cited(2, 10), value="x")
    two = part("B?", "Three says [1] of it. [1][2]", cited(1, 10), cited(2, 20), value="x")
    joined = join_parts([one, two])
    assert joined.text == "One. [1]\nTwo. [2]\nThree says [1] of it. [2][3]", "a quote's own brackets stay"
    assert [(one.marker, one.start) for one in joined.citations] == [("[1]", 0), ("[2]", 10), ("[3]", 20)]
    assert joined.reading.values == ("x",)
    assert [sub.evidence for sub in joined.subquestions] == [("chk_0", "chk_10"), ("chk_10", "chk_20")]


def test_a_part_without_an_answer_is_named_and_the_whole_is_partial() -> None:
    known, unknown = part("A?", "One. [1]", cited(1, 0)), part("B?", "The documents do not say.", support="abstained")
    joined = join_parts([known, unknown])
    assert (joined.reading.support, joined.text) == ("partial", "One. [1]\nB? The documents do not say.")
    assert join_parts([known, known]).reading.support == "none"
    silent = join_parts([unknown, unknown])
    assert (silent.reading.support, silent.text, silent.citations) == ("abstained", "The documents do not say.", ())
