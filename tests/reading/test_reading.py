"""Does the offline reader say what the evidence says, and nothing else?"""

from collections.abc import Mapping, Sequence

import pytest

from prompts.answer import answer_offline
from prompts.language.concepts import concept_terms
from prompts.language.question import ask
from prompts.reading.claims import Desk, Reading
from prompts.reading.compare import amount_of
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from prompts.structures.checks import StructureName
from prompts.structurize import structurize_offline
from storage.records import Chunk
from tasks.evidence import Pool, pool_of


def chunk(document: str, title: str, text: str, number: int = 0) -> Chunk:
    return Chunk(
        id=f"chk_{document}_{number}", document=document, title=title, ordinal=number, start=0, end=len(text),
        text=text, language="en", tokens=len(text) // 4,
    )  # fmt: skip


def pool(texts: Mapping[str, str]) -> Pool:
    return pool_of([chunk(title.lower().replace(" ", "-"), title, text) for title, text in texts.items()])


def read(
    question: str, texts: Mapping[str, str], names: Sequence[str] = (), structure: StructureName | None = None
) -> Reading:
    """What is read from documents (title → text) where the question is known to name these things."""
    taken, found = ask(question), pool(texts)
    relevance = Relevance(taken, dict.fromkeys(concept_terms(taken.text), 1.0), dict.fromkeys(names, ()))
    elements = structurize_offline(structure, found.evidence, relevance).elements if structure else []
    return answer_offline(Desk(taken, found.evidence, elements, relevance))


BRIDGES = {
    "Orla Bridge": "Orla Bridge was designed by Tomas Reyd. It opened in 1931 and is 412 metres long.",
    "Stone Bridge": "Stone Bridge was designed by Ana Korb. It opened in 1902 and is 97 metres long.",
}
PEOPLE = {
    "Tomas Reyd": "Tomas Reyd (born 4 May 1890) was an Orlan engineer from Velin, Sarn province, Orland.",
    "Ana Korb": "Ana Korb (born 1 March 1890) was an engineer and painter from Tarn, Sarn province, Orland.",
    "Ivo Lamm": "Ivo Lamm (born 1911) was a baker from Rosk, Hule province, Orland.",
}


def test_a_fact_is_the_sentence_with_its_value() -> None:
    reading = read("Who designed the Orla Bridge?", BRIDGES, ["Orla Bridge"])
    assert (reading.values, reading.support) == (("Tomas Reyd",), "none")
    assert [said.text for said in reading.claims] == ["Orla Bridge was designed by Tomas Reyd."]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("How much did the Orla Bridge cost?", ["Orla Bridge"]),
        ("Who painted the Orla Bridge's ceiling?", ["Orla Bridge"]),
        ("When was Mill Dam flooded?", ["Mill Dam"]),
        ("奥拉桥的造价是多少?", ["奥拉桥"]),
    ],
)
def test_what_is_not_said_is_not_answered(question: str, names: list[str]) -> None:
    reading = read(question, BRIDGES, names)
    assert (reading.support, reading.values, reading.claims) == ("abstained", (), ())


def test_a_comparison_names_the_winner_with_its_figure_as_written() -> None:
    reading = read("Which is longer, Orla Bridge or Stone Bridge?", BRIDGES, ["Orla Bridge", "Stone Bridge"], "table")
    assert (reading.values, reading.lead, len(reading.claims)) == (("Orla Bridge",), "Orla Bridge: 412 metres.", 2)
    first = read(
        "Which was opened first, Orla Bridge or Stone Bridge?", BRIDGES, ["Orla Bridge", "Stone Bridge"], "table"
    )
    assert first.values == ("Stone Bridge",)


def test_dates_of_one_year_are_compared_by_month_and_day() -> None:
    reading = read("Who is older, Tomas Reyd or Ana Korb?", PEOPLE, ["Tomas Reyd", "Ana Korb"])
    assert reading.values == ("Ana Korb",)
    ordered = ["1890", "3 January 1890", "1 March 1890", "1890-03-02", "1890年3月5日", "4 May 1890", "Dec 1890", "1891"]
    amounts = [amount_of(date, "date") for date in ordered]
    assert amounts == sorted(amounts, key=lambda number: number or 0.0)
    assert len(set(amounts)) == len(ordered)


