"""Is the sentence that holds the answer found, and what is asked for picked out of it?"""

import pytest

from tests.reading.test_reading import BRIDGES, read

PAGES = {
    "Northern Gale": "Northern Gale is a 1952 drama film produced by Ivo Lamm and directed by Ana Korb. "
    "It was shown in Velin for a year.",
    "Ana Korb": "Ana Korb (1 March 1911 – 7 June 1990) was an Orlish film director from Port Sarn. "
    "She married the baker Ivo Lamm.",
    "Clonbar": "Clonbar is a village in the Hule district of Orland.",
    "Mill House": "The Mill House is a house in Rosk, Sarn, United States, designed by architect Una Stahl.",
    "Stores": "Shops stand in Velin (785), Rosk (186) and Port Sarn (35).",
}
PICKED = [
    ("Who directed Northern Gale?", ["Northern Gale"], "Ana Korb"),
    ("When was Ana Korb born?", ["Ana Korb"], "1 March 1911"),
    ("When did Ana Korb die?", ["Ana Korb"], "7 June 1990"),
    ("What nationality was Ana Korb?", ["Ana Korb"], "Orlish"),
    ("In which country is Clonbar?", ["Clonbar"], "Orland"),
    ("In which state is the Mill House located?", ["Mill House"], "Sarn"),
    ("How many shops stand in Port Sarn?", ["Port Sarn"], "35"),
]


@pytest.mark.parametrize(("question", "names", "value"), PICKED, ids=[row[0] for row in PICKED])
def test_the_value_is_of_the_kind_asked_for(question: str, names: list[str], value: str) -> None:
    assert read(question, PAGES, names).values == (value,)


PAGE_ZH = {
    "五羊新城": "五羊新城(Wuyang)是广州的一个住宅小区。五羊新城由东华实业开发,于1987年落成。区内有四所中小学。",
    "林投姐": "林投姐是1956年的电影。导演是丁善玺。影片获得了两座奖杯。",
    "曹文埴": "曹文埴(1735年-1798年),清朝官员。著有《石鼓砚斋文钞》、《直庐集》等。因母亲年老而辞官回乡。",
}
PICKED_ZH = [
    ("五羊新城由哪个公司开发?", ["五羊新城"], "东华实业"),
    ("林投姐的导演是谁?", ["林投姐"], "丁善玺"),
    ("林投姐获得了几座奖杯?", ["林投姐"], "两座"),
    ("五羊新城落成于哪一年?", ["五羊新城"], "1987年"),
]


@pytest.mark.parametrize(("question", "names", "value"), PICKED_ZH, ids=[row[0] for row in PICKED_ZH])
def test_a_chinese_value_stands_where_the_question_has_its_asking_word(
    question: str, names: list[str], value: str
) -> None:
    assert read(question, PAGE_ZH, names).values == (value,)


def test_works_are_given_with_their_marks() -> None:
    reading = read("曹文埴写了哪些著作?", PAGE_ZH, ["曹文埴"])
    assert reading.values == ("《石鼓砚斋文钞》、《直庐集》",)


def test_a_reason_is_looked_for_where_reasons_stand() -> None:
    reading = read("曹文埴为什么辞官?", PAGE_ZH, ["曹文埴"])
    assert reading.claims[0].text.startswith("因母亲年老")


@pytest.mark.parametrize(
    "question",
    ["Who directed Southern Calm?", "When was Marta Voss born?", "In which country is Brunnhold?", "海风镇的镇长是谁?"],
)
def test_of_what_no_evidence_names_nothing_is_said(question: str) -> None:
    reading = read(question, {**PAGES, **PAGE_ZH})
    assert (reading.support, reading.claims, reading.values) == ("abstained", (), ())


def test_a_triple_is_said_as_a_sentence() -> None:
    reading = read(
        "Who designed the Gull Bridge?", {"Bridges": "Tomas Reyd -[designed]-> Gull Bridge"}, ["Gull Bridge"]
    )
    assert reading.values == ("Tomas Reyd",)
    assert [said.text for said in reading.claims] == ["Tomas Reyd designed Gull Bridge."]


def test_a_triple_of_another_relation_lists_nothing() -> None:
    texts = {"Facts": "Tomas Reyd -[designed]-> Orla Bridge\nTomas Reyd -[founded]-> Reyd & Sons", **BRIDGES}
    assert read("Which bridges did Tomas Reyd design?", texts, ["Tomas Reyd"]).values == ("Orla Bridge",)


def test_of_a_row_the_value_is_said_first() -> None:
    rows = {"Bridges": "name: Gannet Bridge | designer: Ivo Lamm | opened: 1950"}
    reading = read("Who designed the Gannet Bridge?", rows, ["Gannet Bridge"])
    assert (reading.lead, reading.values) == ("Ivo Lamm.", ("Ivo Lamm",))