def test_one_figure_of_two_is_offered_as_partial() -> None:
    texts = {"Orla Bridge": BRIDGES["Orla Bridge"], "Stone Bridge": "Stone Bridge was designed by Ana Korb."}
    reading = read("Which is longer, Orla Bridge or Stone Bridge?", texts, ["Orla Bridge", "Stone Bridge"], "table")
    assert (reading.support, reading.values) == ("partial", ())


BOTH = [
    ("Are Tomas Reyd and Ana Korb both engineers?", ["Tomas Reyd", "Ana Korb"], "yes"),
    ("Are Tomas Reyd and Ivo Lamm both engineers?", ["Tomas Reyd", "Ivo Lamm"], "no"),
    ("Are Tomas Reyd and Ana Korb from the same province?", ["Tomas Reyd", "Ana Korb"], "yes"),
    ("Are Tomas Reyd and Ivo Lamm from the same province?", ["Tomas Reyd", "Ivo Lamm"], "no"),
    ("Are Tomas Reyd and Ivo Lamm from the same country?", ["Tomas Reyd", "Ivo Lamm"], "yes"),
]


@pytest.mark.parametrize(("question", "names", "word"), BOTH, ids=[row[0] for row in BOTH])
def test_what_is_asked_of_two_things_is_looked_up_for_each(question: str, names: list[str], word: str) -> None:
    reading = read(question, PEOPLE, names)
    assert reading.values == (word,)
    assert len(reading.claims) == 2


ROWS = {
    "Bridges": "name: Gannet Bridge | designer: Ivo Lamm | opened: 1950\n"
    "name: Orla Bridge | designer: Tomas Reyd | opened: 1931"
}
NO = [
    ("Was the Gannet Bridge designed by Tomas Reyd?", ROWS, ["Gannet Bridge", "Tomas Reyd"], "no"),
    ("Did Ana Korb design Mill Dam?", {"Mill": "Ana Korb did not design Mill Dam."}, ["Ana Korb", "Mill Dam"], "no"),
    ("科尔布是否设计了石桥?", {"石桥": "科尔布没有设计石桥。"}, ["科尔布", "石桥"], "否"),
]


@pytest.mark.parametrize(("question", "texts", "names", "word"), NO, ids=[row[0] for row in NO])
def test_no_is_said_with_the_evidence_for_it(
    question: str, texts: Mapping[str, str], names: list[str], word: str
) -> None:
    reading = read(question, texts, names)
    assert (reading.values, reading.support) == ((word,), "none")
    assert reading.claims[0].evidence


@pytest.mark.parametrize("named", [["Mill Dam", "Una Stahl"], ["Mill Dam"]])
def test_of_the_unknown_neither_yes_nor_no_is_said(named: list[str]) -> None:
    assert read("Did Una Stahl build Mill Dam?", BRIDGES, named).support == "abstained"


def test_a_list_names_each_thing_once() -> None:
    texts = {
        "Tomas Reyd": "Tomas Reyd designed Orla Bridge. Tomas Reyd designed Gull Bridge.",
        "Bridges": "Tomas Reyd -[designed]-> Orla Bridge",
    }
    reading = read("Which bridges did Tomas Reyd design?", texts, ["Tomas Reyd"], "graph")
    assert sorted(reading.values) == ["Gull Bridge", "Orla Bridge"]


STEPS = "# Changing the bearings\n\n1. Close the lane.\n2. Lift the deck by 0.6 mm.\n3. Change the bearing.\n\nDone."
STEPS_ZH = "# 更换轴承的步骤\n\n1. 关闭车道。\n2. 将桥面抬高0.6毫米。\n3. 更换轴承。\n\n完成。"


@pytest.mark.parametrize(
    ("question", "title", "text", "second"),
    [
        ("How do I change the bearings?", "Bearing manual", STEPS, "2. Lift the deck by 0.6 mm."),
        ("如何更换轴承?", "轴承手册", STEPS_ZH, "2. 将桥面抬高0.6毫米。"),
        ("更换轴承的步骤是什么?", "轴承手册", STEPS_ZH, "2. 将桥面抬高0.6毫米。"),
    ],
)
def test_a_procedure_is_told_step_by_step_in_order(question: str, title: str, text: str, second: str) -> None:
    reading = read(question, {title: text, **BRIDGES}, structure="algorithm")
    assert [said.text[:2] for said in reading.claims] == ["1.", "2.", "3."]
    assert reading.claims[1].text == second


def test_best_first_is_the_same_order_as_ranking_everything() -> None:
    found = pool({**BRIDGES, **PEOPLE})
    relevance = Relevance(ask("Which engineer designed the Orla Bridge?"), {}, {"Orla Bridge": ()})
    ranked = relevance.rank(found.evidence)
    keys = [(-scored.score, scored.evidence.number) for scored in ranked]
    assert keys == sorted(keys)
    assert [scored.evidence.number for scored in relevance.rank(tuple(reversed(found.evidence)))] == [
        scored.evidence.number for scored in ranked
    ]


TEXT = (
    "# Orla\n\n- First point.\n- Second point.\n\n| a | b |\n| --- | --- |\n| x | 1 |\n\n1. Step one.\n2. Step two.\n"
)


def test_units_quote_their_place_and_shared_stretches_count_once() -> None:
    one = chunk("d", "D", TEXT)
    two = one.model_copy(update={"id": "chk_other", "ordinal": 1})
    found = pool_of([one, two])
    assert len(found.evidence) == len(pool_of([one]).evidence)
    for piece in found.evidence:
        place = found.places[piece.number]
        assert TEXT[place.start : place.end] == piece.text
    assert [piece.cells for piece in found.evidence if piece.cells] == [(("a", "x"), ("b", "1"))]


def test_a_pool_grows_without_renumbering() -> None:
    grown = pool(BRIDGES).plus(
        [chunk("orla-bridge", "Orla Bridge", BRIDGES["Orla Bridge"]), chunk("n", "New", "New text.")]
    )
    numbers = [piece.number for piece in grown.evidence]
    assert numbers == list(range(len(grown.places)))
    assert isinstance(grown.evidence[-1], Evidence)
    assert grown.evidence[-1].text == "New text."


LONG = {
    "Orla Bridge": "Orla Bridge is of stone. It is 412 metres long and cost 3 million crowns.",
    "Stone Bridge": "Stone Bridge cost 9 million crowns. It is 97 metres long.",
}


def test_lengths_are_compared_by_lengths() -> None:
    for question in (
        "Which is longer, the Orla Bridge or the Stone Bridge?",
        "Which of the Orla Bridge and the Stone Bridge is the longest?",
    ):
        assert read(question, LONG, ["Orla Bridge", "Stone Bridge"]).values == ("Orla Bridge",)


def test_nobody_is_where_something_was_founded() -> None:
    texts = {"Orla Mill": "Orla Mill was founded in Velin in 1871 by Ana Korb, the widow of a baker."}
    assert read("Who founded Orla Mill?", texts, ["Orla Mill"]).values == ("Ana Korb",)


def test_asked_about_today_what_still_holds_is_read() -> None:
    texts = {
        "Orla Institute": "Tomas Reyd was the director of the Orla Institute until 2018. "
        "Since 2018 the director of the Orla Institute is Ana Korb."
    }
    assert read("Who is the director of the Orla Institute?", texts, ["Orla Institute"]).values == ("Ana Korb",)


def test_a_figure_that_counts_something_else_is_no_answer() -> None:
    texts = {"Tomas Reyd": "Tomas Reyd left 2,300 drawings when he had designed 47 bridges."}
    assert read("How many bridges did Tomas Reyd design?", texts, ["Tomas Reyd"]).values == ("47",)
    alone = {"Tomas Reyd": "Tomas Reyd designed bridges, and left 2,300 drawings of them."}
    assert "2,300" not in read("How many bridges did Tomas Reyd design?", alone, ["Tomas Reyd"]).values
